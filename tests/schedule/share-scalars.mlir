// Kernels that differ in scalars alone are one, which is told them at the launch: once those that are equal in each. What is
// the same in all stays, and so do 0, powers of two that divide, and what occurs once.
// RUN: ptc-opt %s --ptc-share-constants | FileCheck %s

// CHECK:         loop.kernel @scaled_[[HASH:[0-9a-f]+]]({{.*}} symbols = ["s0", "s1", "s2", "s3"]
// CHECK:           %[[INDEX:.*]] = loop.index s1 {loop.number}
// CHECK-NEXT:      %[[BITS:.*]] = arith.trunci %[[INDEX]] : i64 to i32
// CHECK-NEXT:      %[[SCALE:.*]] = arith.bitcast %[[BITS]] : i32 to f32
// CHECK-NEXT:      arith.divf %{{.*}}, %[[SCALE]]
// CHECK-NEXT:      arith.constant 2.550000e+02
// CHECK:           loop.index s2 {loop.number}
// CHECK:           loop.index s3 {loop.number}
// CHECK:           loop.index s1 {loop.number}
// CHECK-NOT:     @scaled_1
// CHECK:         loop.kernel @halved_0
// CHECK:           arith.constant 2.000000e+00
// CHECK:         loop.kernel @halved_1
// CHECK:           arith.constant 4.000000e+00
// CHECK:         loop.kernel @alone
// CHECK:           arith.constant {{.*}} : f32
// CHECK:         loop.launch @scaled_[[HASH]](%{{.*}}) symbols [4, 1036831949, 3, 3212836864]
// CHECK:         loop.launch @scaled_[[HASH]](%{{.*}}) symbols [5, 1050253722, 4294967295, 1077936128]
// CHECK:         loop.launch @alone(%{{.*}}) symbols [4]

loop.kernel @scaled_0(%x: !loop.buffer<[0] x f32, <[0]>>, %y: !loop.buffer<[0] x f32, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [d0] : <[0] x f32, <[0]>>  %1 = arith.constant 1.000000e-01 : f32  %2 = arith.divf %0, %1 : f32
    %3 = arith.constant 2.550000e+02 : f32  %4 = arith.cmpf olt, %2, %3 : f32  %5 = arith.select %4, %2, %3 : f32
    %6 = arith.fptosi %5 : f32 to i32  %7 = arith.constant 3 : i32  %8 = arith.addi %6, %7 : i32
    %9 = arith.sitofp %8 : i32 to f32  %10 = arith.constant -1.000000e+00 : f32  %11 = arith.addf %9, %10 : f32
    %12 = arith.constant 1.000000e-01 : f32  %13 = arith.mulf %11, %12 : f32
    loop.store %13, %y [d0] : <[0] x f32, <[0]>>
  }
}
loop.kernel @scaled_1(%x: !loop.buffer<[0] x f32, <[0]>>, %y: !loop.buffer<[0] x f32, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [d0] : <[0] x f32, <[0]>>  %1 = arith.constant 3.000000e-01 : f32  %2 = arith.divf %0, %1 : f32
    %3 = arith.constant 2.550000e+02 : f32  %4 = arith.cmpf olt, %2, %3 : f32  %5 = arith.select %4, %2, %3 : f32
    %6 = arith.fptosi %5 : f32 to i32  %7 = arith.constant -1 : i32  %8 = arith.addi %6, %7 : i32
    %9 = arith.sitofp %8 : i32 to f32  %10 = arith.constant 3.000000e+00 : f32  %11 = arith.addf %9, %10 : f32
    %12 = arith.constant 3.000000e-01 : f32  %13 = arith.mulf %11, %12 : f32
    loop.store %13, %y [d0] : <[0] x f32, <[0]>>
  }
}
loop.kernel @halved_0(%x: !loop.buffer<[0] x f32, <[0]>>) attributes {arguments_written = array<i64: 0>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [d0] : <[0] x f32, <[0]>>  %1 = arith.constant 2.000000e+00 : f32  %2 = arith.divf %0, %1 : f32
    loop.store %2, %x [d0] : <[0] x f32, <[0]>>
  }
}
loop.kernel @halved_1(%x: !loop.buffer<[0] x f32, <[0]>>) attributes {arguments_written = array<i64: 0>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [d0] : <[0] x f32, <[0]>>  %1 = arith.constant 4.000000e+00 : f32  %2 = arith.divf %0, %1 : f32
    loop.store %2, %x [d0] : <[0] x f32, <[0]>>
  }
}
loop.kernel @alone(%x: !loop.buffer<[0] x f32, <[0]>>) attributes {arguments_written = array<i64: 0>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = arith.constant 0.7 : f32  %1 = loop.load %x [d0] : <[0] x f32, <[0]>>  %2 = arith.mulf %0, %1 : f32
    loop.store %2, %x [d0] : <[0] x f32, <[0]>>
  }
}
loop.program @p(%x: !loop.buffer<[72] x f32, <[0]>> | %y: !loop.buffer<[72] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y"], output_types = [f32],
                symbol_sources = {}, symbols = {}} {
  loop.launch @scaled_0(%x, %y) symbols [4] : !loop.buffer<[72] x f32, <[0]>>, !loop.buffer<[72] x f32, <[0]>>
  loop.launch @scaled_1(%x, %y) symbols [5] : !loop.buffer<[72] x f32, <[0]>>, !loop.buffer<[72] x f32, <[0]>>
  loop.launch @halved_0(%y) symbols [4] : !loop.buffer<[72] x f32, <[0]>>  loop.launch @halved_1(%y) symbols [4] : !loop.buffer<[72] x f32, <[0]>>
  loop.launch @alone(%y) symbols [4] : !loop.buffer<[72] x f32, <[0]>>
}
