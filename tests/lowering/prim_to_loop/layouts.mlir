// Channels stay innermost from a contraction on, and the weights beside them follow.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts --ptc-pack-weights | FileCheck %s

// The 1x1 convolution's weight in panels; the depthwise one's with channels innermost, read in the order of the image.
// CHECK-LABEL: loop.program @depthwise
// CHECK-DAG:     loop.weight <"b", "", 0, 1152> recipe <extents = [3, 3, 32, 1], strides = [3, 1, 9, 9], offset = 0, panel = -1, lane = -1, limit = 0> {source = tensor<32x1x3x3xf32>} : <[3, 3, 32, 1] x f32, <[0, 1, 2, 3]>>
// CHECK-DAG:     loop.weight <"a", "", 0, 4096> recipe <extents = [2, 1, 1, 32, 16]
// CHECK:         %[[A:.*]] = loop.buffer : <[1, 32, 10, 12] x f32, <[0, 2, 3, 1]>>
// CHECK:         loop.contraction
// CHECK:         %[[B:.*]] = loop.buffer : <[1, 32, 10, 12] x f32, <[0, 2, 3, 1]>>
// CHECK:         loop.reduction [1, 32, 10, 12, 3, 3] reduced 2
// CHECK:           loop.load %{{.*}} [d4, d5, d1, 0]
// CHECK:         %{{.*}} = loop.buffer : <[1, 32, 5, 6] x f32, <[0, 2, 3, 1]>>
// CHECK:         loop.reduction [1, 32, 5, 6, 2, 2] reduced 2
func.func @depthwise(%x: tensor<1x32x10x12xf32>) -> tensor<1x32x5x6xf32> {
  %a = prim.weight <"a", "", 0, 4096> : tensor<32x32x1x1xf32>
  %b = prim.weight <"b", "", 0, 1152> : tensor<32x1x3x3xf32>
  %c = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x32x10x12xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x10x12xf32>
  %d = prim.convolution %c, %b strides [1, 1] dilations [1, 1] low [1, 1] groups 32 : (tensor<1x32x10x12xf32>, tensor<32x1x3x3xf32>) -> tensor<1x32x10x12xf32>
  %e = prim.window_reduce max %d window [2, 2] strides [2, 2] dilations [1, 1] low [0, 0] : tensor<1x32x10x12xf32> -> tensor<1x32x5x6xf32>
  %f = prim.exp %e : tensor<1x32x5x6xf32>
  return %f : tensor<1x32x5x6xf32>
}

// Constants are packed where they stand. With fewer than six columns there are no panels: the constant's channels are
// innermost, as the image's are.
// CHECK-LABEL: loop.program @small
// CHECK:         loop.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00, 6.000000e+00, 0.000000e+00, {{.*}}]> : tensor<16xf32>
// CHECK:         loop.constant dense<{{\[\[\[\[}}1.000000e+00], [3.000000e+00], [5.000000e+00], {{.*}} : tensor<1x2x6x1xf32>
// CHECK:         loop.panels
// CHECK:         loop.contraction
// CHECK-NOT:     loop.panels
func.func @small(%x: tensor<1x1x4x4xf32>) -> tensor<1x1x4x3xf32> {
  %v = prim.constant dense<[[[[1.0]]], [[[2.0]]], [[[3.0]]], [[[4.0]]], [[[5.0]]], [[[6.0]]]]> : tensor<6x1x1x1xf32>
  %w = prim.constant dense<[[[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]], [[7.0, 8.0]], [[9.0, 10.0]], [[11.0, 12.0]]]]> : tensor<1x6x1x2xf32>
  %c = prim.convolution %x, %v strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x1x4x4xf32>, tensor<6x1x1x1xf32>) -> tensor<1x6x4x4xf32>
  %d = prim.convolution %c, %w strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x6x4x4xf32>, tensor<1x6x1x2xf32>) -> tensor<1x1x4x3xf32>
  return %d : tensor<1x1x4x3xf32>
}

// Zeros that a scatter writes into run as what is scattered: channels innermost.
// CHECK-LABEL: loop.program @scattered
// CHECK:         loop.contraction
// CHECK:         %[[Y:.*]] = loop.buffer : <[9, 32, 10, 12] x f32, <[0, 2, 3, 1]>>
// CHECK:         loop.scatter
// CHECK:           loop.store %{{.*}}, %[[Y]]
func.func @scattered(%x: tensor<4x32x10x12xf32>, %i: tensor<4x32x10x12xsi64>) -> tensor<9x32x10x12xf32> {
  %a = prim.weight <"a", "", 0, 4096> : tensor<32x32x1x1xf32>
  %zero = prim.constant dense<0.0> : tensor<f32>
  %zeros = prim.broadcast %zero, [] : tensor<f32> -> tensor<9x32x10x12xf32>
  %c = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<4x32x10x12xf32>, tensor<32x32x1x1xf32>) -> tensor<4x32x10x12xf32>
  %s = prim.scatter_elements set %zeros, %i, %c, 0 : (tensor<9x32x10x12xf32>, tensor<4x32x10x12xsi64>, tensor<4x32x10x12xf32>) -> tensor<9x32x10x12xf32>
  %e = prim.exp %s : tensor<9x32x10x12xf32>
  return %e : tensor<9x32x10x12xf32>
}

// Rows of an image that are gathered by number: a dim that an index is read for lies where that index lies.
// CHECK-LABEL: loop.program @gathered
// CHECK:         loop.contraction
// CHECK:         loop.buffer : <[1, 32, 7, 12] x f32, <[0, 2, 3, 1]>>
func.func @gathered(%x: tensor<1x32x10x12xf32>, %i: tensor<7xsi64>) -> tensor<1x32x7x12xf32> {
  %a = prim.weight <"a", "", 0, 4096> : tensor<32x32x1x1xf32>
  %b = prim.weight <"b", "", 0, 4096> : tensor<32x32x1x1xf32>
  %c = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x32x10x12xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x10x12xf32>
  %g = prim.gather %c, %i, 2 : (tensor<1x32x10x12xf32>, tensor<7xsi64>) -> tensor<1x32x7x12xf32>
  %e = prim.exp %g : tensor<1x32x7x12xf32>
  %d = prim.convolution %e, %b strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x32x7x12xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x7x12xf32>
  return %d : tensor<1x32x7x12xf32>
}

// What is read once, for a result of more than twice its size, is transposed where it is small.
// CHECK-LABEL: loop.program @spread
// CHECK:         loop.contraction
// CHECK:         loop.buffer : <[1, 32, 10, 12] x f32, <[0, 1, 2, 3]>>
// CHECK:         loop.pointwise [1, 32, 40, 12]
func.func @spread(%x: tensor<1x32x10x12xf32>, %i: tensor<10xsi64>, %j: tensor<40xsi64>) -> tensor<1x32x40x12xf32> {
  %a = prim.weight <"a", "", 0, 4096> : tensor<32x32x1x1xf32>
  %c = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x32x10x12xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x10x12xf32>
  %g = prim.gather %c, %i, 2 : (tensor<1x32x10x12xf32>, tensor<10xsi64>) -> tensor<1x32x10x12xf32>
  %h = prim.gather %g, %j, 2 : (tensor<1x32x10x12xf32>, tensor<40xsi64>) -> tensor<1x32x40x12xf32>
  return %h : tensor<1x32x40x12xf32>
}

// A result of the same size gives no reason.
// CHECK-LABEL: loop.program @kept
// CHECK:         loop.contraction
// CHECK:         loop.buffer : <[1, 32, 10, 12] x f32, <[0, 2, 3, 1]>>
// CHECK:         loop.pointwise [1, 32, 10, 12]
func.func @kept(%x: tensor<1x32x10x12xf32>, %i: tensor<10xsi64>, %j: tensor<10xsi64>) -> tensor<1x32x10x12xf32> {
  %a = prim.weight <"a", "", 0, 4096> : tensor<32x32x1x1xf32>
  %c = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x32x10x12xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x10x12xf32>
  %g = prim.gather %c, %i, 2 : (tensor<1x32x10x12xf32>, tensor<10xsi64>) -> tensor<1x32x10x12xf32>
  %h = prim.gather %g, %j, 2 : (tensor<1x32x10x12xf32>, tensor<10xsi64>) -> tensor<1x32x10x12xf32>
  return %h : tensor<1x32x10x12xf32>
}
