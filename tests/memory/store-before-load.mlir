// A result does not take the place of an operand that the body loads after it stores that result. (Nothing lies in the
// outputs' memory: they are written before.)
// RUN: ptc-opt %s --ptc-plan-memory | FileCheck %s

// CHECK: %[[IN:.*]] = loop.at [[AT:[0-9]+]] {{.*}} : <[16] x f32, <[0]>>
// CHECK-NOT: loop.at [[AT]] {
// CHECK: loop.launch @early
loop.kernel @copy(%a: !loop.buffer<[16] x f32, <[0]>>, %b: !loop.buffer<[16] x f32, <[0]>>) attributes {symbols = [], parallel = 1, arguments_written = array<i64: 1>} {
  loop.pointwise [16] {
    %0 = loop.load %a [d0] : <[16] x f32, <[0]>>
    loop.store %0, %b [d0] : <[16] x f32, <[0]>>
  }
}
loop.kernel @early(%x: !loop.buffer<[16] x f32, <[0]>>, %a: !loop.buffer<[16] x f32, <[0]>>, %b: !loop.buffer<[16] x f32, <[0]>>, %y: !loop.buffer<[16] x f32, <[0]>>) attributes {symbols = [], parallel = 1, arguments_written = array<i64: 2, 3>} {
  loop.pointwise [16] {
    %0 = loop.load %x [d0] : <[16] x f32, <[0]>>
    loop.store %0, %b [d0] : <[16] x f32, <[0]>>
    %1 = loop.load %a [d0] : <[16] x f32, <[0]>>
    %2 = arith.addf %0, %1 : f32
    loop.store %2, %y [d0] : <[16] x f32, <[0]>>
  }
}
loop.program @p(%x: !loop.buffer<[16] x f32, <[0]>> | %y: !loop.buffer<[16] x f32, <[0]>>, %z: !loop.buffer<[16] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y", "z"],
                output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  %fx = loop.flatten %x : <[16] x f32, <[0]>> -> <[16] x f32, <[0]>>
  %fy = loop.flatten %y : <[16] x f32, <[0]>> -> <[16] x f32, <[0]>>
  %fz = loop.flatten %z : <[16] x f32, <[0]>> -> <[16] x f32, <[0]>>
  %a = loop.buffer : <[16] x f32, <[0]>>
  %b = loop.buffer : <[16] x f32, <[0]>>
  loop.launch @copy(%fx, %fy) symbols [] : !loop.buffer<[16] x f32, <[0]>>, !loop.buffer<[16] x f32, <[0]>>
  loop.launch @copy(%fx, %fz) symbols [] : !loop.buffer<[16] x f32, <[0]>>, !loop.buffer<[16] x f32, <[0]>>
  loop.launch @copy(%fx, %a) symbols [] : !loop.buffer<[16] x f32, <[0]>>, !loop.buffer<[16] x f32, <[0]>>
  loop.launch @early(%fx, %a, %b, %fy) symbols [] : !loop.buffer<[16] x f32, <[0]>>, !loop.buffer<[16] x f32, <[0]>>, !loop.buffer<[16] x f32, <[0]>>, !loop.buffer<[16] x f32, <[0]>>
  loop.launch @copy(%b, %fz) symbols [] : !loop.buffer<[16] x f32, <[0]>>, !loop.buffer<[16] x f32, <[0]>>
}
