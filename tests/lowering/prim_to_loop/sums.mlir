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
