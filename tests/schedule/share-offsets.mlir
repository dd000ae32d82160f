// Parts of a buffer behind sums of sizes are written by one kernel, which is given the sum; a size that is used elsewhere in
// the kernel stays a symbol of its own.
// RUN: ptc-opt %s --ptc-linearize-accesses --ptc-normalize-nodes --ptc-fuse-nodes --ptc-outline-kernels | FileCheck %s

// CHECK: loop.kernel @[[K:pointwise_[0-9a-f]+]]({{.*}} symbols = ["s0", "s1"]
// CHECK: loop.store %{{.*}} [d0 + s1]
// CHECK: loop.kernel @[[L:pointwise_[0-9a-f]+]]({{.*}} symbols = ["s0", "s1"]
// CHECK: loop.store %{{.*}} [d0 + s0 + s1]
// CHECK: loop.launch @[[K]]({{.*}}) symbols [c, a + b]
// CHECK: loop.launch @[[K]]({{.*}}) symbols [e, a + b + c]
// CHECK: loop.launch @[[L]]({{.*}}) symbols [a, b + c]
loop.program @p(%x: !loop.buffer<[c] x f32, <[0]>>, %y: !loop.buffer<[e] x f32, <[0]>>, %v: !loop.buffer<[a] x f32, <[0]>>
                | %z: !loop.buffer<[9*a + b + c + e] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x", "y", "v"], input_types = [f32, f32, f32],
                output_names = ["z"], output_types = [f32], symbol_sources = {},
                symbols = {a = #prim.symbol<0, 64, divisor = 1, hint = 4>, b = #prim.symbol<0, 64, divisor = 1, hint = 4>,
                           c = #prim.symbol<0, 64, divisor = 1, hint = 4>, e = #prim.symbol<0, 64, divisor = 1, hint = 4>}} {
  loop.pointwise [c] {
    %0 = loop.load %x [d0] : <[c] x f32, <[0]>>
    %1 = arith.negf %0 : f32
    loop.store %1, %z [d0 + a + b] : <[9*a + b + c + e] x f32, <[0]>>
  }
  loop.pointwise [e] {
    %0 = loop.load %y [d0] : <[e] x f32, <[0]>>
    %1 = arith.negf %0 : f32
    loop.store %1, %z [d0 + a + b + c] : <[9*a + b + c + e] x f32, <[0]>>
  }
  loop.pointwise [a] {
    %0 = loop.load %v [d0] : <[a] x f32, <[0]>>
    %1 = arith.negf %0 : f32
    loop.store %1, %z [d0 + a + b + c] : <[9*a + b + c + e] x f32, <[0]>>
  }
}
