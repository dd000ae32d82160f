// Pads that mirror, repeat or wrap are stored where convolutions read them, once for all of them.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop | FileCheck %s
// RUN: ptc-opt %s --ptc-lower-prim-to-loop="stores-borders=false" | FileCheck %s --check-prefix=VIEW

// CHECK-LABEL: loop.program @mirrored
// CHECK:       loop.pointwise [2, 1, 356]
// CHECK:         loop.load %{{.*}} [d0, 0, min({{.*}})]
// CHECK:       loop.contraction [2, 1, 11, 8, 1, 36, 1]
// CHECK:         loop.load %{{.*}} [d0, 0, 32*d2 + d5]
// CHECK:       loop.contraction [2, 1, 11, 8, 1, 36, 1]
// CHECK:         loop.load %{{.*}} [d0, 0, 32*d2 + d5]
// VIEW-LABEL: loop.program @mirrored
// VIEW-NOT:   loop.pointwise
// VIEW:       loop.contraction
func.func @mirrored(%x: tensor<2x1x300xf32>) -> (tensor<2x8x1x11xf32>, tensor<2x8x1x11xf32>) {
  %zero = prim.constant dense<0.0> : tensor<f32>
  %a = prim.weight <"a", "", 0, 1152> : tensor<8x1x1x36xf32>
  %b = prim.weight <"b", "", 1152, 1152> : tensor<8x1x1x36xf32>
  %p = prim.pad reflect %x, %zero [0, 0, 28] : (tensor<2x1x300xf32>, tensor<f32>) -> tensor<2x1x356xf32>
  %s = prim.reshape %p : tensor<2x1x356xf32> -> tensor<2x1x1x356xf32>
  %c = prim.convolution %s, %a strides [1, 32] dilations [1, 1] low [0, 0] groups 1 : (tensor<2x1x1x356xf32>, tensor<8x1x1x36xf32>) -> tensor<2x8x1x11xf32>
  %d = prim.convolution %s, %b strides [1, 32] dilations [1, 1] low [0, 0] groups 1 : (tensor<2x1x1x356xf32>, tensor<8x1x1x36xf32>) -> tensor<2x8x1x11xf32>
  return %c, %d : tensor<2x8x1x11xf32>, tensor<2x8x1x11xf32>
}

// Of a free size the copy would compute each index, too.
// CHECK-LABEL: loop.program @free
// CHECK-NOT:   loop.pointwise
// CHECK:       loop.contraction
func.func @free(%x: tensor<2x1x?xf32, #prim.dims<[2, 1, n]>>) -> tensor<2x8x1x?xf32, #prim.dims<[2, 8, 1, n]>> attributes {prim.symbols = {n = #prim.symbol<64, 1000, divisor = 1, hint = 100>}} {
  %zero = prim.constant dense<0.0> : tensor<f32>
  %a = prim.weight <"a", "", 0, 1152> : tensor<8x1x1x57xf32>
  %p = prim.pad reflect %x, %zero [0, 0, 28] : (tensor<2x1x?xf32, #prim.dims<[2, 1, n]>>, tensor<f32>) -> tensor<2x1x?xf32, #prim.dims<[2, 1, n + 56]>>
  %s = prim.reshape %p : tensor<2x1x?xf32, #prim.dims<[2, 1, n + 56]>> -> tensor<2x1x1x?xf32, #prim.dims<[2, 1, 1, n + 56]>>
  %c = prim.convolution %s, %a strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<2x1x1x?xf32, #prim.dims<[2, 1, 1, n + 56]>>, tensor<8x1x1x57xf32>) -> tensor<2x8x1x?xf32, #prim.dims<[2, 8, 1, n]>>
  return %c : tensor<2x8x1x?xf32, #prim.dims<[2, 8, 1, n]>>
}
