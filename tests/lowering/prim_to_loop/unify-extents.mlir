// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-unify-extents | FileCheck %s
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-unify-extents --ptc-elide-copies | FileCheck %s --check-prefix=ELIDED

// A quotient that a guard makes equal to something else is written as that, the guard itself stays.
// CHECK-LABEL: loop.program @join
// CHECK-SAME:    [4*floordiv(h + 31, 32), 8] x f32
// CHECK-SAME:    guards = [#prim.expr<eq(floordiv(h + 7, 8), 4*floordiv(h + 31, 32))>]
// CHECK-NOT:     h + 7
// CHECK:         loop.pointwise [4*floordiv(h + 31, 32), 3]
// CHECK-NOT:     h + 7

// So what is joined with larger parts, and read elsewhere, is written into the joined buffer.
// ELIDED-LABEL: loop.program @join
// ELIDED:         loop.pointwise [4*floordiv(h + 31, 32), 3]
// ELIDED:           math.exp
// ELIDED:           loop.store {{.*}}, %[[BOTH:.*]] [d0, d1 + 5]
// ELIDED:         loop.pointwise [4*floordiv(h + 31, 32), 3]
// ELIDED:           loop.load %[[BOTH]] [d0, d1 + 5]
// ELIDED:           math.tanh
// ELIDED-NOT:     loop.pointwise
func.func @join(%x: tensor<?x3xf32, #prim.dims<[floordiv(h + 7, 8), 3]>>,
                %y: tensor<?x5xf32, #prim.dims<[4*floordiv(h + 31, 32), 5]>>)
    -> (tensor<?x8xf32, #prim.dims<[4*floordiv(h + 31, 32), 8]>>, tensor<?x3xf32, #prim.dims<[floordiv(h + 7, 8), 3]>>)
    attributes {prim.guards = [#prim.expr<eq(floordiv(h + 7, 8), 4*floordiv(h + 31, 32))>],
                prim.symbols = {h = #prim.symbol<1, 4096, divisor = 1, hint = 64>}} {
  %a = prim.exp %x : tensor<?x3xf32, #prim.dims<[floordiv(h + 7, 8), 3]>>
  %b = prim.neg %y : tensor<?x5xf32, #prim.dims<[4*floordiv(h + 31, 32), 5]>>
  %c = prim.concat %b, %a axis 1 : (tensor<?x5xf32, #prim.dims<[4*floordiv(h + 31, 32), 5]>>,
      tensor<?x3xf32, #prim.dims<[floordiv(h + 7, 8), 3]>>) -> tensor<?x8xf32, #prim.dims<[4*floordiv(h + 31, 32), 8]>>
  %t = prim.tanh %a : tensor<?x3xf32, #prim.dims<[floordiv(h + 7, 8), 3]>>
  return %c, %t : tensor<?x8xf32, #prim.dims<[4*floordiv(h + 31, 32), 8]>>,
      tensor<?x3xf32, #prim.dims<[floordiv(h + 7, 8), 3]>>
}
