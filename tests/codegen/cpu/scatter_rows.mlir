// An index is read and checked once for all short rows of a point, not for each of them.
// RUN: ptc-kernel %s --check | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefix=CODE

// CHECK: ok scatter_rows
// CODE-LABEL:   define {{.*}} @scatter_rows
// CODE-COUNT-1: icmp ugt i64 %{{[0-9]+}}, 7
// CODE-NOT:     icmp ugt i64 %{{[0-9]+}}, 7
// CODE:         ret i32
loop.kernel @scatter_rows(%i: !loop.buffer<[n] x i64>, %w: !loop.buffer<[n*4] x f32>, %y: !loop.buffer<[8*64] x f32>)
    attributes {symbols = ["n"], parallel = 0 : i64, arguments_written = array<i64: 2>,
                test.ranges = [[0, 7]], test.symbols = [{n = 1}, {n = 30}]} {
  loop.scatter [n, 4, 16] independent 0 {
    %0 = loop.load %i[d0] : !loop.buffer<[n] x i64>
    %1 = loop.check_index %0 in 8
    %2 = loop.load %w[d0*4 + d1] : !loop.buffer<[n*4] x f32>
    loop.store %2, %y[v$0*64 + d1*16 + d2](%1) combine sum : !loop.buffer<[8*64] x f32>
  }
}
