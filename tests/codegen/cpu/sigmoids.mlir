// A sigmoid of a sigmoid: what takes the place of the one's formula is the other's argument.
// RUN: ptc-kernel %s --check | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=asm | FileCheck %s --check-prefix=LOOKUP

// Powers of 2 are looked up among 16, which leaves a short polynomial.
// LOOKUP: vpermps

// CHECK: ok sigmoids
loop.kernel @sigmoids(%x: !loop.buffer<[n] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.symbols = [{n = 1}, {n = 7}, {n = 100}]} {
  loop.pointwise [n] {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %0 = loop.load %x[d0] : !loop.buffer<[n] x f32>
    %1 = math.absf %0 : f32
    %2 = arith.negf %1 : f32
    %3 = math.exp %2 : f32
    %4 = arith.cmpf olt, %0, %zero : f32
    %5 = arith.select %4, %3, %one : f32
    %6 = arith.addf %one, %3 : f32
    %7 = arith.divf %5, %6 : f32
    %8 = math.absf %7 : f32
    %9 = arith.negf %8 : f32
    %10 = math.exp %9 : f32
    %11 = arith.cmpf olt, %7, %zero : f32
    %12 = arith.select %11, %10, %one : f32
    %13 = arith.addf %one, %10 : f32
    %14 = arith.divf %12, %13 : f32
    loop.store %14, %y[d0] : !loop.buffer<[n] x f32>
  }
}
