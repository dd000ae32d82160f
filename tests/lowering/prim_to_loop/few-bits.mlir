// Weights of few bits stay so: panels hold their words, and scales and zero points have panels with a row a block.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-assign-layouts --ptc-split-sums --ptc-pack-weights | FileCheck %s
// RUN: ptc-opt %s --ptc-lower-prim-to-loop='converts-weights=false' --ptc-assign-layouts --ptc-split-sums --ptc-pack-weights=panel-width=0 | FileCheck %s --check-prefix=PLAIN

// Two numbers a byte: the two dims of the byte and the number in it are one, of 32; eight of them make a word.
// CHECK-LABEL: loop.program @words
// CHECK-DAG:     %[[Q:.*]] = loop.weight <"q", "", 0, 1536> recipe <extents = [3, 2, 4, 16, 4], strides = [512, 16, 4, 32, 1], offset = 0, panel = 0, lane = 3, limit = 48>
// CHECK-DAG:     %[[S:.*]] = loop.weight <"s", "", 0, 384> recipe <extents = [3, 2, 16], strides = [32, 1, 2], offset = 0, panel = 0, lane = 2, limit = 48>
// CHECK:         loop.contraction [5, 48, 2, 32] batch 0 m 1 n 1 k 2
// CHECK:           loop.load %{{.*}} [d0, 32*d2 + d3]
// CHECK:         } rhs {
// CHECK-NEXT:      %[[N:.*]] = loop.panels %[[Q]] {bits = 4 : i64, group = 8 : i64} : <[1536] x i8, <[0]>> -> i8
// CHECK-NOT:       loop.load
// CHECK:           loop.panels %[[S]] row d2 : <[96] x f32, <[0]>> -> f32
// PLAIN-LABEL: loop.program @words
// PLAIN-NOT:     loop.panels
func.func @words(%x: tensor<5x64xf32>) -> tensor<5x48xf32> {
  %q = prim.weight <"q", "", 0, 1536> : tensor<48x2x16xui8>
  %s = prim.weight <"s", "", 0, 384> : tensor<48x2xf32>
  %bits = prim.constant dense<4> : tensor<ui8>
  %mask = prim.constant dense<15> : tensor<ui8>
  %bytes = prim.broadcast %q, [0, 1, 2] : tensor<48x2x16xui8> -> tensor<48x2x16x2xui8>
  %i = prim.iota 3 : tensor<48x2x16x2xui8>
  %b = prim.broadcast %bits, [] : tensor<ui8> -> tensor<48x2x16x2xui8>
  %by = prim.mul %i, %b : tensor<48x2x16x2xui8>
  %moved = prim.shift_right %bytes, %by : tensor<48x2x16x2xui8>
  %m = prim.broadcast %mask, [] : tensor<ui8> -> tensor<48x2x16x2xui8>
  %n = prim.and %moved, %m : tensor<48x2x16x2xui8>
  %r = prim.reshape %n : tensor<48x2x16x2xui8> -> tensor<48x2x32xui8>
  %f = prim.convert %r : tensor<48x2x32xui8> -> tensor<48x2x32xf32>
  %t = prim.broadcast %s, [0, 1] : tensor<48x2xf32> -> tensor<48x2x32xf32>
  %w = prim.mul %f, %t : tensor<48x2x32xf32>
  %v = prim.reshape %w : tensor<48x2x32xf32> -> tensor<48x64xf32>
  %c = prim.transpose %v, [1, 0] : tensor<48x64xf32> -> tensor<64x48xf32>
  %y = prim.matmul %x, %c : (tensor<5x64xf32>, tensor<64x48xf32>) -> tensor<5x48xf32>
  return %y : tensor<5x48xf32>
}

// Elements of 4 bits, which lie one a byte elsewhere, are put together eight a word.
// CHECK-LABEL: loop.program @elements
// CHECK:         loop.weight <"q", "", 0, 512> recipe <extents = [1, 8, 16, 8], strides = [16, 128, 1, 16], offset = 0, panel = 0, lane = 2, limit = 16> {packed_bits = 4 : i64, source = tensor<64x16xsi4>} : <[512] x i8
// CHECK:         loop.panels %{{.*}} {bits = 4 : i64, group = 8 : i64} : <[512] x i8, <[0]>> -> i4
// CHECK:         loop.panels %{{.*}} row 0 : <[16] x f32, <[0]>> -> f32
func.func @elements(%x: tensor<1x64xf32>) -> tensor<1x16xf32> {
  %q = prim.weight <"q", "", 0, 512> : tensor<64x16xsi4>
  %s = prim.weight <"s", "", 0, 64> : tensor<16xf32>
  %f = prim.convert %q : tensor<64x16xsi4> -> tensor<64x16xf32>
  %t = prim.broadcast %s, [1] : tensor<16xf32> -> tensor<64x16xf32>
  %w = prim.mul %f, %t : tensor<64x16xf32>
  %y = prim.matmul %x, %w : (tensor<1x64xf32>, tensor<64x16xf32>) -> tensor<1x16xf32>
  return %y : tensor<1x16xf32>
}
