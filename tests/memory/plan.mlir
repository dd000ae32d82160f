// Buffers that live at the same time lie apart, later ones reuse what is dead, and a pointwise kernel writes over
// the operand that it reads for the last time.
// RUN: ptc-opt %s --ptc-plan-memory | FileCheck %s

// CHECK: arena = #prim.expr<128>
// CHECK: lower_bound = #prim.expr<128>
// CHECK: %[[A:.*]] = loop.at [[AT:[0-9]+]] {loop.kept_until = 2 : i64} : <[16] x f32, <[0]>>
// CHECK: %[[B:.*]] = loop.at {{[0-9]+ .*}} : <[16] x f32, <[0]>>
// CHECK: %[[C:.*]] = loop.at [[AT]] {{.*}} : <[16] x f32, <[0]>>
loop.kernel @copy(%a: !loop.buffer<[16] x f32, <[0]>>, %b: !loop.buffer<[16] x f32, <[0]>>) attributes {symbols = [], parallel = 1, arguments_written = array<i64: 1>} {
  loop.pointwise [16] {
    %0 = loop.load %a [d0] : <[16] x f32, <[0]>>
    loop.store %0, %b [d0] : <[16] x f32, <[0]>>
  }
}
loop.kernel @add(%a: !loop.buffer<[16] x f32, <[0]>>, %b: !loop.buffer<[16] x f32, <[0]>>, %c: !loop.buffer<[16] x f32, <[0]>>) attributes {symbols = [], parallel = 1, arguments_written = array<i64: 2>} {
  loop.pointwise [16] {
    %0 = loop.load %a [d0] : <[16] x f32, <[0]>>
    %1 = loop.load %b [15 - d0] : <[16] x f32, <[0]>>
    %2 = arith.addf %0, %1 : f32
    loop.store %2, %c [d0] : <[16] x f32, <[0]>>
  }
}
loop.program @p(%x: !loop.buffer<[16] x f32, <[0]>> | %y: !loop.buffer<[16] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y"],
                output_types = [f32], symbol_sources = {}, symbols = {}} {
  %fx = loop.flatten %x : <[16] x f32, <[0]>> -> <[16] x f32, <[0]>>
  %fy = loop.flatten %y : <[16] x f32, <[0]>> -> <[16] x f32, <[0]>>
  %a = loop.buffer : <[16] x f32, <[0]>>
  %b = loop.buffer : <[16] x f32, <[0]>>
  %c = loop.buffer : <[16] x f32, <[0]>>
  loop.launch @copy(%fx, %a) symbols [] : !loop.buffer<[16] x f32, <[0]>>, !loop.buffer<[16] x f32, <[0]>>
  loop.launch @copy(%fx, %b) symbols [] : !loop.buffer<[16] x f32, <[0]>>, !loop.buffer<[16] x f32, <[0]>>
  loop.launch @add(%a, %b, %c) symbols [] : !loop.buffer<[16] x f32, <[0]>>, !loop.buffer<[16] x f32, <[0]>>, !loop.buffer<[16] x f32, <[0]>>
  loop.launch @add(%fx, %c, %fy) symbols [] : !loop.buffer<[16] x f32, <[0]>>, !loop.buffer<[16] x f32, <[0]>>, !loop.buffer<[16] x f32, <[0]>>
}
