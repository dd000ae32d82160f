// A flattened image keeps its layout: the sum is split into the image's dims and runs as they lie, and the weight of the
// fully connected layer is packed in that order.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-assign-layouts --ptc-split-sums --ptc-pack-weights | FileCheck %s

// CHECK-LABEL: loop.program @flattened
// CHECK:         loop.weight <"b", "", 0, 12288> recipe <extents = [1, 2, 3, 32, 16], strides = [16, 48, 16, 96, 1], offset = 0, panel = 0, lane = 4, limit = 16>
// CHECK:         %[[A:.*]] = loop.buffer : <[1, 32, 2, 3] x f32, <[0, 2, 3, 1]>>
// CHECK:         loop.contraction [1, 16, 2, 3, 32] batch 0 m 1 n 1 k 3
// CHECK-NEXT:      loop.load %[[A]] [0, d4, d2, d3]
func.func @flattened(%x: tensor<1x4x2x3xf32>) -> tensor<1x16xf32> {
  %a = prim.weight <"a", "", 0, 512> : tensor<32x4x1x1xf32>
  %b = prim.weight <"b", "", 0, 12288> : tensor<192x16xf32>
  %c = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x4x2x3xf32>, tensor<32x4x1x1xf32>) -> tensor<1x32x2x3xf32>
  %f = prim.reshape %c : tensor<1x32x2x3xf32> -> tensor<1x192xf32>
  %y = prim.matmul %f, %b : (tensor<1x192xf32>, tensor<192x16xf32>) -> tensor<1x16xf32>
  return %y : tensor<1x16xf32>
}

// A picture's patches are summed up row by row of each channel, its 3x3 windows with borders channel by channel of each
// pixel, and an image with channels innermost keeps those there.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-assign-layouts --ptc-split-sums=order-windows=1 --ptc-pack-weights \
// RUN:   | FileCheck %s --check-prefix=WINDOWS

// WINDOWS-LABEL: loop.program @patches
// WINDOWS:         loop.weight <"a", "", 0, 12288> recipe <extents = [1, 3, 8, 8, 16], strides = [3072, 64, 8, 1, 192], offset = 0, panel = 0, lane = 4, limit = 16>
// WINDOWS:         loop.contraction [1, 4, 4, 16, 3, 8, 8] batch 0 m 3 n 1 k 3
// WINDOWS-NEXT:      loop.load %arg0 [0, d4, 8*d1 + d5, 8*d2 + d6]
// WINDOWS:         loop.contraction [1, 3, 3, 16, 2, 2, 16] batch 0 m 3 n 1 k 3
func.func @patches(%x: tensor<1x3x32x32xf32>) -> tensor<1x16x3x3xf32> {
  %a = prim.weight <"a", "", 0, 12288> : tensor<16x3x8x8xf32>
  %b = prim.weight <"b", "", 0, 4096> : tensor<16x16x2x2xf32>
  %c = prim.convolution %x, %a strides [8, 8] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x3x32x32xf32>, tensor<16x3x8x8xf32>) -> tensor<1x16x4x4xf32>
  %y = prim.convolution %c, %b strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x16x4x4xf32>, tensor<16x16x2x2xf32>) -> tensor<1x16x3x3xf32>
  return %y : tensor<1x16x3x3xf32>
}

// WINDOWS-LABEL: loop.program @borders
// WINDOWS:         loop.contraction [1, 16, 16, 16, 3, 3, 3] batch 0 m 3 n 1 k 3
// WINDOWS:           %[[C:.*]] = loop.masked
func.func @borders(%x: tensor<1x3x32x32xf32>) -> tensor<1x16x16x16xf32> {
  %a = prim.weight <"a", "", 0, 1728> : tensor<16x3x3x3xf32>
  %y = prim.convolution %x, %a strides [2, 2] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x3x32x32xf32>, tensor<16x3x3x3xf32>) -> tensor<1x16x16x16xf32>
  return %y : tensor<1x16x16x16xf32>
}
