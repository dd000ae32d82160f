// Concat is a Nop: both producers write into the combined buffer, which is the result itself.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies | FileCheck %s

// CHECK-LABEL: loop.program @concat
// CHECK-SAME:    %[[X:.*]]: !loop.buffer<[8, 4] x f32, <[0, 1]>> | %[[Y:.*]]: !loop.buffer<[16, 4] x f32, <[0, 1]>>
// CHECK-NOT:     loop.buffer :
// CHECK:         loop.pointwise [8, 4]
// CHECK:           loop.load %[[X]] [d0, d1]
// CHECK:           math.exp
// CHECK:           loop.store {{.*}}, %[[Y]] [d0, d1]
// CHECK:         loop.pointwise [8, 4]
// CHECK:           math.tanh
// CHECK:           loop.store {{.*}}, %[[Y]] [d0 + 8, d1]
// CHECK-NOT:     loop.pointwise
func.func @concat(%x: tensor<8x4xf32>) -> tensor<16x4xf32> {
  %a = prim.exp %x : tensor<8x4xf32>
  %b = prim.tanh %x : tensor<8x4xf32>
  %c = prim.concat %a, %b axis 0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
  return %c : tensor<16x4xf32>
}
