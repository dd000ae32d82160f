// Sizes that are multiples of one symbol share bytes as constants would: the third buffer lies where the first was,
// and a smaller one fits into the same place.
// RUN: ptc-opt %s --ptc-plan-memory | FileCheck %s

// CHECK: arena = #prim.expr<192*batch>
// CHECK: lower_bound = #prim.expr<768>
// CHECK-DAG: loop.at 0 {{.*}} : <[32*batch] x f32, <[0]>>
// CHECK-DAG: loop.at 128*batch {{.*}} : <[16*batch] x f32, <[0]>>
// CHECK-DAG: loop.at 0 {{.*}} : <[31*batch] x f32, <[0]>>
loop.kernel @step(%a: !loop.buffer<[s0] x f32, <[0]>>, %b: !loop.buffer<[s0] x f32, <[0]>>) attributes {symbols = ["s0"], parallel = 1, arguments_written = array<i64: 1>} {
  loop.pointwise [s0] {
    %0 = loop.load %a [s0 - d0 - 1] : <[s0] x f32, <[0]>>
    loop.store %0, %b [d0] : <[s0] x f32, <[0]>>
  }
}
loop.program @p(%x: !loop.buffer<[batch] x f32, <[0]>> | %y: !loop.buffer<[batch] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y"],
                output_types = [f32], symbol_sources = {}, symbols = {batch = #prim.symbol<1, 64, divisor = 1, hint = 4>}} {
  %a = loop.buffer : <[32*batch] x f32, <[0]>>
  %b = loop.buffer : <[16*batch] x f32, <[0]>>
  %c = loop.buffer : <[31*batch] x f32, <[0]>>
  loop.launch @step(%x, %a) symbols [batch] : !loop.buffer<[batch] x f32, <[0]>>, !loop.buffer<[32*batch] x f32, <[0]>>
  loop.launch @step(%a, %b) symbols [batch] : !loop.buffer<[32*batch] x f32, <[0]>>, !loop.buffer<[16*batch] x f32, <[0]>>
  loop.launch @step(%b, %c) symbols [batch] : !loop.buffer<[16*batch] x f32, <[0]>>, !loop.buffer<[31*batch] x f32, <[0]>>
  loop.launch @step(%c, %y) symbols [batch] : !loop.buffer<[31*batch] x f32, <[0]>>, !loop.buffer<[batch] x f32, <[0]>>
}
