// RUN: ptc-opt %s --ptc-fuse-horizontally --ptc-outline-kernels | FileCheck %s
// RUN: ptc-opt %s --ptc-fuse-horizontally=remarks 2>&1 >%t | FileCheck %s --check-prefix=REMARK

// Two parts of one buffer and one of another become one kernel: nobody knows which runs first.
// CHECK:         loop.kernel @[[PARTS:.*]](%{{.*}}) attributes {{{.*}}horizontal, parallel = 0
// CHECK-COUNT-3: loop.pointwise
// What reads a member's result is a kernel of its own, and so is a copy to a place where a member may write, too.
// REMARK: remark: shares no kernel with the pointwise nodes before it: it reads what they write
// REMARK: remark: shares no kernel with the pointwise nodes before it: it may write where they write
// CHECK-LABEL: loop.program @parts
// CHECK:         loop.launch @[[PARTS]](
// CHECK-NEXT:    loop.launch
// CHECK-NEXT:    loop.launch
// CHECK-NOT:     loop.launch
loop.program @parts(%a: !loop.buffer<[60] x f32, <[0]>>, %b: !loop.buffer<[12] x f32, <[0]>> | %x: !loop.buffer<[72] x f32, <[0]>>, %y: !loop.buffer<[60] x f32, <[0]>>, %z: !loop.buffer<[72] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["a", "b"], input_types = [f32, f32], output_names = ["x", "y", "z"],
                output_types = [f32, f32, f32], symbol_sources = {}, symbols = {}} {
  loop.fused parallel 2 {
    loop.pointwise [12, 5] {
      %0 = loop.load %a [5*d0 + d1] : <[60] x f32, <[0]>>
      loop.store %0, %x [6*d0 + d1] : <[72] x f32, <[0]>>
    }
  }
  loop.fused parallel 1 {
    loop.pointwise [12] {
      %0 = loop.load %b [d0] : <[12] x f32, <[0]>>
      loop.store %0, %x [6*d0 + 5] : <[72] x f32, <[0]>>
    }
  }
  loop.fused parallel 1 {
    loop.pointwise [60] {
      %0 = loop.load %a [d0] : <[60] x f32, <[0]>>
      loop.store %0, %y [d0] : <[60] x f32, <[0]>>
    }
  }
  loop.fused parallel 1 {
    loop.pointwise [72] {
      %0 = loop.load %x [d0] : <[72] x f32, <[0]>>
      loop.store %0, %z [d0] : <[72] x f32, <[0]>>
    }
  }
  loop.fused parallel 1 {
    loop.pointwise [12] {
      %0 = loop.load %b [d0] : <[12] x f32, <[0]>>
      loop.store %0, %z [6*d0] : <[72] x f32, <[0]>>
    }
  }
}

// Large ones stay alone.
// REMARK: remark: shares no kernel with the pointwise nodes before it: it has enough points to keep the device busy
// CHECK-LABEL:   loop.program @large
// CHECK-COUNT-2: loop.launch
loop.program @large(%a: !loop.buffer<[1000000] x f32, <[0]>> | %x: !loop.buffer<[1000000] x f32, <[0]>>, %y: !loop.buffer<[1000000] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["a"], input_types = [f32], output_names = ["x", "y"],
                output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  loop.fused parallel 1 {
    loop.pointwise [1000000] {
      %0 = loop.load %a [d0] : <[1000000] x f32, <[0]>>
      loop.store %0, %x [d0] : <[1000000] x f32, <[0]>>
    }
  }
  loop.fused parallel 1 {
    loop.pointwise [1000000] {
      %0 = loop.load %a [d0] : <[1000000] x f32, <[0]>>
      %1 = arith.negf %0 : f32
      loop.store %1, %y [d0] : <[1000000] x f32, <[0]>>
    }
  }
}

// A copy of state stays alone: none is left where it is updated in place.
// REMARK: remark: shares no kernel with the pointwise nodes before it: it copies state, which is nothing to do where that is updated in place
// CHECK-LABEL: loop.program @state
// CHECK-COUNT-2: loop.launch
// CHECK-NOT:     loop.launch
loop.program @state(%s: !loop.buffer<[12] x f32, <[0]>>, %a: !loop.buffer<[12] x f32, <[0]>> | %t: !loop.buffer<[12] x f32, <[0]>>, %x: !loop.buffer<[12] x f32, <[0]>>)
    attributes {aliases = array<i64: 0, 0>, guards = [], input_names = ["s", "a"], input_types = [f32, f32], output_names = ["t", "x"],
                output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  loop.fused parallel 1 {
    loop.pointwise [12] {
      %0 = loop.load %a [d0] : <[12] x f32, <[0]>>
      loop.store %0, %x [d0] : <[12] x f32, <[0]>>
    }
  }
  loop.fused parallel 1 {
    loop.pointwise [12] {
      %0 = loop.load %s [d0] : <[12] x f32, <[0]>>
      loop.store %0, %t [d0] : <[12] x f32, <[0]>>
    }
  }
}
