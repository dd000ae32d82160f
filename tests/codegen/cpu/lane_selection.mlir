// The first few of many short rows, of which each is a lane: no work space, no branch. Of equal keys the first one stays in front.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=OK
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s
// OK-NOT: FAIL

// OK:          ok experts
// CHECK-LABEL: define {{.*}} @experts
// CHECK:       icmp slt <8 x i32>
// CHECK:       ret i32
loop.kernel @experts(%x: !loop.buffer<[m*16] x f32>, %y: !loop.buffer<[m*4] x f32>, %z: !loop.buffer<[m*4] x i64>)
    attributes {symbols = ["m"], parallel = 1 : i64, arguments_written = array<i64: 1, 2>, test.nan,
                test.symbols = [{m = 1}, {m = 8}, {m = 75}]} {
  loop.sort [m, 16] kept 4 true, false key {
    %0 = loop.load %x[d0*16 + d1] : !loop.buffer<[m*16] x f32>
    loop.yield %0 : f32
  } body {
  ^bb0(%v: f32, %i: i64):
    loop.store %v, %y[d0*4 + d1] : !loop.buffer<[m*4] x f32>
    loop.store %i, %z[d0*4 + d1] : !loop.buffer<[m*4] x i64>
  }
}

// Many equal keys; rows that lie beside each other.
// OK:          ok channels
// CHECK-LABEL: define {{.*}} @channels
// CHECK:       load <8 x i32>
// CHECK:       icmp slt <8 x i32>
// CHECK:       ret i32
loop.kernel @channels(%x: !loop.buffer<[2*21*50] x i32>, %y: !loop.buffer<[2*3*50] x i32>, %z: !loop.buffer<[2*3*50] x i64>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 1, 2>, test.ranges = [[-3, 3]]} {
  loop.sort [2, 50, 21] kept 3 false, false key {
    %0 = loop.load %x[1050*d0 + d1 + 50*d2] : !loop.buffer<[2*21*50] x i32>
    loop.yield %0 : i32
  } body {
  ^bb0(%v: i32, %i: i64):
    loop.store %v, %y[150*d0 + d1 + 50*d2] : !loop.buffer<[2*3*50] x i32>
    loop.store %i, %z[150*d0 + d1 + 50*d2] : !loop.buffer<[2*3*50] x i64>
  }
}

// All of a row, in 64 bits.
// OK:          ok doubles
// CHECK-LABEL: define {{.*}} @doubles
// CHECK:       icmp slt <4 x i64>
// CHECK:       ret i32
loop.kernel @doubles(%x: !loop.buffer<[30*5] x f64>, %z: !loop.buffer<[30*5] x i64>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>, test.nan} {
  loop.sort [30, 5] kept 5 true, false key {
    %0 = loop.load %x[5*d0 + d1] : !loop.buffer<[30*5] x f64>
    loop.yield %0 : f64
  } body {
  ^bb0(%v: f64, %i: i64):
    loop.store %i, %z[5*d0 + d1] : !loop.buffer<[30*5] x i64>
  }
}

// Nine places are more than stay in registers: rows are sorted.
// OK:          ok nine
// CHECK-LABEL: define {{.*}} @nine
// CHECK-NOT:   icmp slt <
// CHECK:       ret i32
loop.kernel @nine(%x: !loop.buffer<[30*20] x f32>, %y: !loop.buffer<[30*9] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.sort [30, 20] kept 9 true, false key {
    %0 = loop.load %x[20*d0 + d1] : !loop.buffer<[30*20] x f32>
    loop.yield %0 : f32
  } body {
  ^bb0(%v: f32, %i: i64):
    loop.store %v, %y[9*d0 + d1] : !loop.buffer<[30*9] x f32>
  }
}
