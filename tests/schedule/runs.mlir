// Dims stay apart where what is read in runs along the inner one would be in runs no longer; short runs make no vectors.
// RUN: ptc-opt %s --ptc-linearize-accesses --ptc-normalize-nodes | FileCheck %s

// CHECK-LABEL: loop.program @windows
// CHECK:         loop.pointwise [56, 56, 96] {
// CHECK-NEXT:      loop.load %{{.*}} [d2 + 37632*floordiv(d0, 7) + 4704*floordiv(d1, 7) + 672*mod(d0, 7) + 96*mod(d1, 7)]
// CHECK:           loop.store %{{.*}} [5376*d0 + 96*d1 + d2]
// CHECK:         loop.pointwise [56, 168] {
loop.program @windows(%x: !loop.buffer<[301056] x f32, <[0]>> | %y: !loop.buffer<[56, 56, 96] x f32, <[0, 1, 2]>>, %z: !loop.buffer<[56, 56, 3] x f32, <[0, 1, 2]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y", "z"],
                output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  loop.pointwise [56, 56, 96] {
    %0 = loop.load %x [37632*floordiv(d0, 7) + 4704*floordiv(d1, 7) + 672*mod(d0, 7) + 96*mod(d1, 7) + d2] : <[301056] x f32, <[0]>>
    loop.store %0, %y [d0, d1, d2] : <[56, 56, 96] x f32, <[0, 1, 2]>>
  }
  loop.pointwise [56, 56, 3] {
    %0 = loop.load %x [1176*floordiv(d0, 7) + 147*floordiv(d1, 7) + 21*mod(d0, 7) + 3*mod(d1, 7) + d2] : <[301056] x f32, <[0]>>
    loop.store %0, %z [d0, d1, d2] : <[56, 56, 3] x f32, <[0, 1, 2]>>
  }
}
