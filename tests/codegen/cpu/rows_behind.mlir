// A product whose rows a norm shares is cut into blocks of rows alone, fewer rows where there would be blocks of columns; the norm is a
// function of its own, which each task calls.
// RUN: ptc-kernel %s | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=LLVM

// CHECK:      loop.kernel @norm
// CHECK-SAME: m_blocks = #prim.expr<min(max(1, 2*max(1, floordiv(s0 + 95, 96)), floordiv(s0 + 95, 96)), max(1, floordiv(s0 + 23, 24)))>
// CHECK-SAME: n_blocks = #prim.expr<1>
// LLVM:       define internal i32 @norm.rows(
// LLVM:       define {{.*}}i32 @norm(
// LLVM:         call i32 @norm.rows(
loop.kernel @norm(%a: !loop.buffer<[64*s0] x f32>, %w: !loop.buffer<[16384] x f32>, %p: !loop.buffer<[256*s0] x f32>,
                  %q: !loop.buffer<[256*s0] x f32>) attributes {symbols = ["s0"], parallel = 1 : i64, arguments_written = array<i64: 2, 3>} {
  %s = loop.buffer : !loop.buffer<[1] x f32>
  loop.contraction [s0, 256, 64] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[64*d0 + d2] : !loop.buffer<[64*s0] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[16384] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%0: f32):
    loop.store %0, %p[256*d0 + d1] : !loop.buffer<[256*s0] x f32>
  }
  loop.reduction [s0, 256] reduced 1 {
    %0 = loop.load %p[256*d0 + d1] : !loop.buffer<[256*s0] x f32>
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %s[0] : !loop.buffer<[1] x f32>
  }
  loop.pointwise [s0, 256] {
    %0 = loop.load %p[256*d0 + d1] : !loop.buffer<[256*s0] x f32>
    %1 = loop.load %s[0] : !loop.buffer<[1] x f32>
    %2 = arith.subf %0, %1 : f32
    loop.store %2, %q[256*d0 + d1] : !loop.buffer<[256*s0] x f32>
  }
}
