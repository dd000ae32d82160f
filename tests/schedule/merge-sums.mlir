// Reductions of the same elements, of which none depends on another, read them once.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts \
// RUN:   --ptc-linearize-accesses --ptc-normalize-nodes --ptc-fuse-nodes | FileCheck %s

// CHECK-LABEL: loop.program @range
// CHECK:         loop.reduction [4096] reduced 1
// CHECK-NEXT:      %[[X:.*]] = loop.load
// CHECK-DAG:       loop.reduce min %[[X]]
// CHECK-DAG:       loop.reduce max %[[X]]
// CHECK-NOT:     loop.reduction
func.func @range(%x: tensor<64x64xf32>) -> tensor<f32> {
  %a = prim.reduce min %x, [0, 1] : tensor<64x64xf32> -> tensor<f32>
  %b = prim.reduce max %x, [0, 1] : tensor<64x64xf32> -> tensor<f32>
  %d = prim.sub %b, %a : tensor<f32>
  return %d : tensor<f32>
}

// What is computed of elements may differ, and what stands between the two.
// CHECK-LABEL: loop.program @moments
// CHECK:         loop.reduction [512, 4096] reduced 1
// CHECK-DAG:       loop.reduce sum
// CHECK-DAG:       loop.reduce sum
// CHECK-NOT:     loop.reduction [512
func.func @moments(%x: tensor<512x4096xf32>, %u: tensor<8x4096xf32>) -> (tensor<512xf32>, tensor<8xf32>, tensor<512xf32>) {
  %a = prim.reduce sum %x, [1] : tensor<512x4096xf32> -> tensor<512xf32>
  %v = prim.reduce max %u, [1] : tensor<8x4096xf32> -> tensor<8xf32>
  %q = prim.mul %x, %x : tensor<512x4096xf32>
  %b = prim.reduce sum %q, [1] : tensor<512x4096xf32> -> tensor<512xf32>
  return %a, %v, %b : tensor<512xf32>, tensor<8xf32>, tensor<512xf32>
}

// Not along other dims, and not where the second reads more.
// CHECK-LABEL: loop.program @others
// CHECK-COUNT-3: loop.reduction
func.func @others(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %a = prim.reduce sum %x, [1] : tensor<64x64xf32> -> tensor<64xf32>
  %b = prim.reduce max %x, [0] : tensor<64x64xf32> -> tensor<64xf32>
  %p = prim.mul %x, %w : tensor<64x64xf32>
  %c = prim.reduce sum %p, [1] : tensor<64x64xf32> -> tensor<64xf32>
  return %a, %b, %c : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}
