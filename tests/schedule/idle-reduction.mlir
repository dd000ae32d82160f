// A reduction whose result nobody reads any more is pointwise: what it stores on the way is all that it does. Nodes of which
// nothing is left are dropped.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts \
// RUN:   --ptc-linearize-accesses --ptc-normalize-nodes --ptc-fuse-nodes | FileCheck %s

// CHECK-LABEL: loop.program @unread
// CHECK-NOT:     loop.reduction
// CHECK:         loop.pointwise [20]
// CHECK-NOT:     loop.reduction
func.func @unread(%x: tensor<1x20xf32>) -> tensor<1x20xf32> {
  %e = prim.exp %x : tensor<1x20xf32>
  %s = prim.reduce sum %e, [1] : tensor<1x20xf32> -> tensor<1xf32>
  return %e : tensor<1x20xf32>
}

// Indices that wrap where elements are gathered are not stored, and what would have made them is no node.
// CHECK-LABEL: loop.program @wrapped
// CHECK:         loop.pointwise [20]
// CHECK:           loop.check_index %{{.*}} in 20 {loop.wraps}
// CHECK:           loop.check_index %{{.*}} in 20 {loop.wraps}
// CHECK-NOT:     loop.pointwise
func.func @wrapped(%x: tensor<20xf32>, %y: tensor<20xf32>, %i: tensor<20xsi64>) -> tensor<20xf32> {
  %zero = prim.constant dense<0> : tensor<20xsi64>
  %size = prim.constant dense<20> : tensor<20xsi64>
  %below = prim.lt %i, %zero : tensor<20xsi64>
  %sum = prim.add %i, %size : tensor<20xsi64>
  %at = prim.select %below, %sum, %i : tensor<20xi1>, tensor<20xsi64>
  %a = prim.gather_elements %x, %at, 0 : (tensor<20xf32>, tensor<20xsi64>) -> tensor<20xf32>
  %b = prim.gather_elements %y, %at, 0 : (tensor<20xf32>, tensor<20xsi64>) -> tensor<20xf32>
  %c = prim.add %a, %b : tensor<20xf32>
  return %c : tensor<20xf32>
}
