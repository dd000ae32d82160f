// A function behind the sums of a window: as many outputs as a tile has go through it side by side, seven with 32
// registers, five with 16. A function in the window is too much code for more than four.
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=V3
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=RIGHT

// CHECK-LABEL: define {{.*}}@behind(
// CHECK-COUNT-7: fdiv {{.*}}<16 x float>
// CHECK-NOT:     fdiv
// CHECK:         ret i32
// V3-LABEL:    define {{.*}}@behind(
// V3-COUNT-5:    fdiv {{.*}}<8 x float>
// V3-NOT:        fdiv
// V3:            ret i32
// RIGHT: ok behind
loop.kernel @behind(%x: !loop.buffer<[9*37*16] x f32>, %w: !loop.buffer<[3*3*16] x f32>, %y: !loop.buffer<[7*35*16] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 2>} {
  loop.reduction [7, 35, 16, 3, 3] reduced 2 {
    %0 = loop.load %x[((d0 + d3)*37 + d1 + d4)*16 + d2] : !loop.buffer<[9*37*16] x f32>
    %1 = loop.load %w[(3*d3 + d4)*16 + d2] : !loop.buffer<[3*3*16] x f32>
    %2 = arith.mulf %0, %1 : f32
    %sum = loop.reduce sum %2 : f32
    %power = math.exp %sum : f32
    %one = arith.constant 1.0 : f32
    %more = arith.addf %power, %one : f32
    %3 = arith.divf %sum, %more : f32
    loop.store %3, %y[(d0*35 + d1)*16 + d2] : !loop.buffer<[7*35*16] x f32>
  }
}

// CHECK-LABEL: define {{.*}}@in_window(
// CHECK-COUNT-4: fdiv {{.*}}<16 x float>
// CHECK-NOT:     fdiv
// CHECK:         ret i32
// RIGHT: ok in_window
loop.kernel @in_window(%x: !loop.buffer<[9*38*16] x f32>, %w: !loop.buffer<[3*3*16] x f32>, %y: !loop.buffer<[7*36*16] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 2>} {
  loop.reduction [7, 36, 16, 3, 3] reduced 2 {
    %0 = loop.load %x[((d0 + d3)*38 + d1 + d4)*16 + d2] : !loop.buffer<[9*38*16] x f32>
    %1 = loop.load %w[(3*d3 + d4)*16 + d2] : !loop.buffer<[3*3*16] x f32>
    %power = math.exp %0 : f32
    %2 = arith.mulf %power, %1 : f32
    %sum = loop.reduce sum %2 : f32
    %one = arith.constant 1.0 : f32
    %square = arith.mulf %sum, %sum : f32
    %more = arith.addf %square, %one : f32
    %3 = arith.divf %sum, %more : f32
    loop.store %3, %y[(d0*36 + d1)*16 + d2] : !loop.buffer<[7*36*16] x f32>
  }
}
