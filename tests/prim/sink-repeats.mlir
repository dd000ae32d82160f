// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-sink-repeats))' | FileCheck %s

// Whether a mask hides a whole row is asked once for all heads; what is made of the answer repeats.
// CHECK-LABEL: func.func @mask
// CHECK:         %[[T:.*]] = prim.broadcast %{{.*}}, [] : tensor<f32> -> tensor<?x5x6xf32, #prim.dims<[batch, 5, 6]>>
// CHECK:         %[[L:.*]] = prim.lt %arg0, %[[T]] : tensor<?x5x6xf32, #prim.dims<[batch, 5, 6]>>
// CHECK:         %[[C:.*]] = prim.convert %[[L]]
// CHECK:         %[[S:.*]] = prim.reduce  sum %[[C]], [2] : {{.*}} -> tensor<?x5xsi64, #prim.dims<[batch, 5]>>
// CHECK:         %[[E:.*]] = prim.eq %[[S]], %{{.*}} : tensor<?x5xsi64, #prim.dims<[batch, 5]>>
// CHECK:         %[[R:.*]] = prim.broadcast %[[E]], [0, 1] : {{.*}} -> tensor<?x5x6xi1, #prim.dims<[batch, 5, 6]>>
// CHECK:         %[[A:.*]] = prim.and %[[L]], %[[R]] : tensor<?x5x6xi1, #prim.dims<[batch, 5, 6]>>
// CHECK:         %[[B:.*]] = prim.broadcast %[[A]], [0, 3, 4] : {{.*}} -> tensor<?x8x1x5x6xi1, #prim.dims<[batch, 8, 1, 5, 6]>>
// CHECK:         %[[W:.*]] = prim.reshape %[[B]] : {{.*}} -> tensor<?x5x6xi1, #prim.dims<[8*batch, 5, 6]>>
// CHECK:         return %[[W]]
func.func @mask(%x: tensor<?x5x6xf32, #prim.dims<[batch, 5, 6]>>) -> tensor<?x5x6xi1, #prim.dims<[8*batch, 5, 6]>> {
  %half = prim.constant dense<0.5> : tensor<f32>
  %six = prim.constant dense<6> : tensor<si64>
  %b = prim.broadcast %x, [0, 3, 4] : tensor<?x5x6xf32, #prim.dims<[batch, 5, 6]>> -> tensor<?x8x1x5x6xf32, #prim.dims<[batch, 8, 1, 5, 6]>>
  %r = prim.reshape %b : tensor<?x8x1x5x6xf32, #prim.dims<[batch, 8, 1, 5, 6]>> -> tensor<?x5x6xf32, #prim.dims<[8*batch, 5, 6]>>
  %t = prim.broadcast %half, [] : tensor<f32> -> tensor<?x5x6xf32, #prim.dims<[8*batch, 5, 6]>>
  %l = prim.lt %r, %t : tensor<?x5x6xf32, #prim.dims<[8*batch, 5, 6]>>
  %c = prim.convert %l : tensor<?x5x6xi1, #prim.dims<[8*batch, 5, 6]>> -> tensor<?x5x6xsi64, #prim.dims<[8*batch, 5, 6]>>
  %s = prim.reduce sum %c, [2] : tensor<?x5x6xsi64, #prim.dims<[8*batch, 5, 6]>> -> tensor<?x5xsi64, #prim.dims<[8*batch, 5]>>
  %n = prim.broadcast %six, [] : tensor<si64> -> tensor<?x5xsi64, #prim.dims<[8*batch, 5]>>
  %e = prim.eq %s, %n : tensor<?x5xsi64, #prim.dims<[8*batch, 5]>>
  %w = prim.broadcast %e, [0, 1] : tensor<?x5xi1, #prim.dims<[8*batch, 5]>> -> tensor<?x5x6xi1, #prim.dims<[8*batch, 5, 6]>>
  %y = prim.and %l, %w : tensor<?x5x6xi1, #prim.dims<[8*batch, 5, 6]>>
  return %y : tensor<?x5x6xi1, #prim.dims<[8*batch, 5, 6]>>
}

// Without a sum nothing moves; nor does a sum over what repeats, or of other values of each head.
// CHECK-LABEL: func.func @others
// CHECK:         %[[B:.*]] = prim.broadcast %arg0, [1] : tensor<6xf32> -> tensor<4x6xf32>
// CHECK-DAG:     prim.exp %[[B]] : tensor<4x6xf32>
// CHECK-DAG:     prim.reduce  sum %[[B]], [0] : tensor<4x6xf32> -> tensor<6xf32>
// CHECK-DAG:     %[[P:.*]] = prim.mul %[[B]], %arg1 : tensor<4x6xf32>
// CHECK-DAG:     prim.reduce  sum %[[P]], [1] : tensor<4x6xf32> -> tensor<4xf32>
func.func @others(%x: tensor<6xf32>, %h: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<4xf32>) {
  %b = prim.broadcast %x, [1] : tensor<6xf32> -> tensor<4x6xf32>
  %e = prim.exp %b : tensor<4x6xf32>
  %s = prim.reduce sum %b, [0] : tensor<4x6xf32> -> tensor<6xf32>
  %p = prim.mul %b, %h : tensor<4x6xf32>
  %q = prim.reduce sum %p, [1] : tensor<4x6xf32> -> tensor<4xf32>
  return %e, %s, %q : tensor<4x6xf32>, tensor<6xf32>, tensor<4xf32>
}
