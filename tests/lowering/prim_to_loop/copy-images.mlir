// Images of the caller's are copied with their channels innermost, once, for convolutions that add up many of these.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-copy-images --ptc-assign-layouts | FileCheck %s
// RUN: ptc-opt %s --ptc-lower-prim-to-loop=recurrences=false --ptc-elide-copies --ptc-copy-images --ptc-assign-layouts | FileCheck %s

// One copy for both; the sum has an image of its own.
// CHECK-LABEL: loop.program @twice(%arg0: !loop.buffer<[2, 32, 10, 12] x f32, <[0, 1, 2, 3]>>
// CHECK:         %[[COPY:.*]] = loop.buffer : <[2, 32, 10, 12] x f32, <[0, 2, 3, 1]>>
// CHECK:         loop.pointwise [2, 32, 10, 12]
// CHECK:           %[[X:.*]] = loop.load %arg0 [d0, d1, d2, d3]
// CHECK:           loop.store %[[X]], %[[COPY]] [d0, d1, d2, d3]
// CHECK:         loop.contraction
// CHECK:           loop.load %[[COPY]]
// CHECK-NOT:     loop.pointwise
// CHECK:         loop.contraction
// CHECK:           loop.load %[[COPY]]
func.func @twice(%x: tensor<2x32x10x12xf32>) -> (tensor<2x32x10x12xf32>, tensor<2x16x4x5xf32>) {
  %a = prim.weight <"a", "", 0, 36864> : tensor<32x32x3x3xf32>
  %b = prim.weight <"b", "", 0, 18432> : tensor<16x32x3x3xf32>
  %c = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<2x32x10x12xf32>, tensor<32x32x3x3xf32>) -> tensor<2x32x10x12xf32>
  %d = prim.convolution %x, %b strides [2, 2] dilations [1, 1] low [0, 0] groups 1 : (tensor<2x32x10x12xf32>, tensor<16x32x3x3xf32>) -> tensor<2x16x4x5xf32>
  return %c, %d : tensor<2x32x10x12xf32>, tensor<2x16x4x5xf32>
}

// What computes the image writes it so.
// CHECK-LABEL: loop.program @computed
// CHECK:         loop.buffer : <[1, 32, 10, 12] x f32, <[0, 2, 3, 1]>>
// CHECK:         loop.pointwise
// CHECK:         loop.contraction
func.func @computed(%x: tensor<1x32x10x12xf32>, %y: tensor<1x32x10x12xf32>) -> tensor<1x32x10x12xf32> {
  %a = prim.weight <"a", "", 0, 36864> : tensor<32x32x3x3xf32>
  %s = prim.add %x, %y : tensor<1x32x10x12xf32>
  %e = prim.exp %s : tensor<1x32x10x12xf32>
  %c = prim.convolution %e, %a strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x32x10x12xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x10x12xf32>
  return %c : tensor<1x32x10x12xf32>
}

// Few channels, windows of one pixel, and channels that are innermost already.
// CHECK-LABEL: loop.program @asitis
// CHECK-NOT:     loop.pointwise
func.func @asitis(%x: tensor<1x3x10x12xf32>, %y: tensor<1x32x10x12xf32>, %z: tensor<1x10x12x32xf32>)
    -> (tensor<1x32x10x12xf32>, tensor<1x32x10x12xf32>, tensor<1x32x10x12xf32>) {
  %a = prim.weight <"a", "", 0, 3456> : tensor<32x3x3x3xf32>
  %b = prim.weight <"b", "", 0, 4096> : tensor<32x32x1x1xf32>
  %c = prim.weight <"c", "", 0, 36864> : tensor<32x32x3x3xf32>
  %t = prim.transpose %z, [0, 3, 1, 2] : tensor<1x10x12x32xf32> -> tensor<1x32x10x12xf32>
  %d = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x3x10x12xf32>, tensor<32x3x3x3xf32>) -> tensor<1x32x10x12xf32>
  %e = prim.convolution %y, %b strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x32x10x12xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x10x12xf32>
  %f = prim.convolution %t, %c strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x32x10x12xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x10x12xf32>
  return %d, %e, %f : tensor<1x32x10x12xf32>, tensor<1x32x10x12xf32>, tensor<1x32x10x12xf32>
}

// A result that is written in parts, of which the first convolution reads one and the second all.
// CHECK-LABEL: loop.program @result
// CHECK-NOT:     loop.buffer :
// CHECK:         loop.contraction
// CHECK:           loop.load %arg1
// CHECK:           loop.store %{{.*}}, %arg1
// CHECK-NOT:     loop.buffer :
// CHECK:         loop.contraction
// CHECK:           loop.load %arg1
func.func @result(%x: tensor<1x32x10x12xf32>) -> (tensor<1x64x10x12xf32>, tensor<1x16x10x12xf32>) {
  %a = prim.weight <"a", "", 0, 36864> : tensor<32x32x3x3xf32>
  %b = prim.weight <"b", "", 0, 36864> : tensor<16x64x3x3xf32>
  %e = prim.exp %x : tensor<1x32x10x12xf32>
  %c = prim.convolution %e, %a strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x32x10x12xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x10x12xf32>
  %y = prim.concat %e, %c axis 1 : (tensor<1x32x10x12xf32>, tensor<1x32x10x12xf32>) -> tensor<1x64x10x12xf32>
  %d = prim.convolution %y, %b strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x64x10x12xf32>, tensor<16x64x3x3xf32>) -> tensor<1x16x10x12xf32>
  return %y, %d : tensor<1x64x10x12xf32>, tensor<1x16x10x12xf32>
}

// In front of the loop, whose rounds read it; one for what is behind the loop as well.
// CHECK-LABEL: loop.program @rounds
// CHECK:         %[[COPY:.*]] = loop.buffer : <[1, 32, 10, 12] x f32, <[0, 2, 3, 1]>>
// CHECK:         loop.pointwise [1, 32, 10, 12]
// CHECK:           loop.store %{{.*}}, %[[COPY]]
// CHECK:         loop.{{recurrence|repeat}}
// CHECK-NOT:       loop.load %arg0
// CHECK:           loop.contraction
// CHECK:             loop.load %[[COPY]]
// CHECK-NOT:     loop.load %arg0
// CHECK:         loop.contraction
// CHECK:           loop.load %[[COPY]]
func.func @rounds(%x: tensor<1x32x10x12xf32>, %h: tensor<1x32x10x12xf32>) -> (tensor<1x32x10x12xf32>, tensor<1x32x10x12xf32>) {
  %a = prim.weight <"a", "", 0, 36864> : tensor<32x32x3x3xf32>
  %last = prim.loop "i" below 9 states(%h) over() {
  ^bb0(%s: tensor<1x32x10x12xf32>):
    %c = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x32x10x12xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x10x12xf32>
    %t = prim.add %c, %s : tensor<1x32x10x12xf32>
    prim.yield %t : tensor<1x32x10x12xf32>
  } : (tensor<1x32x10x12xf32>) -> tensor<1x32x10x12xf32>
  %d = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x32x10x12xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x10x12xf32>
  return %last, %d : tensor<1x32x10x12xf32>, tensor<1x32x10x12xf32>
}
