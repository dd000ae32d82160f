// Rows that the model permits to be of 8 bits, by weights of few bits: one digit, by an instruction that adds up four
// products of bytes, or two of them in 16 bits.
// RUN: ptc-kernel %s --level=x86-64-v4-vnni-bf16 --emit=llvm | FileCheck %s --check-prefixes=ALL,BYTES,VNNI
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefixes=ALL,BYTES,V3
// RUN: ptc-kernel %s --level=aarch64-dotprod --emit=llvm | FileCheck %s --check-prefixes=ALL,BYTES,DOTPROD
// RUN: ptc-kernel %s --level=aarch64 --emit=llvm | FileCheck %s --check-prefixes=ALL,PLAIN

// A block of 32 terms is four words, by the even and by the odd numbers: eight products, and for v3 a sum of their pairs.
// ALL-LABEL:  define {{.*}} @one_row
// BYTES:      call i32 @llvm.vector.reduce.umax
// VNNI-COUNT-32: vpdpbusd.512
// VNNI-NOT:   vpdpbusd
// V3-COUNT-64: avx2.pmadd.ub.sw
// V3-NOT:     pmadd.ub.sw
// V3:         avx2.pmadd.wd(<16 x i16> {{.*}}, <16 x i16> splat (i16 1))
// DOTPROD:    neon.sdot
// PLAIN-NOT:  neon
// BYTES:      sitofp <{{4|8|16}} x i32>
// ALL:        ret i32
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
  } {prim.byte_rows}
}

// Many rows are such products, too, of numbers of 2 bits as well.
// ALL-LABEL:  define {{.*}} @many_rows
// VNNI:       vpdpbusd.512
// V3:         avx2.pmadd.ub.sw
// DOTPROD:    neon.sdot
// PLAIN-NOT:  neon
// ALL:        ret i32
loop.kernel @many_rows(%a: !loop.buffer<[100*1024] x f32>, %w: !loop.buffer<[1024*16] x i8>, %s: !loop.buffer<[64*16] x f32>,
                       %y: !loop.buffer<[100*64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 3>} {
  loop.contraction [100, 64, 16, 64] batch 0 m 1 n 1 k 2 lhs {
    %0 = loop.load %a[d0*1024 + d2*64 + d3] : !loop.buffer<[100*1024] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w {bits = 2 : i64, group = 16 : i64} : !loop.buffer<[1024*16] x i8> -> i8
    %1 = arith.uitofp %0 : i8 to f32
    %2 = loop.panels %s row d2 : !loop.buffer<[64*16] x f32> -> f32
    %3 = arith.mulf %1, %2 : f32
    loop.yield %3 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*64 + d1] : !loop.buffer<[100*64] x f32>
  } {prim.byte_rows}
}
