// What a scatter writes is the result's own memory: a copy of x, then the updates; numbers without signs say which is the
// larger. As a part of something larger it is copied.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies | FileCheck %s

// CHECK-LABEL: loop.program @result
// CHECK-SAME:    | %[[Y:.*]]: !loop.buffer<[5] x i8, <[0]>>
// CHECK-NOT:     loop.buffer :
// CHECK:         loop.pointwise [5]
// CHECK:           loop.store {{.*}}, %[[Y]] [d0]
// CHECK:         loop.scatter [3]
// CHECK:           loop.store {{.*}}, %[[Y]] [v$0]({{.*}}) combine max {loop.unsigned}
// CHECK-NOT:     loop.pointwise
func.func @result(%x: tensor<5xui8>, %i: tensor<3x1xsi64>, %u: tensor<3xui8>) -> tensor<5xui8> {
  %y = prim.scatter_nd max %x, %i, %u : (tensor<5xui8>, tensor<3x1xsi64>, tensor<3xui8>) -> tensor<5xui8>
  return %y : tensor<5xui8>
}

// CHECK-LABEL: loop.program @part
// CHECK:         %[[B:.*]] = loop.buffer : <[5] x f32>
// CHECK:         loop.scatter [3]
// CHECK:           loop.store {{.*}}, %[[B]] [v$0]
// CHECK:         loop.pointwise [5]
// CHECK:           loop.load %[[B]] [d0]
func.func @part(%x: tensor<5xf32>, %i: tensor<3x1xsi64>, %u: tensor<3xf32>) -> tensor<10xf32> {
  %s = prim.scatter_nd add %x, %i, %u : (tensor<5xf32>, tensor<3x1xsi64>, tensor<3xf32>) -> tensor<5xf32>
  %y = prim.concat %s, %x axis 0 : (tensor<5xf32>, tensor<5xf32>) -> tensor<10xf32>
  return %y : tensor<10xf32>
}
