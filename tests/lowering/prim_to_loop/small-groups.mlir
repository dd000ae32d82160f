// Convolutions of few channels a group, for targets whose vectors hold several groups.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts --ptc-pack-weights | FileCheck %s
// RUN: ptc-opt %s --ptc-lower-prim-to-loop="groups-in-windows=false" | FileCheck %s --check-prefix=PRODUCT

// PRODUCT-NOT: loop.reduction

// Groups of 8 channels: a reduction over the window and the channels of a group, whose weights have all columns of a term side by side.
// CHECK-LABEL: loop.program @groups
// CHECK-DAG:     loop.weight <"b", "", 0, 9216> recipe <extents = [3, 3, 8, 32], strides = [3, 1, 9, 72]
// CHECK:         loop.reduction [1, 32, 10, 12, 3, 3, 8] reduced 3
// CHECK:           loop.load %{{.*}} [0, d6 + 8*floordiv(d1, 8), d2 + d4 - 1, d3 + d5 - 1]
// CHECK:           loop.load %{{.*}} [d4, d5, d6, d1]
func.func @groups(%x: tensor<1x32x10x12xf32>) -> tensor<1x32x10x12xf32> {
  %a = prim.weight <"a", "", 0, 4096> : tensor<32x32x1x1xf32>
  %b = prim.weight <"b", "", 0, 9216> : tensor<32x8x3x3xf32>
  %c = prim.convolution %x, %a strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x32x10x12xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x10x12xf32>
  %d = prim.convolution %c, %b strides [1, 1] dilations [1, 1] low [1, 1] groups 4 : (tensor<1x32x10x12xf32>, tensor<32x8x3x3xf32>) -> tensor<1x32x10x12xf32>
  return %d : tensor<1x32x10x12xf32>
}
