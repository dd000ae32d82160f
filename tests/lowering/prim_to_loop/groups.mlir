// A convolution of few channels a group is a sum over the window and the group's channels, whose lanes can run along the
// channels of all groups; a group's channels lie before them in the weight. Groups that fill panels stay products.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop=widest-lane-group=8 --ptc-elide-copies --ptc-assign-layouts --ptc-pack-weights | FileCheck %s
// RUN: ptc-opt %s --ptc-lower-prim-to-loop | FileCheck %s --check-prefix=PRODUCT

// CHECK-LABEL: loop.program @groups_of_four
// CHECK: loop.weight {{.*}} recipe <extents = [3, 3, 4, 32], strides = [3, 1, 9, 36]
// CHECK: loop.reduction [1, 32, 9, 8, 3, 3, 4] reduced 3
// CHECK: loop.load %{{.*}}[0, d2 + d4 - 1, d3 + d5 - 1, d6 + 4*floordiv(d1, 4)]
// CHECK: loop.load %{{.*}}[d4, d5, d6, d1]
// PRODUCT-LABEL: loop.program @groups_of_four
// PRODUCT: loop.contraction [8, 1, 9, 8, 4, 3, 3, 4] batch 1
func.func @groups_of_four(%x: tensor<1x9x8x32xf32>) -> tensor<1x32x9x8xf32> {
  %a = prim.weight <"a", "", 0, 4608> : tensor<32x4x3x3xf32>
  %t = prim.transpose %x, [0, 3, 1, 2] : tensor<1x9x8x32xf32> -> tensor<1x32x9x8xf32>
  %c = prim.convolution %t, %a strides [1, 1] dilations [1, 1] low [1, 1] groups 8 : (tensor<1x32x9x8xf32>, tensor<32x4x3x3xf32>) -> tensor<1x32x9x8xf32>
  return %c : tensor<1x32x9x8xf32>
}

// Twice as many columns as channels: a product.
// CHECK-LABEL: loop.program @more_columns
// CHECK: loop.contraction [8, 1, 9, 8, 8, 3, 3, 4] batch 1
func.func @more_columns(%x: tensor<1x32x9x8xf32>) -> tensor<1x64x9x8xf32> {
  %a = prim.weight <"b", "", 0, 9216> : tensor<64x4x3x3xf32>
  %c = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [1, 1] groups 8 : (tensor<1x32x9x8xf32>, tensor<64x4x3x3xf32>) -> tensor<1x64x9x8xf32>
  return %c : tensor<1x64x9x8xf32>
}
