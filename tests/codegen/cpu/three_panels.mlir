// Tiles of 512-bit vectors are three panels wide where B does not wait in the first-level cache: four streams that
// meet in the same sets, or 14 rows, take longer. Where three do not share the columns out evenly they are four.
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s

// CHECK-LABEL: define {{.*}} @evenly
// CHECK:         phi <16 x float>
// CHECK-COUNT-27: llvm.fma.v16f32
// CHECK-NOT:     llvm.fma
// CHECK:         br i1
loop.kernel @evenly(%a: !loop.buffer<[18*256] x f32>, %w: !loop.buffer<[6*256*16] x f32>, %y: !loop.buffer<[18*96] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [18, 96, 256] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*256 + d2] : !loop.buffer<[18*256] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[6*256*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*96 + d1] : !loop.buffer<[18*96] x f32>
  }
}

// CHECK-LABEL: define {{.*}} @four_panels
// CHECK:         phi <16 x float>
// CHECK-COUNT-24: llvm.fma.v16f32
// CHECK-NOT:     llvm.fma
// CHECK:         br i1
loop.kernel @four_panels(%a: !loop.buffer<[18*256] x f32>, %w: !loop.buffer<[4*256*16] x f32>, %y: !loop.buffer<[18*64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [18, 64, 256] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*256 + d2] : !loop.buffer<[18*256] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[4*256*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*64 + d1] : !loop.buffer<[18*64] x f32>
  }
}

// CHECK-LABEL: define {{.*}} @waits
// CHECK:         phi <16 x float>
// CHECK-COUNT-24: llvm.fma.v16f32
// CHECK-NOT:     llvm.fma
// CHECK:         br i1
loop.kernel @waits(%a: !loop.buffer<[18*64] x f32>, %w: !loop.buffer<[12*64*16] x f32>, %y: !loop.buffer<[18*192] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [18, 192, 64] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*64 + d2] : !loop.buffer<[18*64] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[12*64*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*192 + d1] : !loop.buffer<[18*192] x f32>
  }
}
