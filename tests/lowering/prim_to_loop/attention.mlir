// Heads that lie interleaved in a projection's result are read in place, and the result is stored with its heads
// interleaved again: no node copies.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts | FileCheck %s

// CHECK-LABEL: loop.program @heads
// CHECK:         loop.pointwise [7, 24]
// CHECK:           math.exp
// CHECK:         loop.attention [2, 7, 5, 12, 12]
// CHECK:           loop.load %{{.*}} [d1, 12*d0 + d3]
// CHECK:           loop.load %{{.*}} [d0, d2, d3]
// CHECK:           arith.mulf
// CHECK:           arith.select
// CHECK:           loop.store %{{.*}}, %arg{{[0-9]+}} [d1, d0, d4]
// CHECK-NOT:     loop.pointwise
func.func @heads(%x: tensor<7x24xf32>, %k: tensor<2x5x12xf32>, %v: tensor<2x5x12xf32>, %m: tensor<7x5xi1>) -> tensor<7x2x12xf32> {
  %e = prim.exp %x : tensor<7x24xf32>
  %r = prim.reshape %e : tensor<7x24xf32> -> tensor<7x2x12xf32>
  %q = prim.transpose %r, [1, 0, 2] : tensor<7x2x12xf32> -> tensor<2x7x12xf32>
  %mb = prim.broadcast %m, [1, 2] : tensor<7x5xi1> -> tensor<2x7x5xi1>
  %a = prim.attention %q, %k, %v masks(%mb) scale 0.5 masked_score -1.0e+04 : (tensor<2x7x12xf32>, tensor<2x5x12xf32>, tensor<2x5x12xf32>, tensor<2x7x5xi1>) -> tensor<2x7x12xf32>
  %t = prim.transpose %a, [1, 0, 2] : tensor<2x7x12xf32> -> tensor<7x2x12xf32>
  return %t : tensor<7x2x12xf32>
}
