// 3x3 convolutions that Winograd's algorithm computes faster have transformed weights; the loop nest stays as it is.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts --ptc-pack-weights=winograd=true | FileCheck %s
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts --ptc-pack-weights | FileCheck %s --check-prefix=DIRECT
// DIRECT-NOT: winograd

// The first one reads channels first, without the pass that copies such images, and stays direct; the last one only
// writes them so.
// CHECK-LABEL: loop.program @large
// CHECK-DAG:     loop.weight <"a", {{.*}}extents = [4, 3, 3, 64, 16], {{.*}} {source = tensor<64x64x3x3xf32>} : <[36864] x f32
// CHECK-DAG:     loop.weight <"b", {{.*}}extents = [3, 3, 4, 64, 16], strides = [3, 1, 9216, 9, 576], offset = 0, panel = 2, lane = 4, limit = 64> {source = tensor<64x64x3x3xf32>, winograd = array<i64: 4, 3, 3>} : <[147456] x f32
// CHECK-DAG:     loop.weight <"c", {{.*}}winograd = array<i64: 4, 3, 3>} : <[147456] x f32
// CHECK:         loop.contraction
// CHECK:           loop.panels %{{[^ ]*}} :
// CHECK:         loop.contraction [1, 56, 56, 64, 3, 3, 64] batch 0 m 3 n 1 k 3
// CHECK:           loop.panels %{{.*}} {winograd = array<i64: 4, 3, 3>}
// CHECK:         loop.contraction
// CHECK:           loop.panels %{{.*}} {winograd = array<i64: 4, 3, 3>}
func.func @large(%x: tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32> {
  %a = prim.weight <"a", "", 0, 147456> : tensor<64x64x3x3xf32>
  %b = prim.weight <"b", "", 0, 147456> : tensor<64x64x3x3xf32>
  %c = prim.weight <"c", "", 0, 147456> : tensor<64x64x3x3xf32>
  %1 = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x64x56x56xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x56x56xf32>
  %2 = prim.convolution %1, %b strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x64x56x56xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x56x56xf32>
  %3 = prim.convolution %2, %c strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x64x56x56xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x56x56xf32>
  return %3 : tensor<1x64x56x56xf32>
}

// Small images: weights of 2 x 2 tiles are fewer. Strides and few channels: none at all.
// CHECK-LABEL: loop.program @small
// CHECK-DAG:     loop.weight <"b", {{.*}}winograd = array<i64: 2, 3, 3>
// CHECK-DAG:     loop.weight <"c", {{.*}}source = tensor<8x256x3x3xf32>} :
// CHECK-DAG:     loop.weight <"d", {{.*}}source = tensor<32x8x1x1xf32>} :
func.func @small(%x: tensor<1x256x10x10xf32>) -> tensor<1x32x4x4xf32> {
  %a = prim.weight <"a", "", 0, 262144> : tensor<256x256x1x1xf32>
  %b = prim.weight <"b", "", 0, 2359296> : tensor<256x256x3x3xf32>
  %c = prim.weight <"c", "", 0, 73728> : tensor<8x256x3x3xf32>
  %d = prim.weight <"d", "", 0, 1024> : tensor<32x8x1x1xf32>
  %1 = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x256x10x10xf32>, tensor<256x256x1x1xf32>) -> tensor<1x256x10x10xf32>
  %2 = prim.convolution %1, %b strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x256x10x10xf32>, tensor<256x256x3x3xf32>) -> tensor<1x256x10x10xf32>
  %3 = prim.convolution %2, %c strides [2, 2] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x256x10x10xf32>, tensor<8x256x3x3xf32>) -> tensor<1x8x4x4xf32>
  %4 = prim.convolution %3, %d strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x8x4x4xf32>, tensor<32x8x1x1xf32>) -> tensor<1x32x4x4xf32>
  return %4 : tensor<1x32x4x4xf32>
}

// Elements of the window that lie apart, not the same number of pixels down and across. Where most of them see none, in
// the second one, direct sums leave out more.
// CHECK-LABEL: loop.program @apart
// CHECK-DAG:     loop.weight <"b", {{.*}}winograd = array<i64: 4, 3, 3>
// CHECK-DAG:     loop.weight <"c", {{.*}}source = tensor<64x64x3x3xf32>} :
// CHECK:           loop.panels %{{.*}} {dilations = array<i64: 2, 4>, winograd = array<i64: 4, 3, 3>}
func.func @apart(%x: tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32> {
  %a = prim.weight <"a", "", 0, 16384> : tensor<64x64x1x1xf32>
  %b = prim.weight <"b", "", 0, 147456> : tensor<64x64x3x3xf32>
  %c = prim.weight <"c", "", 0, 147456> : tensor<64x64x3x3xf32>
  %1 = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x64x28x28xf32>, tensor<64x64x1x1xf32>) -> tensor<1x64x28x28xf32>
  %2 = prim.convolution %1, %b strides [1, 1] dilations [2, 4] low [2, 4] groups 1 : (tensor<1x64x28x28xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x28x28xf32>
  %3 = prim.convolution %2, %c strides [1, 1] dilations [12, 12] low [12, 12] groups 1 : (tensor<1x64x28x28xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x28x28xf32>
  return %3 : tensor<1x64x28x28xf32>
}

// Volumes: 3x3x3 windows are transformed along their depth, too.
// CHECK-LABEL: loop.program @volume
// CHECK-DAG:     loop.weight <"a", {{.*}}extents = [3, 3, 2, 1, 64, 16], strides = [3, 1, 9216, 0, 9, 576], offset = 0, panel = 2, lane = 5, limit = 32> {source = tensor<32x64x1x3x3xf32>, winograd = array<i64: 4, 3, 3>} : <[73728] x f32
// CHECK-DAG:     loop.weight <"b", {{.*}}extents = [3, 3, 3, 4, 32, 16], strides = [9, 3, 1, 13824, 27, 864], offset = 0, panel = 3, lane = 5, limit = 64> {source = tensor<64x32x3x3x3xf32>, winograd = array<i64: 4, 3, 3, 3, 2>} : <[294912] x f32
func.func @volume(%x: tensor<1x8x8x28x28xf32>) -> tensor<1x64x8x28x28xf32> {
  %s = prim.weight <"s", "", 0, 2048> : tensor<64x8x1x1x1xf32>
  %a = prim.weight <"a", "", 0, 73728> : tensor<32x64x1x3x3xf32>
  %b = prim.weight <"b", "", 0, 221184> : tensor<64x32x3x3x3xf32>
  %0 = prim.convolution %x, %s strides [1, 1, 1] dilations [1, 1, 1] low [0, 0, 0] groups 1 : (tensor<1x8x8x28x28xf32>, tensor<64x8x1x1x1xf32>) -> tensor<1x64x8x28x28xf32>
  %1 = prim.convolution %0, %a strides [1, 1, 1] dilations [1, 1, 1] low [0, 1, 1] groups 1 : (tensor<1x64x8x28x28xf32>, tensor<32x64x1x3x3xf32>) -> tensor<1x32x8x28x28xf32>
  %2 = prim.convolution %1, %b strides [1, 1, 1] dilations [1, 1, 1] low [1, 1, 1] groups 1 : (tensor<1x32x8x28x28xf32>, tensor<64x32x3x3x3xf32>) -> tensor<1x64x8x28x28xf32>
  return %2 : tensor<1x64x8x28x28xf32>
}

// Groups: the window's dims stay the outermost ones. Groups of few channels are summed directly.
// CHECK-LABEL: loop.program @groups
// CHECK-DAG:     loop.weight <"a", {{.*}}extents = [3, 3, 4, 3, 64, 16], strides = [3, 1, 27648, 9216, 9, 576], offset = 0, panel = 3, lane = 5, limit = 48> {source = tensor<192x64x3x3xf32>, winograd = array<i64: 4, 3, 3>} : <[442368] x f32
// CHECK-DAG:     loop.weight <"b", {{.*}}source = tensor<256x8x3x3xf32>} :
// CHECK:         loop.contraction [4, 1, 28, 28, 48, 3, 3, 64] batch 1 m 3 n 1 k 3
// CHECK:           loop.panels %{{.*}} {winograd = array<i64: 4, 3, 3>}
func.func @groups(%x: tensor<1x64x28x28xf32>) -> tensor<1x256x28x28xf32> {
  %s = prim.weight <"s", "", 0, 65536> : tensor<256x64x1x1xf32>
  %a = prim.weight <"a", "", 0, 442368> : tensor<192x64x3x3xf32>
  %t = prim.weight <"t", "", 0, 196608> : tensor<256x192x1x1xf32>
  %b = prim.weight <"b", "", 0, 73728> : tensor<256x8x3x3xf32>
  %0 = prim.convolution %x, %s strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x64x28x28xf32>, tensor<256x64x1x1xf32>) -> tensor<1x256x28x28xf32>
  %1 = prim.convolution %0, %a strides [1, 1] dilations [1, 1] low [1, 1] groups 4 : (tensor<1x256x28x28xf32>, tensor<192x64x3x3xf32>) -> tensor<1x192x28x28xf32>
  %2 = prim.convolution %1, %t strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x192x28x28xf32>, tensor<256x192x1x1xf32>) -> tensor<1x256x28x28xf32>
  %3 = prim.convolution %2, %b strides [1, 1] dilations [1, 1] low [1, 1] groups 32 : (tensor<1x256x28x28xf32>, tensor<256x8x3x3xf32>) -> tensor<1x256x28x28xf32>
  return %3 : tensor<1x256x28x28xf32>
}
