// A softmax's sum is 1 at least, so its quotients take denormal numbers for 0; other sums of exponentials may be denormal.
// None of its exponentials is of a number above 0, so none has an upper bound.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s

// CHECK-LABEL: define {{.*}} @softmax
// CHECK:       call void @llvm.x86.sse.ldmxcsr
// CHECK-NOT:   8.950000e+01
// CHECK:       ret i32
loop.kernel @softmax(%x: !loop.buffer<[n*64] x f32>, %y: !loop.buffer<[n*64] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.symbols = [{n = 9}]} {
  %max = loop.buffer : !loop.buffer<[1] x f32>
  %exp = loop.buffer : !loop.buffer<[64] x f32>
  %sum = loop.buffer : !loop.buffer<[1] x f32>
  loop.reduction [n, 64] reduced 1 {
    %0 = loop.load %x[64*d0 + d1] : !loop.buffer<[n*64] x f32>
    %1 = loop.reduce max %0 no_nan : f32
    loop.store %1, %max[0] : !loop.buffer<[1] x f32>
  }
  loop.reduction [n, 64] reduced 1 {
    %0 = loop.load %x[64*d0 + d1] : !loop.buffer<[n*64] x f32>
    %1 = loop.load %max[0] : !loop.buffer<[1] x f32>
    %2 = arith.subf %0, %1 : f32
    %3 = math.exp %2 {loop.not_positive} : f32
    loop.store %3, %exp[d1] : !loop.buffer<[64] x f32>
    %4 = loop.reduce sum %3 : f32
    loop.store %4, %sum[0] : !loop.buffer<[1] x f32>
  }
  loop.pointwise [n, 64] {
    %0 = loop.load %exp[d1] : !loop.buffer<[64] x f32>
    %1 = loop.load %sum[0] : !loop.buffer<[1] x f32>
    %2 = arith.divf %0, %1 : f32
    loop.store %2, %y[64*d0 + d1] : !loop.buffer<[n*64] x f32>
  }
}

// The maximum is another row's.
// CHECK-LABEL: define {{.*}} @elsewhere
// CHECK-NOT:   ldmxcsr
// CHECK:       8.950000e+01
// CHECK-NOT:   ldmxcsr
// CHECK:       ret i32
loop.kernel @elsewhere(%x: !loop.buffer<[n*64] x f32>, %z: !loop.buffer<[n*64] x f32>, %y: !loop.buffer<[n*64] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2>, test.symbols = [{n = 9}]} {
  %max = loop.buffer : !loop.buffer<[1] x f32>
  %exp = loop.buffer : !loop.buffer<[64] x f32>
  %sum = loop.buffer : !loop.buffer<[1] x f32>
  loop.reduction [n, 64] reduced 1 {
    %0 = loop.load %z[64*d0 + d1] : !loop.buffer<[n*64] x f32>
    %1 = loop.reduce max %0 : f32
    loop.store %1, %max[0] : !loop.buffer<[1] x f32>
  }
  loop.reduction [n, 64] reduced 1 {
    %0 = loop.load %x[64*d0 + d1] : !loop.buffer<[n*64] x f32>
    %1 = loop.load %max[0] : !loop.buffer<[1] x f32>
    %2 = arith.subf %0, %1 : f32
    %3 = math.exp %2 : f32
    loop.store %3, %exp[d1] : !loop.buffer<[64] x f32>
    %4 = loop.reduce sum %3 : f32
    loop.store %4, %sum[0] : !loop.buffer<[1] x f32>
  }
  loop.pointwise [n, 64] {
    %0 = loop.load %exp[d1] : !loop.buffer<[64] x f32>
    %1 = loop.load %sum[0] : !loop.buffer<[1] x f32>
    %2 = arith.divf %0, %1 : f32
    loop.store %2, %y[64*d0 + d1] : !loop.buffer<[n*64] x f32>
  }
}

// The logarithm of such a sum is one of 1 at least.
// CHECK-LABEL: define {{.*}} @logarithm
// CHECK:       call void @llvm.x86.sse.ldmxcsr
// CHECK-NOT:   8.950000e+01
// CHECK:       ret i32
loop.kernel @logarithm(%x: !loop.buffer<[n*64] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.symbols = [{n = 9}]} {
  %max = loop.buffer : !loop.buffer<[1] x f32>
  loop.reduction [n, 64] reduced 1 {
    %0 = loop.load %x[64*d0 + d1] : !loop.buffer<[n*64] x f32>
    %1 = loop.reduce max %0 no_nan : f32
    loop.store %1, %max[0] : !loop.buffer<[1] x f32>
  }
  loop.reduction [n, 64] reduced 1 {
    %0 = loop.load %x[64*d0 + d1] : !loop.buffer<[n*64] x f32>
    %1 = loop.load %max[0] : !loop.buffer<[1] x f32>
    %2 = arith.subf %0, %1 : f32
    %3 = math.exp %2 {loop.not_positive} : f32
    %4 = loop.reduce sum %3 : f32
    %5 = math.log %4 : f32
    loop.store %5, %y[d0] : !loop.buffer<[n] x f32>
  }
}
