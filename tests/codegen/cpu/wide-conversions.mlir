// Before AVX-512 floats become integers of 64 bits through those of 32 where all lanes are within them: without bounds
// there, one by one in a branch else. AVX-512 and AArch64 have instructions.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=THROUGH
// RUN: ptc-kernel %s --level=x86-64-v2 --emit=llvm | FileCheck %s --check-prefix=THROUGH
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefix=WIDE

// THROUGH-LABEL: define {{.*}} @saturate
// THROUGH:       fcmp {{.*}}uge <[[LANES:[0-9]+]] x float>
// THROUGH-DAG:   fptosi <[[LANES]] x float> {{.*}} to <[[LANES]] x i32>
// THROUGH-DAG:   sext <[[LANES]] x i32> {{.*}} to <[[LANES]] x i64>
// WIDE-LABEL:    define {{.*}} @saturate
// WIDE-NOT:      sext <
// WIDE:          fptosi <{{[0-9]+}} x float> {{.*}} to <{{[0-9]+}} x i64>
loop.kernel @saturate(%x: !loop.buffer<[n] x f32>, %y: !loop.buffer<[n] x i64>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [n] {
    %low = arith.constant 0xDF000000 : f32
    %high = arith.constant 0x5EFFFFFF : f32
    %most = arith.constant 9223372036854775807 : i64
    %zero = arith.constant 0 : i64
    %0 = loop.load %x[d0] : !loop.buffer<[n] x f32>
    %1 = arith.cmpf ogt, %0, %low : f32
    %2 = arith.select %1, %0, %low : f32
    %3 = arith.cmpf olt, %2, %high : f32
    %4 = arith.select %3, %2, %high : f32
    %5 = arith.fptosi %4 : f32 to i64
    %6 = arith.cmpf ogt, %0, %high : f32
    %7 = arith.select %6, %most, %5 : i64
    %8 = arith.cmpf uno, %0, %0 : f32
    %9 = arith.select %8, %zero, %7 : i64
    loop.store %9, %y[d0] : !loop.buffer<[n] x i64>
  }
}
