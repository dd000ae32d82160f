// A buffer that is last read where an output is first written, element by element, lies in the output's memory. One
// that a launch behind reads stays in the arena, and so does one whose output is an input besides.
// RUN: ptc-opt %s --ptc-plan-memory | FileCheck %s

loop.kernel @twice(%a: !loop.buffer<[512] x f32, <[0]>>, %b: !loop.buffer<[512] x f32, <[0]>>)
    attributes {symbols = [], parallel = 1, arguments_written = array<i64: 1>} {
  loop.pointwise [512] {
    %0 = loop.load %a [d0] : <[512] x f32, <[0]>>
    %1 = arith.addf %0, %0 : f32
    loop.store %1, %b [d0] : <[512] x f32, <[0]>>
  }
}

// CHECK-LABEL: loop.program @chain
// CHECK-SAME:    arena = #prim.expr<0>
// CHECK-NEXT:    %[[Y:.*]] = loop.flatten %arg1
// CHECK:         loop.launch @twice(%{{.*}}, %[[Y]])
// CHECK-NEXT:    loop.launch @twice(%[[Y]], %[[Y]])
// CHECK-NEXT:    loop.launch @twice(%[[Y]], %[[Y]])
loop.program @chain(%x: !loop.buffer<[2, 256] x f32, <[0, 1]>> | %y: !loop.buffer<[2, 256] x f32, <[0, 1]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y"],
                output_types = [f32], symbol_sources = {}, symbols = {}} {
  %0 = loop.flatten %x : <[2, 256] x f32, <[0, 1]>> -> <[512] x f32, <[0]>>
  %t = loop.buffer : <[512] x f32, <[0]>>
  %u = loop.buffer : <[512] x f32, <[0]>>
  loop.launch @twice(%0, %t) symbols [] : !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
  loop.launch @twice(%t, %u) symbols [] : !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
  %1 = loop.flatten %y : <[2, 256] x f32, <[0, 1]>> -> <[512] x f32, <[0]>>
  loop.launch @twice(%u, %1) symbols [] : !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
}

// CHECK-LABEL: loop.program @read_later
// CHECK-SAME:    arena = #prim.expr<2048>
// CHECK:         %[[T:.*]] = loop.at 0
// CHECK:         loop.launch @twice(%[[T]], %arg1)
// CHECK-NEXT:    loop.launch @twice(%[[T]], %arg2)
loop.program @read_later(%x: !loop.buffer<[512] x f32, <[0]>> | %y: !loop.buffer<[512] x f32, <[0]>>, %z: !loop.buffer<[512] x f32, <[0]>>)
    attributes {aliases = array<i64: 0, 1>, guards = [], input_names = ["x"], input_types = [f32],
                output_names = ["y", "z"], output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  %t = loop.buffer : <[512] x f32, <[0]>>
  loop.launch @twice(%x, %t) symbols [] : !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
  loop.launch @twice(%t, %y) symbols [] : !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
  loop.launch @twice(%t, %z) symbols [] : !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
}
