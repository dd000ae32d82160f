// Where no instruction multiplies four bytes, a product of many rows runs on copies of them: the innermost loop has
// products of pairs, whose sums fit in 16 bits, as those of two pairs do, and what adds them up. It needs no more
// registers than there are. What does not fit is multiplied as 16-bit integers before it. Few rows are not worth it.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=asm | FileCheck %s --check-prefix=V3
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=asm | FileCheck %s --check-prefix=V4
// RUN: ptc-kernel %s --level=x86-64-v4-vnni-bf16 --emit=asm | FileCheck %s --check-prefix=VNNI

// V3-LABEL: many_rows:
// V3: vpmaxub
// V3: vpmaxsb
// V3: vpaddsw
// V3: tzcnt
// V3: vpmovzxbw
// V3: vpmaddwd
// V3: vpaddw
// V3: vpmaddwd
// V3-NOT: (%rsp)
// V3-COUNT-7: vpaddw
// V3-NOT: (%rsp)
// V3: jl
// V3-NOT: vpaddw
// V3-COUNT-16: vpmaddubsw
// V4-LABEL: many_rows:
// V4: vpmaddubsw {{.*}}zmm
// V4: vpmaddwd {{.*}}zmm
// VNNI-LABEL: many_rows:
// VNNI-NOT: vpmaddubsw
// VNNI: vpdpbusd
loop.kernel @many_rows(%x: !loop.buffer<[320*128] x i8>, %w: !loop.buffer<[4*128*16] x i8>, %y: !loop.buffer<[320*64] x i32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
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
    loop.store %acc, %y[d0*64 + d1] : !loop.buffer<[320*64] x i32>
  }
}

// V3-LABEL: few_rows:
// V3-NOT: vpmaddubsw
// V3: vpmaddwd
loop.kernel @few_rows(%x: !loop.buffer<[6*128] x i8>, %w: !loop.buffer<[4*128*16] x i8>, %y: !loop.buffer<[6*64] x i32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [6, 64, 128] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %x[d0*128 + d2] : !loop.buffer<[6*128] x i8>
    %1 = arith.extui %0 : i8 to i32
    loop.yield %1 : i32
  } rhs {
    %0 = loop.panels %w {group = 4 : i64} : !loop.buffer<[4*128*16] x i8> -> i8
    %1 = arith.extsi %0 : i8 to i32
    loop.yield %1 : i32
  } epilogue {
  ^bb0(%acc: i32):
    loop.store %acc, %y[d0*64 + d1] : !loop.buffer<[6*64] x i32>
  }
}

// Nor are few columns of few terms, which do not read a row's copy often.
// V3-LABEL: few_columns:
// V3-NOT: vpmaddubsw
// V3: vpmaddwd
loop.kernel @few_columns(%x: !loop.buffer<[320*32] x i8>, %w: !loop.buffer<[32*16] x i8>, %y: !loop.buffer<[320*16] x i32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [320, 16, 32] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %x[d0*32 + d2] : !loop.buffer<[320*32] x i8>
    %1 = arith.extui %0 : i8 to i32
    loop.yield %1 : i32
  } rhs {
    %0 = loop.panels %w {group = 4 : i64} : !loop.buffer<[32*16] x i8> -> i8
    %1 = arith.extsi %0 : i8 to i32
    loop.yield %1 : i32
  } epilogue {
  ^bb0(%acc: i32):
    loop.store %acc, %y[d0*16 + d1] : !loop.buffer<[320*16] x i32>
  }
}
