// Rows of windows of an image lie where divisions say. LLVM does not see what a tile's addresses are made of: it would
// divide in each step of k. Rows a fixed step apart need nothing of that.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s

// CHECK-LABEL: define {{.*}} @windows
// CHECK-COUNT-6: call ptr asm "", "=r,0"(ptr
// CHECK:         ret i32
loop.kernel @windows(%x: !loop.buffer<[96*s0*64] x f32>, %w: !loop.buffer<[64*16] x f32>, %y: !loop.buffer<[96*s0*16] x f32>)
    attributes {symbols = ["s0"], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [8*s0, 12, 16, 64] batch 0 m 2 n 1 k 1 lhs {
    %0 = loop.load %x[1536*floordiv(d0, 2) + 192*mod(d0, 2) + 384*floordiv(d1, 3) + 64*mod(d1, 3) + d3] : !loop.buffer<[96*s0*64] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[64*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[192*d0 + 16*d1 + d2] : !loop.buffer<[96*s0*16] x f32>
  }
}

// CHECK-LABEL: define {{.*}} @lines
// CHECK-NOT:     call ptr asm
loop.kernel @lines(%x: !loop.buffer<[96*s0*64] x f32>, %w: !loop.buffer<[64*16] x f32>, %y: !loop.buffer<[96*s0*16] x f32>)
    attributes {symbols = ["s0"], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [96*s0, 16, 64] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %x[64*d0 + d2] : !loop.buffer<[96*s0*64] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[64*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[16*d0 + d1] : !loop.buffer<[96*s0*16] x f32>
  }
}
