// Images and results of few channels; tests/unit compares results.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=V3

// Rows of A are copied: where the window meets no border, run by run in whole vectors.
// Three channels, one after the other: nine runs of three columns each, as four.
// V3-LABEL: define {{.*}}@stem(
// V3-COUNT-9: load <4 x float>
loop.kernel @stem(%x: !loop.buffer<[3*21*30] x f32>, %w: !loop.buffer<[27*32] x f32>, %y: !loop.buffer<[11*15*32] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [11, 15, 32, 3, 3, 3] batch 0 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [2*d0 + d4 - 1, 21 - 2*d0 - d4, 2*d1 + d5 - 1, 30 - 2*d1 - d5] else %zero {
      %1 = loop.load %x[d3*630 + (2*d0 + d4 - 1)*30 + 2*d1 + d5 - 1] : !loop.buffer<[3*21*30] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[27*32] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*15 + d1)*32 + d2] : !loop.buffer<[11*15*32] x f32>
  }
}

// Eight columns fill one vector of v3: its tiles are twice as high as if they had two.
// V3-LABEL: define {{.*}}@eight_columns(
// V3-COUNT-12: phi <8 x float> [ zeroinitializer
loop.kernel @eight_columns(%x: !loop.buffer<[240*32] x f32>, %w: !loop.buffer<[32*16] x f32>, %y: !loop.buffer<[240*8] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [240, 8, 32] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %x[d0*32 + d2] : !loop.buffer<[240*32] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[32*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*8 + d1] : !loop.buffer<[240*8] x f32>
  }
}
