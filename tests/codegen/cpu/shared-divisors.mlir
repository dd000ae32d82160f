// Wide vectors are divided by one number that the loop does not change as products with its reciprocal.
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=NARROW
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=RIGHT

// The divisor is read in front of the loop, where it is inverted as a scalar.
// CHECK-LABEL:  define {{.*}} @number
// CHECK-NOT:    phi
// CHECK:        fdiv float 1.000000e+00
// CHECK:        phi
// CHECK-NOT:    fdiv contract <16 x float>
// CHECK:        call <16 x float> @llvm.fma
// CHECK:        ret i32
// NARROW-LABEL: define {{.*}} @number
// NARROW:       fdiv contract <{{8|16}} x float>
// NARROW:       ret i32
// RIGHT:        ok number
loop.kernel @number(%x: !loop.buffer<[n] x f32>, %z: !loop.buffer<[1] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2>, test.symbols = [{n = 1}, {n = 37}, {n = 200}]} {
  loop.pointwise [n] {
    %0 = loop.load %x[d0] : !loop.buffer<[n] x f32>
    %1 = loop.load %z[0] : !loop.buffer<[1] x f32>
    %2 = arith.divf %0, %1 : f32
    loop.store %2, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// So are constants, but for powers of two, which are products anyway.
// CHECK-LABEL:  define {{.*}} @constants
// CHECK-NOT:    fdiv
// CHECK:        ret i32
// RIGHT:        ok constants
loop.kernel @constants(%x: !loop.buffer<[n] x f64>, %y: !loop.buffer<[n] x f64>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.symbols = [{n = 1}, {n = 37}, {n = 200}]} {
  loop.pointwise [n] {
    %third = arith.constant 0.3 : f64
    %half = arith.constant 0.5 : f64
    %0 = loop.load %x[d0] : !loop.buffer<[n] x f64>
    %1 = arith.divf %0, %third : f64
    %2 = arith.divf %1, %half : f64
    loop.store %2, %y[d0] : !loop.buffer<[n] x f64>
  }
}

// What each lane is divided by itself stays a division.
// CHECK-LABEL:  define {{.*}} @each
// CHECK:        fdiv contract <16 x float>
// CHECK:        ret i32
// RIGHT:        ok each
loop.kernel @each(%x: !loop.buffer<[n] x f32>, %z: !loop.buffer<[n] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2>, test.symbols = [{n = 1}, {n = 37}, {n = 200}]} {
  loop.pointwise [n] {
    %0 = loop.load %x[d0] : !loop.buffer<[n] x f32>
    %1 = loop.load %z[d0] : !loop.buffer<[n] x f32>
    %2 = arith.divf %0, %1 : f32
    loop.store %2, %y[d0] : !loop.buffer<[n] x f32>
  }
}
