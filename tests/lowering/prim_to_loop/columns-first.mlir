// Without panels, weights of a window beside channels that lie innermost are [column][window...][channel], as libraries
// read them; those of groups are the columns of all of them.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts --ptc-pack-weights=panel-width=0 | FileCheck %s

// CHECK-LABEL: loop.program @window
// CHECK:         loop.weight <"a", {{.*}}> recipe <extents = [24, 3, 3, 16], strides = [144, 3, 1, 9]
// CHECK:         loop.contraction
func.func @window(%x: tensor<1x9x8x16xf32>) -> tensor<1x24x9x8xf32> {
  %a = prim.weight <"a", "", 0, 13824> : tensor<24x16x3x3xf32>
  %t = prim.transpose %x, [0, 3, 1, 2] : tensor<1x9x8x16xf32> -> tensor<1x16x9x8xf32>
  %c = prim.convolution %t, %a strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x16x9x8xf32>, tensor<24x16x3x3xf32>) -> tensor<1x24x9x8xf32>
  return %c : tensor<1x24x9x8xf32>
}

// CHECK-LABEL: loop.program @groups
// CHECK:         loop.weight <"a", {{.*}}> recipe <extents = [48, 3, 3, 8], strides = [72, 3, 1, 9]
// CHECK:         loop.contraction
func.func @groups(%x: tensor<2x7x8x32xf32>) -> tensor<2x48x7x8xf32> {
  %a = prim.weight <"a", "", 0, 13824> : tensor<48x8x3x3xf32>
  %t = prim.transpose %x, [0, 3, 1, 2] : tensor<2x7x8x32xf32> -> tensor<2x32x7x8xf32>
  %c = prim.convolution %t, %a strides [1, 1] dilations [1, 1] low [1, 1] groups 4 : (tensor<2x32x7x8xf32>, tensor<48x8x3x3xf32>) -> tensor<2x48x7x8xf32>
  return %c : tensor<2x48x7x8xf32>
}

// Channels that lie outermost stay there, and columns in the order of the walk.
// CHECK-LABEL: loop.program @first
// CHECK:         loop.weight <"a", {{.*}}> recipe <extents = [16, 3, 24, 3]
func.func @first(%x: tensor<1x16x9x8xf32>) -> tensor<1x24x9x8xf32> {
  %a = prim.weight <"a", "", 0, 13824> : tensor<24x16x3x3xf32>
  %c = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x16x9x8xf32>, tensor<24x16x3x3xf32>) -> tensor<1x24x9x8xf32>
  return %c : tensor<1x24x9x8xf32>
}

// A row times a matrix: its weight stays as it is.
// CHECK-LABEL: loop.program @row
// CHECK-NOT:     recipe
func.func @row(%x: tensor<1x64xf32>) -> tensor<1x32xf32> {
  %a = prim.weight <"a", "", 0, 8192> : tensor<64x32xf32>
  %c = prim.matmul %x, %a : (tensor<1x64xf32>, tensor<64x32xf32>) -> tensor<1x32xf32>
  return %c : tensor<1x32xf32>
}
