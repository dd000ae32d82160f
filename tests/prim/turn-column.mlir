// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-simplify-algebra))' | FileCheck %s

// A weight by a column becomes a row by the turned weight; what is said of the product stays.
// CHECK-LABEL: func.func @column
// CHECK-DAG:     %[[W:.*]] = prim.weight
// CHECK-DAG:     %[[T:.*]] = prim.transpose %[[W]], [1, 0]
// CHECK-DAG:     %[[X:.*]] = prim.reshape %arg0 : tensor<8x1xf32> -> tensor<1x8xf32>
// CHECK:         %[[Y:.*]] = prim.matmul %[[X]], %[[T]] {prim.keeps_type}
// CHECK:         prim.reshape %[[Y]] : tensor<1x256xf32> -> tensor<256x1xf32>
func.func @column(%x: tensor<8x1xf32>) -> tensor<256x1xf32> {
  %w = prim.weight <"w", "", 0, 8192> : tensor<256x8xf32>
  %y = prim.matmul %w, %x {prim.keeps_type} : (tensor<256x8xf32>, tensor<8x1xf32>) -> tensor<256x1xf32>
  return %y : tensor<256x1xf32>
}

// Two columns, few rows and a matrix that is computed stay.
// CHECK-LABEL: func.func @others
// CHECK-NOT:     prim.transpose
func.func @others(%x: tensor<8x2xf32>, %c: tensor<8x1xf32>, %m: tensor<256x8xf32>)
    -> (tensor<256x2xf32>, tensor<16x1xf32>, tensor<256x1xf32>) {
  %w = prim.weight <"w", "", 0, 8192> : tensor<256x8xf32>
  %f = prim.weight <"f", "", 8192, 512> : tensor<16x8xf32>
  %y = prim.matmul %w, %x : (tensor<256x8xf32>, tensor<8x2xf32>) -> tensor<256x2xf32>
  %v = prim.matmul %f, %c : (tensor<16x8xf32>, tensor<8x1xf32>) -> tensor<16x1xf32>
  %z = prim.matmul %m, %c : (tensor<256x8xf32>, tensor<8x1xf32>) -> tensor<256x1xf32>
  return %y, %v, %z : tensor<256x2xf32>, tensor<16x1xf32>, tensor<256x1xf32>
}
