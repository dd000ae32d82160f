// Few rows by weights of few bits: the rows become bytes in fixed point where an instruction multiplies bytes.
// RUN: ptc-kernel %s --level=x86-64-v4-vnni-bf16 --emit=llvm | FileCheck %s --check-prefixes=ALL,VNNI
// RUN: ptc-kernel %s --level=aarch64-i8mm-bf16 --emit=llvm | FileCheck %s --check-prefixes=ALL,I8MM
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefixes=ALL,V4

// A word of four panels: four digits by the even and by the odd numbers. Sums of a block are floats in the end.
// ALL-LABEL:      define {{.*}} @one_row
// VNNI:           shufflevector <32 x i8>
// VNNI-COUNT-128: vpdpbusd.512
// VNNI-NOT:       vpdpbusd.512
// VNNI:           sitofp <16 x i32>
// VNNI-NOT:       @llvm.x86.avx512.permvar
// I8MM:           usdot
// V4-NOT:         vpdpbusd
// V4:             @llvm.x86.avx512.permvar
// ALL:            ret i32
loop.kernel @one_row(%a: !loop.buffer<[2048] x f32>, %w: !loop.buffer<[2048*1024] x i8>, %s: !loop.buffer<[2048*64] x f32>,
                     %y: !loop.buffer<[2048] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 3>} {
  loop.contraction [1, 2048, 64, 32] batch 0 m 1 n 1 k 2 lhs {
    %0 = loop.load %a[d0*2048 + d2*32 + d3] : !loop.buffer<[2048] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w {bits = 4 : i64, group = 8 : i64} : !loop.buffer<[2048*1024] x i8> -> i8
    %1 = arith.uitofp %0 : i8 to f32
    %eight = arith.constant 8.0 : f32
    %2 = arith.subf %1, %eight : f32
    %3 = loop.panels %s row d2 : !loop.buffer<[2048*64] x f32> -> f32
    %4 = arith.mulf %2, %3 : f32
    loop.yield %4 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*2048 + d1] : !loop.buffer<[2048] x f32>
  }
}

// Three rows are multiplied as floats.
// ALL-LABEL: define {{.*}} @three_rows
// ALL-NOT:   {{vpdpbusd|usdot}}
// ALL:       ret i32
loop.kernel @three_rows(%a: !loop.buffer<[3*2048] x f32>, %w: !loop.buffer<[2048*32] x i8>, %s: !loop.buffer<[64*64] x f32>,
                        %y: !loop.buffer<[3*64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 3>} {
  loop.contraction [3, 64, 64, 32] batch 0 m 1 n 1 k 2 lhs {
    %0 = loop.load %a[d0*2048 + d2*32 + d3] : !loop.buffer<[3*2048] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w {bits = 4 : i64, group = 8 : i64} : !loop.buffer<[2048*32] x i8> -> i8
    %1 = arith.uitofp %0 : i8 to f32
    %2 = loop.panels %s row d2 : !loop.buffer<[64*64] x f32> -> f32
    %3 = arith.mulf %1, %2 : f32
    loop.yield %3 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*64 + d1] : !loop.buffer<[3*64] x f32>
  }
}

// Rows that a run tells: both, and a block's zero point times the sum of the row. Numbers with signs are moved up.
// ALL-LABEL: define {{.*}} @rows_of_run
// VNNI:      xor <64 x i8> {{.*}}, splat (i8 8)
// VNNI:      vpdpbusd.512
// V4-NOT:    vpdpbusd
// ALL:       ret i32
loop.kernel @rows_of_run(%a: !loop.buffer<[s0*2048] x f32>, %w: !loop.buffer<[2048*32] x i8>, %z: !loop.buffer<[64*32] x i8>,
                         %s: !loop.buffer<[64*64] x f32>, %y: !loop.buffer<[s0*64] x f32>)
    attributes {symbols = ["s0"], parallel = 0 : i64, arguments_written = array<i64: 4>} {
  loop.contraction [s0, 64, 32, 2, 32] batch 0 m 1 n 1 k 3 lhs {
    %0 = loop.load %a[d0*2048 + d2*64 + d3*32 + d4] : !loop.buffer<[s0*2048] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w {bits = 4 : i64, group = 8 : i64} : !loop.buffer<[2048*32] x i8> -> i4
    %1 = arith.sitofp %0 : i4 to f32
    %2 = loop.panels %z row d2 : !loop.buffer<[64*32] x i8> -> i8
    %at = loop.index d3
    %part = arith.trunci %at : i64 to i8
    %four = arith.constant 4 : i8
    %by = arith.muli %part, %four : i8
    %moved = arith.shrui %2, %by : i8
    %mask = arith.constant 7 : i8
    %3 = arith.andi %moved, %mask : i8
    %zero = arith.uitofp %3 : i8 to f32
    %4 = arith.subf %1, %zero : f32
    %5 = loop.panels %s row d2*2 + d3 : !loop.buffer<[64*64] x f32> -> f32
    %6 = arith.mulf %4, %5 : f32
    loop.yield %6 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*64 + d1] : !loop.buffer<[s0*64] x f32>
  }
}
