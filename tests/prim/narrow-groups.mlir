// Depthwise convolutions of quantised tensors sum whole numbers in floats: scales come behind, bytes stay bytes.
// RUN: ptc-opt %s --ptc-narrow-products | FileCheck %s

// CHECK-LABEL: @depthwise
// CHECK-DAG:   %[[Q:.*]] = prim.convert %arg0 : tensor<1x2x4x4xui8> -> tensor<1x2x4x4xsi32>
// CHECK-DAG:   %[[C:.*]] = prim.sub %[[Q]], %{{.*}} : tensor<1x2x4x4xsi32>
// CHECK-DAG:   %[[X:.*]] = prim.convert %[[C]] : tensor<1x2x4x4xsi32> -> tensor<1x2x4x4xf32>
// CHECK-DAG:   %[[W:.*]] = prim.convert %{{.*}} : tensor<2x1x2x2xsi8> -> tensor<2x1x2x2xf32>
// CHECK:       %[[Y:.*]] = prim.convolution %[[X]], %[[W]] {{.*}} groups 2 {{.*}} -> tensor<1x2x3x3xf32>
// CHECK-NEXT:  prim.convert %[[Y]] : tensor<1x2x3x3xf32> -> tensor<1x2x3x3xsi32>
// CHECK:       %[[R:.*]] = prim.mul %{{.*}} : tensor<1x2x3x3xf32>
// CHECK-NEXT:  return %[[R]]
func.func @depthwise(%q: tensor<1x2x4x4xui8>) -> tensor<1x2x3x3xf32> {
  %s = prim.constant dense<0.5> : tensor<f32>
  %z = prim.constant dense<7> : tensor<si32>
  %v = prim.constant dense<[[[[1, 2], [3, 4]]], [[[5, 6], [7, 8]]]]> : tensor<2x1x2x2xsi8>
  %t = prim.constant dense<[0.25, 0.125]> : tensor<2xf32>
  %s0 = prim.broadcast %s, [] : tensor<f32> -> tensor<1x2x4x4xf32>
  %z0 = prim.broadcast %z, [] : tensor<si32> -> tensor<1x2x4x4xsi32>
  %t0 = prim.broadcast %t, [0] : tensor<2xf32> -> tensor<2x1x2x2xf32>
  %a = prim.convert %q : tensor<1x2x4x4xui8> -> tensor<1x2x4x4xsi32>
  %c = prim.sub %a, %z0 : tensor<1x2x4x4xsi32>
  %f = prim.convert %c : tensor<1x2x4x4xsi32> -> tensor<1x2x4x4xf32>
  %x = prim.mul %f, %s0 : tensor<1x2x4x4xf32>
  %g = prim.convert %v : tensor<2x1x2x2xsi8> -> tensor<2x1x2x2xf32>
  %w = prim.mul %g, %t0 : tensor<2x1x2x2xf32>
  %y = prim.convolution %x, %w strides [1, 1] dilations [1, 1] low [0, 0] groups 2 : (tensor<1x2x4x4xf32>, tensor<2x1x2x2xf32>) -> tensor<1x2x3x3xf32>
  return %y : tensor<1x2x3x3xf32>
}
