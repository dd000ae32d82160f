// Sums of two tiles wait for a long epilogue, which runs on both: a tile stores its own behind those before it.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s

// Tiles of 6 rows and of 5: the products of a tile, and the epilogue on pairs of vectors, are there once for each.
// CHECK-LABEL:    define {{.*}} @waiting
// CHECK-COUNT-12: store <8 x float>
// CHECK-NOT:      store <8 x float>
// CHECK:          icmp slt i64 {{.*}}, 2
// CHECK:          store <16 x float>
// CHECK-COUNT-10: store <8 x float>
// CHECK-NOT:      store <8 x float>
// CHECK:          store <16 x float>
// CHECK:          ret i32
loop.kernel @waiting(%x: !loop.buffer<[27*5] x f32>, %w: !loop.buffer<[5*16] x f32>, %y: !loop.buffer<[27*16] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [27, 16, 5] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %x[d0*5 + d2] : !loop.buffer<[27*5] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[5*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    %0 = math.tanh %acc : f32
    %1 = math.erf %0 : f32
    loop.store %1, %y[d0*16 + d1] : !loop.buffer<[27*16] x f32>
  }
}
