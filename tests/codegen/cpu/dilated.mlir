// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s

// Where all rows of a tile are padding, the products over the channels are left out: the last index of the innermost
// loop is chosen.
// CHECK-LABEL: define {{.*}} @dilated
// CHECK: %[[END:.*]] = select i1 {{.*}}, i64 0, i64 64
// CHECK: %[[KEPT:.*]] = freeze i64 %[[END]]
// CHECK: icmp slt i64 {{.*}}, %[[KEPT]]
loop.kernel @dilated(%x: !loop.buffer<[14*14*64] x f32>, %w: !loop.buffer<[9*64*32] x f32>, %y: !loop.buffer<[14*14*32] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [14, 14, 32, 3, 3, 64] batch 0 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + 12*d3 - 12, 25 - d0 - 12*d3, d1 + 12*d4 - 12, 25 - d1 - 12*d4] else %zero {
      %1 = loop.load %x[((d0 + 12*d3 - 12)*14 + d1 + 12*d4 - 12)*64 + d5] : !loop.buffer<[14*14*64] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[9*64*32] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*14 + d1)*32 + d2] : !loop.buffer<[14*14*32] x f32>
  }
}

// A value other than 0 counts.
// CHECK-LABEL: define {{.*}} @filled
// CHECK-NOT: select i1 {{.*}}, i64 0, i64 64
loop.kernel @filled(%x: !loop.buffer<[14*14*64] x f32>, %w: !loop.buffer<[9*64*32] x f32>, %y: !loop.buffer<[14*14*32] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [14, 14, 32, 3, 3, 64] batch 0 m 2 n 1 k 3 lhs {
    %one = arith.constant 1.0 : f32
    %0 = loop.masked [d0 + 12*d3 - 12, 25 - d0 - 12*d3, d1 + 12*d4 - 12, 25 - d1 - 12*d4] else %one {
      %1 = loop.load %x[((d0 + 12*d3 - 12)*14 + d1 + 12*d4 - 12)*64 + d5] : !loop.buffer<[14*14*64] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[9*64*32] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*14 + d1)*32 + d2] : !loop.buffer<[14*14*32] x f32>
  }
}
