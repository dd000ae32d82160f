// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-fold-mirrored-filters{fewest-filters=2}))' | FileCheck %s
// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-fold-mirrored-filters))' | FileCheck %s --check-prefix=FEW

// An even filter and an odd one, windows of two strides. By default they are too few for what the sums cost.
// CHECK-LABEL: func.func @spectrum
// CHECK:         %[[W:.*]] = prim.constant
// CHECK:         %[[USED:.*]] = prim.slice %arg0 [0, 0, 0], [1, 1, 1] : tensor<3x1x15xf32> -> tensor<3x1x12xf32>
// CHECK:         %[[ROWS:.*]] = prim.reshape %[[USED]] : tensor<3x1x12xf32> -> tensor<3x3x4xf32>
// CHECK:         %[[LOW:.*]] = prim.slice %[[ROWS]] [0, 0, 1], [1, 1, 1] : tensor<3x3x4xf32> -> tensor<3x2x3xf32>
// CHECK:         %[[HIGH:.*]] = prim.slice %[[ROWS]] [0, 1, 3], [1, 1, -1] : tensor<3x3x4xf32> -> tensor<3x2x3xf32>
// CHECK:         %[[SUM:.*]] = prim.add %[[LOW]], %[[HIGH]]
// CHECK:         %[[MIDDLE:.*]] = prim.slice %[[ROWS]] [0, 1, 0], [1, 1, 1] : tensor<3x3x4xf32> -> tensor<3x2x1xf32>
// CHECK:         %[[X:.*]] = prim.concat %[[SUM]], %[[MIDDLE]] axis 2
// CHECK:         %[[EVEN:.*]] = prim.slice %[[W]] [0, 0, 1], [1, 1, 1] : tensor<2x1x8xf32> -> tensor<1x1x4xf32>
// CHECK:         prim.matmul %[[X]], %{{.*}} : (tensor<3x2x4xf32>, tensor<4x1xf32>) -> tensor<3x2x1xf32>
// CHECK:         %[[DIFFERENCE:.*]] = prim.sub
// CHECK:         %[[ODD:.*]] = prim.slice %[[W]] [1, 0, 1], [1, 1, 1] : tensor<2x1x8xf32> -> tensor<1x1x3xf32>
// CHECK:         prim.matmul %[[DIFFERENCE]], %{{.*}} : (tensor<3x2x3xf32>, tensor<3x1xf32>) -> tensor<3x2x1xf32>
// CHECK:         prim.concat %{{.*}}, %{{.*}} axis 1 : (tensor<3x1x2xf32>, tensor<3x1x2xf32>) -> tensor<3x2x2xf32>
// FEW-LABEL:   func.func @spectrum
// FEW:           prim.convolution
func.func @spectrum(%x: tensor<3x1x15xf32>) -> tensor<3x2x2xf32> {
  %w = prim.constant dense<[[[0.0, 1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0]], [[0.0, 5.0, 6.0, 7.0, 0.0, -7.0, -6.0, -5.0]]]> : tensor<2x1x8xf32>
  %y = prim.convolution %x, %w strides [4] dilations [1] low [0] groups 1 : (tensor<3x1x15xf32>, tensor<2x1x8xf32>) -> tensor<3x2x2xf32>
  return %y : tensor<3x2x2xf32>
}

// A weight without a partner, a window of four strides: rows of elements 0 and 1, which has its partner in the row before.
// CHECK-LABEL: func.func @first
// CHECK:         %[[ROWS:.*]] = prim.reshape
// CHECK:         %[[FIRST:.*]] = prim.slice %[[ROWS]] [0, 0, 0], [1, 1, 1] : tensor<1x5x2xf32> -> tensor<1x2x1xf32>
// CHECK:         %[[LOW1:.*]] = prim.slice %[[ROWS]] [0, 0, 1], [1, 1, 1]
// CHECK:         %[[HIGH1:.*]] = prim.slice %[[ROWS]] [0, 3, 1], [1, 1, -1]
// CHECK:         %[[SUM1:.*]] = prim.add %[[LOW1]], %[[HIGH1]]
// CHECK:         %[[LOW2:.*]] = prim.slice %[[ROWS]] [0, 1, 0], [1, 1, 1]
// CHECK:         %[[HIGH2:.*]] = prim.slice %[[ROWS]] [0, 3, 0], [1, 1, 1]
// CHECK:         %[[SUM2:.*]] = prim.add %[[LOW2]], %[[HIGH2]]
// CHECK:         %[[LOW3:.*]] = prim.slice %[[ROWS]] [0, 1, 1], [1, 1, 1]
// CHECK:         %[[HIGH3:.*]] = prim.slice %[[ROWS]] [0, 2, 1], [1, 1, -1]
// CHECK:         %[[SUM3:.*]] = prim.add %[[LOW3]], %[[HIGH3]]
// CHECK:         %[[MIDDLE:.*]] = prim.slice %[[ROWS]] [0, 2, 0], [1, 1, 1]
// CHECK:         prim.concat %[[FIRST]], %[[SUM1]], %[[SUM2]], %[[SUM3]], %[[MIDDLE]] axis 2
// CHECK-NOT:     prim.concat
func.func @first(%x: tensor<1x1x10xf32>) -> tensor<1x2x2xf32> {
  %w = prim.constant dense<1.5> : tensor<2x1x8xf32>
  %y = prim.convolution %x, %w strides [2] dilations [1] low [0] groups 1 : (tensor<1x1x10xf32>, tensor<2x1x8xf32>) -> tensor<1x2x2xf32>
  return %y : tensor<1x2x2xf32>
}

// One weight off its partner by the last bit, an odd filter whose first weight is not 0, a border, two channels, a stride
// that does not divide the window, and sums that would be rounded to 16 bits.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-6: prim.convolution
// CHECK:       return
func.func @others(%x: tensor<1x1x12xf32>, %two: tensor<1x2x12xf32>, %half: tensor<1x1x12xf16>) -> (tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x4xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf16>) {
  %off = prim.constant dense<[[[0.0, 1.0, 2.0, 1.0000001]], [[0.0, 1.0, 2.0, 1.0]]]> : tensor<2x1x4xf32>
  %odd = prim.constant dense<[[[0.0, 1.0, 2.0, 1.0]], [[1.0, 1.0, 0.0, -1.0]]]> : tensor<2x1x4xf32>
  %even = prim.constant dense<1.0> : tensor<2x1x4xf32>
  %channels = prim.constant dense<1.0> : tensor<2x2x4xf32>
  %0 = prim.convolution %x, %off strides [4] dilations [1] low [0] groups 1 : (tensor<1x1x12xf32>, tensor<2x1x4xf32>) -> tensor<1x2x3xf32>
  %1 = prim.convolution %x, %odd strides [4] dilations [1] low [0] groups 1 : (tensor<1x1x12xf32>, tensor<2x1x4xf32>) -> tensor<1x2x3xf32>
  %2 = prim.convolution %x, %even strides [4] dilations [1] low [2] groups 1 : (tensor<1x1x12xf32>, tensor<2x1x4xf32>) -> tensor<1x2x4xf32>
  %3 = prim.convolution %two, %channels strides [4] dilations [1] low [0] groups 1 : (tensor<1x2x12xf32>, tensor<2x2x4xf32>) -> tensor<1x2x3xf32>
  %4 = prim.convolution %x, %even strides [3] dilations [1] low [0] groups 1 : (tensor<1x1x12xf32>, tensor<2x1x4xf32>) -> tensor<1x2x3xf32>
  %narrow = prim.constant dense<1.0> : tensor<2x1x4xf16>
  %5 = prim.convolution %half, %narrow strides [4] dilations [1] low [0] groups 1 : (tensor<1x1x12xf16>, tensor<2x1x4xf16>) -> tensor<1x2x3xf16>
  return %0, %1, %2, %3, %4, %5 : tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x4xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf16>
}
