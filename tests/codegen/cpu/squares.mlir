// What is read along another dim than it is written goes through squares that are turned in registers.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=OK
// RUN: ptc-kernel %s --level=x86-64-v2 --emit=llvm | FileCheck %s --check-prefix=V2
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefix=WIDE
// OK-NOT: FAIL

// Eight vectors along the rows become eight along the columns.
// OK:             ok matrix
// V2-LABEL:       define {{.*}} @matrix
// V2-COUNT-4:     load <4 x float>
// V2-COUNT-4:     store <4 x float>
// CHECK-LABEL:    define {{.*}} @matrix
// CHECK-COUNT-8:  load <8 x float>
// CHECK:          shufflevector <8 x float> {{.*}} <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 8, i32 9, i32 10, i32 11>
// CHECK-COUNT-8:  store <8 x float>
// WIDE-LABEL:     define {{.*}} @matrix
// WIDE-COUNT-16:  load <16 x float>
// WIDE-COUNT-16:  store <16 x float>
loop.kernel @matrix(%x: !loop.buffer<[n*m] x f32>, %y: !loop.buffer<[m*n] x f32>)
    attributes {symbols = ["n", "m"], parallel = 2 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 1, m = 1}, {n = 7, m = 100}, {n = 64, m = 9}, {n = 83, m = 150}]} {
  loop.pointwise [m, n] {
    %0 = loop.load %x[m*d1 + d0] : !loop.buffer<[n*m] x f32>
    loop.store %0, %y[n*d0 + d1] : !loop.buffer<[m*n] x f32>
  }
}

// An image whose channels become the last dim, beside what lies as the result does and one number for each channel.
// What is left of 49 pixels and 100 channels has narrower squares.
// OK:             ok image
// CHECK-LABEL:    define {{.*}} @image
// CHECK-COUNT-8:  load <8 x float>
// CHECK-COUNT-8:  store <8 x float>
// CHECK:          load <4 x float>
// CHECK:          ret i32
loop.kernel @image(%x: !loop.buffer<[2*100*49] x f32>, %z: !loop.buffer<[2*100*49] x f32>, %b: !loop.buffer<[100] x f32>, %y: !loop.buffer<[2*100*49] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 3>} {
  loop.pointwise [2, 49, 100] {
    %0 = loop.load %x[4900*d0 + 49*d2 + d1] : !loop.buffer<[2*100*49] x f32>
    %1 = loop.load %z[4900*d0 + 100*d1 + d2] : !loop.buffer<[2*100*49] x f32>
    %2 = loop.load %b[d2] : !loop.buffer<[100] x f32>
    %3 = arith.addf %0, %1 : f32
    %4 = arith.mulf %3, %2 : f32
    loop.store %4, %y[4900*d0 + 100*d1 + d2] : !loop.buffer<[2*100*49] x f32>
  }
}

// Two of them at once, in blocks of both dims.
// OK:             ok sum
// CHECK-LABEL:    define {{.*}} @sum
// CHECK-COUNT-16: load <8 x float>
// CHECK-COUNT-8:  store <8 x float>
loop.kernel @sum(%x: !loop.buffer<[200*312] x f32>, %z: !loop.buffer<[200*312] x f32>, %y: !loop.buffer<[200*312] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>} {
  loop.pointwise [200, 312] {
    %0 = loop.load %x[200*d1 + d0] : !loop.buffer<[200*312] x f32>
    %1 = loop.load %z[200*d1 + d0] : !loop.buffer<[200*312] x f32>
    %2 = arith.addf %0, %1 : f32
    loop.store %2, %y[312*d0 + d1] : !loop.buffer<[200*312] x f32>
  }
}

// Sixteen bytes: more vectors would not stay in registers.
// OK:             ok bytes
// CHECK-LABEL:    define {{.*}} @bytes
// CHECK-COUNT-16: load <16 x i8>
// CHECK-COUNT-16: store <16 x i8>
loop.kernel @bytes(%x: !loop.buffer<[70*200] x i8>, %y: !loop.buffer<[70*200] x i8>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [200, 70] {
    %0 = loop.load %x[200*d1 + d0] : !loop.buffer<[70*200] x i8>
    loop.store %0, %y[70*d0 + d1] : !loop.buffer<[70*200] x i8>
  }
}

// OK:             ok doubles
// CHECK-LABEL:    define {{.*}} @doubles
// CHECK-COUNT-4:  load <4 x double>
// CHECK-COUNT-4:  store <4 x double>
loop.kernel @doubles(%x: !loop.buffer<[70*21] x f64>, %y: !loop.buffer<[70*21] x f64>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [21, 70] {
    %0 = loop.load %x[21*d1 + d0] : !loop.buffer<[70*21] x f64>
    loop.store %0, %y[70*d0 + d1] : !loop.buffer<[70*21] x f64>
  }
}

// Three channels of a pixel: no square, three vectors woven into three.
// OK:             ok pixels
// CHECK-LABEL:    define {{.*}} @pixels
// CHECK-COUNT-3:  load <8 x float>
// CHECK:          shufflevector <8 x float>
// CHECK-COUNT-3:  store <8 x float>
loop.kernel @pixels(%x: !loop.buffer<[3*n] x f32>, %z: !loop.buffer<[3] x f32>, %y: !loop.buffer<[3*n] x f32>)
    attributes {symbols = ["n"], parallel = 2 : i64, arguments_written = array<i64: 2>,
                test.symbols = [{n = 1}, {n = 8}, {n = 203}]} {
  loop.pointwise [n, 3] {
    %0 = loop.load %x[n*d1 + d0] : !loop.buffer<[3*n] x f32>
    %1 = loop.load %z[d1] : !loop.buffer<[3] x f32>
    %2 = arith.mulf %0, %1 : f32
    loop.store %2, %y[3*d0 + d1] : !loop.buffer<[3*n] x f32>
  }
}

// Two and four strands, and two results.
// OK:             ok complex
// CHECK-LABEL:    define {{.*}} @complex
// CHECK-COUNT-2:  store <8 x float>
loop.kernel @complex(%x: !loop.buffer<[5*2*37] x f32>, %y: !loop.buffer<[5*2*37] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [5, 37, 2] {
    %0 = loop.load %x[74*d0 + 37*d2 + d1] : !loop.buffer<[5*2*37] x f32>
    loop.store %0, %y[74*d0 + 2*d1 + d2] : !loop.buffer<[5*2*37] x f32>
  }
}

// OK:             ok boxes
// CHECK-LABEL:    define {{.*}} @boxes
// CHECK-COUNT-4:  store <8 x float>
loop.kernel @boxes(%x: !loop.buffer<[4*150] x f32>, %y: !loop.buffer<[4*150] x f32>, %z: !loop.buffer<[4*150] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 1, 2>} {
  loop.pointwise [150, 4] {
    %0 = loop.load %x[150*d1 + d0] : !loop.buffer<[4*150] x f32>
    %1 = arith.negf %0 : f32
    loop.store %0, %y[4*d0 + d1] : !loop.buffer<[4*150] x f32>
    loop.store %1, %z[4*d0 + d1] : !loop.buffer<[4*150] x f32>
  }
}

// One row at eight shifts, with zeros beside it: what each strand reads is known, eight vectors are woven, and the last
// ones begin where the row has a whole vector left.
// OK:             ok shifts
// CHECK-LABEL:    define {{.*}} @shifts
// CHECK-NOT:      select i1
// CHECK-COUNT-8:  call <8 x float> @llvm.masked.load
// CHECK-COUNT-16: store <8 x float>
// CHECK:          ret i32
loop.kernel @shifts(%x: !loop.buffer<[5*53] x f32>, %y: !loop.buffer<[5*53*8] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [5, 53, 8] {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d1 + select(eq(d2, 0), -9, select(eq(d2, 1), 0, select(eq(d2, 2), 5, select(eq(d2, 3), 11, select(eq(d2, 4), 12, select(eq(d2, 5), 30, select(eq(d2, 6), 40, 60))))))),
                      -d1 - select(eq(d2, 0), -9, select(eq(d2, 1), 0, select(eq(d2, 2), 5, select(eq(d2, 3), 11, select(eq(d2, 4), 12, select(eq(d2, 5), 30, select(eq(d2, 6), 40, 60))))))) + 52] else %zero {
      %1 = loop.load %x[53*d0 + d1 + select(eq(d2, 0), -9, select(eq(d2, 1), 0, select(eq(d2, 2), 5, select(eq(d2, 3), 11, select(eq(d2, 4), 12, select(eq(d2, 5), 30, select(eq(d2, 6), 40, 60)))))))] : !loop.buffer<[5*53] x f32>
      loop.yield %1 : f32
    } : f32
    loop.store %0, %y[424*d0 + 8*d1 + d2] : !loop.buffer<[5*53*8] x f32>
  }
}

// Rows of any length, and such as have no whole vector.
// OK:             ok any_rows
loop.kernel @any_rows(%x: !loop.buffer<[3*n] x f32>, %y: !loop.buffer<[12*n] x f32>)
    attributes {symbols = ["n"], parallel = 3 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 1}, {n = 2}, {n = 5}, {n = 17}, {n = 64}, {n = 203}]} {
  loop.pointwise [3, n, 4] {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [select(eq(d2, 0), d1 - 1, select(eq(d2, 1), 0, select(eq(d2, 2), n - d1 - 2, n - d1 - 3)))] else %zero {
      %1 = loop.load %x[n*d0 + d1 + select(eq(d2, 0), -1, select(eq(d2, 1), 0, select(eq(d2, 2), 1, 2)))] : !loop.buffer<[3*n] x f32>
      loop.yield %1 : f32
    } : f32
    loop.store %0, %y[4*n*d0 + 4*d1 + d2] : !loop.buffer<[12*n] x f32>
  }
}

// OK:             ok short_rows
loop.kernel @short_rows(%x: !loop.buffer<[3*11] x f32>, %y: !loop.buffer<[3*11*8] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [3, 11, 8] {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [-d1 - d2 + 10] else %zero {
      %1 = loop.load %x[11*d0 + d1 + select(eq(d2, 7), 7, d2)] : !loop.buffer<[3*11] x f32>
      loop.yield %1 : f32
    } : f32
    loop.store %0, %y[88*d0 + 8*d1 + d2] : !loop.buffer<[3*11*8] x f32>
  }
}

// What lies where the results go may be their memory: no pixel is computed twice, and four vectors of both strands are all.
// OK:             ok added
// CHECK-LABEL:    define {{.*}} @added
// CHECK-COUNT-8:  store <8 x float>
// CHECK-NOT:      store <8 x float>
// CHECK:          ret i32
loop.kernel @added(%x: !loop.buffer<[2*37] x f32>, %z: !loop.buffer<[37*2] x f32>, %y: !loop.buffer<[37*2] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>} {
  loop.pointwise [37, 2] {
    %0 = loop.load %x[37*d1 + d0] : !loop.buffer<[2*37] x f32>
    %1 = loop.load %z[2*d0 + d1] : !loop.buffer<[37*2] x f32>
    %2 = arith.addf %0, %1 : f32
    loop.store %2, %y[2*d0 + d1] : !loop.buffer<[37*2] x f32>
  }
}
