// Convolutions to few channels: outputs that follow each other in a line are a row of the tile, whose vectors meet each
// pixel with the weights of all of them.
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=V3

// Four outputs are two vectors of 16, of which B's parts are loaded apart. At the first pixel the lower half of the first
// vector has products, and the other half keeps what it has.
// CHECK-LABEL: define {{.*}}@wide_window(
// CHECK:       load <8 x float>
// CHECK:       load <8 x float>
// CHECK:       shufflevector <16 x float> {{.*}}, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 24, i32 25,
// CHECK:       ret i32
// With 256 bits two outputs are a row; vectors without products are left out.
// V3-LABEL:    define {{.*}}@wide_window(
// V3-NOT:      <i32 0, i32 1, i32 2, i32 3, i32 12
// V3:          ret i32
loop.kernel @wide_window(%x: !loop.buffer<[9*64*8] x f32>, %w: !loop.buffer<[117*8*16] x f32>, %b: !loop.buffer<[8] x f32>, %y: !loop.buffer<[9*64*8] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 3>} {
  loop.contraction [9, 64, 8, 3, 39, 8] batch 0 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d3 - 1, 9 - d0 - d3, d1 + d4 - 19, 82 - d1 - d4] else %zero {
      %1 = loop.load %x[((d0 + d3 - 1)*64 + d1 + d4 - 19)*8 + d5] : !loop.buffer<[9*64*8] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[117*8*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    %0 = loop.load %b[d2] : !loop.buffer<[8] x f32>
    %1 = arith.addf %acc, %0 : f32
    loop.store %1, %y[(d0*64 + d1)*8 + d2] : !loop.buffer<[9*64*8] x f32>
  }
}

// Two outputs of six columns, two pixels apart, of lines that are long enough for tiles without a border; sums that
// wait for a long epilogue.
// CHECK-LABEL: define {{.*}}@strided(
// CHECK:       <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 24, i32 25,
// CHECK:       ret i32
loop.kernel @strided(%x: !loop.buffer<[5*400*16] x f32>, %w: !loop.buffer<[15*16*16] x f32>, %y: !loop.buffer<[5*198*6] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [5, 198, 6, 3, 7, 16] batch 0 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d3 - 1, 5 - d0 - d3, 2*d1 + d4 - 2, 401 - 2*d1 - d4] else %zero {
      %1 = loop.load %x[((d0 + d3 - 1)*400 + 2*d1 + d4 - 2)*16 + d5] : !loop.buffer<[5*400*16] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[15*16*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    %0 = math.tanh %acc : f32
    %1 = math.erf %0 : f32
    loop.store %1, %y[(d0*198 + d1)*6 + d2] : !loop.buffer<[5*198*6] x f32>
  }
}

// A signal without a border, in one loop over k, for any number of signals.
// CHECK-LABEL: define {{.*}}@signals(
// CHECK:       <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 24, i32 25,
// CHECK:       ret i32
loop.kernel @signals(%x: !loop.buffer<[s0*1116] x f32>, %w: !loop.buffer<[128*16] x f32>, %y: !loop.buffer<[s0*264*8] x f32>)
    attributes {symbols = ["s0"], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [s0, 264, 8, 64] batch 0 m 2 n 1 k 1 lhs {
    %0 = loop.load %x[d0*1116 + 4*d1 + d3] : !loop.buffer<[s0*1116] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[128*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*264 + d1)*8 + d2] : !loop.buffer<[s0*264*8] x f32>
  }
}

// A line of which no number of outputs is a part; a window of one pixel, which two outputs do not share.
// CHECK-LABEL: define {{.*}}@odd_line(
// CHECK-NOT:   <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 24, i32 25,
// CHECK:       ret i32
loop.kernel @odd_line(%x: !loop.buffer<[9*65*8] x f32>, %w: !loop.buffer<[9*8*16] x f32>, %y: !loop.buffer<[9*65*8] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [9, 65, 8, 9, 8] batch 0 m 2 n 1 k 2 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d1 + d3 - 4, 68 - d1 - d3] else %zero {
      %1 = loop.load %x[(d0*65 + d1 + d3 - 4)*8 + d4] : !loop.buffer<[9*65*8] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[9*8*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*65 + d1)*8 + d2] : !loop.buffer<[9*65*8] x f32>
  }
}
// CHECK-LABEL: define {{.*}}@one_pixel(
// CHECK-NOT:   <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 24, i32 25,
// CHECK:       ret i32
loop.kernel @one_pixel(%x: !loop.buffer<[512*8] x f32>, %w: !loop.buffer<[8*16] x f32>, %y: !loop.buffer<[512*8] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [512, 8, 8] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %x[d0*8 + d2] : !loop.buffer<[512*8] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[8*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*8 + d1] : !loop.buffer<[512*8] x f32>
  }
}
