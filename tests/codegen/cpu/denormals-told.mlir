// Denormal numbers beside scalars that the launch says: see denormals.mlir.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s

// A rectifier whose slope the launch says: whatever it is, it times 0 is 0. What it adds is not known.
// CHECK-LABEL: define {{.*}} @told_slope
// CHECK:       call void @llvm.x86.sse.ldmxcsr
// CHECK:       ret i32
loop.kernel @told_slope(%x: !loop.buffer<[n*64] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n", "s"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.symbols = [{n = 9, s = 1036831949}]} {
  loop.reduction [n, 64] reduced 1 {
    %0 = loop.load %x[64*d0 + d1] : !loop.buffer<[n*64] x f32>
    %1 = loop.reduce sum %0 : f32
    %index = loop.index s {loop.number}
    %bits = arith.trunci %index : i64 to i32
    %slope = arith.bitcast %bits : i32 to f32
    %zero = arith.constant 0.0 : f32
    %2 = arith.mulf %1, %slope : f32
    %3 = arith.cmpf olt, %1, %zero : f32
    %4 = arith.select %3, %2, %1 : f32
    loop.store %4, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// CHECK-LABEL: define {{.*}} @told_step
// CHECK-NOT:   ldmxcsr
// CHECK:       ret i32
loop.kernel @told_step(%x: !loop.buffer<[n*64] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n", "s"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.symbols = [{n = 9, s = 1036831949}]} {
  loop.reduction [n, 64] reduced 1 {
    %0 = loop.load %x[64*d0 + d1] : !loop.buffer<[n*64] x f32>
    %1 = loop.reduce sum %0 : f32
    %index = loop.index s {loop.number}
    %bits = arith.trunci %index : i64 to i32
    %step = arith.bitcast %bits : i32 to f32
    %zero = arith.constant 0.0 : f32
    %2 = arith.addf %1, %step : f32
    %3 = arith.cmpf olt, %1, %zero : f32
    %4 = arith.select %3, %2, %1 : f32
    loop.store %4, %y[d0] : !loop.buffer<[n] x f32>
  }
}
