// RUN: ptc-kernel %s --check | FileCheck %s
// CHECK-NOT: FAIL

// Borders of borders are minima and maxima of more than two.
// CHECK: ok folded
loop.kernel @folded(%x: !loop.buffer<[n] x f32>, %y: !loop.buffer<[n + 3] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 5}, {n = 33}]} {
  loop.pointwise [n + 3] {
    %0 = loop.load %x[max(0, min(n - 1, d0, -d0 + 2*n - 2))] : !loop.buffer<[n] x f32>
    loop.store %0, %y[d0] : !loop.buffer<[n + 3] x f32>
  }
}

// CHECK: ok lifted
loop.kernel @lifted(%x: !loop.buffer<[n + 3] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 5}, {n = 33}]} {
  loop.pointwise [n] {
    %0 = loop.load %x[max(1, d0 - 1, -d0 + 3)] : !loop.buffer<[n + 3] x f32>
    loop.store %0, %y[d0] : !loop.buffer<[n] x f32>
  }
}
