// A chain of layers whose sizes cannot be compared lies at both ends of memory: it needs what two neighbours do, not
// the largest of one end and the largest of the other.
// RUN: ptc-opt %s --ptc-plan-memory | FileCheck %s

// CHECK: arena = #prim.expr<max(256*h, 256*w, 64*h + 192*w)>
// CHECK: lower_bound = #prim.expr<2048>
// CHECK: loop.at -64*w + max(256*h, 256*w, 64*h + 192*w) {{.*}} : <[16*w] x f32, <[0]>>
// CHECK: loop.at 0 {{.*}} : <[48*w] x f32, <[0]>>
// CHECK: loop.at -64*h + max(256*h, 256*w, 64*h + 192*w) {{.*}} : <[16*h] x f32, <[0]>>
// CHECK: loop.at 0 {{.*}} : <[32*h] x f32, <[0]>>
// CHECK: loop.at -128*h + max(256*h, 256*w, 64*h + 192*w) {{.*}} : <[32*h] x f32, <[0]>>
loop.kernel @step(%a: !loop.buffer<[s0] x f32, <[0]>>, %b: !loop.buffer<[s0] x f32, <[0]>>) attributes {symbols = ["s0"], parallel = 1, arguments_written = array<i64: 1>} {
  loop.pointwise [s0] {
    %0 = loop.load %a [s0 - d0 - 1] : <[s0] x f32, <[0]>>
    loop.store %0, %b [d0] : <[s0] x f32, <[0]>>
  }
}
loop.program @p(%x: !loop.buffer<[w] x f32, <[0]>> | %y: !loop.buffer<[w] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y"],
                output_types = [f32], symbol_sources = {},
                symbols = {h = #prim.symbol<1, 64, divisor = 1, hint = 8>, w = #prim.symbol<1, 64, divisor = 1, hint = 8>}} {
  %a = loop.buffer : <[16*w] x f32, <[0]>>
  %b = loop.buffer : <[48*w] x f32, <[0]>>
  %c = loop.buffer : <[16*h] x f32, <[0]>>
  %d = loop.buffer : <[32*h] x f32, <[0]>>
  %e = loop.buffer : <[32*h] x f32, <[0]>>
  loop.launch @step(%x, %a) symbols [w] : !loop.buffer<[w] x f32, <[0]>>, !loop.buffer<[16*w] x f32, <[0]>>
  loop.launch @step(%a, %b) symbols [w] : !loop.buffer<[16*w] x f32, <[0]>>, !loop.buffer<[48*w] x f32, <[0]>>
  loop.launch @step(%b, %c) symbols [w] : !loop.buffer<[48*w] x f32, <[0]>>, !loop.buffer<[16*h] x f32, <[0]>>
  loop.launch @step(%c, %d) symbols [h] : !loop.buffer<[16*h] x f32, <[0]>>, !loop.buffer<[32*h] x f32, <[0]>>
  loop.launch @step(%d, %e) symbols [h] : !loop.buffer<[32*h] x f32, <[0]>>, !loop.buffer<[32*h] x f32, <[0]>>
  loop.launch @step(%e, %y) symbols [w] : !loop.buffer<[32*h] x f32, <[0]>>, !loop.buffer<[w] x f32, <[0]>>
}
