// erf of 16 numbers looks its coefficients up, six for each lane, where one instruction does; elsewhere it has two
// polynomials.
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=asm | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=asm | FileCheck %s --check-prefix=AVX2
// RUN: ptc-kernel %s --check

// CHECK-LABEL: gelu:
// CHECK-COUNT-6: vpermps
// AVX2-LABEL: gelu:
// AVX2-NOT: vpermps
loop.kernel @gelu(%x: !loop.buffer<[1000] x f32>, %y: !loop.buffer<[1000] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [1000] {
    %0 = loop.load %x[d0] : !loop.buffer<[1000] x f32>
    %half = arith.constant 5.0e-01 : f32
    %1 = arith.mulf %0, %half : f32
    %root = arith.constant 0.707106769 : f32
    %2 = arith.mulf %0, %root : f32
    %3 = math.erf %2 : f32
    %one = arith.constant 1.0 : f32
    %4 = arith.addf %3, %one : f32
    %5 = arith.mulf %1, %4 : f32
    loop.store %5, %y[d0] : !loop.buffer<[1000] x f32>
  }
}
