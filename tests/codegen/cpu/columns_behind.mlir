// A product behind whose columns a windowed sum runs has blocks of columns alone, of whole parts; the sum is a function
// of its own, which each task calls for its parts: here the last four of six, two panels each.
// RUN: ptc-kernel %s | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=LLVM

// CHECK:      loop.kernel @window
// CHECK-SAME: m_blocks = #prim.expr<1>
// CHECK-SAME: n_blocks = #prim.expr<6>
// LLVM:       define internal i32 @window.columns(
// LLVM:       define {{.*}}i32 @window(
// LLVM:         call i32 @window.columns(
loop.kernel @window(%a: !loop.buffer<[240*s0] x f32>, %w: !loop.buffer<[4608] x f32>, %p: !loop.buffer<[1920*s0] x f32>,
                    %f: !loop.buffer<[384] x f32>, %q: !loop.buffer<[1280*s0] x f32>)
    attributes {symbols = ["s0"], parallel = 1 : i64, arguments_written = array<i64: 2, 4>} {
  loop.contraction [10*s0, 192, 24] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[24*d0 + d2] : !loop.buffer<[240*s0] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[4608] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%0: f32):
    loop.store %0, %p[192*d0 + d1] : !loop.buffer<[1920*s0] x f32>
  }
  loop.reduction [4, s0, 10, 32, 3] reduced 1 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d2 + d4 - 1, 10 - d2 - d4] else %zero {
      %1 = loop.load %p[1920*d1 + 192*d2 + 192*d4 + 32*d0 + d3 - 128] : !loop.buffer<[1920*s0] x f32>
      loop.yield %1 : f32
    } : f32
    %2 = loop.load %f[32*d0 + d3 + 128*d4] : !loop.buffer<[384] x f32>
    %3 = arith.mulf %0, %2 : f32
    %4 = loop.reduce sum %3 : f32
    loop.store %4, %q[1280*d1 + 128*d2 + 32*d0 + d3] : !loop.buffer<[1280*s0] x f32>
  }
}
