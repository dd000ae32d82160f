// Blocks of constant sizes lie in gaps between those of a batch, as multiples of it, where that needs less at the hint;
// not where the batch may be empty, and they would have no bytes.
// RUN: ptc-opt %s --ptc-plan-memory | FileCheck %s
// RUN: sed 's/<1, 64,/<0, 64,/' %s | ptc-opt - --ptc-plan-memory | FileCheck %s --check-prefix=EMPTY

// CHECK: arena = #prim.expr<320*batch>
// CHECK: lower_bound = #prim.expr<320>
// CHECK-DAG: loop.at {{(0|[0-9]+\*batch)}} {{.*}} : <[16] x f32, <[0]>>
// CHECK-DAG: loop.at {{(0|[0-9]+\*batch)}} {{.*}} : <[48] x f32, <[0]>>
// EMPTY: arena = #prim.expr<64*batch + max(192, 256*batch) + 64>
loop.kernel @fill(%a: !loop.buffer<[s0] x f32, <[0]>>) attributes {symbols = ["s0"], parallel = 1, arguments_written = array<i64: 0>} {
  loop.pointwise [s0] {
    %0 = arith.constant 1.0 : f32
    loop.store %0, %a [d0] : <[s0] x f32, <[0]>>
  }
}
loop.program @p(%x: !loop.buffer<[batch] x f32, <[0]>> | %y: !loop.buffer<[batch] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y"],
                output_types = [f32], symbol_sources = {}, symbols = {batch = #prim.symbol<1, 64, divisor = 1, hint = 1>}} {
  %b0 = loop.buffer : <[32*batch] x f32, <[0]>>
  %b1 = loop.buffer : <[16*batch] x f32, <[0]>>
  %b2 = loop.buffer : <[16*batch] x f32, <[0]>>
  %b3 = loop.buffer : <[48*batch] x f32, <[0]>>
  %b4 = loop.buffer : <[16] x f32, <[0]>>
  %b5 = loop.buffer : <[48] x f32, <[0]>>
  loop.launch @fill(%b0) symbols [batch] : !loop.buffer<[32*batch] x f32, <[0]>>
  loop.launch @fill(%b2) symbols [batch] : !loop.buffer<[16*batch] x f32, <[0]>>
  loop.launch @fill(%b4) symbols [batch] : !loop.buffer<[16] x f32, <[0]>>
  loop.launch @fill(%b5) symbols [batch] : !loop.buffer<[48] x f32, <[0]>>
  loop.launch @fill(%b1) symbols [batch] : !loop.buffer<[16*batch] x f32, <[0]>>
  loop.launch @fill(%b2) symbols [batch] : !loop.buffer<[16*batch] x f32, <[0]>>
  loop.launch @fill(%b3) symbols [batch] : !loop.buffer<[48*batch] x f32, <[0]>>
  loop.launch @fill(%b1) symbols [batch] : !loop.buffer<[16*batch] x f32, <[0]>>
  loop.launch @fill(%b4) symbols [batch] : !loop.buffer<[16] x f32, <[0]>>
  loop.launch @fill(%y) symbols [batch] : !loop.buffer<[batch] x f32, <[0]>>
}
