// Windows of 3 x 3 bytes give 4 x 4 outputs of 36 products where no instruction multiplies four bytes: pixels become
// points by shifts and additions, and a multiplication by the inverse of 9 stands behind the products. Where one
// multiplies them they are taken as they are.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=asm | FileCheck %s --check-prefix=V3
// RUN: ptc-kernel %s --level=x86-64-v4-vnni-bf16 --emit=asm | FileCheck %s --check-prefix=VNNI

// V3: .long 954437177
// V3-LABEL: image:
// V3: vpmovzxbw
// V3: vpsllw
// V3: vpmulld
// VNNI-LABEL: image:
// VNNI-NOT: vpmovzxbw
// VNNI: vpdpbusd
loop.kernel @image(%x: !loop.buffer<[28*28*64] x i8>, %w: !loop.buffer<[4*576*16] x i8>, %y: !loop.buffer<[28*28*64] x i32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [28, 28, 64, 3, 3, 64] batch 0 m 2 n 1 k 3 lhs {
    %o = arith.constant 7 : i8
    %v = loop.masked [d0 + d3 - 1, 27 - (d0 + d3 - 1), d1 + d4 - 1, 27 - (d1 + d4 - 1)] else %o {
      %l = loop.load %x[((d0 + d3 - 1)*28 + d1 + d4 - 1)*64 + d5] : !loop.buffer<[28*28*64] x i8>
      loop.yield %l : i8
    } : i8
    %1 = arith.extui %v : i8 to i32
    loop.yield %1 : i32
  } rhs {
    %0 = loop.panels %w {group = 4 : i64} : !loop.buffer<[4*576*16] x i8> -> i8
    %1 = arith.extsi %0 : i8 to i32
    loop.yield %1 : i32
  } epilogue {
  ^bb0(%acc: i32):
    loop.store %acc, %y[(d0*28 + d1)*64 + d2] : !loop.buffer<[28*28*64] x i32>
  }
}

// With a stride pixels of neighbouring windows are not neighbours.
// V3-LABEL: steps:
// V3-NOT: vpmulld
// V3: vpmaddwd
// V3-NOT: vpmulld
loop.kernel @steps(%x: !loop.buffer<[57*57*64] x i8>, %w: !loop.buffer<[4*576*16] x i8>, %y: !loop.buffer<[28*28*64] x i32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [28, 28, 64, 3, 3, 64] batch 0 m 2 n 1 k 3 lhs {
    %v = loop.load %x[((d0*2 + d3)*57 + d1*2 + d4)*64 + d5] : !loop.buffer<[57*57*64] x i8>
    %1 = arith.extui %v : i8 to i32
    loop.yield %1 : i32
  } rhs {
    %0 = loop.panels %w {group = 4 : i64} : !loop.buffer<[4*576*16] x i8> -> i8
    %1 = arith.extsi %0 : i8 to i32
    loop.yield %1 : i32
  } epilogue {
  ^bb0(%acc: i32):
    loop.store %acc, %y[(d0*28 + d1)*64 + d2] : !loop.buffer<[28*28*64] x i32>
  }
}
