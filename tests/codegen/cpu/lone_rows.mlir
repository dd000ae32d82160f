// A lone row by a matrix that is computed: lanes run along the columns, and as many vectors of them at a time as registers
// hold sums, so that a row of the matrix is read in long runs. Rows that share no matrix do not run in tiles.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=RESULT
// RUN: ptc-kernel %s | FileCheck %s --check-prefix=PLAN
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=V3
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefix=V4
// RESULT-NOT: FAIL

// PLAN-LABEL: @own_matrices
// PLAN-SAME: config = {block = 256 : i64, node_vectors = array<i64: -1>, shared_vector = 1 : i64}
// RESULT: ok own_matrices
// V3-LABEL: define {{.*}} @own_matrices
// V3-COUNT-12: phi <8 x float> [ zeroinitializer,
// V3-NOT: phi <8 x float>
// V3: icmp
// V4-LABEL: define {{.*}} @own_matrices
// V4-COUNT-16: phi <16 x float> [ zeroinitializer,
// V4-NOT: phi <16 x float>
// V4: icmp
loop.kernel @own_matrices(%x: !loop.buffer<[3*96] x f32>, %z: !loop.buffer<[3*96*600] x f32>, %y: !loop.buffer<[3*600] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [3, 600, 96] reduced 1 {
    %0 = loop.load %x[d0*96 + d2] : !loop.buffer<[3*96] x f32>
    %1 = loop.load %z[d0*57600 + d2*600 + d1] : !loop.buffer<[3*96*600] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[d0*600 + d1] : !loop.buffer<[3*600] x f32>
  }
}

// Rows of one matrix share what they read of it.
// PLAN-LABEL: @same_matrix
// PLAN-SAME: tiled = 0 : i64
// RESULT: ok same_matrix
loop.kernel @same_matrix(%x: !loop.buffer<[2*96] x f32>, %z: !loop.buffer<[96*600] x f32>, %y: !loop.buffer<[2*600] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [2, 600, 96] reduced 1 {
    %0 = loop.load %x[d0*96 + d2] : !loop.buffer<[2*96] x f32>
    %1 = loop.load %z[d2*600 + d1] : !loop.buffer<[96*600] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[d0*600 + d1] : !loop.buffer<[2*600] x f32>
  }
}
