// Two elements of an extreme share one search for NaN, along kept and reduced dims and in windows. Where masks are
// vectors, a NaN is joined to the extreme bit by bit.
// RUN: ptc-kernel %s --check | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefix=LLVM
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=asm | FileCheck %s --check-prefix=V3
// CHECK-NOT: FAIL

// CHECK: ok columns
// LLVM-LABEL: define {{.*}}@columns
// LLVM:         fcmp ogt <16 x float>
// LLVM-NOT:     fcmp uno
// LLVM:         fcmp ogt <16 x float>
// LLVM:         fcmp uno <16 x float>
// V3-LABEL: columns:
// V3-NOT:     vblendvps
// V3:         vorps {{.*}}%ymm
// V3-LABEL: rows:
loop.kernel @columns(%x: !loop.buffer<[m*64] x f32>, %y: !loop.buffer<[64] x f32>)
    attributes {symbols = ["m"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.nan,
                test.symbols = [{m = 1}, {m = 2}, {m = 5}, {m = 8}, {m = 301}]} {
  loop.reduction [64, m] reduced 1 {
    %0 = loop.load %x[d1*64 + d0] : !loop.buffer<[m*64] x f32>
    %1 = loop.reduce max %0 : f32
    loop.store %1, %y[d0] : !loop.buffer<[64] x f32>
  }
}

// CHECK: ok rows
loop.kernel @rows(%x: !loop.buffer<[40*n] x f32>, %y: !loop.buffer<[40] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.nan,
                test.symbols = [{n = 1}, {n = 3}, {n = 16}, {n = 24}, {n = 32}, {n = 53}, {n = 128}, {n = 197}, {n = 1000}]} {
  loop.reduction [40, n] reduced 1 {
    %0 = loop.load %x[d0*n + d1] : !loop.buffer<[40*n] x f32>
    %1 = loop.reduce min %0 : f32
    loop.store %1, %y[d0] : !loop.buffer<[40] x f32>
  }
}

// A rest of four elements joins the lanes of the first vectors.
// CHECK: ok rest
loop.kernel @rest(%x: !loop.buffer<[6*3*196] x f64>, %y: !loop.buffer<[6] x f64>, %z: !loop.buffer<[6] x f64>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1, 2>, test.nan, test.tolerance = 1.0e-12} {
  loop.reduction [6, 3, 196] reduced 2 {
    %0 = loop.load %x[d0*196 + d1*1176 + d2] : !loop.buffer<[6*3*196] x f64>
    %1 = loop.reduce max %0 : f64
    %2 = loop.reduce sum %0 : f64
    loop.store %1, %y[d0] : !loop.buffer<[6] x f64>
    loop.store %2, %z[d0] : !loop.buffer<[6] x f64>
  }
}

// CHECK: ok vectors
loop.kernel @vectors(%x: !loop.buffer<[6*3*200] x f32>, %y: !loop.buffer<[6] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>, test.nan} {
  loop.reduction [6, 3, 200] reduced 2 {
    %0 = loop.load %x[d0*200 + d1*1200 + d2] : !loop.buffer<[6*3*200] x f32>
    %1 = loop.reduce max %0 : f32
    loop.store %1, %y[d0] : !loop.buffer<[6] x f32>
  }
}

// Nine elements of a window: one is asked about alone.
// CHECK: ok window
loop.kernel @window(%x: !loop.buffer<[10*10*24] x f32>, %y: !loop.buffer<[10*10*24] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>, test.nan} {
  loop.reduction [10, 10, 24, 3, 3] reduced 2 {
    %low = arith.constant 0xFF800000 : f32
    %0 = loop.masked [d0 + d3 - 1, 10 - d0 - d3, d1 + d4 - 1, 10 - d1 - d4] else %low {
      %1 = loop.load %x[(d0 + d3 - 1)*240 + (d1 + d4 - 1)*24 + d2] : !loop.buffer<[10*10*24] x f32>
      loop.yield %1 : f32
    } : f32
    %2 = loop.reduce max %0 : f32
    loop.store %2, %y[d0*240 + d1*24 + d2] : !loop.buffer<[10*10*24] x f32>
  }
}
