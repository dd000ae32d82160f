// RUN: ptc-kernel %s --check | FileCheck %s
// CHECK-NOT: FAIL

// Few of a long row are picked out before they are sorted: also with NaN, infinities and equal keys.
// CHECK: ok floats
loop.kernel @floats(%x: !loop.buffer<[m*n] x f32>, %y: !loop.buffer<[m*k] x f32>, %z: !loop.buffer<[m*k] x i64>)
    attributes {symbols = ["m", "n", "k"], parallel = 1 : i64, arguments_written = array<i64: 1, 2>, test.nan,
                test.symbols = [{m = 3, n = 300, k = 7}, {m = 2, n = 3000, k = 1}, {m = 1, n = 3000, k = 1500},
                                {m = 1, n = 300, k = 300}, {m = 1, n = 257, k = 0}, {m = 1, n = 1000, k = 501},
                                {m = 2, n = 2000, k = 2000}]} {
  loop.sort [m, n] kept k true, false key {
    %0 = loop.load %x[d0*n + d1] : !loop.buffer<[m*n] x f32>
    loop.yield %0 : f32
  } body {
  ^bb0(%v: f32, %i: i64):
    loop.store %v, %y[d0*k + d1] : !loop.buffer<[m*k] x f32>
    loop.store %i, %z[d0*k + d1] : !loop.buffer<[m*k] x i64>
  }
}

// Keys that take all 64 bits, or few values.
// CHECK: ok integers
loop.kernel @integers(%x: !loop.buffer<[m*700] x i64>, %y: !loop.buffer<[m*20] x i64>, %z: !loop.buffer<[m*20] x i64>)
    attributes {symbols = ["m"], parallel = 1 : i64, arguments_written = array<i64: 1, 2>,
                test.ranges = [[-100, 100]], test.symbols = [{m = 1}, {m = 3}]} {
  loop.sort [m, 700] kept 20 false, true key {
    %0 = loop.load %x[d0*700 + d1] : !loop.buffer<[m*700] x i64>
    loop.yield %0 : i64
  } body {
  ^bb0(%v: i64, %i: i64):
    loop.store %v, %y[d0*20 + d1] : !loop.buffer<[m*20] x i64>
    loop.store %i, %z[d0*20 + d1] : !loop.buffer<[m*20] x i64>
  }
}

// CHECK: ok equal
loop.kernel @equal(%x: !loop.buffer<[m*700] x i32>, %y: !loop.buffer<[m*20] x i32>, %z: !loop.buffer<[m*20] x i64>)
    attributes {symbols = ["m"], parallel = 1 : i64, arguments_written = array<i64: 1, 2>,
                test.ranges = [[5, 5]], test.symbols = [{m = 1}, {m = 3}]} {
  loop.sort [m, 700] kept 20 true, false key {
    %0 = loop.load %x[d0*700 + d1] : !loop.buffer<[m*700] x i32>
    loop.yield %0 : i32
  } body {
  ^bb0(%v: i32, %i: i64):
    loop.store %v, %y[d0*20 + d1] : !loop.buffer<[m*20] x i32>
    loop.store %i, %z[d0*20 + d1] : !loop.buffer<[m*20] x i64>
  }
}

// Many points, by digits: keys of 64 bits.
// CHECK: ok wide
loop.kernel @wide(%x: !loop.buffer<[m*n] x f64>, %y: !loop.buffer<[m*n] x f64>, %z: !loop.buffer<[m*n] x i64>)
    attributes {symbols = ["m", "n"], parallel = 1 : i64, arguments_written = array<i64: 1, 2>, test.nan,
                test.symbols = [{m = 2, n = 0}, {m = 3, n = 1023}, {m = 2, n = 1024}, {m = 2, n = 2500}]} {
  loop.sort [m, n] kept n false, false key {
    %0 = loop.load %x[d0*n + d1] : !loop.buffer<[m*n] x f64>
    loop.yield %0 : f64
  } body {
  ^bb0(%v: f64, %i: i64):
    loop.store %v, %y[d0*n + d1] : !loop.buffer<[m*n] x f64>
    loop.store %i, %z[d0*n + d1] : !loop.buffer<[m*n] x i64>
  }
}

// Few values.
// CHECK: ok few_values
loop.kernel @few_values(%x: !loop.buffer<[n] x i8>, %y: !loop.buffer<[n] x i64>)
    attributes {symbols = ["n"], parallel = 0 : i64, arguments_written = array<i64: 1>,
                test.ranges = [[-2, 2]], test.symbols = [{n = 1500}, {n = 5000}]} {
  loop.sort [n] kept n true, false key {
    %0 = loop.load %x[d0] : !loop.buffer<[n] x i8>
    loop.yield %0 : i8
  } body {
  ^bb0(%v: i8, %i: i64):
    loop.store %i, %y[d0] : !loop.buffer<[n] x i64>
  }
}
