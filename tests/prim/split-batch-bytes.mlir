// Bytes that are widened behind the last op that runs image by image leave the loop as bytes.
// RUN: ptc-opt %s --ptc-split-batch="near-bytes=16777216 far-bytes=33554432" | FileCheck %s

// CHECK-LABEL: func.func @bytes
// CHECK:         %[[L:.*]] = prim.loop
// CHECK:           prim.convert {{.*}} -> tensor<1x8x64x64xui8>
// CHECK-NOT:       prim.convert
// CHECK:           prim.yield %{{.*}} : tensor<64x64x8xui8>
// CHECK:         %[[X:.*]] = prim.transpose %[[L]], [0, 3, 1, 2] : tensor<4x64x64x8xui8> -> tensor<4x8x64x64xui8>
// CHECK:         %[[W:.*]] = prim.convert %[[X]] : tensor<4x8x64x64xui8> -> tensor<4x8x64x64xsi32>
// CHECK:         return %[[W]]
func.func @bytes(%x: tensor<4x4x512x512xf32>) -> tensor<4x8x64x64xsi32> {
  %w = prim.weight <"w", "", 0, 1152> : tensor<8x4x3x3xf32>
  %c = prim.convolution %x, %w strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<4x4x512x512xf32>, tensor<8x4x3x3xf32>) -> tensor<4x8x512x512xf32>
  %p = prim.window_reduce max %c window [8, 8] strides [8, 8] dilations [1, 1] low [0, 0] : tensor<4x8x512x512xf32> -> tensor<4x8x64x64xf32>
  %q = prim.convert %p : tensor<4x8x64x64xf32> -> tensor<4x8x64x64xui8>
  %s = prim.convert %q : tensor<4x8x64x64xui8> -> tensor<4x8x64x64xsi32>
  return %s : tensor<4x8x64x64xsi32>
}
