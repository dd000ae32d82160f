// Products of bytes take four neighbours at once: a view that parts them is stored, one that keeps them together is not.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --split-input-file | FileCheck %s

// CHECK-LABEL: loop.program @shuffled
// CHECK: loop.pointwise [1, 8, 4, 4]
// CHECK-NEXT: loop.load %{{.*}} [0, floordiv(d1, 2) + 4*mod(d1, 2), d2, d3]
// CHECK: loop.contraction
func.func @shuffled(%q: tensor<1x8x4x4xui8>, %w: tensor<16x8x1x1xsi8>) -> tensor<1x16x4x4xsi32> {
  %r = prim.reshape %q : tensor<1x8x4x4xui8> -> tensor<1x2x4x4x4xui8>
  %t = prim.transpose %r, [0, 2, 1, 3, 4] : tensor<1x2x4x4x4xui8> -> tensor<1x4x2x4x4xui8>
  %s = prim.reshape %t : tensor<1x4x2x4x4xui8> -> tensor<1x8x4x4xui8>
  %x = prim.convert %s : tensor<1x8x4x4xui8> -> tensor<1x8x4x4xsi32>
  %f = prim.convert %w : tensor<16x8x1x1xsi8> -> tensor<16x8x1x1xsi32>
  %y = prim.convolution %x, %f strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x8x4x4xsi32>, tensor<16x8x1x1xsi32>) -> tensor<1x16x4x4xsi32>
  return %y : tensor<1x16x4x4xsi32>
}

// -----

// CHECK-LABEL: loop.program @heads
// CHECK-NOT: loop.pointwise
// CHECK: loop.contraction
// CHECK-NEXT: loop.load %{{.*}} [floordiv(d2, 8), d0, mod(d2, 8)]
func.func @heads(%q: tensor<2x6x8xui8>, %w: tensor<16x4xsi8>) -> tensor<6x4xsi32> {
  %t = prim.transpose %q, [1, 0, 2] : tensor<2x6x8xui8> -> tensor<6x2x8xui8>
  %r = prim.reshape %t : tensor<6x2x8xui8> -> tensor<6x16xui8>
  %x = prim.convert %r : tensor<6x16xui8> -> tensor<6x16xsi32>
  %f = prim.convert %w : tensor<16x4xsi8> -> tensor<16x4xsi32>
  %y = prim.matmul %x, %f : (tensor<6x16xsi32>, tensor<16x4xsi32>) -> tensor<6x4xsi32>
  return %y : tensor<6x4xsi32>
}
