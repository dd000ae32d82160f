// Where a vector is all columns, outputs of a line share pixels: a step takes a channel of all that the tile's rows read
// in a line of the window, with as many rows of the weight.
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s

// 14 outputs by 3 columns of the window.
// CHECK-LABEL:    define {{.*}}@groups(
// CHECK-COUNT-42: call <16 x float> @llvm.fma
// CHECK-NOT:      @llvm.fma
// CHECK:          ret i32
loop.kernel @groups(%x: !loop.buffer<[5*28*32] x f32>, %w: !loop.buffer<[2*9*16*16] x f32>, %y: !loop.buffer<[5*28*32] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [2, 5, 28, 16, 3, 3, 16] batch 1 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d1 + d4 - 1, 5 - d1 - d4, d2 + d5 - 1, 28 - d2 - d5] else %zero {
      %1 = loop.load %x[((d1 + d4 - 1)*28 + d2 + d5 - 1)*32 + d0*16 + d6] : !loop.buffer<[5*28*32] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[2*9*16*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d1*28 + d2)*32 + d0*16 + d3] : !loop.buffer<[5*28*32] x f32>
  }
}

// Every second output of any number of images, with 12 columns: pixels of one output or two, in tiles of 9.
// CHECK-LABEL:    define {{.*}}@strided(
// CHECK-COUNT-45: call <16 x float> @llvm.fma
// CHECK-NOT:      @llvm.fma
// CHECK:          ret i32
loop.kernel @strided(%x: !loop.buffer<[s0*7*18*16] x f32>, %w: !loop.buffer<[10*16*16] x f32>, %y: !loop.buffer<[s0*7*9*12] x f32>)
    attributes {symbols = ["s0"], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [s0, 7, 9, 12, 2, 5, 16] batch 0 m 3 n 1 k 3 lhs {
    %zero = arith.constant 1.0 : f32
    %0 = loop.masked [d1 + d4 - 1, 2*d2 + d5 - 2, 19 - 2*d2 - d5] else %zero {
      %1 = loop.load %x[((d0*7 + d1 + d4 - 1)*18 + 2*d2 + d5 - 2)*16 + d6] : !loop.buffer<[s0*7*18*16] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[10*16*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[((d0*7 + d1)*9 + d2)*12 + d3] : !loop.buffer<[s0*7*9*12] x f32>
  }
}

// A dilated window, whose neighbours lie further apart than outputs do.
// CHECK-LABEL:    define {{.*}}@dilated(
// CHECK-COUNT-30: call <16 x float> @llvm.fma
// CHECK-NOT:      @llvm.fma
// CHECK:          ret i32
loop.kernel @dilated(%x: !loop.buffer<[20*20*16] x f32>, %w: !loop.buffer<[9*16*16] x f32>, %y: !loop.buffer<[20*20*16] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [20, 20, 16, 3, 3, 16] batch 0 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + 2*d3 - 2, 21 - d0 - 2*d3, d1 + 2*d4 - 2, 21 - d1 - 2*d4] else %zero {
      %1 = loop.load %x[((d0 + 2*d3 - 2)*20 + d1 + 2*d4 - 2)*16 + d5] : !loop.buffer<[20*20*16] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[9*16*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*20 + d1)*16 + d2] : !loop.buffer<[20*20*16] x f32>
  }
}

// A line that no tall tile divides: each row has pixels of its own.
// CHECK-LABEL:    define {{.*}}@odd_line(
// CHECK-COUNT-25: call <16 x float> @llvm.fma
// CHECK-NOT:      @llvm.fma
// CHECK:          ret i32
loop.kernel @odd_line(%x: !loop.buffer<[3*17*16] x f32>, %w: !loop.buffer<[9*16*16] x f32>, %y: !loop.buffer<[3*17*16] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [3, 17, 16, 3, 3, 16] batch 0 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d3 - 1, 3 - d0 - d3, d1 + d4 - 1, 17 - d1 - d4] else %zero {
      %1 = loop.load %x[((d0 + d3 - 1)*17 + d1 + d4 - 1)*16 + d5] : !loop.buffer<[3*17*16] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[9*16*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*17 + d1)*16 + d2] : !loop.buffer<[3*17*16] x f32>
  }
}
