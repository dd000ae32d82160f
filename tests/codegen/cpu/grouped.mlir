// Convolutions of a few channels a group run along the channels of all groups: lanes take the element of their group out
// of one vector, which windows that overlap share.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=OK
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=NARROW
// OK-NOT: FAIL

// Four groups of 4 in a vector; in one of 8 lanes two.
// OK:            ok fours
// CHECK-LABEL:   define {{.*}} @fours
// CHECK-NOT:     gather
// CHECK:         shufflevector <16 x float> {{.*}} <16 x i32> <i32 1, i32 1, i32 1, i32 1, i32 5, i32 5, i32 5, i32 5, i32 9
// CHECK-NOT:     gather
// CHECK:         ret i32
// NARROW-LABEL:  define {{.*}} @fours
// NARROW-NOT:    gather
// NARROW:        shufflevector <8 x float> {{.*}} <8 x i32> <i32 1, i32 1, i32 1, i32 1, i32 5, i32 5, i32 5, i32 5>
// NARROW-NOT:    gather
// NARROW:        ret i32
loop.kernel @fours(%x: !loop.buffer<[9*21*32] x f32>, %w: !loop.buffer<[36*32] x f32>, %y: !loop.buffer<[9*21*32] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [9, 21, 32, 3, 3, 4] reduced 3 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d3 - 1, 9 - d0 - d3, d1 + d4 - 1, 21 - d1 - d4] else %zero {
      %a = loop.load %x[(d0 + d3 - 1)*672 + (d1 + d4 - 1)*32 + 4*floordiv(d2, 4) + d5] : !loop.buffer<[9*21*32] x f32>
      loop.yield %a : f32
    } : f32
    %1 = loop.load %w[d3*384 + d4*128 + d5*32 + d2] : !loop.buffer<[36*32] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[d0*672 + d1*32 + d2] : !loop.buffer<[9*21*32] x f32>
  }
}

// Two groups of 8, with steps; in a vector of 8 lanes all read one element. The width is known to a run alone.
// OK:            ok eights
// CHECK-LABEL:   define {{.*}} @eights
// CHECK-NOT:     gather
// CHECK:         ret i32
// NARROW-LABEL:  define {{.*}} @eights
// NARROW-NOT:    gather
// NARROW:        ret i32
loop.kernel @eights(%x: !loop.buffer<[256*n] x f32>, %w: !loop.buffer<[72*16] x f32>, %y: !loop.buffer<[64*n] x f32>)
    attributes {symbols = ["n"], parallel = 3 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5,
                test.symbols = [{n = 1}, {n = 2}, {n = 3}, {n = 29}]} {
  loop.reduction [4, n, 16, 3, 3, 8] reduced 3 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0*2 + d3 - 1, 8 - d0*2 - d3, d1*2 + d4 - 1, 2*n - d1*2 - d4] else %zero {
      %a = loop.load %x[(d0*2 + d3 - 1)*32*n + (d1*2 + d4 - 1)*16 + 8*floordiv(d2, 8) + d5] : !loop.buffer<[256*n] x f32>
      loop.yield %a : f32
    } : f32
    %1 = loop.load %w[d3*384 + d4*128 + d5*16 + d2] : !loop.buffer<[72*16] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[d0*16*n + d1*16 + d2] : !loop.buffer<[64*n] x f32>
  }
}

// Windows too large to be unrolled with the terms of a group; a rest of lanes under a mask, which says what there is of
// the groups, too.
// OK:            ok long_window
// CHECK-LABEL:   define {{.*}} @long_window
// CHECK-NOT:     gather
// CHECK:         ret i32
loop.kernel @long_window(%x: !loop.buffer<[64*24] x f32>, %w: !loop.buffer<[72*24] x f32>, %y: !loop.buffer<[64*24] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [64, 24, 9, 8] reduced 2 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d2 - 4, 67 - d0 - d2] else %zero {
      %a = loop.load %x[(d0 + d2 - 4)*24 + 8*floordiv(d1, 8) + d3] : !loop.buffer<[64*24] x f32>
      loop.yield %a : f32
    } : f32
    %1 = loop.load %w[d2*192 + d3*24 + d1] : !loop.buffer<[72*24] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[d0*24 + d1] : !loop.buffer<[64*24] x f32>
  }
}

// A condition asks for the term: of an element that does not exist nothing is read, and the first may be such.
// OK:            ok masked_term
loop.kernel @masked_term(%x: !loop.buffer<[8*16 - 1] x f32>, %w: !loop.buffer<[2*16] x f32>, %y: !loop.buffer<[8*16] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [8, 16, 2] reduced 1 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d2 - 1] else %zero {
      %a = loop.load %x[16*d0 + 2*floordiv(d1, 2) + d2 - 1] : !loop.buffer<[8*16 - 1] x f32>
      loop.yield %a : f32
    } : f32
    %1 = loop.load %w[d2*16 + d1] : !loop.buffer<[2*16] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[d0*16 + d1] : !loop.buffer<[8*16] x f32>
  }
}
