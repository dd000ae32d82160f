// Products read rows wherever they lie: what is computed below windows of an image lies in the image's order, for one
// product and for a joint one. A sum reads the windows' own order.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop | FileCheck %s

// CHECK-LABEL: loop.program @joint
// CHECK:         loop.pointwise [4, 6, 8] {
// CHECK:           math.exp
// CHECK-NEXT:      loop.store %{{.*}}, %[[E:.*]] [d0, d1, d2]
// CHECK-NOT:     loop.pointwise
// CHECK:         loop.contraction [3, 4, 6, 8, 8] batch 1 m 2 n 1 k 1 lhs {
// CHECK-NEXT:      loop.load %[[E]] [2*floordiv(d1, 2) + floordiv(d2, 3), 3*mod(d1, 2) + mod(d2, 3), d4]
func.func @joint(%x: tensor<4x6x8xf32>, %w: tensor<3x8x8xf32>) -> tensor<3x4x6x8xf32> {
  %e = prim.exp %x : tensor<4x6x8xf32>
  %s = prim.reshape %e : tensor<4x6x8xf32> -> tensor<2x2x2x3x8xf32>
  %t = prim.transpose %s, [0, 2, 1, 3, 4] : tensor<2x2x2x3x8xf32> -> tensor<2x2x2x3x8xf32>
  %r = prim.reshape %t : tensor<2x2x2x3x8xf32> -> tensor<4x6x8xf32>
  %b = prim.broadcast %r, [1, 2, 3] : tensor<4x6x8xf32> -> tensor<3x4x6x8xf32>
  %p = prim.matmul %b, %w : (tensor<3x4x6x8xf32>, tensor<3x8x8xf32>) -> tensor<3x4x6x8xf32>
  return %p : tensor<3x4x6x8xf32>
}

// CHECK-LABEL: loop.program @sum
// CHECK:         loop.pointwise [4, 6, 8] {
// CHECK:           math.exp
// CHECK-NEXT:      loop.store %{{.*}}, %[[W:.*]] [d0, d1, d2]
// CHECK:         loop.reduction
// CHECK:           loop.load %[[W]] [d1, d2, d3]
func.func @sum(%x: tensor<4x6x8xf32>, %y: tensor<3x4x6x8xf32>) -> tensor<3x4x6xf32> {
  %e = prim.exp %x : tensor<4x6x8xf32>
  %s = prim.reshape %e : tensor<4x6x8xf32> -> tensor<2x2x2x3x8xf32>
  %t = prim.transpose %s, [0, 2, 1, 3, 4] : tensor<2x2x2x3x8xf32> -> tensor<2x2x2x3x8xf32>
  %r = prim.reshape %t : tensor<2x2x2x3x8xf32> -> tensor<4x6x8xf32>
  %b = prim.broadcast %r, [1, 2, 3] : tensor<4x6x8xf32> -> tensor<3x4x6x8xf32>
  %p = prim.mul %b, %y : tensor<3x4x6x8xf32>
  %q = prim.reduce sum %p, [3] : tensor<3x4x6x8xf32> -> tensor<3x4x6xf32>
  return %q : tensor<3x4x6xf32>
}
