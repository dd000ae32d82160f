// Views are index rewrites: no node for them, no buffer, and reshapes of equal products leave no division.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop | FileCheck %s

// CHECK-LABEL: loop.program @views
// CHECK-NOT:     loop.buffer :
// CHECK:         loop.pointwise [batch, 6, 4]
// CHECK-NEXT:      loop.load %{{.*}} [d0, 4*d1 + d2 + 1]
// CHECK-NEXT:      math.exp
// CHECK-NEXT:      loop.store %{{.*}}, %{{.*}} [d0, d1, d2]
func.func @views(%x: tensor<?x25xf32, #prim.dims<[batch, 25]>>) -> tensor<?x6x4xf32, #prim.dims<[batch, 6, 4]>>
    attributes {prim.symbols = {batch = #prim.symbol<1, 64, divisor = 1, hint = 8>}} {
  %s = prim.slice %x [0, 1], [1, 1] : tensor<?x25xf32, #prim.dims<[batch, 25]>> -> tensor<?x24xf32, #prim.dims<[batch, 24]>>
  %r = prim.reshape %s : tensor<?x24xf32, #prim.dims<[batch, 24]>> -> tensor<?x6x4xf32, #prim.dims<[batch, 6, 4]>>
  %e = prim.exp %r : tensor<?x6x4xf32, #prim.dims<[batch, 6, 4]>>
  return %e : tensor<?x6x4xf32, #prim.dims<[batch, 6, 4]>>
}
