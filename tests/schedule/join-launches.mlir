// RUN: ptc-opt %s --ptc-join-launches | FileCheck %s

loop.kernel @double(%a: !loop.buffer<[256] x f32, <[0]>>, %b: !loop.buffer<[256] x f32, <[0]>>)
    attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = []} {
  loop.pointwise [256] {
    %0 = loop.load %a [d0] : <[256] x f32, <[0]>>
    %1 = arith.addf %0, %0 : f32
    loop.store %1, %b [d0] : <[256] x f32, <[0]>>
  }
}

// What reads %x runs side by side, though the last of them stands behind a launch that needs the first.
// CHECK-LABEL: loop.program @branches
// CHECK-SAME:    (%[[X:.*]]: !loop{{.*}} | %[[Y:.*]]: !loop.buffer{{.*}}, %[[Z:.*]]: !loop.buffer{{.*}}, %[[W:.*]]: !loop
// CHECK:         loop.launch @double(%[[X]], %[[A:.*]]) symbols [] :
// CHECK-NEXT:    loop.launch @double(%[[X]], %[[Y]]) symbols [] {joined}
// CHECK-NEXT:    loop.launch @double(%[[X]], %[[W]]) symbols [] {joined}
// CHECK-NEXT:    loop.launch @double(%[[A]], %[[Z]]) symbols [] :
loop.program @branches(%x: !loop.buffer<[256] x f32, <[0]>> | %y: !loop.buffer<[256] x f32, <[0]>>, %z: !loop.buffer<[256] x f32, <[0]>>, %w: !loop.buffer<[256] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y", "z", "w"],
                output_types = [f32, f32, f32], symbol_sources = {}, symbols = {}} {
  %a = loop.buffer : <[256] x f32, <[0]>>
  loop.launch @double(%x, %a) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @double(%x, %y) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @double(%a, %z) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @double(%x, %w) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
}

// Side by side, %a and %b would be alive at one time: the peak would rise.
// CHECK-LABEL: loop.program @peak
// CHECK-NOT:     joined
loop.program @peak(%x: !loop.buffer<[256] x f32, <[0]>>, %v: !loop.buffer<[256] x f32, <[0]>> | %y: !loop.buffer<[256] x f32, <[0]>>, %z: !loop.buffer<[256] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x", "v"], input_types = [f32, f32], output_names = ["y", "z"],
                output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  %a = loop.buffer : <[256] x f32, <[0]>>
  %b = loop.buffer : <[256] x f32, <[0]>>
  loop.launch @double(%x, %a) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @double(%a, %y) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @double(%v, %b) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @double(%b, %z) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
}

// An alias is one buffer: what overwrites %s waits for what reads it.
// CHECK-LABEL: loop.program @aliased
// CHECK-NOT:     joined
loop.program @aliased(%s: !loop.buffer<[256] x f32, <[0]>>, %v: !loop.buffer<[256] x f32, <[0]>> | %t: !loop.buffer<[256] x f32, <[0]>>, %u: !loop.buffer<[256] x f32, <[0]>>)
    attributes {aliases = array<i64: 0, 0>, guards = [], input_names = ["s", "v"], input_types = [f32, f32], output_names = ["t", "u"],
                output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  loop.launch @double(%s, %u) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @double(%v, %t) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
}

loop.kernel @interleave(%a: !loop.buffer<[256] x f32, <[0]>>, %b: !loop.buffer<[512] x f32, <[0]>>)
    attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = ["s0"]} {
  loop.pointwise [256] {
    %0 = loop.load %a [d0] : <[256] x f32, <[0]>>
    loop.store %0, %b [2*d0 + s0] : <[512] x f32, <[0]>>
  }
}

// Parts of a concat have nothing to do with each other, the same part has.
// CHECK-LABEL: loop.program @parts
// CHECK:         loop.launch @interleave({{.*}}) symbols [0] :
// CHECK-NEXT:    loop.launch @interleave({{.*}}) symbols [1] {joined} :
// CHECK-NEXT:    loop.launch @interleave({{.*}}) symbols [0] :
loop.program @parts(%x: !loop.buffer<[256] x f32, <[0]>>, %v: !loop.buffer<[256] x f32, <[0]>> | %y: !loop.buffer<[512] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x", "v"], input_types = [f32, f32], output_names = ["y"],
                output_types = [f32], symbol_sources = {}, symbols = {}} {
  loop.launch @interleave(%x, %y) symbols [0] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
  loop.launch @interleave(%v, %y) symbols [1] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
  loop.launch @interleave(%v, %y) symbols [0] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
}
