// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-sink-broadcasts))' | FileCheck %s
// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-sink-broadcasts,ptc-fold-constants))' | FileCheck %s --check-prefix=FOLDED

// A table's product, and what is added to it, are computed once for a batch.
// CHECK-LABEL: func.func @table
// CHECK:         %[[T:.*]] = prim.broadcast %{{.*}}, [1, 2] : tensor<3x4xf32> -> tensor<1x3x4xf32>
// CHECK:         %[[P:.*]] = prim.matmul %[[T]], %{{.*}} -> tensor<1x3x2xf32>
// CHECK:         %[[S:.*]] = prim.exp %[[P]] : tensor<1x3x2xf32>
// CHECK:         %[[B:.*]] = prim.broadcast %[[S]], [0, 1, 2] : tensor<1x3x2xf32> -> tensor<?x3x2xf32, #prim.dims<[batch, 3, 2]>>
// CHECK:         prim.add %arg0, %[[B]]
// FOLDED-LABEL: func.func @table
// FOLDED-NOT:     prim.matmul
// FOLDED:         %[[S:.*]] = prim.constant dense<1.0{{.*}}> : tensor<1x3x2xf32>
// FOLDED:         prim.broadcast %[[S]], [0, 1, 2]
func.func @table(%x: tensor<?x3x2xf32, #prim.dims<[batch, 3, 2]>>) -> tensor<?x3x2xf32, #prim.dims<[batch, 3, 2]>> {
  %t = prim.constant dense<0.0> : tensor<3x4xf32>
  %w = prim.constant dense<2.0> : tensor<4x2xf32>
  %r = prim.broadcast %t, [1, 2] : tensor<3x4xf32> -> tensor<?x3x4xf32, #prim.dims<[batch, 3, 4]>>
  %p = prim.matmul %r, %w : (tensor<?x3x4xf32, #prim.dims<[batch, 3, 4]>>, tensor<4x2xf32>) -> tensor<?x3x2xf32, #prim.dims<[batch, 3, 2]>>
  %e = prim.exp %p : tensor<?x3x2xf32, #prim.dims<[batch, 3, 2]>>
  %y = prim.add %x, %e : tensor<?x3x2xf32, #prim.dims<[batch, 3, 2]>>
  return %y : tensor<?x3x2xf32, #prim.dims<[batch, 3, 2]>>
}

// Of heads and batch in one dim the heads are left, and the product is repeated for each element of the batch.
// CHECK-LABEL: func.func @heads
// CHECK:         %[[H:.*]] = prim.reshape %{{.*}} : tensor<1x2x4xf32> -> tensor<2x4xf32>
// CHECK:         %[[P:.*]] = prim.matmul %[[H]], %{{.*}} -> tensor<2x3xf32>
// CHECK:         %[[B:.*]] = prim.broadcast %[[P]], [1, 2] : tensor<2x3xf32> -> tensor<?x2x3xf32, #prim.dims<[batch, 2, 3]>>
// CHECK:         prim.reshape %[[B]] : {{.*}} -> tensor<?x3xf32, #prim.dims<[2*batch, 3]>>
func.func @heads(%x: tensor<?x3xf32, #prim.dims<[2*batch, 3]>>) -> tensor<?x3xf32, #prim.dims<[2*batch, 3]>> {
  %t = prim.constant dense<[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]> : tensor<2x4xf32>
  %w = prim.constant dense<2.0> : tensor<4x3xf32>
  %r = prim.broadcast %t, [1, 2] : tensor<2x4xf32> -> tensor<?x2x4xf32, #prim.dims<[batch, 2, 4]>>
  %h = prim.reshape %r : tensor<?x2x4xf32, #prim.dims<[batch, 2, 4]>> -> tensor<?x4xf32, #prim.dims<[2*batch, 4]>>
  %p = prim.matmul %h, %w : (tensor<?x4xf32, #prim.dims<[2*batch, 4]>>, tensor<4x3xf32>) -> tensor<?x3xf32, #prim.dims<[2*batch, 3]>>
  %y = prim.add %x, %p : tensor<?x3xf32, #prim.dims<[2*batch, 3]>>
  return %y : tensor<?x3xf32, #prim.dims<[2*batch, 3]>>
}

// Sums cost little. What is multiplied stays, too, where elements in another order mix a free dim with others.
// CHECK-LABEL: func.func @others
// CHECK:         prim.reduce  sum %{{.*}}, [1] : tensor<?x4xf32, #prim.dims<[n, 4]>> -> tensor<?xf32, #prim.dims<[n]>>
// CHECK:         prim.reshape %{{.*}} : tensor<?x4xf32, #prim.dims<[n, 4]>> -> tensor<4x?xf32, #prim.dims<[4, n]>>
// CHECK:         prim.matmul %{{.*}} -> tensor<3x?xf32, #prim.dims<[3, n]>>
func.func @others() -> (tensor<?xf32, #prim.dims<[n]>>, tensor<3x?xf32, #prim.dims<[3, n]>>) {
  %t = prim.constant dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32>
  %w = prim.constant dense<2.0> : tensor<3x4xf32>
  %r = prim.broadcast %t, [1] : tensor<4xf32> -> tensor<?x4xf32, #prim.dims<[n, 4]>>
  %s = prim.reduce sum %r, [1] : tensor<?x4xf32, #prim.dims<[n, 4]>> -> tensor<?xf32, #prim.dims<[n]>>
  %h = prim.reshape %r : tensor<?x4xf32, #prim.dims<[n, 4]>> -> tensor<4x?xf32, #prim.dims<[4, n]>>
  %m = prim.matmul %w, %h : (tensor<3x4xf32>, tensor<4x?xf32, #prim.dims<[4, n]>>) -> tensor<3x?xf32, #prim.dims<[3, n]>>
  return %s, %m : tensor<?xf32, #prim.dims<[n]>>, tensor<3x?xf32, #prim.dims<[3, n]>>
}
