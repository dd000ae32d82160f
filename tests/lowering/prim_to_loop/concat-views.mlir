// What a concat takes of a value that is seen by other dims, several as one or from the end, is written there at once;
// where somebody reads the value by its own dims, it is copied.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies | FileCheck %s

// CHECK-LABEL: loop.program @joined
// CHECK-SAME:    | %[[Y:.*]]: !loop.buffer<[2, 8, 36]
// CHECK:         loop.reduction [2, 8, 4, 5, 3]
// CHECK:           loop.store {{.*}} [d0, d1, 5*d2 + d3]
// CHECK:         loop.reduction [2, 8, 4, 4, 3]
// CHECK:           loop.store {{.*}} [d0, d1, 4*d2 + d3 + 20]
// CHECK-NOT:     loop.pointwise
// CHECK-LABEL: loop.program @turned
// CHECK:         loop.reduction [4, 3]
// CHECK:           loop.store {{.*}} [-d0 + 3]
// CHECK:         loop.reduction [4, 3]
// CHECK:           loop.store {{.*}} [d0 + 4]
// CHECK-NOT:     loop.pointwise
// CHECK-LABEL: loop.program @read
// CHECK:         loop.reduction [2, 8, 4, 5, 3]
// CHECK:           loop.store {{.*}} [d0, d1, d2, d3] : <[2, 8, 4, 5] x f32>
// CHECK:         loop.pointwise [2, 8, 20]
// CHECK:         loop.reduction [2, 8, 4, 5]
func.func @joined(%x: tensor<2x8x4x5x3xf32>, %z: tensor<2x8x4x4x3xf32>) -> tensor<2x8x36xf32> {
  %a = prim.reduce sum %x, [4] : tensor<2x8x4x5x3xf32> -> tensor<2x8x4x5xf32>
  %b = prim.reduce sum %z, [4] : tensor<2x8x4x4x3xf32> -> tensor<2x8x4x4xf32>
  %c = prim.reshape %a : tensor<2x8x4x5xf32> -> tensor<2x8x20xf32>
  %d = prim.reshape %b : tensor<2x8x4x4xf32> -> tensor<2x8x16xf32>
  %y = prim.concat %c, %d axis 2 : (tensor<2x8x20xf32>, tensor<2x8x16xf32>) -> tensor<2x8x36xf32>
  return %y : tensor<2x8x36xf32>
}
func.func @turned(%x: tensor<4x3xf32>, %z: tensor<4x3xf32>) -> tensor<8xf32> {
  %a = prim.reduce sum %x, [1] : tensor<4x3xf32> -> tensor<4xf32>
  %b = prim.reduce sum %z, [1] : tensor<4x3xf32> -> tensor<4xf32>
  %c = prim.slice %a [3], [-1] : tensor<4xf32> -> tensor<4xf32>
  %y = prim.concat %c, %b axis 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
func.func @read(%x: tensor<2x8x4x5x3xf32>, %z: tensor<2x8x16xf32>) -> (tensor<2x8x36xf32>, tensor<2x8x4xf32>) {
  %a = prim.reduce sum %x, [4] : tensor<2x8x4x5x3xf32> -> tensor<2x8x4x5xf32>
  %c = prim.reshape %a : tensor<2x8x4x5xf32> -> tensor<2x8x20xf32>
  %y = prim.concat %c, %z axis 2 : (tensor<2x8x20xf32>, tensor<2x8x16xf32>) -> tensor<2x8x36xf32>
  %s = prim.reduce sum %a, [3] : tensor<2x8x4x5xf32> -> tensor<2x8x4xf32>
  return %y, %s : tensor<2x8x36xf32>, tensor<2x8x4xf32>
}
