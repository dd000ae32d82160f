// Images from which pixels are gathered, at places that are read, have their channels innermost where these fill vectors
// and as many elements are taken as there are: the caller's are copied, others are written so; but not for devices.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-copy-images --ptc-assign-layouts | FileCheck %s --check-prefixes=CHECK,CPU
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts=gather-rows=false | FileCheck %s --check-prefixes=CHECK,DEVICE

// One copy for both gathers.
// CHECK-LABEL: loop.program @image(%arg0: !loop.buffer<[2, 32, 5, 6] x f32, <[0, 1, 2, 3]>>
// CPU:           %[[COPY:.*]] = loop.buffer : <[2, 32, 5, 6] x f32, <[0, 2, 3, 1]>>
// CPU:           loop.pointwise [2, 32, 5, 6]
// CPU:             loop.load %arg0 [d0, d1, d2, d3]
// CPU-NOT:       loop.load %arg0
// CPU-COUNT-2:     loop.load %[[COPY]] [d0, d1, floordiv(v$0, 6), mod(v$0, 6)]
// DEVICE-COUNT-2:  loop.load %arg0 [d0, d1, floordiv(v$0, 6), mod(v$0, 6)]
func.func @image(%x: tensor<2x32x5x6xf32>, %i: tensor<2x20x1xsi32>, %j: tensor<2x20x1xsi32>) -> tensor<2x32x20xf32> {
  %f = prim.reshape %x : tensor<2x32x5x6xf32> -> tensor<2x32x30xf32>
  %t = prim.transpose %f, [0, 2, 1] : tensor<2x32x30xf32> -> tensor<2x30x32xf32>
  %a = prim.gather_nd %t, %i, 1 : (tensor<2x30x32xf32>, tensor<2x20x1xsi32>) -> tensor<2x20x32xf32>
  %b = prim.gather_nd %t, %j, 1 : (tensor<2x30x32xf32>, tensor<2x20x1xsi32>) -> tensor<2x20x32xf32>
  %s = prim.add %a, %b : tensor<2x20x32xf32>
  %y = prim.transpose %s, [0, 2, 1] : tensor<2x20x32xf32> -> tensor<2x32x20xf32>
  return %y : tensor<2x32x20xf32>
}

// What computes the image writes it so.
// CHECK-LABEL: loop.program @computed
// CPU:           loop.buffer : <[2, 32, 30] x f32, <[0, 2, 1]>>
// DEVICE:        loop.buffer : <[2, 32, 30] x f32, <[0, 1, 2]>>
func.func @computed(%x: tensor<2x32x30xf32>, %i: tensor<2x40x1xsi32>) -> (tensor<2x32x40xf32>, tensor<2x32x30xf32>) {
  %e = prim.exp %x : tensor<2x32x30xf32>
  %n = prim.neg %e : tensor<2x32x30xf32>
  %t = prim.transpose %e, [0, 2, 1] : tensor<2x32x30xf32> -> tensor<2x30x32xf32>
  %a = prim.gather_nd %t, %i, 1 : (tensor<2x30x32xf32>, tensor<2x40x1xsi32>) -> tensor<2x40x32xf32>
  %y = prim.transpose %a, [0, 2, 1] : tensor<2x40x32xf32> -> tensor<2x32x40xf32>
  return %y, %n : tensor<2x32x40xf32>, tensor<2x32x30xf32>
}

// Few channels; few pixels; channels that are innermost already.
// CHECK-LABEL: loop.program @asitis
// CHECK-NOT:     = loop.buffer
func.func @asitis(%x: tensor<2x3x30xf32>, %z: tensor<2x30x32xf32>, %i: tensor<2x40x1xsi32>, %j: tensor<2x2x1xsi32>)
    -> (tensor<2x3x40xf32>, tensor<2x2x32xf32>, tensor<2x40x32xf32>) {
  %t = prim.transpose %x, [0, 2, 1] : tensor<2x3x30xf32> -> tensor<2x30x3xf32>
  %a = prim.gather_nd %t, %i, 1 : (tensor<2x30x3xf32>, tensor<2x40x1xsi32>) -> tensor<2x40x3xf32>
  %y = prim.transpose %a, [0, 2, 1] : tensor<2x40x3xf32> -> tensor<2x3x40xf32>
  %b = prim.gather_nd %z, %j, 1 : (tensor<2x30x32xf32>, tensor<2x2x1xsi32>) -> tensor<2x2x32xf32>
  %c = prim.gather_nd %z, %i, 1 : (tensor<2x30x32xf32>, tensor<2x40x1xsi32>) -> tensor<2x40x32xf32>
  return %y, %b, %c : tensor<2x3x40xf32>, tensor<2x2x32xf32>, tensor<2x40x32xf32>
}
