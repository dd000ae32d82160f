// 3x3 convolutions of stride 2 that Winograd's algorithm computes.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts --ptc-pack-weights=winograd=true | FileCheck %s

// With stride 2 in both dims even and odd pixels are transformed apart; with one of each only the dim of stride 1 is transformed.
// CHECK-LABEL: loop.program @strided
// CHECK-DAG:     loop.weight <"a", {{.*}}winograd = array<i64: 4, 3, 3, 2>} : <[663552] x f32
// CHECK-DAG:     loop.weight <"b", {{.*}}winograd = array<i64: 4, 3>} :
// CHECK:           loop.panels %{{.*}} {winograd = array<i64: 4, 3, 3, 2>}
func.func @strided(%x: tensor<1x64x56x56xf32>) -> tensor<1x64x14x28xf32> {
  %s = prim.weight <"s", "", 0, 16384> : tensor<64x64x1x1xf32>
  %a = prim.weight <"a", "", 0, 294912> : tensor<128x64x3x3xf32>
  %b = prim.weight <"b", "", 0, 294912> : tensor<64x128x3x3xf32>
  %0 = prim.convolution %x, %s strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x64x56x56xf32>, tensor<64x64x1x1xf32>) -> tensor<1x64x56x56xf32>
  %1 = prim.convolution %0, %a strides [2, 2] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x64x56x56xf32>, tensor<128x64x3x3xf32>) -> tensor<1x128x28x28xf32>
  %2 = prim.convolution %1, %b strides [2, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x128x28x28xf32>, tensor<64x128x3x3xf32>) -> tensor<1x64x14x28xf32>
  return %2 : tensor<1x64x14x28xf32>
}
