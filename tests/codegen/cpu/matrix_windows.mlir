// What matrix registers read of windows over images, in copies that a task makes before its products.
// RUN: ptc-kernel %s --level=x86-64-v4-amx --emit=llvm | FileCheck %s

// Windows that overlap read their pixels, with the border, from one copy: a pixel's 64 channels are a row of a register.
// CHECK-LABEL: define {{.*}} @overlapping
// CHECK:       load <64 x i8>
// CHECK:       store <64 x i8>
// CHECK-NOT:   store <64 x i8>
// CHECK:       call void @llvm.x86.tdpbusd(i8 3, i8 5, i8 7)
// CHECK-NOT:   store <64 x i8>
// CHECK:       ret i32
loop.kernel @overlapping(%x: !loop.buffer<[28*28*64] x i8>, %w: !loop.buffer<[2*144*64] x i8>, %y: !loop.buffer<[28*28*32] x i32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [28, 28, 32, 3, 3, 64] batch 0 m 2 n 1 k 3 lhs {
    %o = arith.constant 7 : i8
    %0 = loop.masked [d0 + d3 - 1, 28 - d0 - d3, d1 + d4 - 1, 28 - d1 - d4] else %o {
      %2 = loop.load %x[(d0 + d3 - 1)*1792 + (d1 + d4 - 1)*64 + d5] : !loop.buffer<[28*28*64] x i8>
      loop.yield %2 : i8
    } : i8
    %1 = arith.extui %0 : i8 to i32
    loop.yield %1 : i32
  } rhs {
    %0 = loop.panels %w {group = 4 : i64} : !loop.buffer<[2*144*64] x i8> -> i8
    %1 = arith.extsi %0 : i8 to i32
    loop.yield %1 : i32
  } epilogue {
  ^bb0(%acc: i32):
    loop.store %acc, %y[d0*896 + d1*32 + d2] : !loop.buffer<[28*28*32] x i32>
  }
}

// Windows that step over pixels have rows of their own: 9 pixels of 64 channels are 9 steps of k.
// CHECK-LABEL: define {{.*}} @striding
// CHECK-COUNT-9: store <64 x i8>
// CHECK:       call void @llvm.x86.tdpbusd(i8 1, i8 4, i8 7)
// CHECK-NOT:   store <64 x i8>
// CHECK:       ret i32
loop.kernel @striding(%x: !loop.buffer<[28*28*64] x i8>, %w: !loop.buffer<[2*144*64] x i8>, %y: !loop.buffer<[14*14*32] x i32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [14, 14, 32, 3, 3, 64] batch 0 m 2 n 1 k 3 lhs {
    %o = arith.constant 7 : i8
    %0 = loop.masked [2*d0 + d3 - 1, 28 - 2*d0 - d3, 2*d1 + d4 - 1, 28 - 2*d1 - d4] else %o {
      %2 = loop.load %x[(2*d0 + d3 - 1)*1792 + (2*d1 + d4 - 1)*64 + d5] : !loop.buffer<[28*28*64] x i8>
      loop.yield %2 : i8
    } : i8
    %1 = arith.extui %0 : i8 to i32
    loop.yield %1 : i32
  } rhs {
    %0 = loop.panels %w {group = 4 : i64} : !loop.buffer<[2*144*64] x i8> -> i8
    %1 = arith.extsi %0 : i8 to i32
    loop.yield %1 : i32
  } epilogue {
  ^bb0(%acc: i32):
    loop.store %acc, %y[d0*448 + d1*32 + d2] : !loop.buffer<[14*14*32] x i32>
  }
}
