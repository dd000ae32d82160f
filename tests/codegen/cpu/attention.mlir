// Tasks of a head have whole tiles of queries but for the last one. Where the score is a product times a constant, the
// copies of the queries bring it, in powers of 2: between the difference from the largest score and the exponential
// there is no multiplication, and scores are written once. A mask may be so large that log2(e) would make it infinite:
// it stays as it is.
// RUN: ptc-kernel %s | FileCheck %s --check-prefix=PLAN
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s

// PLAN-LABEL: @scaled
// PLAN-SAME: queries = #prim.expr<102>
// CHECK-LABEL: define {{.*}} @scaled
// CHECK:       fmul <16 x float> {{.*}}, splat (float 0x3FC71547
// CHECK:       [[LESS:%.*]] = fsub <16 x float>
// CHECK-NEXT:  @llvm.x86.avx512.mask.reduce.ps.512(<16 x float> [[LESS]]
loop.kernel @scaled(%q: !loop.buffer<[101888] x f32, <[0]>>, %k: !loop.buffer<[101888] x f32, <[0]>>,
    %v: !loop.buffer<[101888] x f32, <[0]>>, %o: !loop.buffer<[101888] x f32, <[0]>>)
    attributes {arguments_written = array<i64: 3>, parallel = 0 : i64, symbols = []} {
  loop.attention [8, 199, 199, 64, 64] batch 1 q {
    %0 = loop.load %q [12736*d0 + 64*d1 + d3] : <[101888] x f32, <[0]>>
    loop.yield %0 : f32
  } k {
    %0 = loop.load %k [12736*d0 + 64*d2 + d3] : <[101888] x f32, <[0]>>
    loop.yield %0 : f32
  } v {
    %0 = loop.load %v [12736*d0 + 64*d2 + d4] : <[101888] x f32, <[0]>>
    loop.yield %0 : f32
  } score {
  ^bb0(%s: f32):
    %c = arith.constant 0.125 : f32
    %0 = arith.mulf %s, %c : f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%r: f32):
    loop.store %r, %o [12736*d0 + 64*d1 + d4] : <[101888] x f32, <[0]>>
  }
}

// PLAN-LABEL: @masked
// CHECK-LABEL: define {{.*}} @masked
// CHECK:       [[LESS:%.*]] = fsub <16 x float>
// CHECK-NEXT:  [[TIMES:%.*]] = fmul <16 x float> [[LESS]], splat (float 0x3FF71547
// CHECK-NEXT:  @llvm.x86.avx512.mask.reduce.ps.512(<16 x float> [[TIMES]]
loop.kernel @masked(%q: !loop.buffer<[640] x f32, <[0]>>, %k: !loop.buffer<[1600] x f32, <[0]>>,
    %v: !loop.buffer<[1600] x f32, <[0]>>, %m: !loop.buffer<[100] x f32, <[0]>>, %o: !loop.buffer<[640] x f32, <[0]>>)
    attributes {arguments_written = array<i64: 4>, parallel = 0 : i64, symbols = []} {
  loop.attention [1, 40, 100, 16, 16] batch 1 q {
    %0 = loop.load %q [640*d0 + 16*d1 + d3] : <[640] x f32, <[0]>>
    loop.yield %0 : f32
  } k {
    %0 = loop.load %k [1600*d0 + 16*d2 + d3] : <[1600] x f32, <[0]>>
    loop.yield %0 : f32
  } v {
    %0 = loop.load %v [1600*d0 + 16*d2 + d4] : <[1600] x f32, <[0]>>
    loop.yield %0 : f32
  } score {
  ^bb0(%s: f32):
    %c = loop.load %m [d2] : <[100] x f32, <[0]>>
    %0 = arith.addf %s, %c : f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%r: f32):
    loop.store %r, %o [640*d0 + 16*d1 + d4] : <[640] x f32, <[0]>>
  }
}
