// RUN: ptc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(ptc-autocast{type=bf16},cse))' | FileCheck %s

// One rounding for both readers of x, below the transpose of the weight.
// CHECK-LABEL: func.func @products
// CHECK-DAG:     %[[W:.*]] = prim.weight
// CHECK-DAG:     %[[WN:.*]] = prim.convert %[[W]] : tensor<6x4xf32> -> tensor<6x4xbf16>
// CHECK-DAG:     %[[T:.*]] = prim.transpose %[[WN]], [1, 0] : tensor<6x4xbf16> -> tensor<4x6xbf16>
// CHECK-DAG:     %[[B:.*]] = prim.convert %[[T]] : tensor<4x6xbf16> -> tensor<4x6xf32>
// CHECK-DAG:     %[[XN:.*]] = prim.convert %arg0 : tensor<3x4xf32> -> tensor<3x4xbf16>
// CHECK-DAG:     %[[A:.*]] = prim.convert %[[XN]] : tensor<3x4xbf16> -> tensor<3x4xf32>
// CHECK:         %[[P:.*]] = prim.matmul %[[A]], %[[B]]
// CHECK-NOT:     prim.convert %arg0
// CHECK:         prim.matmul %[[A]],
func.func @products(%x: tensor<3x4xf32>, %w2: tensor<4x5xf32>) -> (tensor<3x6xf32>, tensor<3x5xf32>) {
  %w = prim.weight <"w", "", 0, 96> : tensor<6x4xf32>
  %t = prim.transpose %w, [1, 0] : tensor<6x4xf32> -> tensor<4x6xf32>
  %p = prim.matmul %x, %t : (tensor<3x4xf32>, tensor<4x6xf32>) -> tensor<3x6xf32>
  %q = prim.matmul %x, %w2 : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return %p, %q : tensor<3x6xf32>, tensor<3x5xf32>
}

// -----

// A small weight that is a constant already is rounded here: 1 + 2^-9 has no place in bf16.
// CHECK-LABEL: func.func @constants
// CHECK:         prim.constant dense<{{\[\[}}1.000000e+00], [2.000000e+00]]> : tensor<2x1xbf16>
func.func @constants(%x: tensor<3x2xf32>) -> tensor<3x1xf32> {
  %w = prim.constant dense<[[1.001953125], [2.0]]> : tensor<2x1xf32>
  %p = prim.matmul %x, %w : (tensor<3x2xf32>, tensor<2x1xf32>) -> tensor<3x1xf32>
  return %p : tensor<3x1xf32>
}

// -----

// What the user keeps, other types, and loops.
// CHECK-LABEL: func.func @untouched
// CHECK-NOT:     prim.convert
func.func @untouched(%x: tensor<3x3xf32>, %d: tensor<3x3xf64>, %s: tensor<2x3x3xf32>)
    -> (tensor<3x3xf32>, tensor<3x3xf64>, tensor<3x3xf32>) {
  %p = prim.matmul %x, %x {prim.keeps_type} : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %q = prim.matmul %d, %d : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %last = prim.loop "i" below 2 states(%x) over(%s) {
  ^bb0(%state: tensor<3x3xf32>, %element: tensor<3x3xf32>):
    %r = prim.matmul %state, %element : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
    prim.yield %r : tensor<3x3xf32>
  } : (tensor<3x3xf32>, tensor<2x3x3xf32>) -> tensor<3x3xf32>
  return %p, %q, %last : tensor<3x3xf32>, tensor<3x3xf64>, tensor<3x3xf32>
}

// -----

// Below a slice of what is computed, above one of an argument.
// CHECK-LABEL: func.func @slices
// CHECK-DAG:     %[[R:.*]] = prim.relu %arg0
// CHECK-DAG:     %[[RN:.*]] = prim.convert %[[R]] : tensor<6x8xf32> -> tensor<6x8xbf16>
// CHECK-DAG:     prim.slice %[[RN]] {{.*}} -> tensor<6x4xbf16>
// CHECK-DAG:     %[[S:.*]] = prim.slice %arg1 {{.*}} -> tensor<4x5xf32>
// CHECK-DAG:     prim.convert %[[S]] : tensor<4x5xf32> -> tensor<4x5xbf16>
func.func @slices(%x: tensor<6x8xf32>, %w: tensor<9x5xf32>) -> tensor<6x5xf32> {
  %r = prim.relu %x : tensor<6x8xf32>
  %a = prim.slice %r [0, 4], [1, 1] : tensor<6x8xf32> -> tensor<6x4xf32>
  %b = prim.slice %w [5, 0], [1, 1] : tensor<9x5xf32> -> tensor<4x5xf32>
  %y = prim.matmul %a, %b : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
  return %y : tensor<6x5xf32>
}

// -----

// Attention writes in the order of the views behind it, and rounds there.
// CHECK-LABEL: func.func @attention
// CHECK:         %[[A:.*]] = prim.attention
// CHECK:         %[[V:.*]] = prim.reshape %[[A]] : tensor<2x3x4xf32> -> tensor<6x4xf32>
// CHECK:         prim.convert %[[V]] : tensor<6x4xf32> -> tensor<6x4xbf16>
func.func @attention(%q: tensor<2x3x4xf32>, %w: tensor<4x5xf32>) -> tensor<6x5xf32> {
  %a = prim.attention %q, %q, %q scale 1.0 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %v = prim.reshape %a : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %y = prim.matmul %v, %w : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
  return %y : tensor<6x5xf32>
}
