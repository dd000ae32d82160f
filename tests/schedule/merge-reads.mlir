// RUN: ptc-opt %s --ptc-linearize-accesses --ptc-normalize-nodes --ptc-fuse-nodes | FileCheck %s

// Means of pairs of rows, and of pairs of columns then: each element is read once, and the rows' means are computed
// where they are read. The rows that columns are taken of split the points.
// CHECK-LABEL: loop.program @means
// CHECK-NOT:     = loop.buffer
// CHECK:         loop.pointwise [8*n, 4] {
// CHECK-COUNT-4:   loop.load %{{.*}} : <[128*n] x f32
// CHECK-NOT:       loop.load
// CHECK:           loop.store %{{.*}}, %{{.*}} [4*d0 + d1]
// CHECK-NOT:     loop.pointwise
loop.program @means(%x: !loop.buffer<[n, 16, 8] x f32, <[0, 1, 2]>> | %y: !loop.buffer<[n, 8, 4] x f32, <[0, 1, 2]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y"],
                output_types = [f32], symbol_sources = {}, symbols = {n = #prim.symbol<1, 100, divisor = 1, hint = 4>}} {
  %r = loop.buffer : <[n, 8, 8] x f32, <[0, 1, 2]>>
  loop.pointwise [n, 8, 8] {
    %0 = loop.load %x [d0, 2*d1, d2] : <[n, 16, 8] x f32, <[0, 1, 2]>>
    %1 = loop.load %x [d0, 2*d1 + 1, d2] : <[n, 16, 8] x f32, <[0, 1, 2]>>
    %2 = arith.addf %0, %1 : f32
    loop.store %2, %r [d0, d1, d2] : <[n, 8, 8] x f32, <[0, 1, 2]>>
  }
  loop.pointwise [n, 8, 4] {
    %0 = loop.load %r [d0, d1, 2*d2] : <[n, 8, 8] x f32, <[0, 1, 2]>>
    %1 = loop.load %r [d0, d1, 2*d2 + 1] : <[n, 8, 8] x f32, <[0, 1, 2]>>
    %2 = arith.addf %0, %1 : f32
    loop.store %2, %y [d0, d1, d2] : <[n, 8, 4] x f32, <[0, 1, 2]>>
  }
}

// Differences of neighbours read each element twice: it would be computed twice.
// CHECK-LABEL: loop.program @neighbours
// CHECK:         = loop.buffer
// CHECK:         math.exp
// CHECK-NOT:     math.exp
loop.program @neighbours(%x: !loop.buffer<[n, 8] x f32, <[0, 1]>> | %y: !loop.buffer<[n, 7] x f32, <[0, 1]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y"],
                output_types = [f32], symbol_sources = {}, symbols = {n = #prim.symbol<1, 100, divisor = 1, hint = 4>}} {
  %r = loop.buffer : <[n, 8] x f32, <[0, 1]>>
  loop.pointwise [n, 8] {
    %0 = loop.load %x [d0, d1] : <[n, 8] x f32, <[0, 1]>>
    %1 = math.exp %0 : f32
    loop.store %1, %r [d0, d1] : <[n, 8] x f32, <[0, 1]>>
  }
  loop.pointwise [n, 7] {
    %0 = loop.load %r [d0, d1] : <[n, 8] x f32, <[0, 1]>>
    %1 = loop.load %r [d0, d1 + 1] : <[n, 8] x f32, <[0, 1]>>
    %2 = arith.subf %1, %0 : f32
    loop.store %2, %y [d0, d1] : <[n, 7] x f32, <[0, 1]>>
  }
}
