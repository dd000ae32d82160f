// RUN: ptc-kernel %s --check | FileCheck %s
// CHECK-NOT: FAIL

// Every byte to f32, which is stored, and back from random floats, special ones included.
// CHECK: ok e4m3fn
loop.kernel @e4m3fn(%a: !loop.buffer<[n] x i8>, %b: !loop.buffer<[n] x f32>, %y: !loop.buffer<[n] x f32>, %z: !loop.buffer<[n] x f8E4M3FN>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2, 3>, test.nan,
                test.ranges = [[-128, 127]], test.symbols = [{n = 2000}, {n = 3}]} {
  loop.pointwise [n] {
    %0 = loop.load %a[d0] : !loop.buffer<[n] x i8>
    %1 = arith.bitcast %0 : i8 to f8E4M3FN
    %2 = arith.extf %1 : f8E4M3FN to f32
    loop.store %2, %y[d0] : !loop.buffer<[n] x f32>
    %3 = loop.load %b[d0] : !loop.buffer<[n] x f32>
    %s = arith.constant 40.0 : f32
    %4 = arith.mulf %3, %s : f32
    %5 = arith.mulf %4, %3 : f32
    %6 = arith.mulf %5, %3 : f32
    %7 = arith.truncf %6 : f32 to f8E4M3FN
    loop.store %7, %z[d0] : !loop.buffer<[n] x f8E4M3FN>
  }
}

// CHECK: ok e5m2
loop.kernel @e5m2(%a: !loop.buffer<[n] x i8>, %b: !loop.buffer<[n] x f32>, %y: !loop.buffer<[n] x f32>, %z: !loop.buffer<[n] x f8E5M2>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2, 3>, test.nan,
                test.ranges = [[-128, 127]], test.symbols = [{n = 2000}, {n = 3}]} {
  loop.pointwise [n] {
    %0 = loop.load %a[d0] : !loop.buffer<[n] x i8>
    %1 = arith.bitcast %0 : i8 to f8E5M2
    %2 = arith.extf %1 : f8E5M2 to f32
    loop.store %2, %y[d0] : !loop.buffer<[n] x f32>
    %3 = loop.load %b[d0] : !loop.buffer<[n] x f32>
    %s = arith.constant 4.0e-5 : f32
    %4 = arith.mulf %3, %s : f32
    %7 = arith.truncf %4 : f32 to f8E5M2
    loop.store %7, %z[d0] : !loop.buffer<[n] x f8E5M2>
  }
}

// CHECK: ok e4m3fnuz
loop.kernel @e4m3fnuz(%a: !loop.buffer<[n] x i8>, %b: !loop.buffer<[n] x f16>, %y: !loop.buffer<[n] x f16>, %z: !loop.buffer<[n] x f8E4M3FNUZ>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2, 3>, test.nan,
                test.ranges = [[-128, 127]], test.symbols = [{n = 2000}, {n = 3}]} {
  loop.pointwise [n] {
    %0 = loop.load %a[d0] : !loop.buffer<[n] x i8>
    %1 = arith.bitcast %0 : i8 to f8E4M3FNUZ
    %2 = arith.extf %1 : f8E4M3FNUZ to f16
    loop.store %2, %y[d0] : !loop.buffer<[n] x f16>
    %3 = loop.load %b[d0] : !loop.buffer<[n] x f16>
    %7 = arith.truncf %3 : f16 to f8E4M3FNUZ
    loop.store %7, %z[d0] : !loop.buffer<[n] x f8E4M3FNUZ>
  }
}

// Four bits, one element a byte in memory; what is too large becomes the largest.
// CHECK: ok e2m1
loop.kernel @e2m1(%a: !loop.buffer<[n] x f4E2M1FN>, %b: !loop.buffer<[n] x f32>, %y: !loop.buffer<[n] x f32>, %z: !loop.buffer<[n] x f4E2M1FN>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2, 3>, test.nan,
                test.symbols = [{n = 2000}, {n = 3}]} {
  loop.pointwise [n] {
    %1 = loop.load %a[d0] : !loop.buffer<[n] x f4E2M1FN>
    %2 = arith.extf %1 : f4E2M1FN to f32
    loop.store %2, %y[d0] : !loop.buffer<[n] x f32>
    %3 = loop.load %b[d0] : !loop.buffer<[n] x f32>
    %7 = arith.truncf %3 : f32 to f4E2M1FN
    loop.store %7, %z[d0] : !loop.buffer<[n] x f4E2M1FN>
  }
}

// An exponent alone: neither zero nor sign.
// CHECK: ok e8m0
loop.kernel @e8m0(%a: !loop.buffer<[n] x i8>, %b: !loop.buffer<[n] x f32>, %y: !loop.buffer<[n] x f32>, %z: !loop.buffer<[n] x f8E8M0FNU>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2, 3>, test.nan,
                test.ranges = [[-128, 127]], test.symbols = [{n = 2000}, {n = 3}]} {
  loop.pointwise [n] {
    %0 = loop.load %a[d0] : !loop.buffer<[n] x i8>
    %1 = arith.bitcast %0 : i8 to f8E8M0FNU
    %2 = arith.extf %1 : f8E8M0FNU to f32
    loop.store %2, %y[d0] : !loop.buffer<[n] x f32>
    %3 = loop.load %b[d0] : !loop.buffer<[n] x f32>
    %7 = arith.truncf %3 : f32 to f8E8M0FNU
    loop.store %7, %z[d0] : !loop.buffer<[n] x f8E8M0FNU>
  }
}
