// All pairs of what is read run as in the domain: none of the smaller buffers says how.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts | FileCheck %s

// Both rows have their heads innermost; the pairs do not.
// CHECK-LABEL: loop.program @pairs
// CHECK:         loop.buffer : <[4, 24] x f32, <[1, 0]>>
// CHECK:         loop.buffer : <[4, 24, 40] x f32, <[0, 1, 2]>>
// CHECK:         loop.pointwise [4, 24, 40]
func.func @pairs(%x: tensor<24x4xf32>, %y: tensor<40x4xf32>) -> (tensor<4x24xf32>, tensor<4x24xf32>) {
  %t = prim.transpose %x, [1, 0] : tensor<24x4xf32> -> tensor<4x24xf32>
  %u = prim.transpose %y, [1, 0] : tensor<40x4xf32> -> tensor<4x40xf32>
  %e = prim.exp %t : tensor<4x24xf32>
  %a = prim.broadcast %e, [0, 1] : tensor<4x24xf32> -> tensor<4x24x40xf32>
  %b = prim.broadcast %u, [0, 2] : tensor<4x40xf32> -> tensor<4x24x40xf32>
  %s = prim.sub %a, %b : tensor<4x24x40xf32>
  %r = prim.reduce max %s, [2] : tensor<4x24x40xf32> -> tensor<4x24xf32>
  %q = prim.reduce sum %s, [2] : tensor<4x24x40xf32> -> tensor<4x24xf32>
  return %r, %q : tensor<4x24xf32>, tensor<4x24xf32>
}

// One row that is repeated is followed.
// CHECK-LABEL: loop.program @repeated
// CHECK:         loop.buffer : <[4, 24, 40] x f32, <[1, 2, 0]>>
// CHECK:         loop.pointwise [4, 24, 40]
func.func @repeated(%x: tensor<24x4xf32>) -> (tensor<4x24xf32>, tensor<4x24xf32>) {
  %t = prim.transpose %x, [1, 0] : tensor<24x4xf32> -> tensor<4x24xf32>
  %a = prim.broadcast %t, [0, 1] : tensor<4x24xf32> -> tensor<4x24x40xf32>
  %b = prim.exp %a : tensor<4x24x40xf32>
  %r = prim.reduce max %b, [2] : tensor<4x24x40xf32> -> tensor<4x24xf32>
  %q = prim.reduce sum %b, [2] : tensor<4x24x40xf32> -> tensor<4x24xf32>
  return %r, %q : tensor<4x24xf32>, tensor<4x24xf32>
}
