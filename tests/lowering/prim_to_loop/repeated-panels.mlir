// A weight for each head is packed once however many elements a batch has: its matrices repeat, whether the batch counts
// elements and heads as one dim or as two, and whether it is known.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-assign-layouts --ptc-pack-weights | FileCheck %s

// CHECK-LABEL: loop.program @free
// CHECK:         loop.weight <"w", "", 0, 16384> recipe <extents = [8, 2, 16, 16], strides = [512, 16, 32, 1], offset = 0, panel = 1, lane = 3, limit = 32>
// CHECK:         loop.contraction [b, 8, 5, 32, 16] batch 2 m 1 n 1 k 1
// CHECK-NEXT:      loop.load %arg0 [8*d0 + d1, d2, d4]
// CHECK:           loop.panels
// CHECK:           loop.store %{{.*}} [8*d0 + d1, d2, d3]
func.func @free(%x: tensor<?x5x16xf32, #prim.dims<[8*b, 5, 16]>>) -> tensor<?x5x32xf32, #prim.dims<[8*b, 5, 32]>>
    attributes {prim.symbols = {b = #prim.symbol<1, 64, divisor = 1, hint = 2>}} {
  %w = prim.weight <"w", "", 0, 16384> : tensor<8x16x32xf32>
  %r = prim.broadcast %w, [1, 2, 3] : tensor<8x16x32xf32> -> tensor<?x8x16x32xf32, #prim.dims<[b, 8, 16, 32]>>
  %all = prim.reshape %r : tensor<?x8x16x32xf32, #prim.dims<[b, 8, 16, 32]>> -> tensor<?x16x32xf32, #prim.dims<[8*b, 16, 32]>>
  %y = prim.matmul %x, %all : (tensor<?x5x16xf32, #prim.dims<[8*b, 5, 16]>>, tensor<?x16x32xf32, #prim.dims<[8*b, 16, 32]>>) -> tensor<?x5x32xf32, #prim.dims<[8*b, 5, 32]>>
  return %y : tensor<?x5x32xf32, #prim.dims<[8*b, 5, 32]>>
}

// CHECK-LABEL: loop.program @known
// CHECK:         loop.weight <"w", "", 0, 16384> recipe <extents = [8, 2, 16, 16], strides = [512, 16, 32, 1], offset = 0, panel = 1, lane = 3, limit = 32>
// CHECK:         loop.contraction [3, 8, 5, 32, 16] batch 2 m 1 n 1 k 1
// CHECK:           loop.panels
func.func @known(%x: tensor<3x8x5x16xf32>) -> tensor<3x8x5x32xf32> {
  %w = prim.weight <"w", "", 0, 16384> : tensor<8x16x32xf32>
  %r = prim.broadcast %w, [1, 2, 3] : tensor<8x16x32xf32> -> tensor<3x8x16x32xf32>
  %y = prim.matmul %x, %r : (tensor<3x8x5x16xf32>, tensor<3x8x16x32xf32>) -> tensor<3x8x5x32xf32>
  return %y : tensor<3x8x5x32xf32>
}
