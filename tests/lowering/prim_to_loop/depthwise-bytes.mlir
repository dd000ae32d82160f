// A depthwise convolution widens bytes where it reads them: memory holds no floats, nor differences.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop | FileCheck %s

// CHECK-LABEL: loop.program @depthwise
// CHECK:         %[[Q:.*]] = loop.buffer : <[1, 2, 4, 4] x i8>
// CHECK:         loop.reduction [1, 2, 4, 4, 3, 3] reduced 2
// CHECK:         loop.masked
// CHECK-NEXT:      loop.load %[[Q]]
// CHECK-NEXT:      arith.extui %{{.*}} : i8 to i32
// CHECK:           arith.subi
// CHECK-NEXT:      arith.sitofp
func.func @depthwise(%r: tensor<1x2x4x4xf32>, %w: tensor<2x1x3x3xf32>) -> tensor<1x2x4x4xf32> {
  %z = prim.constant dense<7> : tensor<si32>
  %z0 = prim.broadcast %z, [] : tensor<si32> -> tensor<1x2x4x4xsi32>
  %n = prim.round %r : tensor<1x2x4x4xf32>
  %q = prim.convert %n : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xui8>
  %a = prim.convert %q : tensor<1x2x4x4xui8> -> tensor<1x2x4x4xsi32>
  %c = prim.sub %a, %z0 : tensor<1x2x4x4xsi32>
  %x = prim.convert %c : tensor<1x2x4x4xsi32> -> tensor<1x2x4x4xf32>
  %y = prim.convolution %x, %w strides [1, 1] dilations [1, 1] low [1, 1] groups 2 : (tensor<1x2x4x4xf32>, tensor<2x1x3x3xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}
