// Windows along one dim that Winograd's algorithm computes faster: the dim of outputs that moves with it becomes the last
// row, other dims of the window are slices.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts --ptc-pack-weights=winograd=true | FileCheck %s
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts --ptc-pack-weights | FileCheck %s --check-prefix=DIRECT
// DIRECT-NOT: winograd

// A signal: three elements, five that lie apart, and nine.
// CHECK-LABEL: loop.program @signal
// CHECK-DAG:     loop.weight <"b", {{.*}}extents = [3, 4, 64, 16], strides = [1, 3072, 3, 192], offset = 0, panel = 1, lane = 3, limit = 64> {{.*}}winograd = array<i64: 4, 3>} : <[24576] x f32
// CHECK-DAG:     loop.weight <"c", {{.*}}winograd = array<i64: 4, 5>} : <[32768] x f32
// CHECK-DAG:     loop.weight <"d", {{.*}}source = tensor<64x64x9xf32>} :
// CHECK:           loop.panels %{{.*}} {winograd = array<i64: 4, 3>}
// CHECK:           loop.panels %{{.*}} {dilations = array<i64: 1, 2>, winograd = array<i64: 4, 5>}
func.func @signal(%x: tensor<1x64x400xf32>) -> tensor<1x64x400xf32> {
  %a = prim.weight <"a", "", 0, 16384> : tensor<64x64x1xf32>
  %b = prim.weight <"b", "", 0, 49152> : tensor<64x64x3xf32>
  %c = prim.weight <"c", "", 0, 81920> : tensor<64x64x5xf32>
  %d = prim.weight <"d", "", 0, 147456> : tensor<64x64x9xf32>
  %1 = prim.convolution %x, %a strides [1] dilations [1] low [0] groups 1 : (tensor<1x64x400xf32>, tensor<64x64x1xf32>) -> tensor<1x64x400xf32>
  %2 = prim.convolution %1, %b strides [1] dilations [1] low [1] groups 1 : (tensor<1x64x400xf32>, tensor<64x64x3xf32>) -> tensor<1x64x400xf32>
  %3 = prim.convolution %2, %c strides [1] dilations [2] low [4] groups 1 : (tensor<1x64x400xf32>, tensor<64x64x5xf32>) -> tensor<1x64x400xf32>
  %4 = prim.convolution %3, %d strides [1] dilations [1] low [4] groups 1 : (tensor<1x64x400xf32>, tensor<64x64x9xf32>) -> tensor<1x64x400xf32>
  return %4 : tensor<1x64x400xf32>
}

// Columns of an image, and a window of 5x5.
// CHECK-LABEL: loop.program @image
// CHECK-DAG:     loop.weight <"b", {{.*}}winograd = array<i64: 4, 3>} : <[24576] x f32
// CHECK-DAG:     loop.weight <"c", {{.*}}extents = [5, 4, 5, 64, 16], strides = [1, 25600, 5, 25, 1600], offset = 0, panel = 1, lane = 4, limit = 64> {{.*}}winograd = array<i64: 4, 5>} : <[163840] x f32
// CHECK:         loop.contraction [1, 48, 28, 64, 1, 3, 64] batch 0 m 3 n 1 k 3
// CHECK:             loop.load %{{.*}}[0, d6, d2 + d5 - 1, d1]
// CHECK:           loop.store %{{.*}}[d0, d3, d2, d1]
func.func @image(%x: tensor<1x64x28x48xf32>) -> tensor<1x64x28x48xf32> {
  %a = prim.weight <"a", "", 0, 16384> : tensor<64x64x1x1xf32>
  %b = prim.weight <"b", "", 0, 49152> : tensor<64x64x3x1xf32>
  %c = prim.weight <"c", "", 0, 409600> : tensor<64x64x5x5xf32>
  %1 = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x64x28x48xf32>, tensor<64x64x1x1xf32>) -> tensor<1x64x28x48xf32>
  %2 = prim.convolution %1, %b strides [1, 1] dilations [1, 1] low [1, 0] groups 1 : (tensor<1x64x28x48xf32>, tensor<64x64x3x1xf32>) -> tensor<1x64x28x48xf32>
  %3 = prim.convolution %2, %c strides [1, 1] dilations [1, 1] low [2, 2] groups 1 : (tensor<1x64x28x48xf32>, tensor<64x64x5x5xf32>) -> tensor<1x64x28x48xf32>
  return %3 : tensor<1x64x28x48xf32>
}

// A dim whose outputs are two pixels apart is a slice, and the other one is transformed; of two dims the one that costs less: 8 outputs down are whole
// tiles of four, 5 across are not.
// CHECK-LABEL: loop.program @strides
// CHECK-DAG:     loop.weight <"b", {{.*}}extents = [3, 4, 3, 64, 16], strides = [3, 9216, 1, {{.*}}winograd = array<i64: 4, 3>}
// CHECK-DAG:     loop.weight <"c", {{.*}}extents = [5, 4, 5, 64, 16], strides = [5, 25600, 1, {{.*}}winograd = array<i64: 4, 5>}
// CHECK:         loop.contraction [1, 28, 56, 64, 3, 3, 64] batch 0 m 3 n 1 k 3
// CHECK:             loop.load %{{.*}}[0, d6, d2 + d5 - 1, 2*d1 + d4 - 1]
// CHECK:         loop.contraction [1, 5, 8, 64, 5, 5, 64] batch 0 m 3 n 1 k 3
func.func @strides(%x: tensor<1x64x56x56xf32>, %y: tensor<1x64x8x5xf32>) -> (tensor<1x64x56x28xf32>, tensor<1x64x8x5xf32>) {
  %a = prim.weight <"a", "", 0, 16384> : tensor<64x64x1x1xf32>
  %b = prim.weight <"b", "", 0, 147456> : tensor<64x64x3x3xf32>
  %c = prim.weight <"c", "", 0, 409600> : tensor<64x64x5x5xf32>
  %1 = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x64x56x56xf32>, tensor<64x64x1x1xf32>) -> tensor<1x64x56x56xf32>
  %2 = prim.convolution %1, %b strides [1, 2] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x64x56x56xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x56x28xf32>
  %3 = prim.convolution %y, %a strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x64x8x5xf32>, tensor<64x64x1x1xf32>) -> tensor<1x64x8x5xf32>
  %4 = prim.convolution %3, %c strides [1, 1] dilations [1, 1] low [2, 2] groups 1 : (tensor<1x64x8x5xf32>, tensor<64x64x5x5xf32>) -> tensor<1x64x8x5xf32>
  return %2, %4 : tensor<1x64x56x28xf32>, tensor<1x64x8x5xf32>
}
