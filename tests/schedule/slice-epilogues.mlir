// What cheap work a node does on a slice of a product's columns, the product's epilogue does under a condition: its rows and columns
// become the digits that the node counts. Functions, and stores that are no neighbours, stay nodes of their own, as does all work on
// a product without a packed weight.
// RUN: ptc-opt %s --split-input-file --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts --ptc-pack-weights \
// RUN:   --ptc-linearize-accesses --ptc-normalize-nodes --ptc-fuse-nodes | FileCheck %s
// RUN: ptc-opt %s --split-input-file --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts --ptc-pack-weights \
// RUN:   --ptc-linearize-accesses --ptc-normalize-nodes --ptc-fuse-nodes=device=1 | FileCheck %s --check-prefix=DEVICE

// Queries that a function reads, keys as heads, and values turned around: of 96 columns heads 2 and 3 are the keys.
// CHECK-LABEL: loop.program @heads
// CHECK:         loop.fused
// CHECK-NEXT:      loop.contraction [batch, seq, 6, 16, 32] batch 0 m 2 n 2 k 1
// CHECK:             loop.load %{{.*}} [32*d0*seq + 32*d1 + d4]
// CHECK:             loop.store %[[SUM:.*]], %{{.*}} [96*d0*seq + 96*d1 + 16*d2 + d3]
// CHECK-NEXT:        loop.masked [d2 - 2, -d2 + 3] else %[[SUM]] {
// CHECK-NEXT:          loop.store %[[SUM]], %{{.*}} [32*d0*seq + 16*d1 + 16*d2*seq + d3 - 32*seq]
// CHECK-NEXT:          loop.yield %[[SUM]]
// CHECK-NEXT:        }
// CHECK-NOT:         loop.masked
// CHECK:         loop.fused
// CHECK:           math.exp
// CHECK:         loop.fused
// CHECK-NEXT:      loop.pointwise
// CHECK-NOT:     loop.fused

// DEVICE-LABEL: loop.program @heads
// DEVICE-NOT:     loop.masked
#x = #prim.dims<[batch, seq, 32]>
#all = #prim.dims<[batch, seq, 96]>
#heads = #prim.dims<[batch, seq, 2, 16]>
#keys = #prim.dims<[batch, 2, seq, 16]>
#values = #prim.dims<[batch, 2, 16, seq]>
func.func @heads(%x: tensor<?x?x32xf32, #x>)
    -> (tensor<?x?x32xf32, #x>, tensor<?x2x?x16xf32, #keys>, tensor<?x2x16x?xf32, #values>)
    attributes {prim.symbols = {batch = #prim.symbol<1, 64, divisor = 1, hint = 4>, seq = #prim.symbol<1, 64, divisor = 1, hint = 8>}} {
  %w = prim.weight <"w", "", 0, 12288> : tensor<32x96xf32>
  %p = prim.matmul %x, %w : (tensor<?x?x32xf32, #x>, tensor<32x96xf32>) -> tensor<?x?x96xf32, #all>
  %q = prim.slice %p [0, 0, 0], [1, 1, 1] : tensor<?x?x96xf32, #all> -> tensor<?x?x32xf32, #x>
  %e = prim.exp %q : tensor<?x?x32xf32, #x>
  %k = prim.slice %p [0, 0, 32], [1, 1, 1] : tensor<?x?x96xf32, #all> -> tensor<?x?x32xf32, #x>
  %kh = prim.reshape %k : tensor<?x?x32xf32, #x> -> tensor<?x?x2x16xf32, #heads>
  %kt = prim.transpose %kh, [0, 2, 1, 3] : tensor<?x?x2x16xf32, #heads> -> tensor<?x2x?x16xf32, #keys>
  %v = prim.slice %p [0, 0, 64], [1, 1, 1] : tensor<?x?x96xf32, #all> -> tensor<?x?x32xf32, #x>
  %vh = prim.reshape %v : tensor<?x?x32xf32, #x> -> tensor<?x?x2x16xf32, #heads>
  %vt = prim.transpose %vh, [0, 2, 3, 1] : tensor<?x?x2x16xf32, #heads> -> tensor<?x2x16x?xf32, #values>
  return %e, %kt, %vt : tensor<?x?x32xf32, #x>, tensor<?x2x?x16xf32, #keys>, tensor<?x2x16x?xf32, #values>
}

// -----

// Halves that are the first or the last need one condition. Parts that would cut a vector of columns are left.
// CHECK-LABEL: loop.program @halves
// CHECK:         loop.contraction [8, 2, 48, 32] batch 0 m 1 n 2 k 1
// CHECK:           loop.masked [-d1]
// CHECK:           loop.masked [d1 - 1]
// CHECK:         loop.contraction [8, 40, 32] batch 0 m 1 n 1 k 1
// CHECK:         loop.contraction [8, 96, 32] batch 0 m 1 n 1 k 1
// CHECK-NOT:     loop.masked
// CHECK:         loop.pointwise [8, 20]
// CHECK:         loop.pointwise [8, 48]
func.func @halves(%x: tensor<8x32xf32>, %z: tensor<32x96xf32>, %s: tensor<8x48xf32>, %t: tensor<8x20xf32>)
    -> (tensor<8x48xf32>, tensor<8x48xf32>, tensor<8x20xf32>, tensor<8x40xf32>, tensor<8x48xf32>) {
  %w = prim.weight <"w", "", 0, 12288> : tensor<32x96xf32>
  %u = prim.weight <"u", "", 12288, 5120> : tensor<32x40xf32>
  %p = prim.matmul %x, %w : (tensor<8x32xf32>, tensor<32x96xf32>) -> tensor<8x96xf32>
  %a = prim.slice %p [0, 0], [1, 1] : tensor<8x96xf32> -> tensor<8x48xf32>
  %b = prim.slice %p [0, 48], [1, 1] : tensor<8x96xf32> -> tensor<8x48xf32>
  %as = prim.mul %a, %s : tensor<8x48xf32>
  %bs = prim.add %b, %s : tensor<8x48xf32>
  %r = prim.matmul %x, %u : (tensor<8x32xf32>, tensor<32x40xf32>) -> tensor<8x40xf32>
  %c = prim.slice %r [0, 20], [1, 1] : tensor<8x40xf32> -> tensor<8x20xf32>
  %cs = prim.mul %c, %t : tensor<8x20xf32>
  %h = prim.matmul %x, %z : (tensor<8x32xf32>, tensor<32x96xf32>) -> tensor<8x96xf32>
  %d = prim.slice %h [0, 0], [1, 1] : tensor<8x96xf32> -> tensor<8x48xf32>
  %ds = prim.mul %d, %s : tensor<8x48xf32>
  return %as, %bs, %cs, %r, %ds : tensor<8x48xf32>, tensor<8x48xf32>, tensor<8x20xf32>, tensor<8x40xf32>, tensor<8x48xf32>
}
