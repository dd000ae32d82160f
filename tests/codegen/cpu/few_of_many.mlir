// RUN: ptc-kernel %s --check | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefixes=ALL,V4
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefixes=ALL,V3
// CHECK-NOT: FAIL

// Of a 16th of a row or less: the least of each of 64 groups in vectors, a bound, and vectors of keys that are compared
// with it. Keys of 32 bits at most are no wider; no table of counts where so few are sorted.
// CHECK: ok columns
// ALL-LABEL: define {{.*}}i32 @columns(
// V4: call <16 x i32> @llvm.smin.v16i32
// V3: call <8 x i32> @llvm.smin.v8i32
// ALL: icmp sle <32 x i32>
// ALL: bitcast <32 x i1> {{.*}} to i32
// ALL: ret i32
loop.kernel @columns(%x: !loop.buffer<[m*1000] x f32>, %y: !loop.buffer<[m*10] x f32>, %z: !loop.buffer<[m*10] x i64>)
    attributes {symbols = ["m"], parallel = 1 : i64, arguments_written = array<i64: 1, 2>, test.nan,
                test.symbols = [{m = 1}, {m = 3}]} {
  loop.sort [m, 1000] kept 10 true, false key {
    %0 = loop.load %x[d1*m + d0] : !loop.buffer<[m*1000] x f32>
    loop.yield %0 : f32
  } body {
  ^bb0(%v: f32, %i: i64):
    loop.store %v, %y[d1*m + d0] : !loop.buffer<[m*10] x f32>
    loop.store %i, %z[d1*m + d0] : !loop.buffer<[m*10] x i64>
  }
}

// One alone is the first key that equals the least.
// CHECK: ok first
// ALL-LABEL: define {{.*}}i32 @first(
// ALL: icmp eq <32 x i32>
// ALL-NOT: icmp sle <32 x i32>
// ALL: ret i32
loop.kernel @first(%x: !loop.buffer<[m*n] x f32>, %y: !loop.buffer<[m] x f32>, %z: !loop.buffer<[m] x i64>)
    attributes {symbols = ["m", "n"], parallel = 1 : i64, arguments_written = array<i64: 1, 2>, test.nan,
                test.symbols = [{m = 3, n = 255}, {m = 3, n = 256}, {m = 9, n = 1000}]} {
  loop.sort [m, n] kept 1 true, false key {
    %0 = loop.load %x[d0*n + d1] : !loop.buffer<[m*n] x f32>
    loop.yield %0 : f32
  } body {
  ^bb0(%v: f32, %i: i64):
    loop.store %v, %y[d0 + d1] : !loop.buffer<[m] x f32>
    loop.store %i, %z[d0 + d1] : !loop.buffer<[m] x i64>
  }
}

// Lengths about the limits of the choice, more groups than a table of counts pays for, rests of groups and of vectors.
// CHECK: ok lengths
loop.kernel @lengths(%x: !loop.buffer<[n] x f16>, %y: !loop.buffer<[k] x f16>, %z: !loop.buffer<[k] x i64>)
    attributes {symbols = ["n", "k"], parallel = 0 : i64, arguments_written = array<i64: 1, 2>, test.nan,
                test.symbols = [{n = 255, k = 15}, {n = 256, k = 16}, {n = 256, k = 17}, {n = 271, k = 16}, {n = 289, k = 1},
                                {n = 300, k = 0}, {n = 5003, k = 312}, {n = 5003, k = 313}, {n = 20001, k = 65}]} {
  loop.sort [n] kept k false, false key {
    %0 = loop.load %x[d0] : !loop.buffer<[n] x f16>
    loop.yield %0 : f16
  } body {
  ^bb0(%v: f16, %i: i64):
    loop.store %v, %y[d0] : !loop.buffer<[k] x f16>
    loop.store %i, %z[d0] : !loop.buffer<[k] x i64>
  }
}

// Rows in order, in which the least keys are neighbours: of either direction, and many equal to the bound.
// CHECK: ok rising
loop.kernel @rising(%x: !loop.buffer<[n] x i32>, %y: !loop.buffer<[20] x i64>, %z: !loop.buffer<[20] x i64>, %w: !loop.buffer<[20] x i64>)
    attributes {symbols = ["n"], parallel = 0 : i64, arguments_written = array<i64: 1, 2, 3>,
                test.ranges = [[0, 3]], test.symbols = [{n = 320}, {n = 4000}]} {
  loop.sort [n] kept 20 false, false key {
    %0 = loop.index d0
    loop.yield %0 : i64
  } body {
  ^bb0(%v: i64, %i: i64):
    loop.store %v, %y[d0] : !loop.buffer<[20] x i64>
  }
  loop.sort [n] kept 20 true, false key {
    %0 = loop.index d0
    loop.yield %0 : i64
  } body {
  ^bb0(%v: i64, %i: i64):
    loop.store %v, %z[d0] : !loop.buffer<[20] x i64>
  }
  loop.sort [n] kept 20 true, true key {
    %0 = loop.load %x[d0] : !loop.buffer<[n] x i32>
    loop.yield %0 : i32
  } body {
  ^bb0(%v: i32, %i: i64):
    loop.store %i, %w[d0] : !loop.buffer<[20] x i64>
  }
}
