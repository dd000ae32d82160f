// Products of bytes of which no operand is a weight: the task packs the second one in words of four neighbours in k, by
// shifts where columns are neighbours in memory and through a transposition of words where terms are.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=asm | FileCheck %s --check-prefix=V3
// RUN: ptc-kernel %s --level=x86-64-v4-vnni-bf16 --emit=asm | FileCheck %s --check-prefix=VNNI

// V3-LABEL: rows:
// V3-NOT: vpmulld
// V3: vpmaddwd
// V3-NOT: vpmulld
// VNNI-LABEL: rows:
// VNNI: vpslld
// VNNI: vpdpbusd
loop.kernel @rows(%x: !loop.buffer<[64*256] x i8>, %w: !loop.buffer<[256*96] x i8>, %y: !loop.buffer<[64*96] x i32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [64, 96, 256] batch 0 m 1 n 1 k 1 lhs {
    %l = loop.load %x[d0*256 + d2] : !loop.buffer<[64*256] x i8>
    %1 = arith.extui %l : i8 to i32
    loop.yield %1 : i32
  } rhs {
    %l = loop.load %w[d2*96 + d1] : !loop.buffer<[256*96] x i8>
    %1 = arith.extsi %l : i8 to i32
    loop.yield %1 : i32
  } epilogue {
  ^bb0(%acc: i32):
    loop.store %acc, %y[d0*96 + d1] : !loop.buffer<[64*96] x i32>
  }
}

// V3-LABEL: columns:
// V3-NOT: vpmulld
// V3: vpunpcklqdq
// V3-NOT: vpmulld
// VNNI-LABEL: columns:
// VNNI-NOT: vpslld
// VNNI: vpdpbusd
loop.kernel @columns(%x: !loop.buffer<[64*256] x i8>, %w: !loop.buffer<[96*256] x i8>, %y: !loop.buffer<[64*96] x i32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [64, 96, 256] batch 0 m 1 n 1 k 1 lhs {
    %l = loop.load %x[d0*256 + d2] : !loop.buffer<[64*256] x i8>
    %1 = arith.extui %l : i8 to i32
    loop.yield %1 : i32
  } rhs {
    %l = loop.load %w[d1*256 + d2] : !loop.buffer<[96*256] x i8>
    %1 = arith.extsi %l : i8 to i32
    loop.yield %1 : i32
  } epilogue {
  ^bb0(%acc: i32):
    loop.store %acc, %y[d0*96 + d1] : !loop.buffer<[64*96] x i32>
  }
}

// Sums of no whole words stay products of integers.
// V3-LABEL: ragged:
// V3: vpmulld
// VNNI-LABEL: ragged:
// VNNI-NOT: vpdpbusd
// VNNI: vpmulld
// VNNI-NOT: vpdpbusd
loop.kernel @ragged(%x: !loop.buffer<[64*254] x i8>, %w: !loop.buffer<[254*96] x i8>, %y: !loop.buffer<[64*96] x i32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [64, 96, 254] batch 0 m 1 n 1 k 1 lhs {
    %l = loop.load %x[d0*254 + d2] : !loop.buffer<[64*254] x i8>
    %1 = arith.extui %l : i8 to i32
    loop.yield %1 : i32
  } rhs {
    %l = loop.load %w[d2*96 + d1] : !loop.buffer<[254*96] x i8>
    %1 = arith.extsi %l : i8 to i32
    loop.yield %1 : i32
  } epilogue {
  ^bb0(%acc: i32):
    loop.store %acc, %y[d0*96 + d1] : !loop.buffer<[64*96] x i32>
  }
}
