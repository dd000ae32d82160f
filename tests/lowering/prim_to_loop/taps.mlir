// An observer finds a value in its buffer, a view of it by strides, an operand of a concat inside of the whole; what is
// computed where it is read is copied if it was asked for by name.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts --ptc-linearize-accesses | FileCheck %s

// CHECK-LABEL: loop.program @taps
// CHECK-SAME:    | %[[Y:.*]]: !loop.buffer<[4, 16]
// CHECK-DAG:     %[[FLAT:.*]] = loop.flatten %[[Y]]
// CHECK-DAG:     %[[A:.*]] = loop.buffer : <[32] x f32, <[0]>>
// CHECK-DAG:     loop.tap 0 "a" f32 [4, 8] %[[A]] : {{.*}} at [8*d0 + d1]
// CHECK-DAG:     loop.tap 1 "turned" f32 [8, 4] %[[A]] : {{.*}} at [d0 + 8*d1]
// CHECK-DAG:     loop.tap 2 "reversed" f32 [4, 8] %[[A]] : {{.*}} at [8*d0 - d1 + 7]
// CHECK-DAG:     loop.tap 3 "b" f32 [4, 8] %[[FLAT]] : {{.*}} at [16*d0 + d1 + 8]
// CHECK-DAG:     loop.tap 4 "y" f32 [4, 16] %[[FLAT]] : {{.*}} at [16*d0 + d1]
// CHECK-DAG:     loop.tap 5 "count" none [] at [] because "known when the model is compiled"
// CHECK-DAG:     loop.tap 6 "named" si64 [4] %[[COPY:.*]] : !loop.buffer<[4] x i64, <[0]>> at [d0]
func.func @taps(%x: tensor<4x8xf32>) -> (tensor<4x16xf32>, tensor<8x4xf32>, tensor<4x8xf32>, tensor<4xsi64>) {
  %a = prim.exp %x : tensor<4x8xf32>
  prim.tap 0 "a" %a : tensor<4x8xf32> optional
  %turned = prim.transpose %a, [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  prim.tap 1 "turned" %turned : tensor<8x4xf32> optional
  %reversed = prim.slice %a [0, 7], [1, -1] : tensor<4x8xf32> -> tensor<4x8xf32>
  prim.tap 2 "reversed" %reversed : tensor<4x8xf32> optional
  %b = prim.tanh %x : tensor<4x8xf32>
  prim.tap 3 "b" %b : tensor<4x8xf32> optional
  %y = prim.concat %reversed, %b axis 1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  prim.tap 4 "y" %y : tensor<4x16xf32> optional
  %count = prim.iota 0 : tensor<4xsi64>
  prim.tap 5 "count" %count : tensor<4xsi64> optional
  prim.tap 6 "named" %count : tensor<4xsi64>
  return %y, %turned, %reversed, %count : tensor<4x16xf32>, tensor<8x4xf32>, tensor<4x8xf32>, tensor<4xsi64>
}
