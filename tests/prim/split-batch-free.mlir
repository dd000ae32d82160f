// Images whose number a run tells run one by one where that pays for the hint.
// RUN: ptc-opt %s --ptc-split-batch="near-bytes=16777216 far-bytes=33554432" | FileCheck %s
// RUN: ptc-opt %s --ptc-split-batch="near-bytes=16777216 far-bytes=33554432 remarks" 2>&1 >%t | FileCheck %s --check-prefix=REMARK

// The counter is below the most that there may be; other free sizes count as their hints.
// REMARK: remark: runs image by image, as do 2 operations before it
// CHECK-LABEL: func.func @images
// CHECK-SAME:    image = #prim.symbol<0, 63,
// CHECK:         %[[L:.*]] = prim.loop "image" below n states() over(%arg0) {
// CHECK:           prim.convolution {{.*}} -> tensor<1x8x?x512xf32, #prim.dims<[1, 8, h, 512]>>
// CHECK:           prim.window_reduce {{.*}} -> tensor<1x8x64x64xf32>
// CHECK:           prim.yield %{{.*}} : tensor<8x64x64xf32>
// CHECK:         return %[[L]] : tensor<?x8x64x64xf32, #prim.dims<[n, 8, 64, 64]>>
func.func @images(%x: tensor<?x4x?x512xf32, #prim.dims<[n, 4, h, 512]>>) -> tensor<?x8x64x64xf32, #prim.dims<[n, 8, 64, 64]>>
    attributes {prim.symbols = {n = #prim.symbol<1, 64, divisor = 1, hint = 4>, h = #prim.symbol<512, 519, divisor = 1, hint = 512>}} {
  %w = prim.weight <"w", "", 0, 1152> : tensor<8x4x3x3xf32>
  %c = prim.convolution %x, %w strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<?x4x?x512xf32, #prim.dims<[n, 4, h, 512]>>, tensor<8x4x3x3xf32>) -> tensor<?x8x?x512xf32, #prim.dims<[n, 8, h, 512]>>
  %p = prim.window_reduce max %c window [8, 8] strides [8, 8] dilations [1, 1] low [0, 0] : tensor<?x8x?x512xf32, #prim.dims<[n, 8, h, 512]>> -> tensor<?x8x64x64xf32, #prim.dims<[n, 8, 64, 64]>>
  %t = prim.tanh %p : tensor<?x8x64x64xf32, #prim.dims<[n, 8, 64, 64]>>
  return %t : tensor<?x8x64x64xf32, #prim.dims<[n, 8, 64, 64]>>
}

// Where one is expected, that is told once.
// REMARK: remark: runs on all images at once, like what follows: how many there are, n, is not known, and none is expected above 1
// REMARK-NOT: remark: runs on all images at once, like
// CHECK-LABEL: func.func @one
// CHECK-NOT:     prim.loop
// CHECK:         return
func.func @one(%x: tensor<?x4x512x512xf32, #prim.dims<[n, 4, 512, 512]>>) -> tensor<?x4x512x512xf32, #prim.dims<[n, 4, 512, 512]>>
    attributes {prim.symbols = {n = #prim.symbol<1, 64, divisor = 1, hint = 1>}} {
  %y = prim.neg %x : tensor<?x4x512x512xf32, #prim.dims<[n, 4, 512, 512]>>
  return %y : tensor<?x4x512x512xf32, #prim.dims<[n, 4, 512, 512]>>
}
