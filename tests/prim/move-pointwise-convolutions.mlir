// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-move-pointwise-convolutions))' | FileCheck %s

// A part that repeats pixels is multiplied before; what stays is multiplied where it lies.
// CHECK-LABEL: func.func @repeated
// CHECK:         %[[V:.*]] = prim.slice %arg2 [0, 0, 0, 0], [1, 1, 1, 1] : tensor<8x48x1x1xf32> -> tensor<8x32x1x1xf32>
// CHECK:         %[[FEW:.*]] = prim.convolution %arg0, %[[V]] {{.*}} -> tensor<1x8x4x5xf32>
// CHECK:         prim.broadcast %[[FEW]], [0, 1, 2, 4] : tensor<1x8x4x5xf32> -> tensor<1x8x4x4x5xf32>
// CHECK:         %[[UP:.*]] = prim.reshape {{.*}} -> tensor<1x8x16x5xf32>
// CHECK:         %[[W:.*]] = prim.slice %arg2 [0, 32, 0, 0], [1, 1, 1, 1] : tensor<8x48x1x1xf32> -> tensor<8x16x1x1xf32>
// CHECK:         %[[REST:.*]] = prim.convolution %arg1, %[[W]]
// CHECK:         %[[SUM:.*]] = prim.add %[[UP]], %[[REST]]
// CHECK:         return %[[SUM]]
func.func @repeated(%a: tensor<1x32x4x5xf32>, %b: tensor<1x16x16x5xf32>, %w: tensor<8x48x1x1xf32>) -> tensor<1x8x16x5xf32> {
  %0 = prim.broadcast %a, [0, 1, 2, 4] : tensor<1x32x4x5xf32> -> tensor<1x32x4x4x5xf32>
  %1 = prim.reshape %0 : tensor<1x32x4x4x5xf32> -> tensor<1x32x16x5xf32>
  %2 = prim.concat %1, %b axis 1 : (tensor<1x32x16x5xf32>, tensor<1x16x16x5xf32>) -> tensor<1x48x16x5xf32>
  %3 = prim.convolution %2, %w strides [1, 1] dilations [1, 1] low [0, 0] groups 1
      : (tensor<1x48x16x5xf32>, tensor<8x48x1x1xf32>) -> tensor<1x8x16x5xf32>
  return %3 : tensor<1x8x16x5xf32>
}

// So is an interpolated image: its factors are those of all channels.
// CHECK-LABEL: func.func @interpolated
// CHECK:         %[[FEW:.*]] = prim.convolution %arg0, %arg3 {{.*}} -> tensor<1x8x4x5xf32>
// CHECK-DAG:     %[[LOW:.*]] = prim.gather %[[FEW]], %arg1, 2
// CHECK-DAG:     %[[F:.*]] = prim.broadcast %arg2, [2] : tensor<12xf32> -> tensor<1x8x12x5xf32>
// CHECK:         prim.mul {{.*}} : tensor<1x8x12x5xf32>
// CHECK:         %[[Y:.*]] = prim.add %[[LOW]], {{.*}} : tensor<1x8x12x5xf32>
// CHECK:         return %[[Y]]
func.func @interpolated(%a: tensor<1x32x4x5xf32>, %i: tensor<12xsi64>, %f: tensor<12xf32>, %w: tensor<8x32x1x1xf32>) -> tensor<1x8x12x5xf32> {
  %0 = prim.gather %a, %i, 2 : (tensor<1x32x4x5xf32>, tensor<12xsi64>) -> tensor<1x32x12x5xf32>
  %1 = prim.broadcast %f, [2] : tensor<12xf32> -> tensor<1x32x12x5xf32>
  %2 = prim.mul %0, %1 : tensor<1x32x12x5xf32>
  %3 = prim.add %0, %2 : tensor<1x32x12x5xf32>
  %4 = prim.convolution %3, %w strides [1, 1] dilations [1, 1] low [0, 0] groups 1
      : (tensor<1x32x12x5xf32>, tensor<8x32x1x1xf32>) -> tensor<1x8x12x5xf32>
  return %4 : tensor<1x8x12x5xf32>
}

// Sums over windows come first where they leave fewer pixels.
// CHECK-LABEL: func.func @sums
// CHECK:         %[[S:.*]] = prim.window_reduce sum %arg0 {{.*}} -> tensor<1x32x2x2xf32>
// CHECK:         prim.convolution %[[S]], %arg1
func.func @sums(%x: tensor<1x32x4x4xf32>, %w: tensor<16x32x1x1xf32>) -> tensor<1x16x2x2xf32> {
  %0 = prim.convolution %x, %w strides [1, 1] dilations [1, 1] low [0, 0] groups 1
      : (tensor<1x32x4x4xf32>, tensor<16x32x1x1xf32>) -> tensor<1x16x4x4xf32>
  %1 = prim.window_reduce sum %0 window [2, 2] strides [2, 2] dilations [1, 1] low [0, 0] : tensor<1x16x4x4xf32> -> tensor<1x16x2x2xf32>
  return %1 : tensor<1x16x2x2xf32>
}

// No map: a square, factors that channels have of their own, a window of three pixels.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: prim.broadcast
// CHECK:         prim.reshape
// CHECK-NEXT:    prim.mul
// CHECK-NEXT:    prim.mul
// CHECK-NEXT:    prim.convolution
// CHECK-NEXT:    prim.reshape
// CHECK-NEXT:    prim.convolution
func.func @others(%a: tensor<1x32x4x5xf32>, %f: tensor<32xf32>, %w: tensor<8x32x1x1xf32>, %v: tensor<8x32x3x1xf32>)
    -> (tensor<1x8x16x5xf32>, tensor<1x8x14x5xf32>) {
  %0 = prim.broadcast %a, [0, 1, 2, 4] : tensor<1x32x4x5xf32> -> tensor<1x32x4x4x5xf32>
  %1 = prim.broadcast %f, [1] : tensor<32xf32> -> tensor<1x32x16x5xf32>
  %2 = prim.broadcast %a, [0, 1, 2, 4] : tensor<1x32x4x5xf32> -> tensor<1x32x4x4x5xf32>
  %3 = prim.reshape %0 : tensor<1x32x4x4x5xf32> -> tensor<1x32x16x5xf32>
  %4 = prim.mul %3, %3 : tensor<1x32x16x5xf32>
  %5 = prim.mul %4, %1 : tensor<1x32x16x5xf32>
  %6 = prim.convolution %5, %w strides [1, 1] dilations [1, 1] low [0, 0] groups 1
      : (tensor<1x32x16x5xf32>, tensor<8x32x1x1xf32>) -> tensor<1x8x16x5xf32>
  %7 = prim.reshape %2 : tensor<1x32x4x4x5xf32> -> tensor<1x32x16x5xf32>
  %8 = prim.convolution %7, %v strides [1, 1] dilations [1, 1] low [0, 0] groups 1
      : (tensor<1x32x16x5xf32>, tensor<8x32x3x1xf32>) -> tensor<1x8x14x5xf32>
  return %6, %8 : tensor<1x8x16x5xf32>, tensor<1x8x14x5xf32>
}

// Pooled and made larger again: it is multiplied where pixels are fewest.
// CHECK-LABEL: func.func @pooled
// CHECK:         %[[S:.*]] = prim.window_reduce sum %arg0 {{.*}} -> tensor<1x32x2x2xf32>
// CHECK:         prim.convolution %[[S]], %arg1 {{.*}} -> tensor<1x8x2x2xf32>
func.func @pooled(%x: tensor<1x32x8x8xf32>, %w: tensor<8x32x1x1xf32>) -> tensor<1x8x8x2xf32> {
  %0 = prim.window_reduce sum %x window [4, 4] strides [4, 4] dilations [1, 1] low [0, 0] : tensor<1x32x8x8xf32> -> tensor<1x32x2x2xf32>
  %1 = prim.broadcast %0, [0, 1, 2, 4] : tensor<1x32x2x2xf32> -> tensor<1x32x2x4x2xf32>
  %2 = prim.reshape %1 : tensor<1x32x2x4x2xf32> -> tensor<1x32x8x2xf32>
  %3 = prim.convolution %2, %w strides [1, 1] dilations [1, 1] low [0, 0] groups 1
      : (tensor<1x32x8x2xf32>, tensor<8x32x1x1xf32>) -> tensor<1x8x8x2xf32>
  return %3 : tensor<1x8x8x2xf32>
}
