// Many kernels that differ in where they begin to read and write, and in what they store, are one, which is told these
// numbers at the launch: once those that differ alike. What is computed with stays as it is, and so do few kernels.
// RUN: ptc-opt %s --ptc-share-constants | FileCheck %s

// CHECK:         loop.kernel @numbered_[[HASH:[0-9a-f]+]]({{.*}} symbols = ["s0", "s1", "s2"]
// CHECK:           loop.load %{{.*}} [9*d0 + s1]
// CHECK:           arith.constant 5
// CHECK:           %[[N:.*]] = loop.index s2
// CHECK:           loop.store %{{.*}}, %{{.*}} [d0 + s1 + 1]
// CHECK:           loop.store %[[N]], %{{.*}} [d0]
// CHECK-NOT:     loop.kernel @numbered
// CHECK-COUNT-7: loop.kernel @few
// CHECK-DAG:     loop.launch @numbered_[[HASH]]({{.*}}) symbols [4, 0, 30]
// CHECK-DAG:     loop.launch @numbered_[[HASH]]({{.*}}) symbols [2, 7, 44]
// CHECK-DAG:     loop.launch @few_6({{.*}}) symbols []

loop.kernel @numbered_0(%x: !loop.buffer<[0] x i64, <[0]>>, %y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [9*d0] : <[0] x i64, <[0]>>  %1 = arith.constant 5 : i64  %2 = arith.addi %0, %1 : i64
    %3 = arith.constant 30 : i64  loop.store %2, %y [d0 + 1] : <[0] x i64, <[0]>>  loop.store %3, %y [d0] : <[0] x i64, <[0]>>
  }
}
loop.kernel @numbered_1(%x: !loop.buffer<[0] x i64, <[0]>>, %y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [9*d0 + 1] : <[0] x i64, <[0]>>  %1 = arith.constant 5 : i64  %2 = arith.addi %0, %1 : i64
    %3 = arith.constant 32 : i64  loop.store %2, %y [d0 + 2] : <[0] x i64, <[0]>>  loop.store %3, %y [d0] : <[0] x i64, <[0]>>
  }
}
loop.kernel @numbered_2(%x: !loop.buffer<[0] x i64, <[0]>>, %y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [9*d0 + 2] : <[0] x i64, <[0]>>  %1 = arith.constant 5 : i64  %2 = arith.addi %0, %1 : i64
    %3 = arith.constant 34 : i64  loop.store %2, %y [d0 + 3] : <[0] x i64, <[0]>>  loop.store %3, %y [d0] : <[0] x i64, <[0]>>
  }
}
loop.kernel @numbered_3(%x: !loop.buffer<[0] x i64, <[0]>>, %y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [9*d0 + 3] : <[0] x i64, <[0]>>  %1 = arith.constant 5 : i64  %2 = arith.addi %0, %1 : i64
    %3 = arith.constant 36 : i64  loop.store %2, %y [d0 + 4] : <[0] x i64, <[0]>>  loop.store %3, %y [d0] : <[0] x i64, <[0]>>
  }
}
loop.kernel @numbered_4(%x: !loop.buffer<[0] x i64, <[0]>>, %y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [9*d0 + 4] : <[0] x i64, <[0]>>  %1 = arith.constant 5 : i64  %2 = arith.addi %0, %1 : i64
    %3 = arith.constant 38 : i64  loop.store %2, %y [d0 + 5] : <[0] x i64, <[0]>>  loop.store %3, %y [d0] : <[0] x i64, <[0]>>
  }
}
loop.kernel @numbered_5(%x: !loop.buffer<[0] x i64, <[0]>>, %y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [9*d0 + 5] : <[0] x i64, <[0]>>  %1 = arith.constant 5 : i64  %2 = arith.addi %0, %1 : i64
    %3 = arith.constant 40 : i64  loop.store %2, %y [d0 + 6] : <[0] x i64, <[0]>>  loop.store %3, %y [d0] : <[0] x i64, <[0]>>
  }
}
loop.kernel @numbered_6(%x: !loop.buffer<[0] x i64, <[0]>>, %y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [9*d0 + 6] : <[0] x i64, <[0]>>  %1 = arith.constant 5 : i64  %2 = arith.addi %0, %1 : i64
    %3 = arith.constant 42 : i64  loop.store %2, %y [d0 + 7] : <[0] x i64, <[0]>>  loop.store %3, %y [d0] : <[0] x i64, <[0]>>
  }
}
loop.kernel @numbered_7(%x: !loop.buffer<[0] x i64, <[0]>>, %y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [9*d0 + 7] : <[0] x i64, <[0]>>  %1 = arith.constant 5 : i64  %2 = arith.addi %0, %1 : i64
    %3 = arith.constant 44 : i64  loop.store %2, %y [d0 + 8] : <[0] x i64, <[0]>>  loop.store %3, %y [d0] : <[0] x i64, <[0]>>
  }
}
loop.kernel @few_0(%y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 0>, parallel = 1 : i64, symbols = []} {
  loop.pointwise [4] { %0 = arith.constant 0 : i64  loop.store %0, %y [d0] : <[0] x i64, <[0]>> }
}
loop.kernel @few_1(%y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 0>, parallel = 1 : i64, symbols = []} {
  loop.pointwise [4] { %0 = arith.constant 1 : i64  loop.store %0, %y [d0] : <[0] x i64, <[0]>> }
}
loop.kernel @few_2(%y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 0>, parallel = 1 : i64, symbols = []} {
  loop.pointwise [4] { %0 = arith.constant 2 : i64  loop.store %0, %y [d0] : <[0] x i64, <[0]>> }
}
loop.kernel @few_3(%y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 0>, parallel = 1 : i64, symbols = []} {
  loop.pointwise [4] { %0 = arith.constant 3 : i64  loop.store %0, %y [d0] : <[0] x i64, <[0]>> }
}
loop.kernel @few_4(%y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 0>, parallel = 1 : i64, symbols = []} {
  loop.pointwise [4] { %0 = arith.constant 4 : i64  loop.store %0, %y [d0] : <[0] x i64, <[0]>> }
}
loop.kernel @few_5(%y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 0>, parallel = 1 : i64, symbols = []} {
  loop.pointwise [4] { %0 = arith.constant 5 : i64  loop.store %0, %y [d0] : <[0] x i64, <[0]>> }
}
loop.kernel @few_6(%y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 0>, parallel = 1 : i64, symbols = []} {
  loop.pointwise [4] { %0 = arith.constant 6 : i64  loop.store %0, %y [d0] : <[0] x i64, <[0]>> }
}
loop.program @p(%x: !loop.buffer<[72] x i64, <[0]>> | %y: !loop.buffer<[72] x i64, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [i64], output_names = ["y"], output_types = [i64],
                symbol_sources = {}, symbols = {}} {
  loop.launch @numbered_0(%x, %y) symbols [4] : !loop.buffer<[72] x i64, <[0]>>, !loop.buffer<[72] x i64, <[0]>> loop.launch @numbered_1(%x, %y) symbols [4] : !loop.buffer<[72] x i64, <[0]>>, !loop.buffer<[72] x i64, <[0]>>
  loop.launch @numbered_2(%x, %y) symbols [4] : !loop.buffer<[72] x i64, <[0]>>, !loop.buffer<[72] x i64, <[0]>> loop.launch @numbered_3(%x, %y) symbols [4] : !loop.buffer<[72] x i64, <[0]>>, !loop.buffer<[72] x i64, <[0]>>
  loop.launch @numbered_4(%x, %y) symbols [4] : !loop.buffer<[72] x i64, <[0]>>, !loop.buffer<[72] x i64, <[0]>> loop.launch @numbered_5(%x, %y) symbols [4] : !loop.buffer<[72] x i64, <[0]>>, !loop.buffer<[72] x i64, <[0]>>
  loop.launch @numbered_6(%x, %y) symbols [4] : !loop.buffer<[72] x i64, <[0]>>, !loop.buffer<[72] x i64, <[0]>> loop.launch @numbered_7(%x, %y) symbols [2] : !loop.buffer<[72] x i64, <[0]>>, !loop.buffer<[72] x i64, <[0]>>
  loop.launch @few_0(%y) symbols [] : !loop.buffer<[72] x i64, <[0]>> loop.launch @few_1(%y) symbols [] : !loop.buffer<[72] x i64, <[0]>>
  loop.launch @few_2(%y) symbols [] : !loop.buffer<[72] x i64, <[0]>> loop.launch @few_3(%y) symbols [] : !loop.buffer<[72] x i64, <[0]>>
  loop.launch @few_4(%y) symbols [] : !loop.buffer<[72] x i64, <[0]>> loop.launch @few_5(%y) symbols [] : !loop.buffer<[72] x i64, <[0]>>
  loop.launch @few_6(%y) symbols [] : !loop.buffer<[72] x i64, <[0]>>
}
