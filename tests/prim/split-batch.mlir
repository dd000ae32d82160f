// Ops that treat each image alone run image by image where the whole batch would leave the caches.
// RUN: ptc-opt %s --ptc-split-batch="near-bytes=16777216 far-bytes=33554432" | FileCheck %s
// RUN: ptc-opt %s --ptc-split-batch="near-bytes=16777216 far-bytes=33554432" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=EDGE
// RUN: ptc-opt %s --ptc-split-batch="near-bytes=16777216 far-bytes=33554432 remarks" 2>&1 >%t | FileCheck %s --check-prefix=REMARK

// A convolution with few weights and many pixels, what follows it, and a pooling; the product behind them reads its
// weights once for all images. Channels lie last in what leaves the loop.
// REMARK: remark: runs image by image, as do 2 operations before it: it saves what moving {{[0-9.]+}} MB in the core's cache takes
// REMARK: remark: runs on all images at once: it does not treat each image alone
// What enters and leaves it belongs to the op that reads or computes it.
// EDGE-LABEL:  func.func @images
// EDGE:          prim.reshape {{.*}} -> tensor<1x4x512x512xf32> loc([[CONVOLUTION:.*]])
// EDGE-NEXT:     prim.convolution {{.*}} loc([[CONVOLUTION]])
// EDGE:          prim.window_reduce {{.*}} loc([[POOLING:.*]])
// EDGE-NEXT:     prim.transpose {{.*}} loc([[POOLING]])
// CHECK-LABEL: func.func @images
// CHECK:         %[[L:.*]] = prim.loop "image" below 4 states() over(%arg0) {
// CHECK-NEXT:    ^bb0(%[[E:.*]]: tensor<4x512x512xf32>):
// CHECK-NEXT:      %[[X:.*]] = prim.reshape %[[E]] : tensor<4x512x512xf32> -> tensor<1x4x512x512xf32>
// CHECK:           prim.convolution %[[X]], %{{.*}} -> tensor<1x8x512x512xf32>
// CHECK:           prim.broadcast %{{.*}} -> tensor<1x8x512x512xf32>
// CHECK:           prim.add
// CHECK:           %[[P:.*]] = prim.window_reduce {{.*}} -> tensor<1x8x64x64xf32>
// CHECK:           prim.transpose %[[P]], [0, 2, 3, 1]
// CHECK:           prim.yield %{{.*}} : tensor<64x64x8xf32>
// CHECK:         prim.transpose %[[L]], [0, 3, 1, 2]
// CHECK:         prim.matmul
func.func @images(%x: tensor<4x4x512x512xf32>) -> tensor<4x16xf32> {
  %w = prim.weight <"w", "", 0, 1152> : tensor<8x4x3x3xf32>
  %b = prim.weight <"b", "", 0, 32> : tensor<8xf32>
  %v = prim.weight <"v", "", 0, 2097152> : tensor<32768x16xf32>
  %bs = prim.broadcast %b, [1] : tensor<8xf32> -> tensor<4x8x512x512xf32>
  %c = prim.convolution %x, %w strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<4x4x512x512xf32>, tensor<8x4x3x3xf32>) -> tensor<4x8x512x512xf32>
  %a = prim.add %c, %bs : tensor<4x8x512x512xf32>
  %p = prim.window_reduce max %a window [8, 8] strides [8, 8] dilations [1, 1] low [0, 0] : tensor<4x8x512x512xf32> -> tensor<4x8x64x64xf32>
  %f = prim.reshape %p : tensor<4x8x64x64xf32> -> tensor<4x32768xf32>
  %y = prim.matmul %f, %v : (tensor<4x32768xf32>, tensor<32768x16xf32>) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// Statistics of the batch: images need each other.
// CHECK-LABEL: func.func @statistics
// CHECK-NOT:     prim.loop
func.func @statistics(%x: tensor<4x4x512x512xf32>) -> tensor<4x512x512xf32> {
  %y = prim.reduce sum %x, [0] : tensor<4x4x512x512xf32> -> tensor<4x512x512xf32>
  return %y : tensor<4x512x512xf32>
}

// What caches hold runs at once.
// REMARK: remark: runs on all images at once: image by image it would lose what moving {{[0-9.]+}} MB in the core's cache takes
// CHECK-LABEL: func.func @small
// CHECK-NOT:     prim.loop
func.func @small(%x: tensor<4x4x8x8xf32>) -> tensor<4x8x8x8xf32> {
  %w = prim.weight <"w", "", 0, 1152> : tensor<8x4x3x3xf32>
  %c = prim.convolution %x, %w strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<4x4x8x8xf32>, tensor<8x4x3x3xf32>) -> tensor<4x8x8x8xf32>
  return %c : tensor<4x8x8x8xf32>
}

// Views of what leaves the loop stay behind it: tokens lie in memory as the product writes them.
// CHECK-LABEL: func.func @tokens
// CHECK:         %[[L:.*]] = prim.loop "image" below 4
// CHECK:           %[[P:.*]] = prim.matmul
// CHECK:           prim.yield %{{.*}} : tensor<262144x8xf32>
// CHECK:         %[[T:.*]] = prim.transpose %[[L]], [0, 2, 1]
// CHECK-NEXT:    %[[R:.*]] = prim.reshape %[[T]]
// CHECK-NEXT:    return %[[R]]
func.func @tokens(%x: tensor<4x262144x4xf32>) -> tensor<4x8x512x512xf32> {
  %w = prim.weight <"w", "", 0, 128> : tensor<4x8xf32>
  %p = prim.matmul %x, %w : (tensor<4x262144x4xf32>, tensor<4x8xf32>) -> tensor<4x262144x8xf32>
  %t = prim.transpose %p, [0, 2, 1] : tensor<4x262144x8xf32> -> tensor<4x8x262144xf32>
  %y = prim.reshape %t : tensor<4x8x262144xf32> -> tensor<4x8x512x512xf32>
  return %y : tensor<4x8x512x512xf32>
}

// A constant is one image's where its dim 0 is the batch, and whole where it is a weight; a matrix on the left has a batch.
// CHECK-LABEL: func.func @constants
// CHECK:         prim.loop
// CHECK:           prim.add {{.*}} : tensor<1x4x3x3xf32>
// CHECK:           prim.convolution {{.*}}, tensor<4x4x3x3xf32>) -> tensor<1x4x512x512xf32>
// CHECK:           prim.matmul {{.*}} : (tensor<1x4x4xf32>, tensor<1x4x262144xf32>) -> tensor<1x4x262144xf32>
// CHECK:           prim.yield
func.func @constants(%x: tensor<4x4x512x512xf32>, %u: tensor<4x4x3x3xf32>) -> (tensor<4x4x64x64xf32>, tensor<4x4x3x3xf32>) {
  %k = prim.constant dense<0.5> : tensor<4x4x3x3xf32>
  %m = prim.constant dense<0.25> : tensor<4x4x4xf32>
  %a = prim.add %u, %k : tensor<4x4x3x3xf32>
  %c = prim.convolution %x, %k strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<4x4x512x512xf32>, tensor<4x4x3x3xf32>) -> tensor<4x4x512x512xf32>
  %r = prim.reshape %c : tensor<4x4x512x512xf32> -> tensor<4x4x262144xf32>
  %l = prim.matmul %m, %r : (tensor<4x4x4xf32>, tensor<4x4x262144xf32>) -> tensor<4x4x262144xf32>
  %i = prim.reshape %l : tensor<4x4x262144xf32> -> tensor<4x4x512x512xf32>
  %p = prim.window_reduce max %i window [8, 8] strides [8, 8] dilations [1, 1] low [0, 0] : tensor<4x4x512x512xf32> -> tensor<4x4x64x64xf32>
  return %p, %a : tensor<4x4x64x64xf32>, tensor<4x4x3x3xf32>
}

// Of any rank; what is too small stays.
// CHECK-LABEL: func.func @rank
// CHECK-NOT:     prim.loop
func.func @rank(%x: tensor<3x1x6x6x5x3x4xf32>) -> tensor<3x1x6x6x5x3x4xf32> {
  %z = prim.constant dense<0.0> : tensor<f32>
  %zs = prim.broadcast %z, [] : tensor<f32> -> tensor<3x1x6x6x5x3x4xf32>
  %y = prim.add %x, %zs : tensor<3x1x6x6x5x3x4xf32>
  return %y : tensor<3x1x6x6x5x3x4xf32>
}
