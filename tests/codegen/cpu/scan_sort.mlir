// RUN: ptc-kernel %s --check | FileCheck %s
// CHECK-NOT: FAIL

// CHECK: ok cumulative_rows
loop.kernel @cumulative_rows(%x: !loop.buffer<[m*n] x f32>, %y: !loop.buffer<[m*n] x f32>)
    attributes {symbols = ["m", "n"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.tolerance = 1.0e-5,
                test.symbols = [{m = 1, n = 1}, {m = 20, n = 31}]} {
  loop.scan [m, n] {
    %0 = loop.load %x[d0*n + d1] : !loop.buffer<[m*n] x f32>
    %1 = loop.running sum %0 : f32
    loop.store %1, %y[d0*n + d1] : !loop.buffer<[m*n] x f32>
  }
}

// CHECK: ok cumulative_columns
loop.kernel @cumulative_columns(%x: !loop.buffer<[m*n] x i32>, %y: !loop.buffer<[m*n] x i32>)
    attributes {symbols = ["m", "n"], parallel = 1 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{m = 1, n = 1}, {m = 31, n = 70}]} {
  loop.scan [n, m] reverse {
    %0 = loop.load %x[d1*n + d0] : !loop.buffer<[m*n] x i32>
    %1 = loop.running sum %0 exclusive : i32
    loop.store %1, %y[d1*n + d0] : !loop.buffer<[m*n] x i32>
  }
}

// CHECK: ok long_columns
loop.kernel @long_columns(%x: !loop.buffer<[80*n] x f32>, %y: !loop.buffer<[80*n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.tolerance = 1.0e-5,
                test.symbols = [{n = 1}, {n = 349}]} {
  loop.scan [n, 80] {
    %0 = loop.load %x[d1*n + d0] : !loop.buffer<[80*n] x f32>
    %1 = loop.running sum %0 : f32
    loop.store %1, %y[d1*n + d0] : !loop.buffer<[80*n] x f32>
  }
}

// CHECK: ok sort_floats
loop.kernel @sort_floats(%x: !loop.buffer<[m*n] x f32>, %y: !loop.buffer<[m*n] x f32>, %z: !loop.buffer<[m*n] x i64>)
    attributes {symbols = ["m", "n"], parallel = 1 : i64, arguments_written = array<i64: 1, 2>, test.nan,
                test.symbols = [{m = 1, n = 1}, {m = 3, n = 50}, {m = 2, n = 64}]} {
  loop.sort [m, n] kept n true, false key {
    %0 = loop.load %x[d0*n + d1] : !loop.buffer<[m*n] x f32>
    loop.yield %0 : f32
  } body {
  ^bb0(%v: f32, %i: i64):
    loop.store %v, %y[d0*n + d1] : !loop.buffer<[m*n] x f32>
    loop.store %i, %z[d0*n + d1] : !loop.buffer<[m*n] x i64>
  }
}

// CHECK: ok top_integers
loop.kernel @top_integers(%x: !loop.buffer<[m*40] x i32>, %y: !loop.buffer<[m*5] x i32>, %z: !loop.buffer<[m*5] x i64>)
    attributes {symbols = ["m"], parallel = 1 : i64, arguments_written = array<i64: 1, 2>,
                test.ranges = [[-3, 3]], test.symbols = [{m = 1}, {m = 7}]} {
  loop.sort [m, 40] kept 5 false, false key {
    %0 = loop.load %x[d0*40 + d1] : !loop.buffer<[m*40] x i32>
    loop.yield %0 : i32
  } body {
  ^bb0(%v: i32, %i: i64):
    loop.store %v, %y[d0*5 + d1] : !loop.buffer<[m*5] x i32>
    loop.store %i, %z[d0*5 + d1] : !loop.buffer<[m*5] x i64>
  }
}
