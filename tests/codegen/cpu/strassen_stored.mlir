// Strassen's algorithm with 256-bit vectors: the first tile stores sums of columns for those below it.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v3-zen --emit=llvm | FileCheck %s --check-prefix=PLAIN

// A tile of 12 rows and two panels, whose quarters are six rows by two vectors: seven loops of four terms a turn, five of
// them once more with sums as they are stored, and one of plain products.
// CHECK-LABEL:     define {{.*}} @products
// CHECK:           call reassoc float @llvm.vector.reduce.fadd
// CHECK-COUNT-624: call <8 x float> @llvm.fma.v8f32
// CHECK-NOT:       call <8 x float> @llvm.fma.v8f32
// CHECK:           ret i32

// Too few terms for processors that follow streams.
// PLAIN-LABEL: define {{.*}} @products
// PLAIN-NOT:   call reassoc float @llvm.vector.reduce.fadd
// PLAIN:       ret i32
loop.kernel @products(%a: !loop.buffer<[96*384] x f32>, %w: !loop.buffer<[24*384*16] x f32>, %y: !loop.buffer<[96*384] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [96, 384, 384] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*384 + d2] : !loop.buffer<[96*384] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w {strassen} : !loop.buffer<[24*384*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*384 + d1] : !loop.buffer<[96*384] x f32>
  }
}
