// Vectors of integers are divided by floats; one by one only in a branch, where 64 bits are beyond what f64 holds.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefixes=CHECK,V3
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefixes=CHECK,V4

// A divisor that lanes share is inverted as a scalar.
// CHECK-LABEL: define {{.*}} @shared
// V3-NOT:      sitofp <
// CHECK:       fdiv double 1.0
// V4:          sitofp <8 x i64> {{.*}} to <8 x double>
// CHECK:       ret i32
loop.kernel @shared(%x: !loop.buffer<[n] x i64>, %z: !loop.buffer<[1] x i64>, %y: !loop.buffer<[n] x i64>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2>} {
  loop.pointwise [n] {
    %0 = loop.load %x[d0] : !loop.buffer<[n] x i64>
    %1 = loop.load %z[0] : !loop.buffer<[1] x i64>
    %2 = arith.remsi %0, %1 : i64
    loop.store %2, %y[d0] : !loop.buffer<[n] x i64>
  }
}

// Of 32 bits all quotients are exact, and those by constants are products anyway.
// CHECK-LABEL: define {{.*}} @each
// CHECK:       fdiv <{{8|16}} x double>
// CHECK-NOT:   sdiv <{{[0-9]+}} x i32> {{.*}}, %
// CHECK:       sdiv <{{[0-9]+}} x i32> {{.*}}, splat (i32 7)
// CHECK:       ret i32
loop.kernel @each(%x: !loop.buffer<[n] x i32>, %z: !loop.buffer<[n] x i32>, %y: !loop.buffer<[n] x i32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2>} {
  loop.pointwise [n] {
    %0 = loop.load %x[d0] : !loop.buffer<[n] x i32>
    %1 = loop.load %z[d0] : !loop.buffer<[n] x i32>
    %2 = arith.divsi %0, %1 : i32
    %c7 = arith.constant 7 : i32
    %3 = arith.divsi %2, %c7 : i32
    loop.store %3, %y[d0] : !loop.buffer<[n] x i32>
  }
}

// A remainder with the divisor's sign needs no signs of the dividend: they are put back in the branch alone.
// CHECK-LABEL: define {{.*}} @modulus
// CHECK:       fdiv double 1.0
// CHECK:       call {{.*}}<[[LANES:4|8]] x double> @llvm.{{roundeven|rint|nearbyint}}
// CHECK-NOT:   @llvm.copysign
// CHECK:       srem <[[LANES]] x i64>
// CHECK:       ret i32
loop.kernel @modulus(%x: !loop.buffer<[n] x i64>, %z: !loop.buffer<[1] x i64>, %y: !loop.buffer<[n] x i64>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2>} {
  loop.pointwise [n] {
    %zero = arith.constant 0 : i64
    %0 = loop.load %x[d0] : !loop.buffer<[n] x i64>
    %1 = loop.load %z[0] : !loop.buffer<[1] x i64>
    %2 = arith.remsi %0, %1 : i64
    %3 = arith.xori %2, %1 : i64
    %4 = arith.cmpi slt, %3, %zero : i64
    %5 = arith.cmpi ne, %2, %zero : i64
    %6 = arith.andi %5, %4 : i1
    %7 = arith.addi %2, %1 : i64
    %8 = arith.select %6, %7, %2 : i64
    loop.store %8, %y[d0] : !loop.buffer<[n] x i64>
  }
}
