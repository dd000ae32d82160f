// Inputs of several numbers of images: those that are known are tried first, and what they leave whole may be a loop over others.
// RUN: ptc-opt %s --ptc-split-batch="near-bytes=16777216 far-bytes=33554432" | FileCheck %s

// A small input of two, and images whose number a run tells.
// CHECK-LABEL: func.func @two
// CHECK:         prim.loop "image" below n states() over(%arg1) {
// CHECK:           prim.convolution {{.*}} -> tensor<1x8x512x512xf32>
// CHECK:         prim.tanh %arg0
func.func @two(%s: tensor<2x1x4xf32>, %x: tensor<?x4x512x512xf32, #prim.dims<[n, 4, 512, 512]>>)
    -> (tensor<?x8x64x64xf32, #prim.dims<[n, 8, 64, 64]>>, tensor<2x1x4xf32>)
    attributes {prim.symbols = {n = #prim.symbol<1, 64, divisor = 1, hint = 4>}} {
  %w = prim.weight <"w", "", 0, 1152> : tensor<8x4x3x3xf32>
  %c = prim.convolution %x, %w strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<?x4x512x512xf32, #prim.dims<[n, 4, 512, 512]>>, tensor<8x4x3x3xf32>) -> tensor<?x8x512x512xf32, #prim.dims<[n, 8, 512, 512]>>
  %p = prim.window_reduce max %c window [8, 8] strides [8, 8] dilations [1, 1] low [0, 0] : tensor<?x8x512x512xf32, #prim.dims<[n, 8, 512, 512]>> -> tensor<?x8x64x64xf32, #prim.dims<[n, 8, 64, 64]>>
  %t = prim.tanh %s : tensor<2x1x4xf32>
  return %p, %t : tensor<?x8x64x64xf32, #prim.dims<[n, 8, 64, 64]>>, tensor<2x1x4xf32>
}

// Two towers, each with a loop of its own.
// CHECK-LABEL: func.func @towers
// CHECK:         prim.loop "image" below 4 states() over(%arg0) {
// CHECK:           prim.convolution {{.*}} -> tensor<1x8x512x512xf32>
// CHECK:         prim.loop "image0" below 6 states() over(%arg1) {
// CHECK:           prim.convolution {{.*}} -> tensor<1x8x512x512xf32>
func.func @towers(%x: tensor<4x4x512x512xf32>, %y: tensor<6x4x512x512xf32>) -> (tensor<4x8x64x64xf32>, tensor<6x8x64x64xf32>) {
  %w = prim.weight <"w", "", 0, 1152> : tensor<8x4x3x3xf32>
  %c = prim.convolution %x, %w strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<4x4x512x512xf32>, tensor<8x4x3x3xf32>) -> tensor<4x8x512x512xf32>
  %p = prim.window_reduce max %c window [8, 8] strides [8, 8] dilations [1, 1] low [0, 0] : tensor<4x8x512x512xf32> -> tensor<4x8x64x64xf32>
  %d = prim.convolution %y, %w strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<6x4x512x512xf32>, tensor<8x4x3x3xf32>) -> tensor<6x8x512x512xf32>
  %q = prim.window_reduce max %d window [8, 8] strides [8, 8] dilations [1, 1] low [0, 0] : tensor<6x8x512x512xf32> -> tensor<6x8x64x64xf32>
  return %p, %q : tensor<4x8x64x64xf32>, tensor<6x8x64x64xf32>
}
