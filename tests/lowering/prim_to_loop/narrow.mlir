// What lies in memory is narrow, and of a large table only what is read is computed.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-assign-layouts | FileCheck %s

// Rows of a quantised table: no buffer holds the table in floats.
// CHECK-LABEL: loop.program @rows
// CHECK-NOT:     loop.buffer : <[1000, 64]
// CHECK:         loop.load %{{.*}} [v$0, d1](%{{.*}}) : <[1000, 64] x i8
// CHECK:         arith.sitofp
func.func @rows(%i: tensor<3xsi64>) -> tensor<3x64xf32> {
  %q = prim.weight <"q", "", 0, 64000> : tensor<1000x64xsi8>
  %s = prim.constant dense<0.01> : tensor<f32>
  %f = prim.convert %q : tensor<1000x64xsi8> -> tensor<1000x64xf32>
  %b = prim.broadcast %s, [] : tensor<f32> -> tensor<1000x64xf32>
  %t = prim.mul %f, %b : tensor<1000x64xf32>
  %y = prim.gather %t, %i, 0 : (tensor<1000x64xf32>, tensor<3xsi64>) -> tensor<3x64xf32>
  return %y : tensor<3x64xf32>
}

// Two read the widened bytes: the bytes are stored.
// CHECK-LABEL: loop.program @bytes
// CHECK:         loop.buffer : <[8, 64] x i8
// CHECK-NOT:     loop.buffer : <[8, 64] x i32
func.func @bytes(%x: tensor<8x64xf32>) -> (tensor<8xsi32>, tensor<64xsi32>) {
  %r = prim.round %x : tensor<8x64xf32>
  %q = prim.convert %r : tensor<8x64xf32> -> tensor<8x64xui8>
  %w = prim.convert %q : tensor<8x64xui8> -> tensor<8x64xsi32>
  %a = prim.reduce sum %w, [1] : tensor<8x64xsi32> -> tensor<8xsi32>
  %b = prim.reduce sum %w, [0] : tensor<8x64xsi32> -> tensor<64xsi32>
  return %a, %b : tensor<8xsi32>, tensor<64xsi32>
}

// An image's three channels and one of zeros: the product reads the four from one place.
// CHECK-LABEL: loop.program @image
// CHECK:         loop.buffer : <[1, 4, 10, 10] x i8, <[0, 2, 3, 1]>>
// CHECK:         loop.contraction
func.func @image(%x: tensor<1x3x8x8xui8>) -> tensor<1x16x8x8xsi32> {
  %z = prim.constant dense<7> : tensor<ui8>
  %w = prim.weight <"w", "", 0, 576> : tensor<16x4x3x3xsi8>
  %p = prim.pad constant %x, %z [0, 0, 1, 1] : (tensor<1x3x8x8xui8>, tensor<ui8>) -> tensor<1x4x10x10xui8>
  %a = prim.convert %p : tensor<1x4x10x10xui8> -> tensor<1x4x10x10xsi32>
  %b = prim.convert %w : tensor<16x4x3x3xsi8> -> tensor<16x4x3x3xsi32>
  %y = prim.convolution %a, %b strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x4x10x10xsi32>, tensor<16x4x3x3xsi32>) -> tensor<1x16x8x8xsi32>
  return %y : tensor<1x16x8x8xsi32>
}
