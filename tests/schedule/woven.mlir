// Every second result sees other elements, those from the second one on the next ones: results of each kind are in runs,
// and a dim of their own, where they can be woven.
// RUN: ptc-opt %s --ptc-linearize-accesses '--ptc-normalize-nodes=weaves=true' | FileCheck %s
// RUN: ptc-opt %s --ptc-linearize-accesses --ptc-normalize-nodes | FileCheck %s --check-prefix=APART

// CHECK-LABEL: loop.program @phases
// CHECK:         loop.pointwise [40, 20, 2] {
// CHECK-NEXT:      %[[C:.*]] = arith.constant
// CHECK-NEXT:      loop.masked [d1 + floordiv(d2 + 1, 2) - 1] else %[[C]] {
// CHECK-NEXT:        loop.load %{{.*}} [d1 + 20*floordiv(d0, 2) + floordiv(d2 + 1, 2) + 400*mod(d2 + 1, 2) - 1]
// CHECK:           loop.store %{{.*}} [40*d0 + 2*d1 + d2]
// What is read beside them in runs would be in none; of five no vectors are woven; of odd sizes some have one more.
// CHECK:         loop.pointwise [40, 40] {
// CHECK:         loop.pointwise [40, 100] {
// CHECK:         loop.pointwise [40, 41] {
// APART:         loop.pointwise [40, 40] {
// APART-NEXT:      %[[C:.*]] = arith.constant
// APART-NEXT:      loop.masked [floordiv(d1 + 1, 2) - 1] else %[[C]] {
loop.program @phases(%x: !loop.buffer<[2000] x f32, <[0]>>, %z: !loop.buffer<[40, 40] x f32, <[0, 1]>> | %a: !loop.buffer<[40, 40] x f32, <[0, 1]>>,
                     %b: !loop.buffer<[40, 40] x f32, <[0, 1]>>, %c: !loop.buffer<[40, 100] x f32, <[0, 1]>>, %d: !loop.buffer<[40, 41] x f32, <[0, 1]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x", "z"], input_types = [f32, f32], output_names = ["a", "b", "c", "d"],
                output_types = [f32, f32, f32, f32], symbol_sources = {}, symbols = {}} {
  loop.pointwise [40, 40] {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [floordiv(d1 + 1, 2) - 1] else %zero {
      %1 = loop.load %x [20*floordiv(d0, 2) + floordiv(d1 + 1, 2) + 400*mod(d1 + 1, 2) - 1] : <[2000] x f32, <[0]>>
      loop.yield %1 : f32
    } : f32
    loop.store %0, %a [d0, d1] : <[40, 40] x f32, <[0, 1]>>
  }
  loop.pointwise [40, 40] {
    %0 = loop.load %x [20*floordiv(d0, 2) + floordiv(d1 + 1, 2) + 400*mod(d1 + 1, 2)] : <[2000] x f32, <[0]>>
    %1 = loop.load %z [d0, d1] : <[40, 40] x f32, <[0, 1]>>
    %2 = arith.addf %0, %1 : f32
    loop.store %2, %b [d0, d1] : <[40, 40] x f32, <[0, 1]>>
  }
  loop.pointwise [40, 100] {
    %0 = loop.load %x [20*floordiv(d0, 2) + floordiv(d1 + 1, 5) + 400*mod(d1 + 1, 5)] : <[2000] x f32, <[0]>>
    loop.store %0, %c [d0, d1] : <[40, 100] x f32, <[0, 1]>>
  }
  loop.pointwise [40, 41] {
    %0 = loop.load %x [20*floordiv(d0, 2) + floordiv(d1 + 1, 2) + 400*mod(d1 + 1, 2)] : <[2000] x f32, <[0]>>
    loop.store %0, %d [d0, d1] : <[40, 41] x f32, <[0, 1]>>
  }
}

// Elements that change places in a row, as channels are shuffled, stay: they are read and shuffled in vectors behind what
// writes the row.
// CHECK-LABEL: loop.program @shuffle
// CHECK:         loop.pointwise [40, 64] {
loop.program @shuffle(%x: !loop.buffer<[40, 64] x f32, <[0, 1]>> | %a: !loop.buffer<[40, 64] x f32, <[0, 1]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["a"],
                output_types = [f32], symbol_sources = {}, symbols = {}} {
  loop.pointwise [40, 64] {
    %0 = loop.load %x [d0, floordiv(d1, 2) + 32*mod(d1, 2)] : <[40, 64] x f32, <[0, 1]>>
    loop.store %0, %a [d0, d1] : <[40, 64] x f32, <[0, 1]>>
  }
}
