// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies | FileCheck %s

// Rounds stack images, channels last: what they are joined of is written where it stays, and that is the result.
// CHECK:      loop.program @images({{.*}} | %[[RESULT:[a-z0-9]+]]
// CHECK: loop.repeat
// CHECK-NOT: loop.buffer
// CHECK: %[[IMAGE:.+]] = loop.part %[[RESULT]] from 840*image : {{.+}} -> <[5, 7, 24]
// CHECK-NOT: loop.buffer
// CHECK: loop.pointwise [1, 8, 5, 7]
// CHECK: loop.store %{{.+}}, %[[IMAGE]] [d2, d3, d1]
// CHECK: loop.pointwise [1, 16, 5, 7]
// CHECK: loop.store %{{.+}}, %[[IMAGE]] [d2, d3, d1 + 8]
// CHECK-NOT: loop.pointwise
func.func @images(%x: tensor<3x8x5x7xf32>, %y: tensor<3x16x5x7xf32>) -> tensor<3x5x7x24xf32>
    attributes {prim.symbols = {}, prim.guards = []} {
  %r = prim.loop "image" below 3 states() over(%x, %y) {
  ^bb0(%a: tensor<8x5x7xf32>, %b: tensor<16x5x7xf32>):
    %c = prim.reshape %a : tensor<8x5x7xf32> -> tensor<1x8x5x7xf32>
    %d = prim.reshape %b : tensor<16x5x7xf32> -> tensor<1x16x5x7xf32>
    %e = prim.tanh %c : tensor<1x8x5x7xf32>
    %f = prim.exp %d : tensor<1x16x5x7xf32>
    %g = prim.concat %e, %f axis 1 : (tensor<1x8x5x7xf32>, tensor<1x16x5x7xf32>) -> tensor<1x24x5x7xf32>
    %h = prim.transpose %g, [0, 2, 3, 1] : tensor<1x24x5x7xf32> -> tensor<1x5x7x24xf32>
    %i = prim.reshape %h : tensor<1x5x7x24xf32> -> tensor<5x7x24xf32>
    prim.yield %i : tensor<5x7x24xf32>
  } : (tensor<3x8x5x7xf32>, tensor<3x16x5x7xf32>) -> tensor<3x5x7x24xf32>
  return %r : tensor<3x5x7x24xf32>
}
