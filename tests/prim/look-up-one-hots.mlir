// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-look-up-one-hots))' | FileCheck %s

// An equality with 0, 1, 2, ... as numbers: the row of each index, zeros for those outside.
// CHECK-LABEL: func.func @embedding
// CHECK-NOT:     prim.matmul
// CHECK:         %[[INDEX:.*]] = prim.broadcast {{.*}} -> tensor<2x5xsi32>
// CHECK:         %[[CLAMPED:.*]] = prim.minimum
// CHECK:         %[[INSIDE:.*]] = prim.eq %[[INDEX]], %[[CLAMPED]]
// CHECK:         %[[ROWS:.*]] = prim.gather %arg1, %[[CLAMPED]], 0
// CHECK:         prim.select {{.*}}, %[[ROWS]], {{.*}} : {{.*}}tensor<2x5x8xf32>
// CHECK-NOT:     prim.matmul
func.func @embedding(%i: tensor<2x5xsi32>, %table: tensor<3x8xf32>) -> tensor<2x5x8xf32> {
  %count = prim.constant dense<[[[0, 1, 2]]]> : tensor<1x1x3xsi32>
  %wide = prim.reshape %i : tensor<2x5xsi32> -> tensor<2x5x1xsi32>
  %a = prim.broadcast %wide, [0, 1, 2] : tensor<2x5x1xsi32> -> tensor<2x5x3xsi32>
  %b = prim.broadcast %count, [0, 1, 2] : tensor<1x1x3xsi32> -> tensor<2x5x3xsi32>
  %is = prim.eq %a, %b : tensor<2x5x3xsi32>
  %h = prim.convert %is : tensor<2x5x3xi1> -> tensor<2x5x3xf32>
  %y = prim.matmul %h, %table : (tensor<2x5x3xf32>, tensor<3x8xf32>) -> tensor<2x5x8xf32>
  return %y : tensor<2x5x8xf32>
}

// As OneHot has it, with the batch dims joined before the product.
// CHECK-LABEL: func.func @one_hot
// CHECK:         prim.gather %arg1, {{.*}}, 0 : (tensor<3x8xf32>, tensor<10xsi64>)
// CHECK-NOT:     prim.matmul
func.func @one_hot(%i: tensor<2x5xsi64>, %table: tensor<3x8xf32>) -> tensor<10x8xf32> {
  %one = prim.constant dense<1.0> : tensor<f32>
  %zero = prim.constant dense<0.0> : tensor<f32>
  %on = prim.broadcast %one, [] : tensor<f32> -> tensor<2x5x3xf32>
  %off = prim.broadcast %zero, [] : tensor<f32> -> tensor<2x5x3xf32>
  %a = prim.broadcast %i, [0, 1] : tensor<2x5xsi64> -> tensor<2x5x3xsi64>
  %b = prim.iota 2 : tensor<2x5x3xsi64>
  %is = prim.eq %b, %a : tensor<2x5x3xsi64>
  %h = prim.select %is, %on, %off : tensor<2x5x3xi1>, tensor<2x5x3xf32>
  %flat = prim.reshape %h : tensor<2x5x3xf32> -> tensor<10x3xf32>
  %y = prim.matmul %flat, %table : (tensor<10x3xf32>, tensor<3x8xf32>) -> tensor<10x8xf32>
  return %y : tensor<10x8xf32>
}

// What varies along the last dim, counts otherwise, or is compared as floats is a product.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: prim.matmul
func.func @others(%i: tensor<2x3xsi32>, %f: tensor<2xf32>, %table: tensor<3x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {
  %count = prim.constant dense<[[0, 1, 2], [0, 1, 2]]> : tensor<2x3xsi32>
  %is = prim.eq %i, %count : tensor<2x3xsi32>
  %h = prim.convert %is : tensor<2x3xi1> -> tensor<2x3xf32>
  %y = prim.matmul %h, %table : (tensor<2x3xf32>, tensor<3x8xf32>) -> tensor<2x8xf32>
  %down = prim.constant dense<[2, 1, 0]> : tensor<3xsi32>
  %row = prim.constant dense<[0, 1]> : tensor<2xsi32>
  %a = prim.broadcast %row, [0] : tensor<2xsi32> -> tensor<2x3xsi32>
  %b = prim.broadcast %down, [1] : tensor<3xsi32> -> tensor<2x3xsi32>
  %is2 = prim.eq %a, %b : tensor<2x3xsi32>
  %h2 = prim.convert %is2 : tensor<2x3xi1> -> tensor<2x3xf32>
  %y2 = prim.matmul %h2, %table : (tensor<2x3xf32>, tensor<3x8xf32>) -> tensor<2x8xf32>
  %up = prim.constant dense<[0.0, 1.0, 2.0]> : tensor<3xf32>
  %c = prim.broadcast %f, [0] : tensor<2xf32> -> tensor<2x3xf32>
  %d = prim.broadcast %up, [1] : tensor<3xf32> -> tensor<2x3xf32>
  %is3 = prim.eq %c, %d : tensor<2x3xf32>
  %h3 = prim.convert %is3 : tensor<2x3xi1> -> tensor<2x3xf32>
  %y3 = prim.matmul %h3, %table : (tensor<2x3xf32>, tensor<3x8xf32>) -> tensor<2x8xf32>
  return %y, %y2, %y3 : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}
