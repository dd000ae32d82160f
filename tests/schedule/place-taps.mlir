// RUN: ptc-opt %s --ptc-place-taps | FileCheck %s

loop.kernel @double(%a: !loop.buffer<[256] x f32, <[0]>>, %b: !loop.buffer<[256] x f32, <[0]>>)
    attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = []} {
  loop.pointwise [256] {
    %0 = loop.load %a [d0] : <[256] x f32, <[0]>>
    %1 = arith.addf %0, %0 : f32
    loop.store %1, %b [d0] : <[256] x f32, <[0]>>
  }
}

// Each value is shown behind the launch that completes it, an argument before all launches; taps of one buffer stay in
// their order, and one that sees nothing is out of the way.
// CHECK-LABEL: loop.program @program
// CHECK-SAME:    (%[[X:.*]]: !loop{{.*}} | %[[Y:.*]]: !loop
// CHECK:         %[[A:.*]] = loop.buffer
// CHECK:         loop.tap 0 "x" f32 [256] %[[X]]
// CHECK:         loop.tap 4 "gone" none [] at [] because "known when the model is compiled"
// CHECK-NEXT:    loop.launch @double(%[[X]], %[[A]])
// CHECK-NEXT:    loop.tap 1 "a" f32 [256] %[[A]] : !loop.buffer<[256] x f32, <[0]>> at [d0]
// CHECK-NEXT:    loop.tap 2 "a reversed" f32 [256] %[[A]] : !loop.buffer<[256] x f32, <[0]>> at [-d0 + 255]
// CHECK-NEXT:    loop.launch @double(%[[A]], %[[Y]])
// CHECK-NEXT:    loop.tap 3 "y" f32 [16, 16] %[[Y]] : !loop.buffer<[256] x f32, <[0]>> at [d0 + 16*d1]
loop.program @program(%x: !loop.buffer<[256] x f32, <[0]>> | %y: !loop.buffer<[256] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y"],
                output_types = [f32], symbol_sources = {}, symbols = {}} {
  %a = loop.buffer : <[256] x f32, <[0]>>
  loop.tap 3 "y" f32 [16, 16] %y : !loop.buffer<[256] x f32, <[0]>> at [d0 + 16*d1]
  loop.tap 1 "a" f32 [256] %a : !loop.buffer<[256] x f32, <[0]>> at [d0]
  loop.tap 2 "a reversed" f32 [256] %a : !loop.buffer<[256] x f32, <[0]>> at [255 - d0]
  loop.tap 0 "x" f32 [256] %x : !loop.buffer<[256] x f32, <[0]>> at [d0]
  loop.tap 4 "gone" none [] at [] because "known when the model is compiled"
  loop.launch @double(%x, %a) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @double(%a, %y) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
}
