// A convolution of few channels a group: lanes run along the channels of all groups. What they read of the image for
// all terms of a group is one vector, of which each term takes its element of each group by a shuffle.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=RESULT
// RUN: ptc-kernel %s | FileCheck %s --check-prefix=PLAN
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefix=V4
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=V3
// RESULT-NOT: FAIL

// PLAN-LABEL: @four
// PLAN-SAME: shared_vector = 2 : i64, tile_block = 0 : i64, tiled = 1 : i64
// Three pixels of the window's row beside eight outputs are ten of the image: as many loads and shuffles for each term.
// V4-LABEL: @four
// V4: shufflevector <16 x float> {{.*}}, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 4, i32 4, i32 4, i32 4, i32 8, i32 8, i32 8, i32 8, i32 12, i32 12, i32 12, i32 12>
// V4: shufflevector <16 x float> {{.*}}, <16 x i32> <i32 3, i32 3, i32 3, i32 3, i32 7, i32 7, i32 7, i32 7, i32 11, i32 11, i32 11, i32 11, i32 15, i32 15, i32 15, i32 15>
// V3-LABEL: @four
// V3: shufflevector <8 x float> {{.*}}, <8 x i32> <i32 1, i32 1, i32 1, i32 1, i32 5, i32 5, i32 5, i32 5>
// RESULT: ok four
loop.kernel @four(%x: !loop.buffer<[9*21*32] x f32>, %w: !loop.buffer<[36*32] x f32>, %y: !loop.buffer<[9*21*32] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [9, 21, 32, 3, 3, 4] reduced 3 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d3 - 1, 9 - d0 - d3, d1 + d4 - 1, 21 - d1 - d4] else %zero {
      %a = loop.load %x[(d0 + d3 - 1)*672 + (d1 + d4 - 1)*32 + 4*floordiv(d2, 4) + d5] : !loop.buffer<[9*21*32] x f32>
      loop.yield %a : f32
    } : f32
    %1 = loop.load %w[d3*384 + d5*96 + d4*32 + d2] : !loop.buffer<[36*32] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    %low = arith.constant 0.0 : f32
    %4 = arith.maximumf %3, %low : f32
    loop.store %4, %y[d0*672 + d1*32 + d2] : !loop.buffer<[9*21*32] x f32>
  }
}

// The last vector is half empty: its mask says what there is of the image, too. Groups of eight lanes, steps of two.
// V4-LABEL: @eight
// V4: shufflevector <16 x float> {{.*}}, <16 x i32> <i32 5, i32 5, i32 5, i32 5, i32 5, i32 5, i32 5, i32 5, i32 13, i32 13, i32 13, i32 13, i32 13, i32 13, i32 13, i32 13>
// A group is a vector: an element for all lanes.
// V3-LABEL: @eight
// V3: %[[X:.*]] = load float
// V3-NEXT: %[[FIRST:.*]] = insertelement <8 x float> poison, float %[[X]], i64 0
// V3-NEXT: shufflevector <8 x float> %[[FIRST]], <8 x float> poison, <8 x i32> zeroinitializer
// RESULT: ok eight
loop.kernel @eight(%x: !loop.buffer<[12*24] x f32>, %w: !loop.buffer<[16*24] x f32>, %y: !loop.buffer<[6*24] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [6, 24, 2, 8] reduced 2 {
    %a = loop.load %x[(2*d0 + d2)*24 + 8*floordiv(d1, 8) + d3] : !loop.buffer<[12*24] x f32>
    %1 = loop.load %w[d3*48 + d2*24 + d1] : !loop.buffer<[16*24] x f32>
    %2 = arith.mulf %a, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[d0*24 + d1] : !loop.buffer<[6*24] x f32>
  }
}

// A group of which not all is read: nothing is known about what lies behind it.
// RESULT: ok some
loop.kernel @some(%x: !loop.buffer<[5*16 - 1] x f32>, %w: !loop.buffer<[3*16] x f32>, %y: !loop.buffer<[5*16] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [5, 16, 3] reduced 1 {
    %a = loop.load %x[16*d0 + 4*floordiv(d1, 4) + d2] : !loop.buffer<[5*16 - 1] x f32>
    %1 = loop.load %w[d2*16 + d1] : !loop.buffer<[3*16] x f32>
    %2 = arith.mulf %a, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[d0*16 + d1] : !loop.buffer<[5*16] x f32>
  }
}
