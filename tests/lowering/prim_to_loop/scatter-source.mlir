// A scatter begins with a copy of x, for which x itself may stand where nobody reads it any more: neither behind the
// scatter nor in it.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies | FileCheck %s

// CHECK-LABEL: loop.program @read_behind
// CHECK:         %[[X:.*]] = loop.buffer
// CHECK:         loop.store {{.*}}, %[[X]] [d0]
// CHECK:         loop.pointwise [5]
// CHECK:           %[[COPIED:.*]] = loop.load %[[X]] [d0]
// CHECK-NEXT:      loop.store %[[COPIED]], %[[Y:.*]] [d0]
// CHECK:         loop.scatter [3]
// CHECK:           loop.store {{.*}}, %[[Y]] [v$0]
// CHECK:         loop.load %[[X]] [d0]
func.func @read_behind(%a: tensor<5xf32>, %i: tensor<3x1xsi64>, %u: tensor<3xf32>) -> tensor<5xf32> {
  %x = prim.exp %a : tensor<5xf32>
  %y = prim.scatter_nd add %x, %i, %u : (tensor<5xf32>, tensor<3x1xsi64>, tensor<3xf32>) -> tensor<5xf32>
  %z = prim.mul %x, %y : tensor<5xf32>
  return %z : tensor<5xf32>
}

// CHECK-LABEL: loop.program @read_within
// CHECK:         %[[X:.*]] = loop.buffer
// CHECK:         loop.store {{.*}}, %[[X]] [d0]
// CHECK:         loop.load %[[X]] [d0]
// CHECK-NEXT:    loop.store {{.*}}, %[[Y:.*]] [d0]
// CHECK:         loop.scatter [5]
// CHECK:           loop.load %[[X]] [d0]
// CHECK:           loop.store {{.*}}, %[[Y]] [v$0]
func.func @read_within(%a: tensor<5xf32>, %i: tensor<5x1xsi64>) -> tensor<5xf32> {
  %x = prim.exp %a : tensor<5xf32>
  %u = prim.abs %x : tensor<5xf32>
  %y = prim.scatter_nd add %x, %i, %u : (tensor<5xf32>, tensor<5x1xsi64>, tensor<5xf32>) -> tensor<5xf32>
  return %y : tensor<5xf32>
}

// CHECK-LABEL: loop.program @read_before
// CHECK:         loop.reduction [5, 7]
// CHECK:           loop.store {{.*}}, %[[X:.*]] [d0]
// CHECK-NOT:     loop.pointwise
// CHECK:         loop.scatter [3]
// CHECK:           loop.store {{.*}}, %[[X]] [v$0]
func.func @read_before(%a: tensor<5x7xf32>, %i: tensor<3x1xsi64>, %u: tensor<3xf32>) -> tensor<5xf32> {
  %x = prim.reduce sum %a, [1] : tensor<5x7xf32> -> tensor<5xf32>
  %y = prim.scatter_nd add %x, %i, %u : (tensor<5xf32>, tensor<3x1xsi64>, tensor<3xf32>) -> tensor<5xf32>
  return %y : tensor<5xf32>
}
