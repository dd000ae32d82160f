// A weight with so many terms that its column tiles leave the second-level cache between row tiles: where registers
// hold a sum for each of a few rows, a tile has them all and each vector is loaded once. The next columns are fetched
// meanwhile. tests/unit compares results.
// RUN: ptc-kernel %s | FileCheck %s --check-prefix=PLAN
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=asm | FileCheck %s --check-prefix=V4

// PLAN-LABEL: loop.kernel @rows
// PLAN-SAME: lhs = "in_place"
// V4-LABEL: rows:
// V4:         vmovups (%{{[a-z0-9]+}},[[K:%r[a-z0-9]+]]), %[[B:zmm[0-9]+]]
// V4-NEXT:    prefetcht1 (%{{[a-z0-9]+}},[[K]])
// V4-COUNT-16: vfmadd231ps {{.*}}{1to16}, %[[B]],
// V4-NOT:     vfmadd
// V4:         jl
loop.kernel @rows(%a: !loop.buffer<[16*2064] x f32>, %w: !loop.buffer<[768*2064] x f32>, %y: !loop.buffer<[16*768] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [16, 768, 2064] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*2064 + d2] : !loop.buffer<[16*2064] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[768*2064] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*768 + d1] : !loop.buffer<[16*768] x f32>
  }
}

// Rows 8 KB apart would meet in one set of the first-level cache: they are copied.
// PLAN-LABEL: loop.kernel @crowded
// PLAN-SAME: lhs = "packed_rows"
// V4-LABEL: crowded:
// V4-COUNT-16: vfmadd231ps {{.*}}{1to16}, %zmm
loop.kernel @crowded(%a: !loop.buffer<[16*2048] x f32>, %w: !loop.buffer<[768*2048] x f32>, %y: !loop.buffer<[16*768] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [16, 768, 2048] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*2048 + d2] : !loop.buffer<[16*2048] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[768*2048] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*768 + d1] : !loop.buffer<[16*768] x f32>
  }
}
