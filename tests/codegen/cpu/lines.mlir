// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s

// Lines are cut into tiles alike: rows are the columns of the image, of which an element of the window sees all or none
// (17 rows, in two heights, each a line away from the next), and of a dilated window 12 rows, 4 and 12 (in tiles of 6
// and 4). What no row sees is left out.
// CHECK-LABEL: define {{.*}} @columns
// CHECK-COUNT-5: mul i64 {{.*}}, 13056
// CHECK:         select i1 {{.*}}, i64 0, i64 192
// CHECK:         select i1 {{.*}}, i64 0, i64 192
loop.kernel @columns(%x: !loop.buffer<[17*17*192] x f32>, %w: !loop.buffer<[7*192*64] x f32>, %y: !loop.buffer<[17*17*64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [17, 17, 64, 7, 192] batch 0 m 2 n 1 k 2 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d1 + d3 - 3, 19 - d1 - d3] else %zero {
      %1 = loop.load %x[3264*d0 + 192*d1 + 192*d3 + d4 - 576] : !loop.buffer<[17*17*192] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[7*192*64] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*17 + d1)*64 + d2] : !loop.buffer<[17*17*64] x f32>
  }
}

// Of a line the tiles of 6 rows begin at 0, 6, 16 and 22, that of 4 at 12.
// CHECK-LABEL: define {{.*}} @parts
// CHECK:         %[[A:.*]] = select i1 {{.*}}, i64 6, i64 0
// CHECK:         %[[B:.*]] = select i1 {{.*}}, i64 16, i64 %[[A]]
// CHECK:         select i1 {{.*}}, i64 22, i64 %[[B]]
// CHECK:         select i1 {{.*}}, i64 0, i64 64
// CHECK:         select i1 {{.*}}, i64 0, i64 64
loop.kernel @parts(%x: !loop.buffer<[28*28*64] x f32>, %w: !loop.buffer<[9*64*64] x f32>, %y: !loop.buffer<[28*28*64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [28, 28, 64, 3, 3, 64] batch 0 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + 12*d3 - 12, 39 - d0 - 12*d3, d1 + 12*d4 - 12, 39 - d1 - 12*d4] else %zero {
      %1 = loop.load %x[((d0 + 12*d3 - 12)*28 + d1 + 12*d4 - 12)*64 + d5] : !loop.buffer<[28*28*64] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[9*64*64] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    %positive = math.absf %acc : f32
    loop.store %positive, %y[(d0*28 + d1)*64 + d2] : !loop.buffer<[28*28*64] x f32>
  }
}

// A dim of the rows outside of which windows never lie is not moved, and little padding is left as it is.
// CHECK-LABEL: define {{.*}} @little
// CHECK-NOT:     select i1 {{.*}}, i64 0, i64 64
loop.kernel @little(%x: !loop.buffer<[56*56*64] x f32>, %w: !loop.buffer<[9*64*64] x f32>, %y: !loop.buffer<[56*56*64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [56, 56, 64, 3, 3, 64] batch 0 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d3 - 1, 56 - d0 - d3, d1 + d4 - 1, 56 - d1 - d4] else %zero {
      %1 = loop.load %x[((d0 + d3 - 1)*56 + d1 + d4 - 1)*64 + d5] : !loop.buffer<[56*56*64] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[9*64*64] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*56 + d1)*64 + d2] : !loop.buffer<[56*56*64] x f32>
  }
}
