// Points of a product that choose their matrix are visited in the order of what they choose, and the rows of its block
// are a tile: as many sums as rows become one vector.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=RESULT
// RUN: ptc-kernel %s | FileCheck %s --check-prefix=PLAN
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefix=V4
// RESULT-NOT: FAIL

// One iteration is a block of rows for a point; the scratch has the order and where each matrix's points begin.
// PLAN-LABEL: @experts
// PLAN-SAME: node_vectors = array<i64: 3>, ordered = 1 : i64, shared_vector = -1 : i64, tile_block = 0 : i64, tiled = 2 : i64
// PLAN-SAME: iterations = #prim.expr<2*n>
// PLAN-SAME: scratch = #prim.expr<8*n + 48>
// V4-LABEL: define {{.*}}@experts(
// The choice is checked for the order and once for a point, not at the steps of its sums, which fetch two rows of the
// next block.
// V4-COUNT-3: icmp ugt i64 {{.*}}, 4
// V4-NOT: icmp
// V4-COUNT-2: call void @llvm.prefetch
// V4-COUNT-8: fmul contract <16 x float>
// V4: store <8 x float>
// RESULT: ok experts
loop.kernel @experts(%i: !loop.buffer<[n] x i64>, %w: !loop.buffer<[5*2*8*64] x f32>, %x: !loop.buffer<[n*64] x f32>,
                     %y: !loop.buffer<[n*16] x f32>)
    attributes {symbols = ["n"], parallel = 3 : i64, arguments_written = array<i64: 3>, test.tolerance = 1.0e-5,
                test.ranges = [[-5, 4], [0, 0], [0, 0]], test.symbols = [{n = 1}, {n = 2}, {n = 37}]} {
  loop.reduction [2, n, 8, 64] reduced 1 {
    %0 = loop.load %i[d1] : !loop.buffer<[n] x i64>
    %1 = loop.check_index %0 in 5 {loop.wraps}
    %2 = loop.load %w[v$0*1024 + d0*512 + d2*64 + d3](%1) : !loop.buffer<[5*2*8*64] x f32>
    %3 = loop.load %x[d1*64 + d3] : !loop.buffer<[n*64] x f32>
    %4 = arith.mulf %2, %3 : f32
    %5 = loop.reduce sum %4 : f32
    loop.store %5, %y[d1*16 + d0*8 + d2] : !loop.buffer<[n*16] x f32>
  }
}

// Two sums of each row, of 8 terms, with what a point says besides.
// RESULT: ok gated
loop.kernel @gated(%i: !loop.buffer<[30] x i32>, %w: !loop.buffer<[4*3*8*40] x f32>, %x: !loop.buffer<[15*40] x f32>,
                   %s: !loop.buffer<[30] x f32>, %y: !loop.buffer<[30*12] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 4>, test.tolerance = 1.0e-5,
                test.ranges = [[0, 3], [0, 0], [0, 0], [0, 0]]} {
  loop.reduction [3, 30, 4, 40] reduced 1 {
    %0 = loop.load %i[d1] : !loop.buffer<[30] x i32>
    %a = arith.extsi %0 : i32 to i64
    %1 = loop.check_index %a in 4
    %2 = loop.load %w[v$0*960 + d0*160 + d2*40 + d3](%1) : !loop.buffer<[4*3*8*40] x f32>
    %3 = loop.load %x[floordiv(d1, 2)*40 + d3] : !loop.buffer<[15*40] x f32>
    %4 = arith.mulf %2, %3 : f32
    %5 = loop.reduce sum %4 : f32
    %6 = loop.load %i[d1] : !loop.buffer<[30] x i32>
    %b = arith.extsi %6 : i32 to i64
    %7 = loop.check_index %b in 4
    %8 = loop.load %w[v$0*960 + d0*160 + d2*40 + d3 + 480](%7) : !loop.buffer<[4*3*8*40] x f32>
    %9 = loop.load %x[floordiv(d1, 2)*40 + d3] : !loop.buffer<[15*40] x f32>
    %10 = arith.mulf %8, %9 : f32
    %11 = loop.reduce sum %10 : f32
    %12 = loop.load %s[d1] : !loop.buffer<[30] x f32>
    %13 = math.tanh %5 : f32
    %14 = arith.mulf %13, %11 : f32
    %15 = arith.mulf %14, %12 : f32
    loop.store %15, %y[d1*12 + d0*4 + d2] : !loop.buffer<[30*12] x f32>
  }
}

// Long sums are added up in blocks.
// RESULT: ok long
loop.kernel @long(%i: !loop.buffer<[6] x i64>, %w: !loop.buffer<[3*4*4160] x f32>, %x: !loop.buffer<[6*4160] x f32>,
                  %y: !loop.buffer<[6*4] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 3>, test.tolerance = 1.0e-4,
                test.ranges = [[0, 2], [0, 0], [0, 0]]} {
  loop.reduction [2, 6, 2, 4160] reduced 1 {
    %0 = loop.load %i[d1] : !loop.buffer<[6] x i64>
    %1 = loop.check_index %0 in 3
    %2 = loop.load %w[v$0*16640 + d0*8320 + d2*4160 + d3](%1) : !loop.buffer<[3*4*4160] x f32>
    %3 = loop.load %x[d1*4160 + d3] : !loop.buffer<[6*4160] x f32>
    %4 = arith.mulf %2, %3 : f32
    %5 = loop.reduce sum %4 : f32
    loop.store %5, %y[d1*4 + d0*2 + d2] : !loop.buffer<[6*4] x f32>
  }
}

// RESULT: ok out_of_range
loop.kernel @out_of_range(%i: !loop.buffer<[20] x i64>, %w: !loop.buffer<[3*4*64] x f32>, %x: !loop.buffer<[20*64] x f32>,
                          %y: !loop.buffer<[20*4] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 3>, test.fails,
                test.ranges = [[-9, 9], [0, 0], [0, 0]]} {
  loop.reduction [2, 20, 2, 64] reduced 1 {
    %0 = loop.load %i[d1] : !loop.buffer<[20] x i64>
    %1 = loop.check_index %0 in 3
    %2 = loop.load %w[v$0*256 + d0*128 + d2*64 + d3](%1) : !loop.buffer<[3*4*64] x f32>
    %3 = loop.load %x[d1*64 + d3] : !loop.buffer<[20*64] x f32>
    %4 = arith.mulf %2, %3 : f32
    %5 = loop.reduce sum %4 : f32
    loop.store %5, %y[d1*4 + d0*2 + d2] : !loop.buffer<[20*4] x f32>
  }
}
