// A reduction whose result nobody reads any more is pointwise: what it stores on the way is all that it does.
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
