// A stored number becomes a loop.index of the symbol; the text of a kernel that holds a constant loop.index is that of
// such a kernel without its number, but it has one number fewer. It keeps what it has, the others are one.
// RUN: ptc-opt %s --ptc-share-constants | FileCheck %s

// CHECK:         loop.kernel @numbered_[[HASH:[0-9a-f]+]]({{.*}} symbols = ["s0", "s1"]
// CHECK:           loop.load %{{.*}} [9*d0 + s1]
// CHECK:           loop.index s1
// CHECK:         loop.kernel @numbered_3({{.*}} symbols = ["s0"]
// CHECK:           loop.load %{{.*}} [9*d0 + 3]
// CHECK:           loop.index 0
// CHECK-NOT:     loop.kernel
// CHECK-DAG:     loop.launch @numbered_[[HASH]]({{.*}}) symbols [4, 0]
// CHECK-DAG:     loop.launch @numbered_3({{.*}}) symbols [4]
// CHECK-DAG:     loop.launch @numbered_[[HASH]]({{.*}}) symbols [4, 8]

loop.kernel @numbered_0(%x: !loop.buffer<[0] x i64, <[0]>>, %y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [9*d0] : <[0] x i64, <[0]>>  loop.store %0, %y [d0 + 1] : <[0] x i64, <[0]>>
    %1 = arith.constant 0 : i64  loop.store %1, %y [d0] : <[0] x i64, <[0]>>
  }
}
loop.kernel @numbered_1(%x: !loop.buffer<[0] x i64, <[0]>>, %y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [9*d0 + 1] : <[0] x i64, <[0]>>  loop.store %0, %y [d0 + 1] : <[0] x i64, <[0]>>
    %1 = arith.constant 1 : i64  loop.store %1, %y [d0] : <[0] x i64, <[0]>>
  }
}
loop.kernel @numbered_2(%x: !loop.buffer<[0] x i64, <[0]>>, %y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [9*d0 + 2] : <[0] x i64, <[0]>>  loop.store %0, %y [d0 + 1] : <[0] x i64, <[0]>>
    %1 = arith.constant 2 : i64  loop.store %1, %y [d0] : <[0] x i64, <[0]>>
  }
}
loop.kernel @numbered_3(%x: !loop.buffer<[0] x i64, <[0]>>, %y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [9*d0 + 3] : <[0] x i64, <[0]>>  loop.store %0, %y [d0 + 1] : <[0] x i64, <[0]>>
    %1 = loop.index 0  loop.store %1, %y [d0] : <[0] x i64, <[0]>>
  }
}
loop.kernel @numbered_4(%x: !loop.buffer<[0] x i64, <[0]>>, %y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [9*d0 + 4] : <[0] x i64, <[0]>>  loop.store %0, %y [d0 + 1] : <[0] x i64, <[0]>>
    %1 = arith.constant 4 : i64  loop.store %1, %y [d0] : <[0] x i64, <[0]>>
  }
}
loop.kernel @numbered_5(%x: !loop.buffer<[0] x i64, <[0]>>, %y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [9*d0 + 5] : <[0] x i64, <[0]>>  loop.store %0, %y [d0 + 1] : <[0] x i64, <[0]>>
    %1 = arith.constant 5 : i64  loop.store %1, %y [d0] : <[0] x i64, <[0]>>
  }
}
loop.kernel @numbered_6(%x: !loop.buffer<[0] x i64, <[0]>>, %y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [9*d0 + 6] : <[0] x i64, <[0]>>  loop.store %0, %y [d0 + 1] : <[0] x i64, <[0]>>
    %1 = arith.constant 6 : i64  loop.store %1, %y [d0] : <[0] x i64, <[0]>>
  }
}
loop.kernel @numbered_7(%x: !loop.buffer<[0] x i64, <[0]>>, %y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [9*d0 + 7] : <[0] x i64, <[0]>>  loop.store %0, %y [d0 + 1] : <[0] x i64, <[0]>>
    %1 = arith.constant 7 : i64  loop.store %1, %y [d0] : <[0] x i64, <[0]>>
  }
}
loop.kernel @numbered_8(%x: !loop.buffer<[0] x i64, <[0]>>, %y: !loop.buffer<[0] x i64, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [s0] {
    %0 = loop.load %x [9*d0 + 8] : <[0] x i64, <[0]>>  loop.store %0, %y [d0 + 1] : <[0] x i64, <[0]>>
    %1 = arith.constant 8 : i64  loop.store %1, %y [d0] : <[0] x i64, <[0]>>
  }
}
loop.program @p(%x: !loop.buffer<[72] x i64, <[0]>> | %y: !loop.buffer<[72] x i64, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [i64], output_names = ["y"], output_types = [i64],
                symbol_sources = {}, symbols = {}} {
  loop.launch @numbered_0(%x, %y) symbols [4] : !loop.buffer<[72] x i64, <[0]>>, !loop.buffer<[72] x i64, <[0]>>
  loop.launch @numbered_1(%x, %y) symbols [4] : !loop.buffer<[72] x i64, <[0]>>, !loop.buffer<[72] x i64, <[0]>>
  loop.launch @numbered_2(%x, %y) symbols [4] : !loop.buffer<[72] x i64, <[0]>>, !loop.buffer<[72] x i64, <[0]>>
  loop.launch @numbered_3(%x, %y) symbols [4] : !loop.buffer<[72] x i64, <[0]>>, !loop.buffer<[72] x i64, <[0]>>
  loop.launch @numbered_4(%x, %y) symbols [4] : !loop.buffer<[72] x i64, <[0]>>, !loop.buffer<[72] x i64, <[0]>>
  loop.launch @numbered_5(%x, %y) symbols [4] : !loop.buffer<[72] x i64, <[0]>>, !loop.buffer<[72] x i64, <[0]>>
  loop.launch @numbered_6(%x, %y) symbols [4] : !loop.buffer<[72] x i64, <[0]>>, !loop.buffer<[72] x i64, <[0]>>
  loop.launch @numbered_7(%x, %y) symbols [4] : !loop.buffer<[72] x i64, <[0]>>, !loop.buffer<[72] x i64, <[0]>>
  loop.launch @numbered_8(%x, %y) symbols [4] : !loop.buffer<[72] x i64, <[0]>>, !loop.buffer<[72] x i64, <[0]>>
}
