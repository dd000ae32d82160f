// Where each layer reads all layers before it, what was joined for one is a part of what is joined for the next: all of a
// block is one buffer, into which each layer's channels are written where they are computed, and nothing is copied.
// RUN: ptc-opt %s --ptc-simplify-algebra --ptc-lower-prim-to-loop --ptc-elide-copies | FileCheck %s

// CHECK-LABEL: loop.program @block
// CHECK-SAME:    %[[X:.*]]: !loop.buffer<[2, 8, 6, 6] x f32{{.*}} | %[[Y:.*]]: !loop.buffer<[2, 16, 6, 6] x f32
// CHECK-NOT:     loop.buffer :
// CHECK:         loop.pointwise
// CHECK:           math.exp
// CHECK:           loop.store {{.*}}, %[[Y]] [d0, d1, d2, d3]
// CHECK-COUNT-2: loop.store {{.*}}, %[[Y]] [{{.*}} + {{8|12}},
// CHECK-NOT:     loop.store
func.func @block(%x: tensor<2x8x6x6xf32>) -> tensor<2x16x6x6xf32> {
  %v = prim.weight <"v", "", 0, 1152> : tensor<4x8x3x3xf32>
  %w = prim.weight <"w", "", 0, 1728> : tensor<4x12x3x3xf32>
  %a = prim.exp %x : tensor<2x8x6x6xf32>
  %b = prim.convolution %a, %v strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<2x8x6x6xf32>, tensor<4x8x3x3xf32>) -> tensor<2x4x6x6xf32>
  %c = prim.concat %a, %b axis 1 : (tensor<2x8x6x6xf32>, tensor<2x4x6x6xf32>) -> tensor<2x12x6x6xf32>
  %d = prim.convolution %c, %w strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<2x12x6x6xf32>, tensor<4x12x3x3xf32>) -> tensor<2x4x6x6xf32>
  %e = prim.concat %a, %b, %d axis 1 : (tensor<2x8x6x6xf32>, tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>) -> tensor<2x16x6x6xf32>
  return %e : tensor<2x16x6x6xf32>
}
