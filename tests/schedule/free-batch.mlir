// What nodes share along a batch of any size, although its hint is 1.
// RUN: ptc-opt %s --split-input-file --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts --ptc-pack-weights \
// RUN:   --ptc-linearize-accesses --ptc-normalize-nodes --ptc-fuse-nodes | FileCheck %s

// Steps of 256 and of 256*batch elements are equal at the hint. Dims are ordered by what they are for larger batches, so
// that positions are added where the norm has made its rows, which are (query, batch).
// CHECK-LABEL: loop.program @positions
// CHECK:         loop.fused
// CHECK:           loop.reduction [100, batch, 256] reduced 1
// CHECK:           loop.pointwise [100, batch, 256]
// CHECK:         loop.fused
// CHECK-NEXT:      loop.contraction
// CHECK-NOT:     loop.fused
#rows = #prim.dims<[100, batch, 256]>
#means = #prim.dims<[100, batch]>
#queries = #prim.dims<[batch, 100, 256]>
func.func @positions(%x: tensor<100x?x256xf32, #rows>, %pos: tensor<100x256xf32>) -> (tensor<100x?x256xf32, #rows>, tensor<?x100x256xf32, #queries>)
    attributes {prim.symbols = {batch = #prim.symbol<1, 64, divisor = 1, hint = 1>}} {
  %w = prim.weight <"w", "", 0, 262144> : tensor<256x256xf32>
  %s = prim.reduce sum %x, [2] : tensor<100x?x256xf32, #rows> -> tensor<100x?xf32, #means>
  %b = prim.broadcast %s, [0, 1] : tensor<100x?xf32, #means> -> tensor<100x?x256xf32, #rows>
  %y = prim.sub %x, %b : tensor<100x?x256xf32, #rows>
  %t = prim.transpose %y, [1, 0, 2] : tensor<100x?x256xf32, #rows> -> tensor<?x100x256xf32, #queries>
  %p = prim.broadcast %pos, [1, 2] : tensor<100x256xf32> -> tensor<?x100x256xf32, #queries>
  %z = prim.add %t, %p : tensor<?x100x256xf32, #queries>
  %r = prim.matmul %z, %w : (tensor<?x100x256xf32, #queries>, tensor<256x256xf32>) -> tensor<?x100x256xf32, #queries>
  return %y, %r : tensor<100x?x256xf32, #rows>, tensor<?x100x256xf32, #queries>
}

// -----

// Heads and batch are one dim of the result, which is seen divided by 8 where it reads the product: (batch, 8). The
// product, whose rows are two dims, writes heads one behind the other.
// CHECK-LABEL: loop.program @heads
// CHECK:         loop.contraction [batch, 100, 8, 32, 256] batch 0 m 2 n 2 k 1
// CHECK:           loop.store %{{.*}}, %{{.*}} [25600*d0 + 32*d1 + 3200*d2 + d3]
// CHECK-NOT:     loop.fused
#rows = #prim.dims<[100, batch, 256]>
#queries = #prim.dims<[batch, 100, 256]>
#apart = #prim.dims<[batch, 100, 8, 32]>
#turned = #prim.dims<[batch, 8, 100, 32]>
#heads = #prim.dims<[8*batch, 100, 32]>
func.func @heads(%x: tensor<100x?x256xf32, #rows>) -> tensor<?x100x32xf32, #heads>
    attributes {prim.symbols = {batch = #prim.symbol<1, 64, divisor = 1, hint = 1>}} {
  %w = prim.weight <"w", "", 0, 262144> : tensor<256x256xf32>
  %c = prim.constant dense<2.0> : tensor<f32>
  %t = prim.transpose %x, [1, 0, 2] : tensor<100x?x256xf32, #rows> -> tensor<?x100x256xf32, #queries>
  %v = prim.matmul %t, %w : (tensor<?x100x256xf32, #queries>, tensor<256x256xf32>) -> tensor<?x100x256xf32, #queries>
  %a = prim.reshape %v : tensor<?x100x256xf32, #queries> -> tensor<?x100x8x32xf32, #apart>
  %h = prim.transpose %a, [0, 2, 1, 3] : tensor<?x100x8x32xf32, #apart> -> tensor<?x8x100x32xf32, #turned>
  %j = prim.reshape %h : tensor<?x8x100x32xf32, #turned> -> tensor<?x100x32xf32, #heads>
  %b = prim.broadcast %c, [] : tensor<f32> -> tensor<?x100x32xf32, #heads>
  %s = prim.add %j, %b : tensor<?x100x32xf32, #heads>
  return %s : tensor<?x100x32xf32, #heads>
}
