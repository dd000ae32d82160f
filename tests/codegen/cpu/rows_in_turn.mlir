// Sums of the columns of a matrix that no core's cache holds take whole rows in turn: the sums wait on the stack. Parts
// of few columns take registers, with the same results.
// RUN: ptc-kernel %s --check | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefix=LLVM
// CHECK-NOT: FAIL

// A row by a computed matrix; 514 rows are eight blocks and two rows.
// CHECK: ok product
// LLVM-LABEL: define {{.*}}@product
// LLVM:         alloca [4096 x i8]
loop.kernel @product(%x: !loop.buffer<[514] x f32>, %z: !loop.buffer<[514*1030] x f32>, %y: !loop.buffer<[1030] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-3} {
  loop.reduction [1030, 514] reduced 1 {
    %0 = loop.load %x[d1] : !loop.buffer<[514] x f32>
    %1 = loop.load %z[d1*1030 + d0] : !loop.buffer<[514*1030] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    %4 = arith.addf %3, %3 : f32
    loop.store %4, %y[d0] : !loop.buffer<[1030] x f32>
  }
}

// A second-level cache holds the matrix.
// CHECK: ok small
// LLVM-LABEL: define {{.*}}@small
// LLVM-NOT:     alloca [4096 x i8]
// LLVM-LABEL: define {{.*}}@narrow
loop.kernel @small(%z: !loop.buffer<[512*520] x f32>, %y: !loop.buffer<[520] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>, test.tolerance = 1.0e-3} {
  loop.reduction [520, 512] reduced 1 {
    %0 = loop.load %z[d1*520 + d0] : !loop.buffer<[512*520] x f32>
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %y[d0] : !loop.buffer<[520] x f32>
  }
}

// Rows are no streams.
// CHECK: ok narrow
// LLVM-NOT:     alloca [4096 x i8]
loop.kernel @narrow(%z: !loop.buffer<[4096*130] x f32>, %y: !loop.buffer<[130] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>, test.tolerance = 1.0e-3} {
  loop.reduction [130, 4096] reduced 1 {
    %0 = loop.load %z[d1*130 + d0] : !loop.buffer<[4096*130] x f32>
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %y[d0] : !loop.buffer<[130] x f32>
  }
}
