// RUN: ptc-kernel %s --check | FileCheck %s
// CHECK-NOT: FAIL

// CHECK: ok softmax
loop.kernel @softmax(%x: !loop.buffer<[m*n] x f32>, %y: !loop.buffer<[m*n] x f32>)
    attributes {symbols = ["m", "n"], parallel = 1 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{m = 1, n = 1}, {m = 5, n = 77}, {m = 3, n = 1000}]} {
  %top = loop.buffer : !loop.buffer<[1] x f32>
  %total = loop.buffer : !loop.buffer<[1] x f32>
  %e = loop.buffer : !loop.buffer<[n] x f32>
  loop.reduction [m, n] reduced 1 {
    %0 = loop.load %x[d0*n + d1] : !loop.buffer<[m*n] x f32>
    %1 = loop.reduce max %0 no_nan : f32
    loop.store %1, %top[0] : !loop.buffer<[1] x f32>
  }
  loop.reduction [m, n] reduced 1 {
    %0 = loop.load %x[d0*n + d1] : !loop.buffer<[m*n] x f32>
    %1 = loop.load %top[0] : !loop.buffer<[1] x f32>
    %2 = arith.subf %0, %1 : f32
    %3 = math.exp %2 : f32
    loop.store %3, %e[d1] : !loop.buffer<[n] x f32>
    %4 = loop.reduce sum %3 : f32
    loop.store %4, %total[0] : !loop.buffer<[1] x f32>
  }
  loop.pointwise [m, n] {
    %0 = loop.load %e[d1] : !loop.buffer<[n] x f32>
    %1 = loop.load %total[0] : !loop.buffer<[1] x f32>
    %2 = arith.divf %0, %1 : f32
    loop.store %2, %y[d0*n + d1] : !loop.buffer<[m*n] x f32>
  }
}

// CHECK: ok layer_norm
loop.kernel @layer_norm(%x: !loop.buffer<[m*96] x f32>, %g: !loop.buffer<[96] x f32>, %b: !loop.buffer<[96] x f32>, %y: !loop.buffer<[m*96] x f32>)
    attributes {symbols = ["m"], parallel = 1 : i64, arguments_written = array<i64: 3>, test.tolerance = 1.0e-5,
                test.symbols = [{m = 1}, {m = 5}]} {
  %mean = loop.buffer : !loop.buffer<[1] x f32>
  %scale = loop.buffer : !loop.buffer<[1] x f32>
  loop.reduction [m, 96] reduced 1 {
    %0 = loop.load %x[d0*96 + d1] : !loop.buffer<[m*96] x f32>
    %1 = loop.reduce sum %0 : f32
    %n = arith.constant 96.0 : f32
    %2 = arith.divf %1, %n : f32
    loop.store %2, %mean[0] : !loop.buffer<[1] x f32>
  }
  loop.reduction [m, 96] reduced 1 {
    %0 = loop.load %x[d0*96 + d1] : !loop.buffer<[m*96] x f32>
    %1 = loop.load %mean[0] : !loop.buffer<[1] x f32>
    %2 = arith.subf %0, %1 : f32
    %3 = arith.mulf %2, %2 : f32
    %4 = loop.reduce sum %3 : f32
    %n = arith.constant 96.0 : f32
    %eps = arith.constant 1.0e-5 : f32
    %one = arith.constant 1.0 : f32
    %5 = arith.divf %4, %n : f32
    %6 = arith.addf %5, %eps : f32
    %7 = math.sqrt %6 : f32
    %8 = arith.divf %one, %7 : f32
    loop.store %8, %scale[0] : !loop.buffer<[1] x f32>
  }
  loop.pointwise [m, 96] {
    %0 = loop.load %x[d0*96 + d1] : !loop.buffer<[m*96] x f32>
    %1 = loop.load %mean[0] : !loop.buffer<[1] x f32>
    %2 = loop.load %scale[0] : !loop.buffer<[1] x f32>
    %3 = loop.load %g[d1] : !loop.buffer<[96] x f32>
    %4 = loop.load %b[d1] : !loop.buffer<[96] x f32>
    %5 = arith.subf %0, %1 : f32
    %6 = arith.mulf %5, %2 : f32
    %7 = arith.mulf %6, %3 : f32
    %8 = arith.addf %7, %4 : f32
    loop.store %8, %y[d0*96 + d1] : !loop.buffer<[m*96] x f32>
  }
}

// Softmax over a dim that is not the last: each lane is a row.
// CHECK: ok softmax_columns
loop.kernel @softmax_columns(%x: !loop.buffer<[9*n] x f32>, %y: !loop.buffer<[9*n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 1}, {n = 100}]} {
  %top = loop.buffer : !loop.buffer<[1] x f32>
  %total = loop.buffer : !loop.buffer<[1] x f32>
  loop.reduction [n, 9] reduced 1 {
    %0 = loop.load %x[d1*n + d0] : !loop.buffer<[9*n] x f32>
    %1 = loop.reduce max %0 no_nan : f32
    loop.store %1, %top[0] : !loop.buffer<[1] x f32>
  }
  loop.reduction [n, 9] reduced 1 {
    %0 = loop.load %x[d1*n + d0] : !loop.buffer<[9*n] x f32>
    %1 = loop.load %top[0] : !loop.buffer<[1] x f32>
    %2 = arith.subf %0, %1 : f32
    %3 = math.exp %2 : f32
    %4 = loop.reduce sum %3 : f32
    loop.store %4, %total[0] : !loop.buffer<[1] x f32>
  }
  loop.pointwise [n, 9] {
    %0 = loop.load %x[d1*n + d0] : !loop.buffer<[9*n] x f32>
    %1 = loop.load %top[0] : !loop.buffer<[1] x f32>
    %2 = arith.subf %0, %1 : f32
    %3 = math.exp %2 : f32
    %4 = loop.load %total[0] : !loop.buffer<[1] x f32>
    %5 = arith.divf %3, %4 : f32
    loop.store %5, %y[d1*n + d0] : !loop.buffer<[9*n] x f32>
  }
}
