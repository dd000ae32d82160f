// The exponentials of a softmax are computed in the loop that adds them up: three loops over the row, not four.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts \
// RUN:   --ptc-linearize-accesses --ptc-normalize-nodes --ptc-fuse-nodes | FileCheck %s

// CHECK-LABEL: loop.program @softmax
// CHECK:         loop.fused parallel 1
// CHECK:           loop.reduction [16, 32] reduced 1
// CHECK:             loop.reduce max
// CHECK:           loop.reduction [16, 32] reduced 1
// CHECK:             %[[E:.*]] = math.exp
// CHECK:             loop.store %[[E]]
// CHECK:             loop.reduce sum %[[E]]
// CHECK:           loop.pointwise [16, 32]
// CHECK:             arith.divf
// CHECK-NOT:       loop.pointwise
func.func @softmax(%x: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %m = prim.reduce max %x, [1] : tensor<16x32xf32> -> tensor<16xf32>
  %mb = prim.broadcast %m, [0] : tensor<16xf32> -> tensor<16x32xf32>
  %s = prim.sub %x, %mb : tensor<16x32xf32>
  %e = prim.exp %s : tensor<16x32xf32>
  %t = prim.reduce sum %e, [1] : tensor<16x32xf32> -> tensor<16xf32>
  %tb = prim.broadcast %t, [0] : tensor<16xf32> -> tensor<16x32xf32>
  %y = prim.div %e, %tb : tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}
