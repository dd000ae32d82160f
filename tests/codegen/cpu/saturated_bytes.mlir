// Sums that become bytes of 0 to 255 (-128 to 127) are narrowed in pairs of vectors, by instructions that saturate: what
// they do not do is to cut off numbers that are no 32-bit integers, above the upper bound. Other bounds stay.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=asm | FileCheck %s

// CHECK-LABEL: unsigned:
// CHECK-NOT: vmaxps
// CHECK: vminps
// CHECK: vminps
// CHECK: vcvtps2dq
// CHECK: vpackssdw
// CHECK: vpackuswb
// CHECK: vmovdqu %xmm
// CHECK-NOT: vmaxps
loop.kernel @unsigned(%x: !loop.buffer<[320*128] x i8>, %w: !loop.buffer<[4*128*16] x i8>, %s: !loop.buffer<[64] x f32>, %y: !loop.buffer<[320*64] x i8>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 3>} {
  loop.contraction [320, 64, 128] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %x[d0*128 + d2] : !loop.buffer<[320*128] x i8>
    %1 = arith.extui %0 : i8 to i32
    loop.yield %1 : i32
  } rhs {
    %0 = loop.panels %w {group = 4 : i64} : !loop.buffer<[4*128*16] x i8> -> i8
    %1 = arith.extsi %0 : i8 to i32
    loop.yield %1 : i32
  } epilogue {
  ^bb0(%acc: i32):
    %0 = arith.sitofp %acc : i32 to f32
    %1 = loop.load %s[d1] : !loop.buffer<[64] x f32>
    %2 = arith.mulf %0, %1 : f32
    %low = arith.constant 0.0 : f32
    %high = arith.constant 255.0 : f32
    %3 = arith.cmpf ogt, %2, %low : f32
    %4 = arith.select %3, %2, %low : f32
    %5 = arith.cmpf olt, %4, %high : f32
    %6 = arith.select %5, %4, %high : f32
    %7 = math.roundeven %6 : f32
    %8 = arith.fptosi %7 : f32 to i32
    %9 = arith.trunci %8 : i32 to i8
    loop.store %9, %y[d0*64 + d1] : !loop.buffer<[320*64] x i8>
  }
}

// CHECK-LABEL: signed:
// CHECK-NOT: vmaxps
// CHECK: vpackssdw
// CHECK: vpacksswb
// CHECK-NOT: vmaxps
loop.kernel @signed(%x: !loop.buffer<[4096] x f32>, %y: !loop.buffer<[4096] x i8>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [4096] {
    %0 = loop.load %x[d0] : !loop.buffer<[4096] x f32>
    %low = arith.constant -128.0 : f32
    %high = arith.constant 127.0 : f32
    %1 = arith.cmpf ogt, %0, %low : f32
    %2 = arith.select %1, %0, %low : f32
    %3 = arith.cmpf olt, %2, %high : f32
    %4 = arith.select %3, %2, %high : f32
    %5 = math.roundeven %4 : f32
    %6 = arith.fptosi %5 : f32 to i32
    %7 = arith.trunci %6 : i32 to i8
    loop.store %7, %y[d0] : !loop.buffer<[4096] x i8>
  }
}

// CHECK-LABEL: narrower:
// CHECK: vmaxps
loop.kernel @narrower(%x: !loop.buffer<[4096] x f32>, %y: !loop.buffer<[4096] x i8>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [4096] {
    %0 = loop.load %x[d0] : !loop.buffer<[4096] x f32>
    %low = arith.constant -100.0 : f32
    %high = arith.constant 127.0 : f32
    %1 = arith.cmpf ogt, %0, %low : f32
    %2 = arith.select %1, %0, %low : f32
    %3 = arith.cmpf olt, %2, %high : f32
    %4 = arith.select %3, %2, %high : f32
    %5 = math.roundeven %4 : f32
    %6 = arith.fptosi %5 : f32 to i32
    %7 = arith.trunci %6 : i32 to i8
    loop.store %7, %y[d0] : !loop.buffer<[4096] x i8>
  }
}
