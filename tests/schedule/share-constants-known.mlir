// Kernels that become one which the program has already: its launches and theirs are of that one.
// RUN: ptc-opt %s --ptc-share-constants | FileCheck %s

// CHECK-NOT:     loop.kernel
// CHECK:         loop.kernel @part_[[HASH:[0-9a-f]+]]({{.*}} symbols = ["s0"]
// CHECK-NOT:     loop.kernel
// CHECK:         loop.launch @part_[[HASH]]({{.*}}) symbols [3]
// CHECK-COUNT-6: loop.launch @part_[[HASH]]
// CHECK:         loop.launch @part_[[HASH]]({{.*}}) symbols [38]
// CHECK:         loop.launch @part_[[HASH]]({{.*}}) symbols [7]

loop.kernel @part_0(%x: !loop.buffer<[0] x f32, <[0]>>, %y: !loop.buffer<[1] x f32, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = []} {
  loop.reduction [5] reduced 1 {
    %0 = loop.load %x [d0 + 3] : <[0] x f32, <[0]>>  %1 = loop.reduce max %0 : f32  loop.store %1, %y [0] : <[1] x f32, <[0]>>
  }
}
loop.kernel @part_1(%x: !loop.buffer<[0] x f32, <[0]>>, %y: !loop.buffer<[1] x f32, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = []} {
  loop.reduction [5] reduced 1 {
    %0 = loop.load %x [d0 + 8] : <[0] x f32, <[0]>>  %1 = loop.reduce max %0 : f32  loop.store %1, %y [0] : <[1] x f32, <[0]>>
  }
}
loop.kernel @part_2(%x: !loop.buffer<[0] x f32, <[0]>>, %y: !loop.buffer<[1] x f32, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = []} {
  loop.reduction [5] reduced 1 {
    %0 = loop.load %x [d0 + 13] : <[0] x f32, <[0]>>  %1 = loop.reduce max %0 : f32  loop.store %1, %y [0] : <[1] x f32, <[0]>>
  }
}
loop.kernel @part_3(%x: !loop.buffer<[0] x f32, <[0]>>, %y: !loop.buffer<[1] x f32, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = []} {
  loop.reduction [5] reduced 1 {
    %0 = loop.load %x [d0 + 18] : <[0] x f32, <[0]>>  %1 = loop.reduce max %0 : f32  loop.store %1, %y [0] : <[1] x f32, <[0]>>
  }
}
loop.kernel @part_4(%x: !loop.buffer<[0] x f32, <[0]>>, %y: !loop.buffer<[1] x f32, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = []} {
  loop.reduction [5] reduced 1 {
    %0 = loop.load %x [d0 + 23] : <[0] x f32, <[0]>>  %1 = loop.reduce max %0 : f32  loop.store %1, %y [0] : <[1] x f32, <[0]>>
  }
}
loop.kernel @part_5(%x: !loop.buffer<[0] x f32, <[0]>>, %y: !loop.buffer<[1] x f32, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = []} {
  loop.reduction [5] reduced 1 {
    %0 = loop.load %x [d0 + 28] : <[0] x f32, <[0]>>  %1 = loop.reduce max %0 : f32  loop.store %1, %y [0] : <[1] x f32, <[0]>>
  }
}
loop.kernel @part_6(%x: !loop.buffer<[0] x f32, <[0]>>, %y: !loop.buffer<[1] x f32, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = []} {
  loop.reduction [5] reduced 1 {
    %0 = loop.load %x [d0 + 33] : <[0] x f32, <[0]>>  %1 = loop.reduce max %0 : f32  loop.store %1, %y [0] : <[1] x f32, <[0]>>
  }
}
loop.kernel @part_7(%x: !loop.buffer<[0] x f32, <[0]>>, %y: !loop.buffer<[1] x f32, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = []} {
  loop.reduction [5] reduced 1 {
    %0 = loop.load %x [d0 + 38] : <[0] x f32, <[0]>>  %1 = loop.reduce max %0 : f32  loop.store %1, %y [0] : <[1] x f32, <[0]>>
  }
}
loop.kernel @part_95f42bac9351(%x: !loop.buffer<[0] x f32, <[0]>>, %y: !loop.buffer<[1] x f32, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.reduction [5] reduced 1 {
    %0 = loop.load %x [d0 + s0] : <[0] x f32, <[0]>>  %1 = loop.reduce max %0 : f32  loop.store %1, %y [0] : <[1] x f32, <[0]>>
  }
}
loop.program @p(%x: !loop.buffer<[48] x f32, <[0]>> | %y: !loop.buffer<[1] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y"], output_types = [f32],
                symbol_sources = {}, symbols = {}} {
  loop.launch @part_0(%x, %y) symbols [] : !loop.buffer<[48] x f32, <[0]>>, !loop.buffer<[1] x f32, <[0]>>
  loop.launch @part_1(%x, %y) symbols [] : !loop.buffer<[48] x f32, <[0]>>, !loop.buffer<[1] x f32, <[0]>>
  loop.launch @part_2(%x, %y) symbols [] : !loop.buffer<[48] x f32, <[0]>>, !loop.buffer<[1] x f32, <[0]>>
  loop.launch @part_3(%x, %y) symbols [] : !loop.buffer<[48] x f32, <[0]>>, !loop.buffer<[1] x f32, <[0]>>
  loop.launch @part_4(%x, %y) symbols [] : !loop.buffer<[48] x f32, <[0]>>, !loop.buffer<[1] x f32, <[0]>>
  loop.launch @part_5(%x, %y) symbols [] : !loop.buffer<[48] x f32, <[0]>>, !loop.buffer<[1] x f32, <[0]>>
  loop.launch @part_6(%x, %y) symbols [] : !loop.buffer<[48] x f32, <[0]>>, !loop.buffer<[1] x f32, <[0]>>
  loop.launch @part_7(%x, %y) symbols [] : !loop.buffer<[48] x f32, <[0]>>, !loop.buffer<[1] x f32, <[0]>>
  loop.launch @part_95f42bac9351(%x, %y) symbols [7] : !loop.buffer<[48] x f32, <[0]>>, !loop.buffer<[1] x f32, <[0]>>
}
