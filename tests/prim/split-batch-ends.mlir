// What nothing in a loop reads and would decide how a result lies in memory follows the loop, wherever it stood, and
// costs it nothing.
// RUN: ptc-opt %s --ptc-split-batch="near-bytes=16777216 far-bytes=33000000" | FileCheck %s

// CHECK-LABEL: func.func @views
// CHECK:         %[[L:.*]]:2 = prim.loop
// CHECK:           prim.tanh
// CHECK-NOT:       prim.slice
// CHECK-NOT:       prim.pad
// CHECK-NOT:       prim.broadcast {{.*}}7x8x64x64
// CHECK:           prim.yield %{{.*}}, %{{.*}} : tensor<64x64x8xf32>, tensor<8x64x64xf32>
// CHECK:         %[[P:.*]] = prim.transpose %[[L]]#0
// CHECK:         %[[S:.*]] = prim.slice %[[P]] [0, 2, 0, 0], [1, 1, 1, 1]
// CHECK:         %[[B:.*]] = prim.pad constant %[[P]]
// CHECK:         %[[R:.*]] = prim.broadcast %[[P]], [0, 2, 3, 4]
// CHECK:         return %[[S]], %[[B]], %[[R]]
func.func @views(%x: tensor<4x4x512x512xf32>)
    -> (tensor<4x2x64x64xf32>, tensor<4x8x66x66xf32>, tensor<4x7x8x64x64xf32>, tensor<4x8x64x64xf32>) {
  %w = prim.weight <"w", "", 0, 1152> : tensor<8x4x3x3xf32>
  %zero = prim.constant dense<0.0> : tensor<f32>
  %c = prim.convolution %x, %w strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<4x4x512x512xf32>, tensor<8x4x3x3xf32>) -> tensor<4x8x512x512xf32>
  %p = prim.window_reduce max %c window [8, 8] strides [8, 8] dilations [1, 1] low [0, 0] : tensor<4x8x512x512xf32> -> tensor<4x8x64x64xf32>
  %s = prim.slice %p [0, 2, 0, 0], [1, 1, 1, 1] : tensor<4x8x64x64xf32> -> tensor<4x2x64x64xf32>
  %b = prim.pad constant %p, %zero [0, 0, 1, 1] : (tensor<4x8x64x64xf32>, tensor<f32>) -> tensor<4x8x66x66xf32>
  %r = prim.broadcast %p, [0, 2, 3, 4] : tensor<4x8x64x64xf32> -> tensor<4x7x8x64x64xf32>
  %t = prim.tanh %p : tensor<4x8x64x64xf32>
  return %s, %b, %r, %t : tensor<4x2x64x64xf32>, tensor<4x8x66x66xf32>, tensor<4x7x8x64x64xf32>, tensor<4x8x64x64xf32>
}

// A part of what stays in the loop leaves it as that part.
// CHECK-LABEL: func.func @part
// CHECK:         prim.loop
// CHECK:           %[[S:.*]] = prim.slice %{{.*}} [0, 2, 0, 0], [1, 1, 1, 1] : {{.*}} -> tensor<1x2x512x512xf32>
// CHECK:           prim.window_reduce
// CHECK:           prim.yield
func.func @part(%x: tensor<4x4x512x512xf32>) -> (tensor<4x2x512x512xf32>, tensor<4x8x64x64xf32>) {
  %w = prim.weight <"w", "", 0, 1152> : tensor<8x4x3x3xf32>
  %c = prim.convolution %x, %w strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<4x4x512x512xf32>, tensor<8x4x3x3xf32>) -> tensor<4x8x512x512xf32>
  %s = prim.slice %c [0, 2, 0, 0], [1, 1, 1, 1] : tensor<4x8x512x512xf32> -> tensor<4x2x512x512xf32>
  %p = prim.window_reduce max %c window [8, 8] strides [8, 8] dilations [1, 1] low [0, 0] : tensor<4x8x512x512xf32> -> tensor<4x8x64x64xf32>
  return %s, %p : tensor<4x2x512x512xf32>, tensor<4x8x64x64xf32>
}

// The widened elements would take more time to write and read than the loop saves; they are not written there.
// CHECK-LABEL: func.func @widened
// CHECK:         %[[L:.*]]:2 = prim.loop
// CHECK:           prim.yield %{{.*}}, %{{.*}} : tensor<512x512x8xui8>, tensor<8x512x512xui8>
// CHECK:         %[[Q:.*]] = prim.transpose %[[L]]#0
// CHECK:         %[[S:.*]] = prim.convert %[[Q]] : tensor<4x8x512x512xui8> -> tensor<4x8x512x512xsi32>
// CHECK:         return %[[S]]
func.func @widened(%x: tensor<4x4x512x512xf32>) -> (tensor<4x8x512x512xsi32>, tensor<4x8x512x512xui8>) {
  %w = prim.weight <"w", "", 0, 1152> : tensor<8x4x3x3xf32>
  %c = prim.convolution %x, %w strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<4x4x512x512xf32>, tensor<8x4x3x3xf32>) -> tensor<4x8x512x512xf32>
  %q = prim.convert %c : tensor<4x8x512x512xf32> -> tensor<4x8x512x512xui8>
  %s = prim.convert %q : tensor<4x8x512x512xui8> -> tensor<4x8x512x512xsi32>
  %t = prim.add %q, %q : tensor<4x8x512x512xui8>
  return %s, %t : tensor<4x8x512x512xsi32>, tensor<4x8x512x512xui8>
}

// Convolutions write the parts of what they are joined to, whose channels lie last, too.
// CHECK-LABEL: func.func @joined
// CHECK:         %[[L:.*]] = prim.loop
// CHECK:           %[[C:.*]] = prim.concat
// CHECK:           prim.transpose %[[C]], [0, 2, 3, 1]
// CHECK:           prim.yield %{{.*}} : tensor<512x512x8xf32>
// CHECK:         %[[T:.*]] = prim.transpose %[[L]], [0, 3, 1, 2]
// CHECK:         prim.reduce sum %[[T]]
func.func @joined(%x: tensor<4x4x512x512xf32>) -> tensor<8x512x512xf32> {
  %w = prim.weight <"w", "", 0, 576> : tensor<4x4x3x3xf32>
  %a = prim.convolution %x, %w strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<4x4x512x512xf32>, tensor<4x4x3x3xf32>) -> tensor<4x4x512x512xf32>
  %b = prim.convolution %a, %w strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<4x4x512x512xf32>, tensor<4x4x3x3xf32>) -> tensor<4x4x512x512xf32>
  %c = prim.convolution %b, %w strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<4x4x512x512xf32>, tensor<4x4x3x3xf32>) -> tensor<4x4x512x512xf32>
  %t = prim.tanh %c : tensor<4x4x512x512xf32>
  %y = prim.concat %t, %b axis 1 : (tensor<4x4x512x512xf32>, tensor<4x4x512x512xf32>) -> tensor<4x8x512x512xf32>
  %z = prim.reduce sum %y, [0] : tensor<4x8x512x512xf32> -> tensor<8x512x512xf32>
  return %z : tensor<8x512x512xf32>
}

// A pool that caches would hold at once is in the loop all the same: less leaves it. What is returned is as it is.
// CHECK-LABEL: func.func @pooled
// CHECK:         prim.loop
// CHECK:           prim.window_reduce
// CHECK:           prim.yield %{{.*}} : tensor<4x32x32xf32>
// CHECK:         }
// CHECK-NOT:     prim.window_reduce
func.func @pooled(%x: tensor<4x4x512x512xf32>) -> tensor<4x4x32x32xf32> {
  %w = prim.weight <"w", "", 0, 576> : tensor<4x4x3x3xf32>
  %a = prim.convolution %x, %w strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<4x4x512x512xf32>, tensor<4x4x3x3xf32>) -> tensor<4x4x512x512xf32>
  %b = prim.convolution %a, %w strides [2, 2] dilations [1, 1] low [1, 1] groups 1 : (tensor<4x4x512x512xf32>, tensor<4x4x3x3xf32>) -> tensor<4x4x256x256xf32>
  %p = prim.window_reduce max %b window [8, 8] strides [8, 8] dilations [1, 1] low [0, 0] : tensor<4x4x256x256xf32> -> tensor<4x4x32x32xf32>
  return %p : tensor<4x4x32x32xf32>
}
