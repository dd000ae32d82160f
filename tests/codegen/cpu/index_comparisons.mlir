// An index beside a number that the lanes share is compared in 32-bit lanes, whatever the number is: each predicate,
// with the index on either side.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=OK
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s
// OK-NOT: FAIL

// OK:          ok places
// CHECK-LABEL: define {{.*}}places
// CHECK:       call i64 @llvm.smax.i64
// CHECK-NOT:   <8 x i64>
// CHECK:       icmp eq <8 x i32>
// CHECK-NOT:   <8 x i64>
// CHECK:       ret i32
loop.kernel @places(%x: !loop.buffer<[11] x i64>, %y: !loop.buffer<[11*45] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [11, 45] {
    %place = loop.index d1
    %far = arith.constant 4294967299 : i64
    %0 = loop.load %x[d0] : !loop.buffer<[11] x i64>
    %1 = loop.index 5*d0
    %isFirst = arith.cmpi slt, %1, %0 : i64
    %2 = arith.select %isFirst, %1, %far : i64
    %3 = arith.cmpi eq, %place, %2 : i64
    %a = arith.constant 1.0 : f32
    %b = arith.constant 0.0 : f32
    %4 = arith.select %3, %a, %b : f32
    loop.store %4, %y[d0*45 + d1] : !loop.buffer<[11*45] x f32>
  }
}

// OK:          ok lengths
// CHECK-LABEL: define {{.*}}lengths
// CHECK-NOT:   <8 x i64>
// CHECK:       ret i32
loop.kernel @lengths(%x: !loop.buffer<[9] x i64>, %y: !loop.buffer<[9*70] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [9, 70] {
    %0 = loop.load %x[d0] : !loop.buffer<[9] x i64>
    %place = loop.index 3*d1 - 50
    %back = loop.index 11*d0 - d1
    %1 = arith.cmpi slt, %place, %0 : i64
    %2 = arith.cmpi sle, %0, %place : i64
    %3 = arith.cmpi sgt, %place, %0 : i64
    %4 = arith.cmpi sge, %0, %back : i64
    %5 = arith.cmpi ne, %back, %0 : i64
    %n1 = arith.uitofp %1 : i1 to f32
    %n2 = arith.uitofp %2 : i1 to f32
    %n3 = arith.uitofp %3 : i1 to f32
    %n4 = arith.uitofp %4 : i1 to f32
    %n5 = arith.uitofp %5 : i1 to f32
    %two = arith.constant 2.0 : f32
    %m2 = arith.mulf %n1, %two : f32
    %s2 = arith.addf %m2, %n2 : f32
    %m3 = arith.mulf %s2, %two : f32
    %s3 = arith.addf %m3, %n3 : f32
    %m4 = arith.mulf %s3, %two : f32
    %s4 = arith.addf %m4, %n4 : f32
    %m5 = arith.mulf %s4, %two : f32
    %s5 = arith.addf %m5, %n5 : f32
    loop.store %s5, %y[d0*70 + d1] : !loop.buffer<[9*70] x f32>
  }
}

// Unsigned ones, numbers that differ in the lanes and indices that 32 bits may not hold stay as they are.
// OK:          ok others
// CHECK-LABEL: define {{.*}}others
// CHECK:       icmp {{.*}}<{{[0-9]+}} x i64>
loop.kernel @others(%x: !loop.buffer<[70] x i64>, %y: !loop.buffer<[9*70] x i1>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [9, 70] {
    %0 = loop.load %x[d0] : !loop.buffer<[70] x i64>
    %1 = loop.load %x[d1] : !loop.buffer<[70] x i64>
    %place = loop.index d1
    %far = loop.index 1073741824*d1
    %2 = arith.cmpi ult, %place, %0 : i64
    %3 = arith.cmpi slt, %place, %1 : i64
    %4 = arith.cmpi slt, %far, %0 : i64
    %5 = arith.xori %2, %3 : i1
    %6 = arith.xori %5, %4 : i1
    loop.store %6, %y[d0*70 + d1] : !loop.buffer<[9*70] x i1>
  }
}
