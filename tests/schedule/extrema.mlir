// Minima and maxima keep all of their operands on the way to a kernel.
// RUN: ptc-opt %s --ptc-linearize-accesses --ptc-normalize-nodes --ptc-fuse-nodes --ptc-outline-kernels | FileCheck %s

// CHECK: loop.kernel
// CHECK: loop.load %{{.*}} [min(4, d0, -d0 + 8)]
// CHECK: loop.load %{{.*}} [max(1, d0 - 1, -d0 + 3)]
loop.program @p(%x: !loop.buffer<[5] x f32, <[0]>> | %z: !loop.buffer<[6] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["z"], output_types = [f32],
                symbol_sources = {}, symbols = {}} {
  loop.pointwise [6] {
    %0 = loop.load %x [min(4, d0, -d0 + 8)] : <[5] x f32, <[0]>>
    %1 = loop.load %x [max(1, d0 - 1, -d0 + 3)] : <[5] x f32, <[0]>>
    %2 = arith.addf %0, %1 : f32
    loop.store %2, %z [d0] : <[6] x f32, <[0]>>
  }
}
