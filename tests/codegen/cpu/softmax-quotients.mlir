// A softmax's quotients are products with the inverse of its sum, also where they are a kernel of their own, and those
// of the last few elements. Other quotients of 256 bits are divided.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=RIGHT

// CHECK-LABEL: define {{.*}} @row
// CHECK-COUNT-1: fdiv float 1.000000e+00
// CHECK-NOT:   fdiv
// CHECK:       fmul {{.*}}<8 x float>
// CHECK-NOT:   fdiv
// CHECK:       {{^}}}
// RIGHT:       ok row
loop.kernel @row(%x: !loop.buffer<[n] x f32>, %z: !loop.buffer<[1] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2>, test.symbols = [{n = 5}, {n = 301}],
                test.tolerance = 1.0e-6} {
  loop.pointwise [n] {
    %0 = loop.load %x[d0] : !loop.buffer<[n] x f32>
    %1 = loop.load %z[0] : !loop.buffer<[1] x f32>
    %2 = arith.divf %0, %1 {loop.of_softmax} : f32
    loop.store %2, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// CHECK-LABEL: define {{.*}} @other
// CHECK:       fdiv {{.*}}<8 x float>
// CHECK:       {{^}}}
// RIGHT:       ok other
loop.kernel @other(%x: !loop.buffer<[8*n] x f32>, %z: !loop.buffer<[1] x f32>, %y: !loop.buffer<[8*n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2>, test.symbols = [{n = 37}]} {
  loop.pointwise [8*n] {
    %0 = loop.load %x[d0] : !loop.buffer<[8*n] x f32>
    %1 = loop.load %z[0] : !loop.buffer<[1] x f32>
    %2 = arith.divf %0, %1 : f32
    loop.store %2, %y[d0] : !loop.buffer<[8*n] x f32>
  }
}
