// Tiles of rows whose windows meet no border read them a fixed step apart, in one loop over the window's columns and
// the channels; the others ask at each pixel.
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefix=HIDDEN

// Where neighbours share pixels from one step to the next, steps of short loops that LLVM unrolls hide which it is.
// HIDDEN-NOT:     call i64 asm
// HIDDEN:         define {{.*}} @channels_first
// HIDDEN-COUNT-6: call i64 asm "", "=r,0"
// HIDDEN-NOT:     call i64 asm

// 5 columns of 8 channels are 40 steps; at a border 8.
// CHECK-LABEL: define {{.*}} @few_channels
// CHECK-DAG:     icmp {{.*}} i64 {{.*}}, 40{{$|,}}
// CHECK-DAG:     icmp {{.*}} i64 {{.*}}, 8{{$|,}}
// CHECK:         ret i32
loop.kernel @few_channels(%x: !loop.buffer<[4*200*8] x f32>, %w: !loop.buffer<[15*8*16] x f32>, %y: !loop.buffer<[4*200*16] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [4, 200, 16, 3, 5, 8] batch 0 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d3 - 1, 4 - d0 - d3, d1 + d4 - 2, 201 - d1 - d4] else %zero {
      %1 = loop.load %x[((d0 + d3 - 1)*200 + d1 + d4 - 2)*8 + d5] : !loop.buffer<[4*200*8] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[15*8*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*200 + d1)*16 + d2] : !loop.buffer<[4*200*16] x f32>
  }
}

// 8 channels of 24: columns do not follow each other, but nothing is asked either.
// CHECK-LABEL:    define {{.*}} @slice
// CHECK-NOT:      icmp {{.*}} i64 {{.*}}, 40{{$|,}}
// CHECK-COUNT-54: call <16 x float> @llvm.fma
// CHECK-NOT:      @llvm.fma
// CHECK:          ret i32
loop.kernel @slice(%x: !loop.buffer<[4*200*24] x f32>, %w: !loop.buffer<[15*8*16] x f32>, %y: !loop.buffer<[4*200*16] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [4, 200, 16, 3, 5, 8] batch 0 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d3 - 1, 4 - d0 - d3, d1 + d4 - 2, 201 - d1 - d4] else %zero {
      %1 = loop.load %x[((d0 + d3 - 1)*200 + d1 + d4 - 2)*24 + d5 + 16] : !loop.buffer<[4*200*24] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[15*8*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*200 + d1)*16 + d2] : !loop.buffer<[4*200*16] x f32>
  }
}

// Lines about as short as a tile: nothing is joined.
// CHECK-LABEL: define {{.*}} @short_lines
// CHECK-NOT:     icmp {{.*}} i64 {{.*}}, 40{{$|,}}
// CHECK:         ret i32
loop.kernel @short_lines(%x: !loop.buffer<[20*20*8] x f32>, %w: !loop.buffer<[15*8*16] x f32>, %y: !loop.buffer<[20*20*16] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [20, 20, 16, 3, 5, 8] batch 0 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d3 - 1, 20 - d0 - d3, d1 + d4 - 2, 21 - d1 - d4] else %zero {
      %1 = loop.load %x[((d0 + d3 - 1)*20 + d1 + d4 - 2)*8 + d5] : !loop.buffer<[20*20*8] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[15*8*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*20 + d1)*16 + d2] : !loop.buffer<[20*20*16] x f32>
  }
}

// Channels first: tiles of 14 and 13 rows, three steps unrolled, that read the image where it is, and as many that read
// rows copied for tiles at a border.
// What later tiles read is fetched: 112 bytes of 14 pixels, as far on as the next line.
// CHECK-LABEL:     define {{.*}} @channels_first
// CHECK:           call void @llvm.prefetch{{.*}}(ptr {{.*}}, i32 0, i32 3, i32 1)
// CHECK-COUNT-162: call <16 x float> @llvm.fma
// CHECK-NOT:       @llvm.fma
// CHECK:           ret i32
loop.kernel @channels_first(%x: !loop.buffer<[3*20*200] x f32>, %w: !loop.buffer<[27*16] x f32>, %y: !loop.buffer<[10*100*16] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [10, 100, 16, 3, 3, 3] batch 0 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [2*d0 + d3 - 1, 2*d1 + d4 - 1] else %zero {
      %1 = loop.load %x[d5*4000 + (2*d0 + d3 - 1)*200 + 2*d1 + d4 - 1] : !loop.buffer<[3*20*200] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[27*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*100 + d1)*16 + d2] : !loop.buffer<[10*100*16] x f32>
  }
}
