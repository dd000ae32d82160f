// What is padded in front of windows, and made by the program, is stored between its borders.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop | FileCheck %s
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies | FileCheck %s --check-prefix=ELIDED

// CHECK-LABEL: loop.program @mirrored
// CHECK:       loop.contraction
// CHECK:         loop.store %{{.*}}, %[[A:.*]] [d0, d3, d1, d2]
// CHECK:       loop.pointwise [1, 8, 9, 12] {
// CHECK-NEXT:    loop.load %[[A]] [0, d1, d2, d3]
// CHECK-NEXT:    loop.store %{{.*}}, %[[P:.*]] [d0, d1, d2 + 1, d3 + 2]
// Above and below, whole rows.
// CHECK:       loop.pointwise [1, 8, 1, 14] {
// CHECK-NEXT:    loop.load %[[P]] [0, d1, 2, min(
// CHECK-NEXT:    loop.store %{{.*}}, %[[P]] [d0, d1, d2, d3]
// CHECK:       loop.pointwise [1, 8, 2, 14] {
// CHECK-NEXT:    loop.load %[[P]] [0, d1, -d2 + 8, min(
// CHECK-NEXT:    loop.store %{{.*}}, %[[P]] [d0, d1, d2 + 10, d3]
// On the left, between them.
// CHECK:       loop.pointwise [1, 8, 9, 2] {
// CHECK-NEXT:    loop.load %[[P]] [0, d1, d2 + 1, -d3 + 4]
// CHECK-NEXT:    loop.store %{{.*}}, %[[P]] [d0, d1, d2 + 1, d3]
// CHECK-NOT:   loop.pointwise
// CHECK:       loop.contraction
// ELIDED-LABEL: loop.program @mirrored
// ELIDED:       loop.contraction
// ELIDED:         loop.store %{{.*}}, %[[P:.*]] [d0, d3, d1 + 1, d2 + 2]
// ELIDED-COUNT-3: loop.pointwise
// ELIDED:       loop.contraction
// ELIDED:         loop.load %[[P]]
func.func @mirrored(%x: tensor<1x4x9x12xf32>) -> tensor<1x8x10x12xf32> {
  %zero = prim.constant dense<0.0> : tensor<f32>
  %v = prim.weight <"v", "", 0, 128> : tensor<8x4x1x1xf32>
  %w = prim.weight <"w", "", 128, 2304> : tensor<8x8x3x3xf32>
  %a = prim.convolution %x, %v strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x4x9x12xf32>, tensor<8x4x1x1xf32>) -> tensor<1x8x9x12xf32>
  %p = prim.pad reflect %a, %zero [0, 0, 1, 2] : (tensor<1x8x9x12xf32>, tensor<f32>) -> tensor<1x8x12x14xf32>
  %y = prim.convolution %p, %w strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x8x12x14xf32>, tensor<8x8x3x3xf32>) -> tensor<1x8x10x12xf32>
  return %y : tensor<1x8x10x12xf32>
}

// Of free sizes as well. A border of numbers reads nothing.
// CHECK-LABEL: loop.program @numbers
// CHECK:       loop.contraction
// CHECK:       loop.pointwise [1, 8, n] {
// CHECK:         loop.store %{{.*}}, %[[P:.*]] [d0, d1, d2 + 1]
// CHECK:       loop.pointwise [1, 8, 1] {
// CHECK-NOT:     loop.load
// CHECK:         loop.store %{{.*}}, %[[P]] [d0, d1, d2]
// CHECK:       loop.pointwise [1, 8, 3] {
// CHECK-NOT:     loop.load
// CHECK:         loop.store %{{.*}}, %[[P]] [d0, d1, d2 + n + 1]
// CHECK:       loop.reduction [1, 8, n + 2, 3] reduced 1
func.func @numbers(%x: tensor<1x4x?xf32, #prim.dims<[1, 4, n]>>) -> tensor<1x8x?xf32, #prim.dims<[1, 8, n + 2]>> attributes {prim.symbols = {n = #prim.symbol<64, 1000, divisor = 1, hint = 100>}} {
  %one = prim.constant dense<1.0> : tensor<f32>
  %v = prim.weight <"v", "", 0, 128> : tensor<8x4x1xf32>
  %a = prim.convolution %x, %v strides [1] dilations [1] low [0] groups 1 : (tensor<1x4x?xf32, #prim.dims<[1, 4, n]>>, tensor<8x4x1xf32>) -> tensor<1x8x?xf32, #prim.dims<[1, 8, n]>>
  %p = prim.pad constant %a, %one [0, 0, 1] : (tensor<1x8x?xf32, #prim.dims<[1, 8, n]>>, tensor<f32>) -> tensor<1x8x?xf32, #prim.dims<[1, 8, n + 4]>>
  %y = prim.window_reduce max %p window [3] strides [1] dilations [1] low [0] : tensor<1x8x?xf32, #prim.dims<[1, 8, n + 4]>> -> tensor<1x8x?xf32, #prim.dims<[1, 8, n + 2]>>
  return %y : tensor<1x8x?xf32, #prim.dims<[1, 8, n + 2]>>
}
