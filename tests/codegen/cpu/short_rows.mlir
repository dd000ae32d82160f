// Short rows share vectors: sums of products for few columns.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=RESULT
// RUN: ptc-kernel %s | FileCheck %s --check-prefix=PLAN
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
