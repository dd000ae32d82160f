// Runs that are read in turns (channel shuffles, nearest upsampling) are short vectors of each, merged.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=OK
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefix=WIDE
// OK-NOT: FAIL

// The rest of 116 channels under a mask, which each run has its lanes of.
// OK:            ok two_runs
// CHECK-LABEL:   define {{.*}} @two_runs
// CHECK-NOT:     gather
// CHECK-COUNT-2: load <4 x float>
// CHECK:         shufflevector <4 x float> {{.*}} <8 x i32> <i32 0, i32 4, i32 1, i32 5, i32 2, i32 6, i32 3, i32 7>
// CHECK-NOT:     gather
// CHECK:         ret i32
// WIDE-LABEL:    define {{.*}} @two_runs
// WIDE-NOT:      gather
// WIDE:          ret i32
loop.kernel @two_runs(%x: !loop.buffer<[14*232] x f32>, %y: !loop.buffer<[14*116] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [14, 116] {
    %0 = loop.load %x[232*d0 + floordiv(d1, 2) + 58*mod(d1, 2)] : !loop.buffer<[14*232] x f32>
    loop.store %0, %y[116*d0 + d1] : !loop.buffer<[14*116] x f32>
  }
}

// OK:            ok four_runs
// CHECK-LABEL:   define {{.*}} @four_runs
// CHECK-NOT:     gather
// CHECK-COUNT-4: load <2 x float>
// CHECK-NOT:     gather
// CHECK:         ret i32
// WIDE-LABEL:    define {{.*}} @four_runs
// WIDE-NOT:      gather
// WIDE:          ret i32
loop.kernel @four_runs(%x: !loop.buffer<[14*112] x f32>, %y: !loop.buffer<[14*112] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [14, 112] {
    %0 = loop.load %x[112*d0 + floordiv(d1, 4) + 28*mod(d1, 4)] : !loop.buffer<[14*112] x f32>
    loop.store %0, %y[112*d0 + d1] : !loop.buffer<[14*112] x f32>
  }
}

// Both runs are one: each element twice.
// OK:            ok repeated
// CHECK-LABEL:   define {{.*}} @repeated
// CHECK-NOT:     gather
// CHECK:         ret i32
loop.kernel @repeated(%x: !loop.buffer<[n] x f32>, %y: !loop.buffer<[2*n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.symbols = [{n = 1}, {n = 75}]} {
  loop.pointwise [2*n] {
    %0 = loop.load %x[floordiv(d0, 2)] : !loop.buffer<[n] x f32>
    loop.store %0, %y[d0] : !loop.buffer<[2*n] x f32>
  }
}

// A depthwise convolution of shuffled channels.
// OK:            ok window
// CHECK-LABEL:   define {{.*}} @window
// CHECK-NOT:     gather
// CHECK:         ret i32
loop.kernel @window(%x: !loop.buffer<[28*28*60] x f32>, %w: !loop.buffer<[9*60] x f32>, %y: !loop.buffer<[14*14*60] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>} {
  loop.reduction [14, 14, 60, 3, 3] reduced 2 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [2*d0 + d3 - 1, 2*d1 + d4 - 1] else %zero {
      %3 = loop.load %x[60*(28*(2*d0 + d3 - 1) + 2*d1 + d4 - 1) + floordiv(d2, 2) + 30*mod(d2, 2)] : !loop.buffer<[28*28*60] x f32>
      loop.yield %3 : f32
    } : f32
    %1 = loop.load %w[d2 + 180*d3 + 60*d4] : !loop.buffer<[9*60] x f32>
    %2 = arith.mulf %0, %1 : f32
    %sum = loop.reduce sum %2 : f32
    loop.store %sum, %y[840*d0 + 60*d1 + d2] : !loop.buffer<[14*14*60] x f32>
  }
}

// Three runs are no power of two: nothing is merged.
// OK:            ok three_runs
// CHECK-LABEL:   define {{.*}} @three_runs
// CHECK-NOT:     shufflevector
// CHECK:         ret i32
loop.kernel @three_runs(%x: !loop.buffer<[60] x f32>, %y: !loop.buffer<[60] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [60] {
    %0 = loop.load %x[floordiv(d0, 3) + 20*mod(d0, 3)] : !loop.buffer<[60] x f32>
    loop.store %0, %y[d0] : !loop.buffer<[60] x f32>
  }
}

// Rows that repeat, of whole vectors: they are read as such, and what is repeated for a whole vector is one element.
// OK:            ok repeated_rows
// CHECK-LABEL:   define {{.*}} @repeated_rows
// CHECK-NOT:     insertelement <8 x float> {{.*}}, i64 7
// CHECK:         load <8 x float>
// CHECK:         ret i32
// WIDE-LABEL:    define {{.*}} @repeated_rows
// WIDE:          load <8 x float>
// WIDE:          ret i32
loop.kernel @repeated_rows(%x: !loop.buffer<[56] x f32>, %z: !loop.buffer<[19] x f32>, %y: !loop.buffer<[5*456] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>} {
  loop.pointwise [5, 456] {
    %0 = loop.load %x[mod(d1, 56)] : !loop.buffer<[56] x f32>
    %1 = loop.load %z[floordiv(d1, 24)] : !loop.buffer<[19] x f32>
    %2 = arith.addf %0, %1 : f32
    loop.store %2, %y[456*d0 + d1] : !loop.buffer<[5*456] x f32>
  }
}
