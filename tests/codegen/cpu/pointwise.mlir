// RUN: ptc-kernel %s --check | FileCheck %s
// CHECK-NOT: FAIL

// CHECK: ok add
loop.kernel @add(%a: !loop.buffer<[n] x f32>, %b: !loop.buffer<[n] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2>,
                test.symbols = [{n = 1}, {n = 7}, {n = 64}, {n = 1000}]} {
  loop.pointwise [n] {
    %0 = loop.load %a[d0] : !loop.buffer<[n] x f32>
    %1 = loop.load %b[d0] : !loop.buffer<[n] x f32>
    %2 = arith.addf %0, %1 : f32
    loop.store %2, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// CHECK: ok bias_gelu
loop.kernel @bias_gelu(%x: !loop.buffer<[rows*48] x f32>, %b: !loop.buffer<[48] x f32>, %y: !loop.buffer<[rows*48] x f32>)
    attributes {symbols = ["rows"], parallel = 2 : i64, arguments_written = array<i64: 2>,
                test.symbols = [{rows = 1}, {rows = 5}, {rows = 33}]} {
  loop.pointwise [rows, 48] {
    %0 = loop.load %x[d0*48 + d1] : !loop.buffer<[rows*48] x f32>
    %1 = loop.load %b[d1] : !loop.buffer<[48] x f32>
    %2 = arith.addf %0, %1 : f32
    %c = arith.constant 0.70710678 : f32
    %h = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %3 = arith.mulf %2, %c : f32
    %4 = math.erf %3 : f32
    %5 = arith.addf %4, %one : f32
    %6 = arith.mulf %2, %h : f32
    %7 = arith.mulf %5, %6 : f32
    loop.store %7, %y[d0*48 + d1] : !loop.buffer<[rows*48] x f32>
  }
}

// The last dim is tiny: lanes run along another one or nowhere.
// CHECK: ok narrow_rows
loop.kernel @narrow_rows(%x: !loop.buffer<[n*3] x f32>, %s: !loop.buffer<[n] x f32>, %y: !loop.buffer<[n*3] x f32>)
    attributes {symbols = ["n"], parallel = 2 : i64, arguments_written = array<i64: 2>,
                test.symbols = [{n = 1}, {n = 50}, {n = 130}]} {
  loop.pointwise [n, 3] {
    %0 = loop.load %x[d0*3 + d1] : !loop.buffer<[n*3] x f32>
    %1 = loop.load %s[d0] : !loop.buffer<[n] x f32>
    %2 = arith.mulf %0, %1 : f32
    loop.store %2, %y[d0*3 + d1] : !loop.buffer<[n*3] x f32>
  }
}

// CHECK: ok transpose
loop.kernel @transpose(%x: !loop.buffer<[37*m] x f32>, %y: !loop.buffer<[m*37] x f32>)
    attributes {symbols = ["m"], parallel = 2 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{m = 1}, {m = 16}, {m = 45}]} {
  loop.pointwise [m, 37] {
    %0 = loop.load %x[d1*m + d0] : !loop.buffer<[37*m] x f32>
    loop.store %0, %y[d0*37 + d1] : !loop.buffer<[m*37] x f32>
  }
}

// CHECK: ok reverse
loop.kernel @reverse(%x: !loop.buffer<[n] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 1}, {n = 15}, {n = 100}]} {
  loop.pointwise [n] {
    %0 = loop.load %x[n - 1 - d0] : !loop.buffer<[n] x f32>
    loop.store %0, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// CHECK: ok compare_bytes
loop.kernel @compare_bytes(%a: !loop.buffer<[n] x f32>, %b: !loop.buffer<[n] x i1>, %y: !loop.buffer<[n] x i1>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2>, test.nan,
                test.symbols = [{n = 1}, {n = 63}, {n = 200}]} {
  loop.pointwise [n] {
    %0 = loop.load %a[d0] : !loop.buffer<[n] x f32>
    %1 = loop.load %b[d0] : !loop.buffer<[n] x i1>
    %z = arith.constant 0.0 : f32
    %2 = arith.cmpf ogt, %0, %z : f32
    %3 = arith.andi %1, %2 : i1
    loop.store %3, %y[d0] : !loop.buffer<[n] x i1>
  }
}

// CHECK: ok small_integers
loop.kernel @small_integers(%a: !loop.buffer<[n] x i8>, %b: !loop.buffer<[n] x i16>, %y: !loop.buffer<[n] x i8>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2>,
                test.symbols = [{n = 1}, {n = 63}, {n = 200}]} {
  loop.pointwise [n] {
    %0 = loop.load %a[d0] : !loop.buffer<[n] x i8>
    %1 = loop.load %b[d0] : !loop.buffer<[n] x i16>
    %2 = arith.trunci %1 : i16 to i8
    %3 = arith.addi %0, %2 : i8
    loop.store %3, %y[d0] : !loop.buffer<[n] x i8>
  }
}

// CHECK: ok half
loop.kernel @half(%a: !loop.buffer<[n] x f16>, %b: !loop.buffer<[n] x bf16>, %y: !loop.buffer<[n] x f16>, %z: !loop.buffer<[n] x bf16>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2, 3>,
                test.symbols = [{n = 1}, {n = 63}, {n = 200}]} {
  loop.pointwise [n] {
    %0 = loop.load %a[d0] : !loop.buffer<[n] x f16>
    %1 = loop.load %b[d0] : !loop.buffer<[n] x bf16>
    %2 = arith.extf %0 : f16 to f32
    %3 = arith.extf %1 : bf16 to f32
    %4 = arith.addf %2, %3 : f32
    %5 = arith.truncf %4 : f32 to f16
    %6 = arith.truncf %4 : f32 to bf16
    loop.store %5, %y[d0] : !loop.buffer<[n] x f16>
    loop.store %6, %z[d0] : !loop.buffer<[n] x bf16>
  }
}

// A cast rounds, also where the value is widened again: what is stored is what the rounding takes away.
// CHECK: ok rounded
loop.kernel @rounded(%a: !loop.buffer<[n] x f32>, %y: !loop.buffer<[n] x f32>, %z: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1, 2>, test.symbols = [{n = 63}, {n = 200}]} {
  loop.pointwise [n] {
    %0 = loop.load %a[d0] : !loop.buffer<[n] x f32>
    %1 = arith.truncf %0 : f32 to f16
    %2 = arith.extf %1 : f16 to f32
    %3 = arith.subf %0, %2 : f32
    loop.store %3, %y[d0] : !loop.buffer<[n] x f32>
    %4 = arith.truncf %0 : f32 to bf16
    %5 = arith.extf %4 : bf16 to f32
    %6 = arith.subf %0, %5 : f32
    loop.store %6, %z[d0] : !loop.buffer<[n] x f32>
  }
}

// Padding: outside nothing may be read.
// CHECK: ok pad
loop.kernel @pad(%x: !loop.buffer<[h*w] x f32>, %y: !loop.buffer<[(h+3)*(w+4)] x f32>)
    attributes {symbols = ["h", "w"], parallel = 2 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{h = 1, w = 1}, {h = 5, w = 40}, {h = 0, w = 3}]} {
  loop.pointwise [h + 3, w + 4] {
    %zero = arith.constant 0.5 : f32
    %0 = loop.masked [d0 - 1, h - d0, d1 - 2, w + 1 - d1] else %zero {
      %1 = loop.load %x[(d0 - 1)*w + d1 - 2] : !loop.buffer<[h*w] x f32>
      loop.yield %1 : f32
    } : f32
    loop.store %0, %y[d0*(w+4) + d1] : !loop.buffer<[(h+3)*(w+4)] x f32>
  }
}

// A condition that lanes disagree on, around a load that they share.
// CHECK: ok shared_under_mask
loop.kernel @shared_under_mask(%x: !loop.buffer<[k] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["k", "n"], parallel = 1 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{k = 1, n = 50}, {k = 0, n = 33}]} {
  loop.pointwise [n] {
    %zero = arith.constant 0.5 : f32
    %0 = loop.masked [d0 - 40*(2 - k)] else %zero {
      %1 = loop.load %x[k - 1] : !loop.buffer<[k] x f32>
      loop.yield %1 : f32
    } : f32
    loop.store %0, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// CHECK: ok nearest
loop.kernel @nearest(%x: !loop.buffer<[20] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 60}, {n = 17}]} {
  loop.pointwise [n] {
    %0 = loop.load %x[floordiv(d0, 3)] : !loop.buffer<[20] x f32>
    %1 = loop.load %x[mod(d0*7, 20)] : !loop.buffer<[20] x f32>
    %i = loop.index d0*2 - 5
    %2 = arith.sitofp %i : i64 to f32
    %3 = arith.addf %0, %1 : f32
    %4 = arith.addf %3, %2 : f32
    loop.store %4, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// CHECK: ok strided
loop.kernel @strided(%x: !loop.buffer<[n*4] x f64>, %y: !loop.buffer<[n*2] x f64>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 1}, {n = 29}]} {
  loop.pointwise [n] {
    %0 = loop.load %x[d0*4 + 1] : !loop.buffer<[n*4] x f64>
    %1 = loop.load %y[d0*2 + 1] : !loop.buffer<[n*2] x f64>
    %2 = arith.mulf %0, %1 : f64
    loop.store %2, %y[d0*2] : !loop.buffer<[n*2] x f64>
  }
}
