// Short rows share vectors: sums of products for few columns, functions of a few elements.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=RESULT
// RUN: ptc-kernel %s | FileCheck %s --check-prefix=PLAN
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s
// RESULT-NOT: FAIL

// Sums are joined along the many rows, not along the two columns.
// PLAN-LABEL: @two_columns
// PLAN-SAME: node_vectors = array<i64: 2>, shared_vector = -1 : i64, tile_block = 64 : i64, tiled = 0 : i64
// RESULT: ok two_columns
loop.kernel @two_columns(%x: !loop.buffer<[16*n] x f32>, %w: !loop.buffer<[32] x f32>, %y: !loop.buffer<[2*n] x f32>)
    attributes {symbols = ["n"], parallel = 2 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5,
                test.symbols = [{n = 1}, {n = 17}, {n = 150}]} {
  loop.reduction [n, 2, 16] reduced 1 {
    %0 = loop.load %x[d0*16 + d2] : !loop.buffer<[16*n] x f32>
    %1 = loop.load %w[d1 + 2*d2] : !loop.buffer<[32] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[2*d0 + d1] : !loop.buffer<[2*n] x f32>
  }
}

// Four rows are gathered one by one; what stands beside them is read at once, as the results are written.
// CHECK-LABEL: define {{.*}}@gathered(
// CHECK-COUNT-4: load <4 x float>
// CHECK: fsub {{.*}}<16 x float>
// CHECK: fma.v16f32
// CHECK: store <16 x float>
// CHECK: store <4 x float>
// CHECK: ret i32
// RESULT: ok gathered
loop.kernel @gathered(%x: !loop.buffer<[4*n] x f32>, %i: !loop.buffer<[n] x i64>, %t: !loop.buffer<[4*5] x f32>, %y: !loop.buffer<[4*n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 3>, test.tolerance = 1.0e-5,
                test.ranges = [[0, 0], [0, 4]], test.symbols = [{n = 1}, {n = 4}, {n = 23}]} {
  loop.pointwise [n, 4] {
    %0 = loop.load %x[4*d0 + d1] : !loop.buffer<[4*n] x f32>
    %1 = loop.load %i[d0] : !loop.buffer<[n] x i64>
    %2 = loop.check_index %1 in 5
    %3 = loop.load %t[d1 + 4*v$0](%2) : !loop.buffer<[4*5] x f32>
    %4 = arith.subf %0, %3 : f32
    %5 = math.exp %4 : f32
    loop.store %5, %y[4*d0 + d1] : !loop.buffer<[4*n] x f32>
  }
}

// Rows that lie apart, each with a number of its own: their operands are joined and their results taken apart.
// CHECK-LABEL: define {{.*}}@apart(
// CHECK: fma.v16f32
// CHECK-COUNT-8: store <4 x float>
// CHECK: ret i32
// RESULT: ok apart
loop.kernel @apart(%t: !loop.buffer<[4*5] x f32>, %i: !loop.buffer<[n] x i64>, %s: !loop.buffer<[n] x f32>, %y: !loop.buffer<[9*n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 3>, test.tolerance = 1.0e-5,
                test.ranges = [[0, 0], [0, 4]], test.symbols = [{n = 3}, {n = 8}, {n = 37}]} {
  loop.pointwise [n, 4] {
    %0 = loop.load %i[d0] : !loop.buffer<[n] x i64>
    %1 = loop.check_index %0 in 5
    %2 = loop.load %t[d1 + 4*v$0](%1) : !loop.buffer<[4*5] x f32>
    %3 = loop.load %s[d0] : !loop.buffer<[n] x f32>
    %4 = arith.addf %3, %3 : f32
    %5 = arith.mulf %2, %4 : f32
    %6 = math.exp %5 : f32
    loop.store %5, %y[9*d0 + d1] : !loop.buffer<[9*n] x f32>
    loop.store %6, %y[9*d0 + d1 + 4] : !loop.buffer<[9*n] x f32>
  }
}
