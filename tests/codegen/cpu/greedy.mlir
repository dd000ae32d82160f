// RUN: ptc-kernel %s --check | FileCheck %s
// CHECK-NOT: FAIL

// Intervals: a bound of each, two conditions on pairs and one that waits for them.
// CHECK: ok intervals
loop.kernel @intervals(%x: !loop.buffer<[2*m*n] x f32>, %y: !loop.buffer<[m*n] x i1>)
    attributes {symbols = ["m", "n"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.nan,
                test.symbols = [{m = 1, n = 1}, {m = 3, n = 50}, {m = 2, n = 64}, {m = 1, n = 700}]} {
  loop.greedy [m, n] candidate {
  ^bb0(%count: i64):
    %limit = arith.constant 400 : i64
    %0 = arith.cmpi slt, %count, %limit : i64
    loop.yield %0 : i1
  } conflict {
  ^bb0(%other: i64):
    %zero = arith.constant 0.0 : f32
    %scale = arith.constant 64.0 : f32
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
    %2 = arith.cmpf ogt, %long0, %zero : f32
    %3 = arith.cmpf ogt, %long1, %zero : f32
    %4 = arith.andi %0, %1 : i1
    %5 = arith.andi %4, %2 : i1
    %6 = arith.andi %5, %3 : i1
    loop.yield %6 : i1
  } body {
  ^bb0(%chosen: i1):
    loop.store %chosen, %y[n*d0 + d1] : !loop.buffer<[m*n] x i1>
  }
}

// The conflict of a pair is read, and depends on the position itself.
// CHECK: ok table
loop.kernel @table(%x: !loop.buffer<[n*n] x i32>, %y: !loop.buffer<[n] x i1>)
    attributes {symbols = ["n"], parallel = 0 : i64, arguments_written = array<i64: 1>,
                test.ranges = [[0, 40]], test.symbols = [{n = 1}, {n = 37}, {n = 150}]} {
  loop.greedy [n] candidate {
  ^bb0(%count: i64):
    %0 = arith.constant true
    loop.yield %0 : i1
  } conflict {
  ^bb0(%other: i64):
    %zero = arith.constant 0 : i32
    %0 = loop.load %x[n*d0 + v$0](%other) : !loop.buffer<[n*n] x i32>
    %1 = arith.cmpi eq, %0, %zero : i32
    %2 = loop.index d0
    %3 = arith.subi %2, %other : i64
    %far = arith.constant 30 : i64
    %4 = arith.cmpi slt, %3, %far : i64
    %5 = arith.andi %1, %4 : i1
    loop.yield %5 : i1
  } body {
  ^bb0(%chosen: i1):
    loop.store %chosen, %y[d0] : !loop.buffer<[n] x i1>
  }
}

// No condition on pairs: what matters is whether one of some kind was chosen.
// CHECK: ok kinds
loop.kernel @kinds(%x: !loop.buffer<[n] x i8>, %y: !loop.buffer<[n] x i1>)
    attributes {symbols = ["n"], parallel = 0 : i64, arguments_written = array<i64: 1>,
                test.ranges = [[0, 9]], test.symbols = [{n = 1}, {n = 37}, {n = 150}]} {
  loop.greedy [n] candidate {
  ^bb0(%count: i64):
    %0 = arith.constant true
    loop.yield %0 : i1
  } conflict {
  ^bb0(%other: i64):
    %four = arith.constant 4 : i8
    %0 = loop.load %x[d0] : !loop.buffer<[n] x i8>
    %1 = loop.load %x[v$0](%other) : !loop.buffer<[n] x i8>
    %2 = arith.cmpi slt, %0, %four : i8
    %3 = arith.cmpi eq, %1, %four : i8
    %4 = arith.andi %2, %3 : i1
    loop.yield %4 : i1
  } body {
  ^bb0(%chosen: i1):
    loop.store %chosen, %y[d0] : !loop.buffer<[n] x i1>
  }
}
