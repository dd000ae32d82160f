// A clone for each combination of sizes, constants instead of the symbols, guards that choose it.
// RUN: ptc-opt %s --ptc-specialize-functions | FileCheck %s

// CHECK: func.func @main(%arg0: tensor<?x?xf32, #prim.dims<[b, s]>>)
// CHECK-NOT: prim.buckets
// CHECK-SAME: prim.guards = [#prim.expr<lt(s, 100)>, #prim.expr<eq(b, t)>]

// The pinned symbols stay declared; guards that hold are gone.
// CHECK: func.func @main_s_8_t_1(%arg0: tensor<?x8xf32, #prim.dims<[b, 8]>>)
// CHECK-SAME: prim.guards = [#prim.expr<eq(b, 1)>, #prim.expr<eq(s, 8)>, #prim.expr<eq(t, 1)>]
// CHECK-SAME: prim.pins = {s = 8 : i64, t = 1 : i64}
// CHECK-SAME: s = #prim.symbol<8, 8, divisor = 1, hint = 8>
// CHECK-SAME: prim.variant_of = @main
// CHECK: prim.exprs [16]
// CHECK: prim.bind "u0" = %{{.*}} at_most 64
// CHECK: prim.guard lt(u0, 8)

// A type without a free dim has no encoding.
// CHECK: func.func @main_s_4_t_1
func.func @main(%x: tensor<?x?xf32, #prim.dims<[b, s]>>) -> tensor<?x?xf32, #prim.dims<[b, s]>>
    attributes {prim.buckets = {s = array<i64: 8, 4>, t = array<i64: 1>},
                prim.guards = [#prim.expr<lt(s, 100)>, #prim.expr<eq(b, t)>],
                prim.symbols = {b = #prim.symbol<1, 64, divisor = 1, hint = 4>, s = #prim.symbol<1, 64, divisor = 1, hint = 16>,
                                t = #prim.symbol<1, 64, divisor = 1, hint = 4>, u0 = #prim.symbol<0, 64, divisor = 1, hint = 4>}} {
  %sizes = prim.exprs [2*s] : tensor<1xsi64>
  %size = prim.reshape %sizes : tensor<1xsi64> -> tensor<si64>
  prim.bind "u0" = %size at_most 8*s : tensor<si64>
  prim.guard lt(u0, s)
  %y = prim.neg %x : tensor<?x?xf32, #prim.dims<[b, s]>>
  return %y : tensor<?x?xf32, #prim.dims<[b, s]>>
}
