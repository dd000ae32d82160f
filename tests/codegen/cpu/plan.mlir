// How kernels are cut and vectorised; the same for all levels.
// RUN: ptc-kernel %s | FileCheck %s

// One dim: blocks of 64 elements of it.
// CHECK-LABEL: @flat
// CHECK-SAME: config = {block = 64 : i64, node_vectors = array<i64: -1>, shared_vector = 0 : i64}
// CHECK-SAME: iterations = #prim.expr<floordiv(n + 63, 64)>
loop.kernel @flat(%a: !loop.buffer<[n] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [n] {
    %0 = loop.load %a[d0] : !loop.buffer<[n] x f32>
    loop.store %0, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// Sums of rows: the reduced dim carries the lanes, an iteration is a row.
// CHECK-LABEL: @row_sums
// CHECK-SAME: config = {block = 0 : i64, node_vectors = array<i64: 1>, shared_vector = -1 : i64}
// CHECK-SAME: iterations = #prim.expr<m>
loop.kernel @row_sums(%x: !loop.buffer<[m*512] x f32>, %y: !loop.buffer<[m] x f32>)
    attributes {symbols = ["m"], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.reduction [m, 512] reduced 1 {
    %0 = loop.load %x[d0*512 + d1] : !loop.buffer<[m*512] x f32>
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %y[d0] : !loop.buffer<[m] x f32>
  }
}

// Sums of columns: each lane is a column.
// CHECK-LABEL: @column_sums
// CHECK-SAME: shared_vector = 0 : i64
loop.kernel @column_sums(%x: !loop.buffer<[512*n] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.reduction [n, 512] reduced 1 {
    %0 = loop.load %x[d1*n + d0] : !loop.buffer<[512*n] x f32>
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// Sums over groups of channels, channels last: lanes are the few neighbours, since they are added up once a group.
// CHECK-LABEL: @group_sums
// CHECK-SAME: node_vectors = array<i64: 2>
loop.kernel @group_sums(%x: !loop.buffer<[256*m] x f32>, %y: !loop.buffer<[32] x f32>)
    attributes {symbols = ["m"], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.reduction [32, m, 8] reduced 2 {
    %0 = loop.load %x[8*d0 + 256*d1 + d2] : !loop.buffer<[256*m] x f32>
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %y[d0] : !loop.buffer<[32] x f32>
  }
}

// A large local buffer lies in scratch, and keeps lanes inside the rows.
// CHECK-LABEL: @rows_through_scratch
// CHECK-SAME: node_vectors = array<i64: 1, 1>
// CHECK-SAME: scratch = #prim.expr<8000>
loop.kernel @rows_through_scratch(%x: !loop.buffer<[m*2000] x f32>, %y: !loop.buffer<[m*2000] x f32>)
    attributes {symbols = ["m"], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  %t = loop.buffer : !loop.buffer<[2000] x f32>
  loop.pointwise [m, 2000] {
    %0 = loop.load %x[d0*2000 + d1] : !loop.buffer<[m*2000] x f32>
    loop.store %0, %t[d1] : !loop.buffer<[2000] x f32>
  }
  loop.pointwise [m, 2000] {
    %0 = loop.load %t[1999 - d1] : !loop.buffer<[2000] x f32>
    loop.store %0, %y[d0*2000 + d1] : !loop.buffer<[m*2000] x f32>
  }
}

// The smallest local buffers come first on the stack, where a vector is a register: the larger one is left to scratch.
// CHECK-LABEL: @small_behind_large
// CHECK-SAME: scratch = #prim.expr<4096>
loop.kernel @small_behind_large(%x: !loop.buffer<[m*1024] x f32>, %y: !loop.buffer<[m*16] x f32>)
    attributes {symbols = ["m"], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  %large = loop.buffer : !loop.buffer<[1024] x f32>
  %small = loop.buffer : !loop.buffer<[16] x f32>
  loop.pointwise [m, 1024] {
    %0 = loop.load %x[d0*1024 + d1] : !loop.buffer<[m*1024] x f32>
    loop.store %0, %large[d1] : !loop.buffer<[1024] x f32>
  }
  loop.pointwise [m, 16] {
    %0 = loop.load %large[d1*64] : !loop.buffer<[1024] x f32>
    loop.store %0, %small[d1] : !loop.buffer<[16] x f32>
  }
  loop.pointwise [m, 16] {
    %0 = loop.load %small[15 - d1] : !loop.buffer<[16] x f32>
    loop.store %0, %y[d0*16 + d1] : !loop.buffer<[m*16] x f32>
  }
}
