// RUN: ptc-opt %s --ptc-order-launches | FileCheck %s

loop.kernel @double(%a: !loop.buffer<[256] x f32, <[0]>>, %b: !loop.buffer<[256] x f32, <[0]>>)
    attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = []} {
  loop.pointwise [256] {
    %0 = loop.load %a [d0] : <[256] x f32, <[0]>>
    %1 = arith.addf %0, %0 : f32
    loop.store %1, %b [d0] : <[256] x f32, <[0]>>
  }
}

// %a is written out as soon as it is there, so that it does not stay alive besides %b and %c; what the launch itself
// depends on stays before it, and the chain to %z stays in its order.
// CHECK-LABEL: loop.program @early_output
// CHECK-SAME:    (%[[X:.*]]: !loop{{.*}} | %[[Y:.*]]: !loop.buffer{{.*}}, %[[Z:.*]]: !loop
// CHECK:         %[[A:.*]] = loop.buffer
// CHECK:         loop.launch @double(%[[X]], %[[A]])
// CHECK-NEXT:    loop.launch @double(%[[A]], %[[Y]])
// CHECK-NEXT:    loop.launch @double(%[[A]], %[[B:.*]])
// CHECK-NEXT:    loop.launch @double(%[[B]], %[[C:.*]])
// CHECK-NEXT:    loop.launch @double(%[[C]], %[[Z]])
loop.program @early_output(%x: !loop.buffer<[256] x f32, <[0]>> | %y: !loop.buffer<[256] x f32, <[0]>>, %z: !loop.buffer<[256] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y", "z"],
                output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  %a = loop.buffer : <[256] x f32, <[0]>>
  %b = loop.buffer : <[256] x f32, <[0]>>
  %c = loop.buffer : <[256] x f32, <[0]>>
  loop.launch @double(%x, %a) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @double(%a, %b) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @double(%b, %c) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @double(%c, %z) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @double(%a, %y) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
}

// The output shares the input's buffer: it must not be written before the input was read for the last time.
// CHECK-LABEL: loop.program @aliased
// CHECK-SAME:    (%[[S:.*]]: !loop{{.*}} | %[[T:.*]]: !loop.buffer{{.*}}, %[[U:.*]]: !loop
// CHECK:         loop.launch @double(%[[S]], %[[U]])
// CHECK-NEXT:    loop.launch @double(%[[S]], %[[A:.*]])
// CHECK-NEXT:    loop.launch @double(%[[A]], %[[T]])
loop.program @aliased(%s: !loop.buffer<[256] x f32, <[0]>> | %t: !loop.buffer<[256] x f32, <[0]>>, %u: !loop.buffer<[256] x f32, <[0]>>)
    attributes {aliases = array<i64: 0, 0>, guards = [], input_names = ["s"], input_types = [f32], output_names = ["t", "u"],
                output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  %a = loop.buffer : <[256] x f32, <[0]>>
  loop.launch @double(%s, %a) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @double(%s, %u) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @double(%a, %t) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
}
