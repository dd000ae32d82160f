// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-simplify-algebra))' | FileCheck %s

// Zeros around the pixels are the border of all convolutions that read them.
// CHECK-LABEL: func.func @zeros
// CHECK-NOT:     prim.pad
// CHECK:         prim.convolution %arg0, %arg1 strides [1, 1] dilations [1, 1] low [2, 1] groups 1
// CHECK:         prim.convolution %arg0, %arg1 strides [2, 2] dilations [1, 1] low [1, 0] groups 1
func.func @zeros(%x: tensor<1x8x10x12xf32>, %w: tensor<4x8x3x3xf32>) -> (tensor<1x4x12x12xf32>, tensor<1x4x5x6xf32>) {
  %zero = prim.constant dense<0.0> : tensor<f32>
  %p = prim.pad constant %x, %zero [0, 0, 1, 0] : (tensor<1x8x10x12xf32>, tensor<f32>) -> tensor<1x8x12x13xf32>
  %a = prim.convolution %p, %w strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x8x12x13xf32>, tensor<4x8x3x3xf32>) -> tensor<1x4x12x12xf32>
  %b = prim.convolution %p, %w strides [2, 2] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x8x12x13xf32>, tensor<4x8x3x3xf32>) -> tensor<1x4x5x6xf32>
  return %a, %b : tensor<1x4x12x12xf32>, tensor<1x4x5x6xf32>
}

// Other numbers, mirrored pixels, channels, what is cropped, and what something else reads.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-5: prim.pad
// CHECK-COUNT-5: prim.convolution {{.*}} low [0, 0]
func.func @others(%x: tensor<1x8x10x12xf32>, %few: tensor<1x7x10x12xf32>, %w: tensor<4x8x3x3xf32>)
    -> (tensor<1x4x10x10xf32>, tensor<1x4x10x10xf32>, tensor<1x4x8x10xf32>, tensor<1x4x8x10xf32>, tensor<1x4x10x10xf32>, tensor<1x8x12x12xf32>) {
  %zero = prim.constant dense<0.0> : tensor<f32>
  %one = prim.constant dense<1.0> : tensor<f32>
  %p = prim.pad constant %x, %one [0, 0, 1, 0] : (tensor<1x8x10x12xf32>, tensor<f32>) -> tensor<1x8x12x12xf32>
  %q = prim.pad reflect %x, %zero [0, 0, 1, 0] : (tensor<1x8x10x12xf32>, tensor<f32>) -> tensor<1x8x12x12xf32>
  %r = prim.pad constant %few, %zero [0, 1, 0, 0] : (tensor<1x7x10x12xf32>, tensor<f32>) -> tensor<1x8x10x12xf32>
  %s = prim.pad constant %x, %zero [0, 0, -1, 0] : (tensor<1x8x10x12xf32>, tensor<f32>) -> tensor<1x8x10x12xf32>
  %t = prim.pad constant %x, %zero [0, 0, 1, 0] : (tensor<1x8x10x12xf32>, tensor<f32>) -> tensor<1x8x12x12xf32>
  %a = prim.convolution %p, %w strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x8x12x12xf32>, tensor<4x8x3x3xf32>) -> tensor<1x4x10x10xf32>
  %b = prim.convolution %q, %w strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x8x12x12xf32>, tensor<4x8x3x3xf32>) -> tensor<1x4x10x10xf32>
  %c = prim.convolution %r, %w strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x8x10x12xf32>, tensor<4x8x3x3xf32>) -> tensor<1x4x8x10xf32>
  %d = prim.convolution %s, %w strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x8x10x12xf32>, tensor<4x8x3x3xf32>) -> tensor<1x4x8x10xf32>
  %e = prim.convolution %t, %w strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x8x12x12xf32>, tensor<4x8x3x3xf32>) -> tensor<1x4x10x10xf32>
  %f = prim.exp %t : tensor<1x8x12x12xf32>
  return %a, %b, %c, %d, %e, %f : tensor<1x4x10x10xf32>, tensor<1x4x10x10xf32>, tensor<1x4x8x10xf32>, tensor<1x4x8x10xf32>, tensor<1x4x10x10xf32>, tensor<1x8x12x12xf32>
}

// So is what a pooling does not depend on, and what is transposed between.
// CHECK-LABEL: func.func @pools
// CHECK-NOT:     prim.pad
// CHECK:         prim.window_reduce max %arg0 window [3, 3] strides [1, 1] dilations [1, 1] low [2, 0]
// CHECK:         prim.window_reduce sum %arg0 window [3, 3] strides [1, 1] dilations [1, 1] low [1, 0]
// CHECK:         %[[T:.*]] = prim.transpose %arg1, [0, 3, 1, 2]
// CHECK:         prim.convolution %[[T]], %arg2 strides [1, 1] dilations [1, 1] low [1, 0] groups 1
func.func @pools(%x: tensor<1x8x10x12xf32>, %last: tensor<1x10x12x8xf32>, %w: tensor<4x8x3x3xf32>)
    -> (tensor<1x8x11x10xf32>, tensor<1x8x10x10xf32>, tensor<1x4x10x10xf32>) {
  %zero = prim.constant dense<0.0> : tensor<f32>
  %least = prim.constant dense<0xFF800000> : tensor<f32>
  %p = prim.pad constant %x, %least [0, 0, 1, 0] : (tensor<1x8x10x12xf32>, tensor<f32>) -> tensor<1x8x12x12xf32>
  %q = prim.pad constant %x, %zero [0, 0, 1, 0] : (tensor<1x8x10x12xf32>, tensor<f32>) -> tensor<1x8x12x12xf32>
  %r = prim.pad constant %last, %zero [0, 1, 0, 0] : (tensor<1x10x12x8xf32>, tensor<f32>) -> tensor<1x12x12x8xf32>
  %t = prim.transpose %r, [0, 3, 1, 2] : tensor<1x12x12x8xf32> -> tensor<1x8x12x12xf32>
  %a = prim.window_reduce max %p window [3, 3] strides [1, 1] dilations [1, 1] low [1, 0] : tensor<1x8x12x12xf32> -> tensor<1x8x11x10xf32>
  %b = prim.window_reduce sum %q window [3, 3] strides [1, 1] dilations [1, 1] low [0, 0] : tensor<1x8x12x12xf32> -> tensor<1x8x10x10xf32>
  %c = prim.convolution %t, %w strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x8x12x12xf32>, tensor<4x8x3x3xf32>) -> tensor<1x4x10x10xf32>
  return %a, %b, %c : tensor<1x8x11x10xf32>, tensor<1x8x10x10xf32>, tensor<1x4x10x10xf32>
}

// A maximum depends on zeros, and channels that are padded are more of them.
// CHECK-LABEL: func.func @others_of_pools
// CHECK-COUNT-2: prim.pad
func.func @others_of_pools(%x: tensor<1x8x10x12xf32>, %last: tensor<1x10x12x7xf32>, %w: tensor<4x8x3x3xf32>)
    -> (tensor<1x8x10x10xf32>, tensor<1x4x8x10xf32>) {
  %zero = prim.constant dense<0.0> : tensor<f32>
  %p = prim.pad constant %x, %zero [0, 0, 1, 0] : (tensor<1x8x10x12xf32>, tensor<f32>) -> tensor<1x8x12x12xf32>
  %q = prim.pad constant %last, %zero [0, 0, 0, 1] : (tensor<1x10x12x7xf32>, tensor<f32>) -> tensor<1x10x12x8xf32>
  %t = prim.transpose %q, [0, 3, 1, 2] : tensor<1x10x12x8xf32> -> tensor<1x8x10x12xf32>
  %a = prim.window_reduce max %p window [3, 3] strides [1, 1] dilations [1, 1] low [0, 0] : tensor<1x8x12x12xf32> -> tensor<1x8x10x10xf32>
  %b = prim.convolution %t, %w strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x8x10x12xf32>, tensor<4x8x3x3xf32>) -> tensor<1x4x8x10xf32>
  return %a, %b : tensor<1x8x10x10xf32>, tensor<1x4x8x10xf32>
}
