// Parts of one value at several shifts, joined along the channels, are one node that writes all channels of a pixel; the
// value keeps a buffer of its own.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-join-shifts --ptc-elide-copies | FileCheck %s

// CHECK-LABEL: loop.program @shifts
// CHECK:         %[[V:.*]] = loop.buffer : <[6, 9, 1] x f32>
// CHECK:         loop.pointwise [6, 9, 1]
// CHECK:           math.exp
// CHECK:           loop.store {{.*}}, %[[V]] [d0, d1, d2]
// CHECK:         loop.pointwise [6, 9, 1, 4] {
// CHECK:           loop.masked [select(eq(d3, 0), d1 - 2, select(eq(d3, 1), 0, select(eq(d3, 2), -d1 + 7, -d1 + 5)))]
// CHECK:             loop.load %[[V]] [d0, d1 + select(eq(d3, 0), 0, select(eq(d3, 1), 2, select(eq(d3, 2), 3, 5))) - 2, 0]
// CHECK:           loop.store {{.*}} [d0, d1, d3]
// CHECK-NOT:     loop.pointwise
func.func @shifts(%x: tensor<6x9x1xf32>) -> tensor<6x9x4xf32> {
  %zero = prim.constant dense<0.0> : tensor<f32>
  %v = prim.exp %x : tensor<6x9x1xf32>
  %s0 = prim.slice %v [0, 0, 0], [1, 1, 1] : tensor<6x9x1xf32> -> tensor<6x7x1xf32>
  %p0 = prim.pad constant %s0, %zero [0, 2, 0] : (tensor<6x7x1xf32>, tensor<f32>) -> tensor<6x9x1xf32>
  %s2 = prim.slice %v [0, 1, 0], [1, 1, 1] : tensor<6x9x1xf32> -> tensor<6x8x1xf32>
  %p2 = prim.pad constant %s2, %zero [0, 0, 0] : (tensor<6x8x1xf32>, tensor<f32>) -> tensor<6x9x1xf32>
  %s3 = prim.slice %v [0, 3, 0], [1, 1, 1] : tensor<6x9x1xf32> -> tensor<6x6x1xf32>
  %p3 = prim.pad constant %s3, %zero [0, 0, 0] : (tensor<6x6x1xf32>, tensor<f32>) -> tensor<6x9x1xf32>
  %c = prim.concat %p0, %v, %p2, %p3 axis 2 : (tensor<6x9x1xf32>, tensor<6x9x1xf32>, tensor<6x9x1xf32>, tensor<6x9x1xf32>) -> tensor<6x9x4xf32>
  return %c : tensor<6x9x4xf32>
}
