// A sum that reads windows of an image walks its rows as (4, 6), and the reduction behind it as (24): both share (4, 6).
// RUN: ptc-opt %s --ptc-fuse-nodes | FileCheck %s

// CHECK-LABEL: loop.program @windows
// CHECK:         loop.fused parallel 2 {
// CHECK-NEXT:      loop.reduction [4, 6, 32] reduced 1 {
// CHECK-DAG:         loop.load %{{.*}} [192*d0 + 32*d1 + d2]
// CHECK-DAG:         loop.load %{{.*}} [d2 + 384*floordiv(d0, 2) + 192*floordiv(d1, 3) + 96*mod(d0, 2) + 32*mod(d1, 3)]
// CHECK:             loop.store %{{.*}}, %arg2 [192*d0 + 32*d1 + d2]
// CHECK:             loop.reduce sum
// CHECK:           loop.pointwise [4, 6, 32] {
// CHECK:             loop.store %{{.*}}, %arg3 [192*d0 + 32*d1 + d2]
// CHECK-NOT:     loop.fused
loop.program @windows(%x: !loop.buffer<[768] x f32, <[0]>>, %w: !loop.buffer<[768] x f32, <[0]>> | %y: !loop.buffer<[768] x f32, <[0]>>, %z: !loop.buffer<[768] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x", "w"], input_types = [f32, f32],
                output_names = ["y", "z"], output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  %s = loop.buffer : <[24] x f32, <[0]>>
  loop.pointwise [4, 6, 32] {
    %0 = loop.load %x [192*d0 + 32*d1 + d2] : <[768] x f32, <[0]>>
    %1 = loop.load %w [384*floordiv(d0, 2) + 192*floordiv(d1, 3) + 96*mod(d0, 2) + 32*mod(d1, 3) + d2] : <[768] x f32, <[0]>>
    %2 = arith.addf %0, %1 : f32
    loop.store %2, %y [192*d0 + 32*d1 + d2] : <[768] x f32, <[0]>>
  }
  loop.reduction [24, 32] reduced 1 {
    %0 = loop.load %y [32*d0 + d1] : <[768] x f32, <[0]>>
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %s [d0] : <[24] x f32, <[0]>>
  }
  loop.pointwise [24, 32] {
    %0 = loop.load %y [32*d0 + d1] : <[768] x f32, <[0]>>
    %1 = loop.load %s [d0] : <[24] x f32, <[0]>>
    %2 = arith.mulf %0, %1 : f32
    loop.store %2, %z [32*d0 + d1] : <[768] x f32, <[0]>>
  }
}

// The first writes rows in another order than the second reads them: nothing is shared, and no dims are changed.
// CHECK-LABEL: loop.program @permuted
// CHECK:         loop.fused parallel 2 {
// CHECK-NEXT:      loop.pointwise [4, 6, 32] {
// CHECK:         loop.fused parallel 1 {
// CHECK-NEXT:      loop.reduction [24, 32] reduced 1 {
loop.program @permuted(%x: !loop.buffer<[768] x f32, <[0]>> | %y: !loop.buffer<[768] x f32, <[0]>>, %s: !loop.buffer<[24] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32],
                output_names = ["y", "s"], output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  loop.pointwise [4, 6, 32] {
    %0 = loop.load %x [192*d0 + 32*d1 + d2] : <[768] x f32, <[0]>>
    %1 = math.tanh %0 : f32
    loop.store %1, %y [32*d0 + 128*d1 + d2] : <[768] x f32, <[0]>>
  }
  loop.reduction [24, 32] reduced 1 {
    %0 = loop.load %y [32*d0 + d1] : <[768] x f32, <[0]>>
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %s [d0] : <[24] x f32, <[0]>>
  }
}
