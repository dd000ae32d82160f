// Two values in one concat buffer are different slices: a node that reads the second must not merge into the one
// that writes the first, although both have as many elements.
// RUN: ptc-opt %s --ptc-linearize-accesses --ptc-normalize-nodes --ptc-fuse-nodes | FileCheck %s

// CHECK-LABEL: loop.program @slices
// CHECK:         loop.fused
// CHECK:           loop.pointwise
// CHECK:             math.exp
// CHECK-NOT:         math.tanh
// CHECK:           loop.store {{.*}} [16*d0 + d1]
// CHECK:           loop.pointwise
// CHECK:             math.sin
// CHECK:             loop.store %[[V:.*]], %{{.*}} [16*d0 + d1 + 8]
// CHECK:             math.tanh %[[V]]
loop.program @slices(%x: !loop.buffer<[4, 8] x f32, <[0, 1]>> | %y: !loop.buffer<[4, 16] x f32, <[0, 1]>>, %z: !loop.buffer<[4, 8] x f32, <[0, 1]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y", "z"],
                output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  loop.pointwise [4, 8] {
    %0 = loop.load %x [d0, d1] : <[4, 8] x f32, <[0, 1]>>
    %1 = math.exp %0 : f32
    loop.store %1, %y [d0, d1] : <[4, 16] x f32, <[0, 1]>>
  }
  loop.pointwise [4, 8] {
    %0 = loop.load %x [d0, d1] : <[4, 8] x f32, <[0, 1]>>
    %1 = math.sin %0 : f32
    loop.store %1, %y [d0, d1 + 8] : <[4, 16] x f32, <[0, 1]>>
  }
  loop.pointwise [4, 8] {
    %0 = loop.load %y [d0, d1 + 8] : <[4, 16] x f32, <[0, 1]>>
    %1 = math.tanh %0 : f32
    loop.store %1, %z [d0, d1] : <[4, 8] x f32, <[0, 1]>>
  }
}
