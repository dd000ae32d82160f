// Sizes that the program learns are planned at the most that they can be; the rest of a slice, n - u0, is largest where
// u0 is least. What nothing bounds grows outside of the arena, and a result of such a size is announced before it is used.
// RUN: ptc-opt %s --ptc-plan-memory | FileCheck %s

// CHECK: arena = #prim.expr<128*n + 64>
// CHECK: %[[COUNT:.*]] = loop.at 0
// CHECK: %[[FOUND:.*]] = loop.at 64 {{.*}} : <[16*u0] x f32, <[0]>>
// CHECK: %[[REST:.*]] = loop.at 64*n + 64 {{.*}} : <[16*n - 16*u0] x f32, <[0]>>
// CHECK: loop.bind "u0" = %[[COUNT]]
// CHECK: loop.bind "u1" = %[[COUNT]]
// CHECK-NEXT: %[[GROWN:.*]] = loop.grow 0 bytes 4*u1
// CHECK-NEXT: loop.launch @step(%{{.*}}, %[[GROWN]])
// CHECK-NEXT: loop.output %{{.*}} : <[u1] x f32
// CHECK-NEXT: loop.launch @step(%[[GROWN]], %{{.*}})
loop.kernel @step(%a: !loop.buffer<[s0] x f32, <[0]>>, %b: !loop.buffer<[s0] x f32, <[0]>>) attributes {symbols = ["s0"], parallel = 1, arguments_written = array<i64: 1>} {
  loop.pointwise [s0] {
    %0 = loop.load %a [s0 - d0 - 1] : <[s0] x f32, <[0]>>
    loop.store %0, %b [d0] : <[s0] x f32, <[0]>>
  }
}
loop.kernel @count(%a: !loop.buffer<[s0] x f32, <[0]>>, %b: !loop.buffer<[1] x i64, <[0]>>) attributes {symbols = ["s0"], parallel = 1, arguments_written = array<i64: 1>} {
  loop.pointwise [1] {
    %0 = loop.index s0
    loop.store %0, %b [d0] : <[1] x i64, <[0]>>
  }
}
loop.program @p(%x: !loop.buffer<[n] x f32, <[0]>> | %y: !loop.buffer<[u1] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y"],
                output_types = [f32], symbol_sources = {},
                symbols = {n = #prim.symbol<1, 64, divisor = 1, hint = 4>, u0 = #prim.symbol<0, 64, divisor = 1, hint = 4>,
                           u1 = #prim.symbol<0, 1000, divisor = 1, hint = 4>}} {
  %count = loop.buffer : <[1] x i64, <[0]>>
  %found = loop.buffer : <[16*u0] x f32, <[0]>>
  %rest = loop.buffer : <[16*n - 16*u0] x f32, <[0]>>
  %grown = loop.buffer : <[u1] x f32, <[0]>>
  loop.launch @count(%x, %count) symbols [n] : !loop.buffer<[n] x f32, <[0]>>, !loop.buffer<[1] x i64, <[0]>>
  loop.bind "u0" = %count : !loop.buffer<[1] x i64, <[0]>> at_most n
  loop.launch @step(%x, %found) symbols [16*u0] : !loop.buffer<[n] x f32, <[0]>>, !loop.buffer<[16*u0] x f32, <[0]>>
  loop.launch @step(%x, %rest) symbols [16*n - 16*u0] : !loop.buffer<[n] x f32, <[0]>>, !loop.buffer<[16*n - 16*u0] x f32, <[0]>>
  loop.launch @step(%found, %rest) symbols [u0] : !loop.buffer<[16*u0] x f32, <[0]>>, !loop.buffer<[16*n - 16*u0] x f32, <[0]>>
  loop.bind "u1" = %count : !loop.buffer<[1] x i64, <[0]>>
  loop.launch @step(%x, %grown) symbols [u1] : !loop.buffer<[n] x f32, <[0]>>, !loop.buffer<[u1] x f32, <[0]>>
  loop.launch @step(%grown, %y) symbols [u1] : !loop.buffer<[u1] x f32, <[0]>>, !loop.buffer<[u1] x f32, <[0]>>
}
