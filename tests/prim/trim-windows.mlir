// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-trim-windows))' | FileCheck %s

// Only the middle of a wide window is ever inside.
// CHECK-LABEL: func.func @wide
// CHECK:         %[[W:.*]] = prim.slice %arg1 [0, 0, 1, 1], [1, 1, 1, 1] : tensor<4x8x3x3xf32> -> tensor<4x8x1x1xf32>
// CHECK:         prim.convolution %arg0, %[[W]] strides [1, 1] dilations [24, 24] low [0, 0] groups 1
func.func @wide(%x: tensor<1x8x14x14xf32>, %w: tensor<4x8x3x3xf32>) -> tensor<1x4x14x14xf32> {
  %y = prim.convolution %x, %w strides [1, 1] dilations [24, 24] low [24, 24] groups 1
      : (tensor<1x8x14x14xf32>, tensor<4x8x3x3xf32>) -> tensor<1x4x14x14xf32>
  return %y : tensor<1x4x14x14xf32>
}

// One side of one dim; what is inside for one result stays.
// CHECK-LABEL: func.func @side
// CHECK:         %[[W:.*]] = prim.slice %arg1 [0, 0, 1, 0], [1, 1, 1, 1] : tensor<4x8x3x3xf32> -> tensor<4x8x2x3xf32>
// CHECK:         prim.convolution %arg0, %[[W]] strides [1, 1] dilations [2, 13] low [0, 13] groups 1
func.func @side(%x: tensor<1x8x14x14xf32>, %w: tensor<4x8x3x3xf32>) -> tensor<1x4x1x14xf32> {
  %y = prim.convolution %x, %w strides [1, 1] dilations [2, 13] low [2, 13] groups 1
      : (tensor<1x8x14x14xf32>, tensor<4x8x3x3xf32>) -> tensor<1x4x1x14xf32>
  return %y : tensor<1x4x1x14xf32>
}

// A free extent may reach the outer taps, and those that crop the image stay.
// CHECK-LABEL: func.func @others
// CHECK-NOT:     prim.slice
func.func @others(%x: tensor<1x8x14x?xf32, #prim.dims<[1, 8, 14, s]>>, %w: tensor<4x8x1x3xf32>) -> tensor<1x4x14x?xf32, #prim.dims<[1, 4, 14, s]>> {
  %y = prim.convolution %x, %w strides [1, 1] dilations [1, 24] low [0, 24] groups 1
      : (tensor<1x8x14x?xf32, #prim.dims<[1, 8, 14, s]>>, tensor<4x8x1x3xf32>) -> tensor<1x4x14x?xf32, #prim.dims<[1, 4, 14, s]>>
  return %y : tensor<1x4x14x?xf32, #prim.dims<[1, 4, 14, s]>>
}
