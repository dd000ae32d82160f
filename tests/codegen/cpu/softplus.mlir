// log1p(exp(-|x|)), whose argument is in [0, 1], is a polynomial without the logarithm's split, which compares its
// argument with -1; of any other argument it is not.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s

// CHECK-LABEL: define {{.*}} @softplus
// CHECK-NOT:   fcmp oeq
// CHECK:       ret i32
// CHECK-LABEL: define {{.*}} @any
// CHECK:       fcmp oeq
// CHECK:       ret i32
loop.kernel @softplus(%x: !loop.buffer<[64] x f32>, %y: !loop.buffer<[64] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [64] {
    %0 = loop.load %x[d0] : !loop.buffer<[64] x f32>
    %1 = math.absf %0 : f32
    %2 = arith.negf %1 : f32
    %3 = math.exp %2 : f32
    %4 = math.log1p %3 : f32
    loop.store %4, %y[d0] : !loop.buffer<[64] x f32>
  }
}

loop.kernel @any(%x: !loop.buffer<[64] x f32>, %y: !loop.buffer<[64] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [64] {
    %0 = loop.load %x[d0] : !loop.buffer<[64] x f32>
    %1 = math.absf %0 : f32
    %2 = math.exp %1 : f32
    %3 = math.log1p %2 : f32
    loop.store %3, %y[d0] : !loop.buffer<[64] x f32>
  }
}
