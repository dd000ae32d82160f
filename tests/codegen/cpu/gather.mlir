// RUN: ptc-kernel %s --check | FileCheck %s
// CHECK-NOT: FAIL

// CHECK: ok rows
loop.kernel @rows(%x: !loop.buffer<[30*width] x f32>, %i: !loop.buffer<[n] x i64>, %y: !loop.buffer<[n*width] x f32>)
    attributes {symbols = ["n", "width"], parallel = 2 : i64, arguments_written = array<i64: 2>,
                test.ranges = [[0, 0], [-30, 29]], test.symbols = [{n = 1, width = 1}, {n = 9, width = 50}]} {
  loop.pointwise [n, width] {
    %0 = loop.load %i[d0] : !loop.buffer<[n] x i64>
    %1 = loop.check_index %0 in 30 {loop.wraps}
    %2 = loop.load %x[v$0*width + d1](%1) : !loop.buffer<[30*width] x f32>
    loop.store %2, %y[d0*width + d1] : !loop.buffer<[n*width] x f32>
  }
}

// Rows of several vectors share their index, and what is computed from it; what varies along the row does not.
// CHECK: ok wide_rows
loop.kernel @wide_rows(%x: !loop.buffer<[30*64] x f32>, %i: !loop.buffer<[n] x i64>, %s: !loop.buffer<[n] x f32>,
                       %p: !loop.buffer<[64] x i64>, %y: !loop.buffer<[n*64] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 4>,
                test.ranges = [[0, 0], [-30, 29], [0, 0], [-30, 29]], test.symbols = [{n = 1}, {n = 9}]} {
  loop.pointwise [n, 64] {
    %0 = loop.load %i[d0] : !loop.buffer<[n] x i64>
    %1 = loop.check_index %0 in 30 {loop.wraps}
    %2 = loop.load %x[v$0*64 + d1](%1) : !loop.buffer<[30*64] x f32>
    %3 = loop.load %s[d0] : !loop.buffer<[n] x f32>
    %4 = arith.addf %3, %3 : f32
    %5 = arith.mulf %2, %4 : f32
    %6 = loop.load %p[d1] : !loop.buffer<[64] x i64>
    %7 = loop.check_index %6 in 30 {loop.wraps}
    %8 = loop.load %x[v$0*64 + d1](%7) : !loop.buffer<[30*64] x f32>
    %9 = arith.addf %5, %8 : f32
    loop.store %9, %y[d0*64 + d1] : !loop.buffer<[n*64] x f32>
  }
}

// CHECK: ok elements
loop.kernel @elements(%x: !loop.buffer<[k] x f32>, %i: !loop.buffer<[n] x i32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["k", "n"], parallel = 1 : i64, arguments_written = array<i64: 2>,
                test.ranges = [[0, 0], [-6, 5]], test.symbols = [{k = 6, n = 100}, {k = 7, n = 33}]} {
  loop.pointwise [n] {
    %0 = loop.load %i[d0] : !loop.buffer<[n] x i32>
    %e = arith.extsi %0 : i32 to i64
    %1 = loop.check_index %e in k {loop.wraps}
    %2 = loop.load %x[v$0](%1) : !loop.buffer<[k] x f32>
    loop.store %2, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// CHECK: ok out_of_range
loop.kernel @out_of_range(%x: !loop.buffer<[k] x f32>, %i: !loop.buffer<[n] x i64>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["k", "n"], parallel = 1 : i64, arguments_written = array<i64: 2>, test.fails,
                test.ranges = [[0, 0], [-9, 9]], test.symbols = [{k = 6, n = 100}]} {
  loop.pointwise [n] {
    %0 = loop.load %i[d0] : !loop.buffer<[n] x i64>
    %1 = loop.check_index %0 in k {loop.wraps}
    %2 = loop.load %x[v$0](%1) : !loop.buffer<[k] x f32>
    loop.store %2, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// What was normalised before is not wrapped a second time.
// CHECK: ok negative
loop.kernel @negative(%x: !loop.buffer<[k] x f32>, %i: !loop.buffer<[n] x i64>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["k", "n"], parallel = 1 : i64, arguments_written = array<i64: 2>, test.fails,
                test.ranges = [[0, 0], [-1, 5]], test.symbols = [{k = 6, n = 100}]} {
  loop.pointwise [n] {
    %0 = loop.load %i[d0] : !loop.buffer<[n] x i64>
    %1 = loop.check_index %0 in k
    %2 = loop.load %x[v$0](%1) : !loop.buffer<[k] x f32>
    loop.store %2, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// Duplicates meet: the last one wins, sums add up.
// CHECK: ok scatter_set
loop.kernel @scatter_set(%i: !loop.buffer<[n] x i64>, %u: !loop.buffer<[n*width] x f32>, %y: !loop.buffer<[8*width] x f32>)
    attributes {symbols = ["n", "width"], parallel = 0 : i64, arguments_written = array<i64: 2>,
                test.ranges = [[-8, 7]], test.symbols = [{n = 1, width = 1}, {n = 20, width = 37}]} {
  loop.scatter [n, width] independent 0 {
    %0 = loop.load %i[d0] : !loop.buffer<[n] x i64>
    %1 = loop.check_index %0 in 8 {loop.wraps}
    %2 = loop.load %u[d0*width + d1] : !loop.buffer<[n*width] x f32>
    loop.store %2, %y[v$0*width + d1](%1) : !loop.buffer<[8*width] x f32>
  }
}

// CHECK: ok scatter_add
loop.kernel @scatter_add(%i: !loop.buffer<[n] x i64>, %u: !loop.buffer<[n] x f32>, %y: !loop.buffer<[8] x f32>)
    attributes {symbols = ["n"], parallel = 0 : i64, arguments_written = array<i64: 2>,
                test.ranges = [[-8, 7]], test.symbols = [{n = 1}, {n = 100}]} {
  loop.scatter [n] independent 0 {
    %0 = loop.load %i[d0] : !loop.buffer<[n] x i64>
    %1 = loop.check_index %0 in 8 {loop.wraps}
    %2 = loop.load %u[d0] : !loop.buffer<[n] x f32>
    loop.store %2, %y[v$0](%1) combine sum : !loop.buffer<[8] x f32>
  }
}

// The slice dim is independent and shared: lanes run along it.
// CHECK: ok scatter_slices
loop.kernel @scatter_slices(%i: !loop.buffer<[n] x i64>, %u: !loop.buffer<[n*70] x f32>, %y: !loop.buffer<[8*70] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2>,
                test.ranges = [[-8, 7]], test.symbols = [{n = 1}, {n = 30}]} {
  loop.scatter [70, n] independent 1 {
    %0 = loop.load %i[d1] : !loop.buffer<[n] x i64>
    %1 = loop.check_index %0 in 8 {loop.wraps}
    %2 = loop.load %u[d1*70 + d0] : !loop.buffer<[n*70] x f32>
    loop.store %2, %y[v$0*70 + d0](%1) combine max : !loop.buffer<[8*70] x f32>
  }
}
