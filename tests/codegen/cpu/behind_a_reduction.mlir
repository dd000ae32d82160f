// However much is computed of a reduction's result, its loop has as many accumulators as its own operations leave room for.
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=RIGHT

// CHECK-LABEL:   define {{.*}} @scale
// CHECK-COUNT-4: phi <16 x float> [ splat (float 0xFFF0000000000000)
// CHECK:         ret i32
// RIGHT:         ok scale
loop.kernel @scale(%x: !loop.buffer<[4096] x f32>, %least: !loop.buffer<[1] x f32>, %scale: !loop.buffer<[1] x f32>, %rest: !loop.buffer<[1] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2, 3>} {
  loop.reduction [4096] reduced 1 {
    %0 = loop.load %x[d0] : !loop.buffer<[4096] x f32>
    %1 = loop.reduce max %0 : f32
    %none = arith.constant 0.0 : f32
    %2 = arith.maximumf %1, %none : f32
    %3 = loop.load %least[0] : !loop.buffer<[1] x f32>
    %4 = arith.minimumf %3, %none : f32
    %5 = arith.subf %2, %4 : f32
    %steps = arith.constant 255.0 : f32
    %6 = arith.divf %5, %steps : f32
    loop.store %6, %scale[0] : !loop.buffer<[1] x f32>
    %7 = arith.negf %4 : f32
    %8 = arith.divf %7, %6 : f32
    %9 = arith.maximumf %8, %none : f32
    %10 = arith.minimumf %9, %steps : f32
    %11 = arith.mulf %10, %6 : f32
    %12 = arith.addf %11, %4 : f32
    loop.store %12, %rest[0] : !loop.buffer<[1] x f32>
  }
}
