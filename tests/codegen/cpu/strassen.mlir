// Strassen's algorithm: seven products of quarters of a tile for eight, where the weight permits it.
// RUN: ptc-kernel %s | FileCheck %s --check-prefix=PLAN
// RUN: ptc-kernel %s --level=x86-64-v4-zen4 --emit=llvm | FileCheck %s

// PLAN-LABEL: loop.kernel @products
// PLAN-SAME:  algorithm = "strassen"

// Seven loops over half of the terms for a tile of 28 rows and four panels, with sums and differences of B made in
// registers, and one of plain products for tiles whose rows are too far apart.
// CHECK-LABEL:     define {{.*}} @products
// CHECK:           call reassoc float @llvm.vector.reduce.fadd
// CHECK-COUNT-224: call <16 x float> @llvm.fma.v16f32
// CHECK-NOT:       call <16 x float> @llvm.fma.v16f32
// CHECK:           ret i32
loop.kernel @products(%a: !loop.buffer<[56*96] x f32>, %w: !loop.buffer<[8*96*16] x f32>, %bias: !loop.buffer<[128] x f32>, %y: !loop.buffer<[56*128] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 3>} {
  loop.contraction [56, 128, 96] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*96 + d2] : !loop.buffer<[56*96] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w {strassen} : !loop.buffer<[8*96*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    %0 = loop.load %bias[d1] : !loop.buffer<[128] x f32>
    %1 = arith.addf %acc, %0 : f32
    loop.store %1, %y[d0*128 + d1] : !loop.buffer<[56*128] x f32>
  }
}
