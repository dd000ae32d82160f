// Denormal numbers count as 0 in kernels that add up, unless a function there tells them from 0.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s

// The mode is that of the run again where the kernel ends.
// CHECK-LABEL: define {{.*}} @product
// CHECK:       store i32 40896
// CHECK-NEXT:  call void @llvm.x86.sse.ldmxcsr
// CHECK:       store i32 8064
// CHECK-NEXT:  call void @llvm.x86.sse.ldmxcsr
// CHECK:       ret i32
loop.kernel @product(%x: !loop.buffer<[n*64] x f32>, %z: !loop.buffer<[2048] x f32>, %y: !loop.buffer<[n*32] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2>, test.symbols = [{n = 9}]} {
  loop.contraction [n, 32, 64] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %x[64*d0 + d2] : !loop.buffer<[n*64] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.load %z[32*d2 + d1] : !loop.buffer<[2048] x f32>
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%sum: f32):
    loop.store %sum, %y[32*d0 + d1] : !loop.buffer<[n*32] x f32>
  }
}

// Both results of a sigmoid's choice are the same there.
// CHECK-LABEL: define {{.*}} @sigmoid
// CHECK:       call void @llvm.x86.sse.ldmxcsr
// CHECK:       ret i32
loop.kernel @sigmoid(%x: !loop.buffer<[n*64] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.symbols = [{n = 9}]} {
  loop.reduction [n, 64] reduced 1 {
    %0 = loop.load %x[64*d0 + d1] : !loop.buffer<[n*64] x f32>
    %1 = loop.reduce sum %0 : f32
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %2 = math.absf %1 : f32
    %3 = arith.negf %2 : f32
    %4 = math.exp %3 : f32
    %5 = arith.cmpf olt, %1, %zero : f32
    %6 = arith.select %5, %4, %one : f32
    %7 = arith.addf %4, %one : f32
    %8 = arith.divf %6, %7 : f32
    loop.store %8, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// A step's are not.
// CHECK-LABEL: define {{.*}} @step
// CHECK-NOT:   ldmxcsr
// CHECK:       ret i32
loop.kernel @step(%x: !loop.buffer<[n*64] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.symbols = [{n = 9}]} {
  loop.reduction [n, 64] reduced 1 {
    %0 = loop.load %x[64*d0 + d1] : !loop.buffer<[n*64] x f32>
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %1 = arith.cmpf ogt, %0, %zero : f32
    %2 = arith.select %1, %one, %zero : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// A logarithm of what may be denormal.
// CHECK-LABEL: define {{.*}} @log
// CHECK-NOT:   ldmxcsr
// CHECK:       ret i32
loop.kernel @log(%x: !loop.buffer<[n*64] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.symbols = [{n = 9}]} {
  loop.reduction [n, 64] reduced 1 {
    %0 = loop.load %x[64*d0 + d1] : !loop.buffer<[n*64] x f32>
    %1 = loop.reduce sum %0 : f32
    %2 = math.log %1 : f32
    loop.store %2, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// A root behind the epsilon of a norm is of nothing denormal.
// CHECK-LABEL: define {{.*}} @norm
// CHECK:       ldmxcsr
// CHECK:       ret i32
loop.kernel @norm(%x: !loop.buffer<[n*64] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.symbols = [{n = 9}]} {
  loop.reduction [n, 64] reduced 1 {
    %0 = loop.load %x[64*d0 + d1] : !loop.buffer<[n*64] x f32>
    %1 = arith.mulf %0, %0 : f32
    %2 = loop.reduce sum %1 : f32
    %epsilon = arith.constant 1.0e-05 : f32
    %3 = arith.addf %2, %epsilon : f32
    %4 = math.rsqrt %3 : f32
    loop.store %4, %y[d0] : !loop.buffer<[n] x f32>
  }
}
