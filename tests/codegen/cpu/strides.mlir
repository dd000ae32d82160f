// Lanes that step by 2 to 4 elements are taken out of whole vectors, which end where the last lane's element ends.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=OK
// RUN: ptc-kernel %s --level=x86-64-v2 --emit=llvm | FileCheck %s --check-prefix=V2
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefix=WIDE
// RUN: ptc-kernel %s --level=aarch64 --emit=llvm | FileCheck %s --check-prefix=V2
// OK-NOT: FAIL

// Two loads, seven elements apart.
// OK:            ok every_second
// CHECK-LABEL:   define {{.*}} @every_second
// CHECK-NOT:     gather
// CHECK:         load <8 x float>
// CHECK:         load <8 x float>
// CHECK:         shufflevector <8 x float> {{.*}} <8 x i32> <i32 0, i32 9, i32 2, i32 11, i32 4, i32 13, i32 6, i32 15>
// CHECK:         shufflevector <8 x float> {{.*}} <8 x i32> <i32 0, i32 2, i32 4, i32 6, i32 1, i32 3, i32 5, i32 7>
// CHECK-NOT:     gather
// CHECK:         ret i32
// V2-LABEL:      define {{.*}} @every_second
// V2-NOT:        gather
// V2:            shufflevector <4 x float> {{.*}} <4 x i32> <i32 0, i32 5, i32 2, i32 7>
// V2:            shufflevector <4 x float> {{.*}} <4 x i32> <i32 0, i32 2, i32 1, i32 3>
// V2-NOT:        gather
// V2:            ret i32
// WIDE-LABEL:    define {{.*}} @every_second
// WIDE-NOT:      gather
// WIDE:          load <16 x float>
// WIDE-NOT:      gather
// WIDE:          ret i32
loop.kernel @every_second(%x: !loop.buffer<[2*n] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 1}, {n = 2}, {n = 3}, {n = 7}, {n = 8}, {n = 75}]} {
  loop.pointwise [n] {
    %0 = loop.load %x[2*d0 + 1] : !loop.buffer<[2*n] x f32>
    loop.store %0, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// Three elements apart; where the places meet the lanes' order is the only one.
// OK:            ok every_third
// CHECK-LABEL:   define {{.*}} @every_third
// CHECK-NOT:     gather
// CHECK:         ret i32
// V2-LABEL:      define {{.*}} @every_third
// V2-NOT:        gather
// V2:            ret i32
loop.kernel @every_third(%x: !loop.buffer<[3*n - 2] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 1}, {n = 2}, {n = 5}, {n = 16}, {n = 77}]} {
  loop.pointwise [n] {
    %0 = loop.load %x[3*d0] : !loop.buffer<[3*n - 2] x f32>
    loop.store %0, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// Types of all widths, and a stride that is too long.
// OK: ok bytes
loop.kernel @bytes(%x: !loop.buffer<[4*n - 3] x i8>, %y: !loop.buffer<[n] x i8>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 1}, {n = 31}, {n = 64}, {n = 203}]} {
  loop.pointwise [n] {
    %0 = loop.load %x[4*d0] : !loop.buffer<[4*n - 3] x i8>
    loop.store %0, %y[d0] : !loop.buffer<[n] x i8>
  }
}
// OK: ok halves
loop.kernel @halves(%x: !loop.buffer<[3*n] x f16>, %y: !loop.buffer<[n] x f16>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 1}, {n = 31}, {n = 99}]} {
  loop.pointwise [n] {
    %0 = loop.load %x[3*d0 + 2] : !loop.buffer<[3*n] x f16>
    loop.store %0, %y[d0] : !loop.buffer<[n] x f16>
  }
}
// OK: ok doubles
loop.kernel @doubles(%x: !loop.buffer<[4*n] x f64>, %y: !loop.buffer<[n] x f64>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 1}, {n = 6}, {n = 35}]} {
  loop.pointwise [n] {
    %0 = loop.load %x[4*d0 + 3] : !loop.buffer<[4*n] x f64>
    %1 = loop.load %x[4*d0] : !loop.buffer<[4*n] x f64>
    %2 = arith.addf %0, %1 : f64
    loop.store %2, %y[d0] : !loop.buffer<[n] x f64>
  }
}
// OK:          ok fifths
// CHECK-LABEL: define {{.*}} @fifths
// CHECK:       gather
// CHECK:       ret i32
loop.kernel @fifths(%x: !loop.buffer<[5*75] x f32>, %y: !loop.buffer<[75] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [75] {
    %0 = loop.load %x[5*d0] : !loop.buffer<[5*75] x f32>
    loop.store %0, %y[d0] : !loop.buffer<[75] x f32>
  }
}

// Pooling, channels first: the lanes' maxima stay as the loads are merged, and are put in order at the end, once. Vectors
// in the middle of a row ask nothing about its ends.
// OK:            ok pool
// CHECK-LABEL:   define {{.*}} @pool
// CHECK-NOT:     gather
// CHECK:         call <8 x float> @llvm.masked.load{{.*}} <i1 false, i1 false, i1 true, i1 false, i1 true, i1 false, i1 true, i1 false>
// CHECK:         shufflevector <8 x float> {{.*}} <8 x i32> <i32 poison, i32 9, i32 2, i32 11, i32 4, i32 13, i32 6, i32 15>
// CHECK:         shufflevector <8 x float> {{.*}} <8 x i32> <i32 0, i32 9, i32 2, i32 11, i32 4, i32 13, i32 6, i32 15>
// CHECK-NOT:     gather
// CHECK:         shufflevector <8 x float> {{.*}} <8 x i32> <i32 0, i32 2, i32 4, i32 6, i32 1, i32 3, i32 5, i32 7>
// CHECK-NOT:     gather
// CHECK:         ret i32
// WIDE-LABEL:    define {{.*}} @pool
// WIDE-NOT:      gather
// WIDE:          ret i32
loop.kernel @pool(%x: !loop.buffer<[5*58*58] x f32>, %y: !loop.buffer<[5*29*29] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 1>} {
  loop.reduction [5, 29, 29, 3, 3] reduced 2 {
    %low = arith.constant 0xFF800000 : f32
    %0 = loop.masked [2*d1 + d3 - 1, 58 - 2*d1 - d3, 2*d2 + d4 - 1, 58 - 2*d2 - d4] else %low {
      %2 = loop.load %x[3364*d0 + 58*(2*d1 + d3 - 1) + 2*d2 + d4 - 1] : !loop.buffer<[5*58*58] x f32>
      loop.yield %2 : f32
    } : f32
    %1 = loop.reduce max %0 : f32
    loop.store %1, %y[841*d0 + 29*d1 + d2] : !loop.buffer<[5*29*29] x f32>
  }
}

// A place of the largest beside it.
// OK: ok places
loop.kernel @places(%x: !loop.buffer<[3*2*n] x f32>, %y: !loop.buffer<[3*n] x i64>)
    attributes {symbols = ["n"], parallel = 2 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 1}, {n = 3}, {n = 8}, {n = 37}]} {
  loop.reduction [3, n, 3] reduced 1 {
    %low = arith.constant 0xFF800000 : f32
    %0 = loop.masked [2*d1 + d2 - 1, 2*n - 2*d1 - d2] else %low {
      %2 = loop.load %x[2*n*d0 + 2*d1 + d2 - 1] : !loop.buffer<[3*2*n] x f32>
      loop.yield %2 : f32
    } : f32
    %1 = loop.arg_reduce max %0, false : f32
    loop.store %1, %y[n*d0 + d1] : !loop.buffer<[3*n] x i64>
  }
}

// A depthwise convolution whose window moves by two; by four with what else each lane has.
// OK:            ok depthwise
// CHECK-LABEL:   define {{.*}} @depthwise
// CHECK-NOT:     gather
// CHECK:         ret i32
loop.kernel @depthwise(%x: !loop.buffer<[6*28*28] x f32>, %w: !loop.buffer<[6*25] x f32>, %y: !loop.buffer<[6*14*14] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [6, 14, 14, 5, 5] reduced 2 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [2*d1 + d3 - 2, 29 - 2*d1 - d3, 2*d2 + d4 - 2, 29 - 2*d2 - d4] else %zero {
      %4 = loop.load %x[784*d0 + 28*(2*d1 + d3 - 2) + 2*d2 + d4 - 2] : !loop.buffer<[6*28*28] x f32>
      loop.yield %4 : f32
    } : f32
    %1 = loop.load %w[25*d0 + 5*d3 + d4] : !loop.buffer<[6*25] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[196*d0 + 14*d1 + d2] : !loop.buffer<[6*14*14] x f32>
  }
}
// OK: ok beside
loop.kernel @beside(%x: !loop.buffer<[4*n + 3] x f32>, %u: !loop.buffer<[n] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5,
                test.symbols = [{n = 1}, {n = 5}, {n = 16}, {n = 75}]} {
  loop.reduction [n, 7] reduced 1 {
    %0 = loop.load %x[4*d0 + d1] : !loop.buffer<[4*n + 3] x f32>
    %1 = loop.load %x[4*d0 - d1 + 6] : !loop.buffer<[4*n + 3] x f32>
    %2 = loop.load %u[d0] : !loop.buffer<[n] x f32>
    %at = loop.index d0 + d1
    %i = arith.sitofp %at : i64 to f32
    %3 = arith.mulf %0, %2 : f32
    %4 = arith.mulf %1, %i : f32
    %5 = arith.addf %3, %4 : f32
    %sum = loop.reduce sum %5 : f32
    loop.store %sum, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// What a reduction stores of each point for the nodes behind it is in the lanes' order.
// OK:            ok rows_of_four
loop.kernel @rows_of_four(%x: !loop.buffer<[4*n] x f32>, %y: !loop.buffer<[4*n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 1>, test.tolerance = 1.0e-5,
                test.symbols = [{n = 1}, {n = 8}, {n = 77}]} {
  %each = loop.buffer : !loop.buffer<[4] x f32>
  %sum = loop.buffer : !loop.buffer<[1] x f32>
  loop.reduction [n, 4] reduced 1 {
    %0 = loop.load %x[4*d0 + d1] : !loop.buffer<[4*n] x f32>
    %1 = math.exp %0 : f32
    loop.store %1, %each[d1] : !loop.buffer<[4] x f32>
    %2 = loop.reduce sum %1 : f32
    loop.store %2, %sum[0] : !loop.buffer<[1] x f32>
  }
  loop.pointwise [n, 4] {
    %0 = loop.load %each[d1] : !loop.buffer<[4] x f32>
    %1 = loop.load %sum[0] : !loop.buffer<[1] x f32>
    %2 = arith.divf %0, %1 : f32
    loop.store %2, %y[4*d0 + d1] : !loop.buffer<[4*n] x f32>
  }
}
