// RUN: ptc-kernel %s --check | FileCheck %s
// CHECK-NOT: FAIL

// Long rows, most of which is chosen: the chosen points are kept in order of where they begin. Bounds of all kinds.
// CHECK: ok apart
loop.kernel @apart(%x: !loop.buffer<[2*m*n] x f32>, %y: !loop.buffer<[m*n] x i1>)
    attributes {symbols = ["m", "n"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.nan,
                test.symbols = [{m = 1, n = 1}, {m = 2, n = 600}, {m = 1, n = 1700}]} {
  loop.greedy [m, n] candidate {
  ^bb0(%count: i64):
    %0 = arith.constant true
    loop.yield %0 : i1
  } conflict {
  ^bb0(%other: i64):
    %zero = arith.constant 0.0 : f32
    %scale = arith.constant 1024.0 : f32
    %half = arith.constant 0.1 : f32
    %at0 = loop.load %x[2*n*d0 + 2*d1] : !loop.buffer<[2*m*n] x f32>
    %long0 = loop.load %x[2*n*d0 + 2*d1 + 1] : !loop.buffer<[2*m*n] x f32>
    %at1 = loop.load %x[2*n*d0 + 2*v$0](%other) : !loop.buffer<[2*m*n] x f32>
    %long1 = loop.load %x[2*n*d0 + 2*v$0 + 1](%other) : !loop.buffer<[2*m*n] x f32>
    %from0 = arith.mulf %at0, %scale : f32
    %from1 = arith.mulf %at1, %scale : f32
    %to0 = arith.addf %from0, %long0 : f32
    %to1 = arith.addf %from1, %long1 : f32
    %isless = arith.cmpf olt, %to0, %to1 : f32
    %to = arith.select %isless, %to0, %to1 : f32
    %ismore = arith.cmpf ogt, %from0, %from1 : f32
    %from = arith.select %ismore, %from0, %from1 : f32
    %both = arith.subf %to, %from : f32
    %sum = arith.addf %long0, %long1 : f32
    %part = arith.divf %both, %sum : f32
    %0 = arith.cmpf ogt, %part, %half : f32
    %1 = arith.cmpf ogt, %both, %zero : f32
    %2 = arith.andi %0, %1 : i1
    loop.yield %2 : i1
  } body {
  ^bb0(%chosen: i1):
    loop.store %chosen, %y[n*d0 + d1] : !loop.buffer<[m*n] x i1>
  }
}

// The same said otherwise, of wide intervals without other conditions, in f64.
// CHECK: ok other_words
loop.kernel @other_words(%x: !loop.buffer<[n] x f64>, %k: !loop.buffer<[n] x i32>, %y: !loop.buffer<[n] x i1>)
    attributes {symbols = ["n"], parallel = 0 : i64, arguments_written = array<i64: 2>, test.nan,
                test.ranges = [[0, 0], [0, 500], [0, 0]], test.symbols = [{n = 40}, {n = 1500}]} {
  loop.greedy [n] candidate {
  ^bb0(%count: i64):
    %0 = arith.constant true
    loop.yield %0 : i1
  } conflict {
  ^bb0(%other: i64):
    %zero = arith.constant 0.0 : f64
    %long = arith.constant 0.5 : f64
    %0 = loop.load %x[d0] : !loop.buffer<[n] x f64>
    %1 = loop.load %x[v$0](%other) : !loop.buffer<[n] x f64>
    %kind0 = loop.load %k[d0] : !loop.buffer<[n] x i32>
    %kind1 = loop.load %k[v$0](%other) : !loop.buffer<[n] x i32>
    %end0 = arith.addf %0, %long : f64
    %end1 = arith.addf %1, %long : f64
    %2 = arith.cmpf ogt, %end1, %end0 : f64
    %end = arith.select %2, %end0, %end1 : f64
    %3 = arith.cmpf ule, %1, %0 : f64
    %start = arith.select %3, %0, %1 : f64
    %4 = arith.subf %end, %start : f64
    %5 = arith.cmpf olt, %zero, %4 : f64
    %6 = arith.cmpi eq, %kind0, %kind1 : i32
    %7 = arith.andi %5, %6 : i1
    loop.yield %7 : i1
  } body {
  ^bb0(%chosen: i1):
    loop.store %chosen, %y[d0] : !loop.buffer<[n] x i1>
  }
}
