// Strassen's algorithm for several images by one weight, with rows that are computed.
// RUN: ptc-kernel %s | FileCheck %s
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=RIGHT
// RUN: ptc-kernel %s --level=x86-64-v3 --check | FileCheck %s --check-prefix=RIGHT

// CHECK-LABEL: loop.kernel @images
// CHECK-SAME:  algorithm = "strassen"
// RIGHT:       ok images
loop.kernel @images(%a: !loop.buffer<[2*97*416] x f32>, %w: !loop.buffer<[24*416*16] x f32>, %y: !loop.buffer<[2*97*384] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [2, 97, 384, 416] batch 1 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*40352 + d1*416 + d3] : !loop.buffer<[2*97*416] x f32>
    %1 = arith.mulf %0, %0 : f32
    loop.yield %1 : f32
  } rhs {
    %0 = loop.panels %w {strassen} : !loop.buffer<[24*416*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*37248 + d1*384 + d2] : !loop.buffer<[2*97*384] x f32>
  }
}
