// Squares of every element type, of sizes that are known or not, down to none.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=OK
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s
// OK-NOT: FAIL

// OK:             ok halves
// CHECK-LABEL:    define {{.*}} @halves
// CHECK:          shufflevector
loop.kernel @halves(%x: !loop.buffer<[n*m] x f16>, %z: !loop.buffer<[n*m] x bf16>, %y: !loop.buffer<[m*n] x f16>)
    attributes {symbols = ["n", "m"], parallel = 1 : i64, arguments_written = array<i64: 2>, test.tolerance = 0.02,
                test.symbols = [{n = 0, m = 5}, {n = 5, m = 0}, {n = 1, m = 33}, {n = 90, m = 17}, {n = 129, m = 140}]} {
  loop.pointwise [m, n] {
    %0 = loop.load %x[m*d1 + d0] : !loop.buffer<[n*m] x f16>
    %1 = loop.load %z[m*d1 + d0] : !loop.buffer<[n*m] x bf16>
    %2 = arith.extf %0 : f16 to f32
    %3 = arith.extf %1 : bf16 to f32
    %4 = arith.addf %2, %3 : f32
    %5 = arith.truncf %4 : f32 to f16
    loop.store %5, %y[n*d0 + d1] : !loop.buffer<[m*n] x f16>
  }
}

// Of two widths at once; a middle dim that stays where it is.
// OK:             ok indices
// CHECK-LABEL:    define {{.*}} @indices
// CHECK:          shufflevector <8 x i64>
loop.kernel @indices(%x: !loop.buffer<[37*3*n] x i64>, %y: !loop.buffer<[n*3*37] x i32>)
    attributes {symbols = ["n"], parallel = 3 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 1}, {n = 4}, {n = 150}]} {
  loop.pointwise [n, 3, 37] {
    %0 = loop.load %x[3*n*d2 + n*d1 + d0] : !loop.buffer<[37*3*n] x i64>
    %1 = arith.trunci %0 : i64 to i32
    loop.store %1, %y[111*d0 + 37*d1 + d2] : !loop.buffer<[n*3*37] x i32>
  }
}

// Conditions have no squares, nor has what is one byte as a truth value.
// OK:             ok flags
// OK:             ok bounded
loop.kernel @flags(%x: !loop.buffer<[40*24] x i1>, %y: !loop.buffer<[24*40] x i1>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [24, 40] {
    %0 = loop.load %x[24*d1 + d0] : !loop.buffer<[40*24] x i1>
    loop.store %0, %y[40*d0 + d1] : !loop.buffer<[24*40] x i1>
  }
}

loop.kernel @bounded(%x: !loop.buffer<[40*24] x f32>, %y: !loop.buffer<[24*50] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [24, 50] {
    %0 = arith.constant 0.0 : f32
    %1 = loop.masked [39 - d1] else %0 {
      %2 = loop.load %x[24*d1 + d0] : !loop.buffer<[40*24] x f32>
      loop.yield %2 : f32
    } : f32
    loop.store %1, %y[50*d0 + d1] : !loop.buffer<[24*50] x f32>
  }
}

// Bytes of four channels, woven; none of them, and fewer than a vector.
// OK:             ok pixels
// CHECK-LABEL:    define {{.*}} @pixels
// CHECK:          shufflevector <{{[0-9]+}} x i8>
loop.kernel @pixels(%x: !loop.buffer<[4*n] x i8>, %y: !loop.buffer<[4*n] x i8>)
    attributes {symbols = ["n"], parallel = 2 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 0}, {n = 1}, {n = 31}, {n = 333}]} {
  loop.pointwise [n, 4] {
    %0 = loop.load %x[n*d1 + d0] : !loop.buffer<[4*n] x i8>
    loop.store %0, %y[4*d0 + d1] : !loop.buffer<[4*n] x i8>
  }
}

// Another dim lies between the lines that are written: 16 of them at a time, or 8, go on along it.
// OK:             ok reversed
// OK:             ok reversed_free
loop.kernel @reversed(%x: !loop.buffer<[20*6*24] x f32>, %y: !loop.buffer<[24*6*20] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [24, 6, 20] {
    %0 = loop.load %x[144*d2 + 24*d1 + d0] : !loop.buffer<[20*6*24] x f32>
    loop.store %0, %y[120*d0 + 20*d1 + d2] : !loop.buffer<[24*6*20] x f32>
  }
}

loop.kernel @reversed_free(%x: !loop.buffer<[20*6*n] x f64>, %y: !loop.buffer<[n*6*20] x f64>)
    attributes {symbols = ["n"], parallel = 3 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 0}, {n = 1}, {n = 50}]} {
  loop.pointwise [n, 6, 20] {
    %0 = loop.load %x[6*n*d2 + n*d1 + d0] : !loop.buffer<[20*6*n] x f64>
    loop.store %0, %y[120*d0 + 20*d1 + d2] : !loop.buffer<[n*6*20] x f64>
  }
}
