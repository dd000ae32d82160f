// Where no instruction multiplies four bytes, columns of which many pairs leave 16 bits are products of 16-bit integers
// (tests/unit/CpuContractionBytesTest.cpp runs them): the pairs of the first groups are counted, the task's rows are
// widened once, in words of two, and the columns by shifts, before weights are put aside for the other columns.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=asm | FileCheck %s --check-prefix=V3
// RUN: ptc-kernel %s --level=x86-64-v4-vnni-bf16 --emit=asm | FileCheck %s --check-prefix=VNNI

// V3-LABEL: rows:
// V3:         popcnt
// V3:         vpmovzxbw
// V3:         jl
// V3:         vpsllw $8
// V3-NEXT:    vpsraw $8
// V3-NEXT:    vpsraw $8
// V3:         jl
// V3:         tzcnt
// V3:         vpmaddwd
// VNNI-LABEL: rows:
// VNNI-NOT:   popcnt
// VNNI-NOT:   vpmovzxbw
// VNNI-NOT:   vpmaddwd
// VNNI:       vpdpbusd
loop.kernel @rows(%x: !loop.buffer<[66*132] x i8>, %w: !loop.buffer<[4*132*16] x i8>, %y: !loop.buffer<[66*64] x i32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [66, 64, 132] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %x[d0*132 + d2] : !loop.buffer<[66*132] x i8>
    %1 = arith.extui %0 : i8 to i32
    loop.yield %1 : i32
  } rhs {
    %0 = loop.panels %w {group = 4 : i64} : !loop.buffer<[4*132*16] x i8> -> i8
    %1 = arith.extsi %0 : i8 to i32
    loop.yield %1 : i32
  } epilogue {
  ^bb0(%acc: i32):
    loop.store %acc, %y[d0*64 + d1] : !loop.buffer<[66*64] x i32>
  }
}
