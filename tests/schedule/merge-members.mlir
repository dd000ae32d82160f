// The exponentials of a softmax are computed in the loop that adds them up: three loops over the row, not four.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts \
// RUN:   --ptc-linearize-accesses --ptc-normalize-nodes --ptc-fuse-nodes | FileCheck %s

// CHECK-LABEL: loop.program @softmax
// CHECK:         loop.fused parallel 1
// CHECK:           loop.reduction [16, 32] reduced 1
// CHECK:             loop.reduce max
// CHECK:           loop.reduction [16, 32] reduced 1
// CHECK:             %[[E:.*]] = math.exp
// CHECK:             loop.store %[[E]]
// CHECK:             loop.reduce sum %[[E]]
// CHECK:           loop.pointwise [16, 32]
// CHECK:             arith.divf
// CHECK-NOT:       loop.pointwise
func.func @softmax(%x: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %m = prim.reduce max %x, [1] : tensor<16x32xf32> -> tensor<16xf32>
  %mb = prim.broadcast %m, [0] : tensor<16xf32> -> tensor<16x32xf32>
  %s = prim.sub %x, %mb : tensor<16x32xf32>
  %e = prim.exp %s : tensor<16x32xf32>
  %t = prim.reduce sum %e, [1] : tensor<16x32xf32> -> tensor<16xf32>
  %tb = prim.broadcast %t, [0] : tensor<16xf32> -> tensor<16x32xf32>
  %y = prim.div %e, %tb : tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}

// Steps of a loop that was unrolled, each of which reads a part of what is computed for all of them: they compute their
// parts themselves, no buffer holds them.
// CHECK-LABEL: loop.program @steps
// CHECK:         loop.fused parallel 1
// CHECK-NOT:       loop.pointwise
// CHECK:           loop.reduction [64, 16] reduced 1
// CHECK:             arith.subf
// CHECK:           loop.reduction [64, 16] reduced 1
// CHECK:             arith.subf
// CHECK:             arith.mulf
loop.program @steps(%x: !loop.buffer<[64, 2, 16] x f32, <[0, 1, 2]>>, %z: !loop.buffer<[2, 16] x f32, <[0, 1]>>
    | %y: !loop.buffer<[64, 2] x f32, <[0, 1]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x", "z"], input_types = [f32, f32],
                output_names = ["y"], output_types = [f32], symbol_sources = {}, symbols = {}} {
  %r = loop.buffer : <[64, 2, 16] x f32, <[0, 1, 2]>>
  %h = loop.buffer : <[64, 16] x f32, <[0, 1]>>
  loop.pointwise [64, 2, 16] {
    %0 = loop.load %x [d0, d1, d2] : <[64, 2, 16] x f32, <[0, 1, 2]>>
    %1 = loop.load %z [d1, d2] : <[2, 16] x f32, <[0, 1]>>
    %2 = arith.subf %0, %1 : f32
    loop.store %2, %r [d0, d1, d2] : <[64, 2, 16] x f32, <[0, 1, 2]>>
  }
  loop.reduction [64, 16] reduced 1 {
    %0 = loop.load %r [d0, 0, d1] : <[64, 2, 16] x f32, <[0, 1, 2]>>
    loop.store %0, %h [d0, d1] : <[64, 16] x f32, <[0, 1]>>
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %y [d0, 0] : <[64, 2] x f32, <[0, 1]>>
  }
  loop.reduction [64, 16] reduced 1 {
    %0 = loop.load %r [d0, 1, d1] : <[64, 2, 16] x f32, <[0, 1, 2]>>
    %1 = loop.load %h [d0, d1] : <[64, 16] x f32, <[0, 1]>>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y [d0, 1] : <[64, 2] x f32, <[0, 1]>>
  }
}
