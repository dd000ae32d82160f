// RUN: ptc-kernel %s --check | FileCheck %s
// CHECK-NOT: FAIL

// CHECK: ok row_sums
loop.kernel @row_sums(%x: !loop.buffer<[m*n] x f32>, %y: !loop.buffer<[m] x f32>)
    attributes {symbols = ["m", "n"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.tolerance = 1.0e-5,
                test.symbols = [{m = 1, n = 1}, {m = 5, n = 77}, {m = 3, n = 9001}, {m = 2, n = 0}]} {
  loop.reduction [m, n] reduced 1 {
    %0 = loop.load %x[d0*n + d1] : !loop.buffer<[m*n] x f32>
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %y[d0] : !loop.buffer<[m] x f32>
  }
}

// CHECK: ok static_row_sums
loop.kernel @static_row_sums(%x: !loop.buffer<[6*77] x f32>, %y: !loop.buffer<[6] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>, test.tolerance = 1.0e-5} {
  loop.reduction [6, 77] reduced 1 {
    %0 = loop.load %x[d0*77 + d1] : !loop.buffer<[6*77] x f32>
    %1 = loop.reduce sum %0 : f32
    %2 = arith.mulf %0, %0 : f32
    %3 = loop.reduce sum %2 : f32
    %4 = arith.addf %1, %3 : f32
    loop.store %4, %y[d0] : !loop.buffer<[6] x f32>
  }
}

// CHECK: ok column_sums
loop.kernel @column_sums(%x: !loop.buffer<[m*n] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["m", "n"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.tolerance = 1.0e-5,
                test.symbols = [{m = 1, n = 1}, {m = 5, n = 77}, {m = 3000, n = 70}]} {
  loop.reduction [n, m] reduced 1 {
    %0 = loop.load %x[d1*n + d0] : !loop.buffer<[m*n] x f32>
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// NaN shows in a maximum unless no_nan.
// CHECK: ok extrema
loop.kernel @extrema(%x: !loop.buffer<[m*n] x f32>, %i: !loop.buffer<[m*n] x i32>, %y: !loop.buffer<[m] x f32>, %z: !loop.buffer<[m] x i32>)
    attributes {symbols = ["m", "n"], parallel = 1 : i64, arguments_written = array<i64: 2, 3>, test.nan,
                test.symbols = [{m = 7, n = 1}, {m = 15, n = 4}, {m = 5, n = 77}, {m = 2, n = 3000}]} {
  loop.reduction [m, n] reduced 1 {
    %0 = loop.load %x[d0*n + d1] : !loop.buffer<[m*n] x f32>
    %1 = loop.reduce max %0 : f32
    loop.store %1, %y[d0] : !loop.buffer<[m] x f32>
    %2 = loop.load %i[d0*n + d1] : !loop.buffer<[m*n] x i32>
    %3 = loop.reduce min %2 : i32
    loop.store %3, %z[d0] : !loop.buffer<[m] x i32>
  }
}

// CHECK: ok arg_max_rows
loop.kernel @arg_max_rows(%x: !loop.buffer<[m*n] x f32>, %y: !loop.buffer<[m] x i64>, %z: !loop.buffer<[m] x i64>)
    attributes {symbols = ["m", "n"], parallel = 1 : i64, arguments_written = array<i64: 1, 2>, test.nan,
                test.symbols = [{m = 7, n = 1}, {m = 20, n = 5}, {m = 9, n = 77}, {m = 2, n = 500}]} {
  loop.reduction [m, n] reduced 1 {
    %0 = loop.load %x[d0*n + d1] : !loop.buffer<[m*n] x f32>
    %1 = loop.arg_reduce max %0, false : f32
    %2 = loop.arg_reduce min %0, true : f32
    loop.store %1, %y[d0] : !loop.buffer<[m] x i64>
    loop.store %2, %z[d0] : !loop.buffer<[m] x i64>
  }
}

// CHECK: ok arg_min_columns
loop.kernel @arg_min_columns(%x: !loop.buffer<[m*n] x i32>, %y: !loop.buffer<[n] x i64>)
    attributes {symbols = ["m", "n"], parallel = 1 : i64, arguments_written = array<i64: 1>,
                test.ranges = [[0, 4]], test.symbols = [{m = 1, n = 3}, {m = 9, n = 77}]} {
  loop.reduction [n, m] reduced 1 {
    %0 = loop.load %x[d1*n + d0] : !loop.buffer<[m*n] x i32>
    %1 = loop.arg_reduce min %0, true : i32
    loop.store %1, %y[d0] : !loop.buffer<[n] x i64>
  }
}

// Max pooling 3x3, stride 2, padding 1, channels last.
// CHECK: ok pool_channels_last
loop.kernel @pool_channels_last(%x: !loop.buffer<[h*h*24] x f32>, %y: !loop.buffer<[floordiv(h+1, 2)*floordiv(h+1, 2)*24] x f32>)
    attributes {symbols = ["h"], parallel = 3 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{h = 2}, {h = 7}, {h = 8}]} {
  loop.reduction [floordiv(h+1, 2), floordiv(h+1, 2), 24, 3, 3] reduced 2 {
    %low = arith.constant 0xFF800000 : f32
    %0 = loop.masked [d0*2 + d3 - 1, h - d0*2 - d3, d1*2 + d4 - 1, h - d1*2 - d4] else %low {
      %1 = loop.load %x[(d0*2 + d3 - 1)*h*24 + (d1*2 + d4 - 1)*24 + d2] : !loop.buffer<[h*h*24] x f32>
      loop.yield %1 : f32
    } : f32
    %2 = loop.reduce max %0 : f32
    loop.store %2, %y[d0*floordiv(h+1, 2)*24 + d1*24 + d2] : !loop.buffer<[floordiv(h+1, 2)*floordiv(h+1, 2)*24] x f32>
  }
}

// The same with rows of pixels last: the dim of stride 2 carries the lanes, if any.
// CHECK: ok pool_channels_first
loop.kernel @pool_channels_first(%x: !loop.buffer<[3*20*20] x f32>, %y: !loop.buffer<[3*10*10] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 1>} {
  loop.reduction [3, 10, 10, 3, 3] reduced 2 {
    %low = arith.constant 0xFF800000 : f32
    %0 = loop.masked [d1*2 + d3 - 1, 20 - d1*2 - d3, d2*2 + d4 - 1, 20 - d2*2 - d4] else %low {
      %1 = loop.load %x[d0*400 + (d1*2 + d3 - 1)*20 + d2*2 + d4 - 1] : !loop.buffer<[3*20*20] x f32>
      loop.yield %1 : f32
    } : f32
    %2 = loop.reduce max %0 : f32
    loop.store %2, %y[d0*100 + d1*10 + d2] : !loop.buffer<[3*10*10] x f32>
  }
}

// CHECK: ok mean_over_middle
loop.kernel @mean_over_middle(%x: !loop.buffer<[2*49*40] x f32>, %y: !loop.buffer<[2*40] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.reduction [2, 40, 49] reduced 1 {
    %0 = loop.load %x[d0*1960 + d2*40 + d1] : !loop.buffer<[2*49*40] x f32>
    %1 = loop.reduce sum %0 : f32
    %n = arith.constant 49.0 : f32
    %2 = arith.divf %1, %n : f32
    loop.store %2, %y[d0*40 + d1] : !loop.buffer<[2*40] x f32>
  }
}

// CHECK: ok any_all
loop.kernel @any_all(%x: !loop.buffer<[4*n] x i1>, %y: !loop.buffer<[4] x i1>, %z: !loop.buffer<[4] x i1>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1, 2>,
                test.symbols = [{n = 1}, {n = 3}, {n = 150}]} {
  loop.reduction [4, n] reduced 1 {
    %0 = loop.load %x[d0*n + d1] : !loop.buffer<[4*n] x i1>
    %1 = loop.reduce any %0 : i1
    %2 = loop.reduce all %0 : i1
    loop.store %1, %y[d0] : !loop.buffer<[4] x i1>
    loop.store %2, %z[d0] : !loop.buffer<[4] x i1>
  }
}

// CHECK: ok whole_sum_two_dims
loop.kernel @whole_sum_two_dims(%x: !loop.buffer<[m*n] x f32>, %y: !loop.buffer<[1] x f32>)
    attributes {symbols = ["m", "n"], parallel = 0 : i64, arguments_written = array<i64: 1>, test.tolerance = 1.0e-5,
                test.symbols = [{m = 3, n = 7}, {m = 50, n = 40}]} {
  loop.reduction [m, n] reduced 2 {
    %0 = loop.load %x[d0*n + d1] : !loop.buffer<[m*n] x f32>
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %y[0] : !loop.buffer<[1] x f32>
  }
}
