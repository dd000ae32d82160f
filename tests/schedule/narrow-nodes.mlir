// A node runs over the points alone whose results are read; not where it writes another buffer, or somebody reads all.
// RUN: ptc-opt %s --ptc-narrow-nodes | FileCheck %s

// A slice of a slice: rows 2 to 5, of which the last three.
// CHECK-LABEL: loop.program @slice
// CHECK:         loop.reduction [3, 4, 3] reduced 1
// CHECK-NEXT:      loop.load {{.*}} [d0 + d2 + 3, d1]
// CHECK:           loop.store {{.*}} [d0 + 3, d1]
// CHECK:         loop.pointwise [3, 4]
// CHECK-NEXT:      loop.load {{.*}} [d0 + 3, d1]
// CHECK:           loop.store {{.*}} [d0 + 1, d1]
// CHECK:         loop.pointwise [3, 4]
// CHECK-NEXT:      loop.load {{.*}} [d0 + 1, d1]
loop.program @slice(%x: !loop.buffer<[10, 4] x f32, <[0, 1]>> | %y: !loop.buffer<[3, 4] x f32, <[0, 1]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y"],
                output_types = [f32], symbol_sources = {}, symbols = {}} {
  %a = loop.buffer : <[8, 4] x f32, <[0, 1]>>
  loop.reduction [8, 4, 3] reduced 1 {
    %0 = loop.load %x [d0 + d2, d1] : <[10, 4] x f32, <[0, 1]>>
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %a [d0, d1] : <[8, 4] x f32, <[0, 1]>>
  }
  %b = loop.buffer : <[4, 4] x f32, <[0, 1]>>
  loop.pointwise [4, 4] {
    %0 = loop.load %a [d0 + 2, d1] : <[8, 4] x f32, <[0, 1]>>
    %1 = math.sin %0 : f32
    loop.store %1, %b [d0, d1] : <[4, 4] x f32, <[0, 1]>>
  }
  loop.pointwise [3, 4] {
    %0 = loop.load %b [d0 + 1, d1] : <[4, 4] x f32, <[0, 1]>>
    %1 = math.cos %0 : f32
    loop.store %1, %y [d0, d1] : <[3, 4] x f32, <[0, 1]>>
  }
}

// The first node writes two buffers; of the second's results somebody reads all.
// CHECK-LABEL: loop.program @whole
// CHECK-COUNT-2: loop.pointwise [8]
loop.program @whole(%x: !loop.buffer<[8] x f32, <[0]>> | %y: !loop.buffer<[8] x f32, <[0]>>, %z: !loop.buffer<[3] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y", "z"],
                output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  %a = loop.buffer : <[8] x f32, <[0]>>
  %b = loop.buffer : <[8] x f32, <[0]>>
  %c = loop.buffer : <[8] x f32, <[0]>>
  loop.pointwise [8] {
    %0 = loop.load %x [d0] : <[8] x f32, <[0]>>
    %1 = math.sin %0 : f32
    loop.store %1, %a [d0] : <[8] x f32, <[0]>>
    %2 = math.cos %0 : f32
    loop.store %2, %b [d0] : <[8] x f32, <[0]>>
  }
  loop.pointwise [8] {
    %0 = loop.load %b [d0] : <[8] x f32, <[0]>>
    loop.store %0, %c [d0] : <[8] x f32, <[0]>>
  }
  loop.pointwise [8] {
    %0 = loop.load %c [d0] : <[8] x f32, <[0]>>
    loop.store %0, %y [d0] : <[8] x f32, <[0]>>
  }
  loop.pointwise [3] {
    %0 = loop.load %a [d0] : <[8] x f32, <[0]>>
    %1 = loop.load %c [d0 + 5] : <[8] x f32, <[0]>>
    %2 = arith.addf %0, %1 : f32
    loop.store %2, %z [d0] : <[3] x f32, <[0]>>
  }
}
