// Forms of products by chosen matrices (chosen_points.mlir).
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=RESULT
// RUN: ptc-kernel %s | FileCheck %s --check-prefix=PLAN
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefix=V4
// RESULT-NOT: FAIL

// A dim between the points and the rows. The outermost one takes turns with the rows and is no block of them: nothing is
// fetched ahead.
// PLAN-LABEL: @between
// PLAN-SAME: ordered = 1
// V4-LABEL: define {{.*}}@between(
// V4-NOT: @llvm.prefetch
// V4: define
// RESULT: ok between
loop.kernel @between(%i: !loop.buffer<[n] x i64>, %w: !loop.buffer<[5*2*6*24] x f32>, %x: !loop.buffer<[n*3*24] x f32>, %y: !loop.buffer<[n*36] x f32>)
    attributes {symbols = ["n"], parallel = 2 : i64, arguments_written = array<i64: 3>, test.tolerance = 1.0e-5,
                test.ranges = [[-5, 4], [0, 0], [0, 0]], test.symbols = [{n = 1}, {n = 0}, {n = 37}]} {
  loop.reduction [2, n, 3, 6, 24] reduced 1 {
    %0 = loop.load %i[d1] : !loop.buffer<[n] x i64>
    %1 = loop.check_index %0 in 5 {loop.wraps}
    %2 = loop.load %w[v$0*288 + d3*48 + d0*24 + d4](%1) : !loop.buffer<[5*2*6*24] x f32>
    %3 = loop.load %x[d1*72 + d2*24 + d4] : !loop.buffer<[n*3*24] x f32>
    %4 = arith.mulf %2, %3 : f32
    %5 = loop.reduce sum %4 : f32
    loop.store %5, %y[d1*36 + d0*18 + d2*6 + d3] : !loop.buffer<[n*36] x f32>
  }
}

// A choice made of two loads; sum and maximum; halves.
// PLAN-LABEL: @maxi
// RESULT: ok maxi
loop.kernel @maxi(%i: !loop.buffer<[n] x i32>, %j: !loop.buffer<[n] x i32>, %w: !loop.buffer<[5*2*12*40] x f16>, %x: !loop.buffer<[n*40] x f16>, %y: !loop.buffer<[n*24] x f32>, %z: !loop.buffer<[n*24] x f32>)
    attributes {symbols = ["n"], parallel = 2 : i64, arguments_written = array<i64: 4, 5>, test.tolerance = 1.0e-5,
                test.ranges = [[0, 2], [0, 2], [0, 0], [0, 0]], test.symbols = [{n = 1}, {n = 70}]} {
  loop.reduction [2, n, 12, 40] reduced 1 {
    %0 = loop.load %i[d1] : !loop.buffer<[n] x i32>
    %00 = loop.load %j[n - 1 - d1] : !loop.buffer<[n] x i32>
    %01 = arith.addi %0, %00 : i32
    %02 = arith.extsi %01 : i32 to i64
    %1 = loop.check_index %02 in 5
    %2 = loop.load %w[v$0*960 + d0*480 + d2*40 + d3](%1) : !loop.buffer<[5*2*12*40] x f16>
    %3 = loop.load %x[d1*40 + d3] : !loop.buffer<[n*40] x f16>
    %e2 = arith.extf %2 : f16 to f32
    %e3 = arith.extf %3 : f16 to f32
    %4 = arith.mulf %e2, %e3 : f32
    %5 = loop.reduce max %4 : f32
    %6 = loop.reduce sum %4 : f32
    %c = arith.sitofp %02 : i64 to f32
    %7 = arith.mulf %6, %c : f32
    loop.store %5, %y[d1*24 + d0*12 + d2] : !loop.buffer<[n*24] x f32>
    loop.store %7, %z[d1*24 + d0*12 + d2] : !loop.buffer<[n*24] x f32>
  }
}

// Terms behind a condition.
// RESULT: ok masked
loop.kernel @masked(%i: !loop.buffer<[n] x i64>, %w: !loop.buffer<[5*2*8*24] x f32>, %x: !loop.buffer<[n*24] x f32>, %y: !loop.buffer<[n*16] x f32>)
    attributes {symbols = ["n"], parallel = 2 : i64, arguments_written = array<i64: 3>, test.tolerance = 1.0e-5,
                test.ranges = [[0, 4], [0, 0], [0, 0]], test.symbols = [{n = 3}, {n = 37}]} {
  loop.reduction [2, n, 8, 24] reduced 1 {
    %0 = loop.load %i[d1] : !loop.buffer<[n] x i64>
    %1 = loop.check_index %0 in 5
    %zero = arith.constant 0.0 : f32
    %2 = loop.load %w[v$0*384 + d0*192 + d2*24 + d3](%1) : !loop.buffer<[5*2*8*24] x f32>
    %3 = loop.masked [20 - d3] else %zero {
      %9 = loop.load %x[d1*24 + d3] : !loop.buffer<[n*24] x f32>
      loop.yield %9 : f32
    } : f32
    %4 = arith.mulf %2, %3 : f32
    %5 = loop.reduce sum %4 : f32
    loop.store %5, %y[d1*16 + d0*8 + d2] : !loop.buffer<[n*16] x f32>
  }
}
