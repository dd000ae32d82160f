// That rows may be bytes is known of a product, of what takes the place of several if all permit it, and of what it is
// lowered to if the target takes such rows.
// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-join-products))' | FileCheck %s
// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-join-products),ptc-lower-prim-to-loop)' | FileCheck %s --check-prefix=LOOP
// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-join-products),ptc-lower-prim-to-loop{takes-byte-rows=false})' | FileCheck %s --check-prefix=WITHOUT
// WITHOUT-NOT: byte_rows

// CHECK-LABEL: func.func @all
// CHECK:         prim.matmul {{.*}} {prim.byte_rows}
// CHECK-NOT:     byte_rows
// LOOP-LABEL:  loop.program @all
// LOOP:          loop.contraction
// LOOP:          } {prim.byte_rows}
func.func @all(%x: tensor<1x2x4xf32>) -> tensor<1x2x2xf32> {
  %v = prim.weight <"v", "", 0, 64> : tensor<4x4xf32>
  %w = prim.weight <"w", "", 64, 64> : tensor<4x4xf32>
  %y = prim.matmul %x, %v {prim.byte_rows} : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
  %z = prim.matmul %x, %w {prim.byte_rows} : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
  %t = prim.transpose %z, [0, 2, 1] : tensor<1x2x4xf32> -> tensor<1x4x2xf32>
  %s = prim.matmul %y, %t : (tensor<1x2x4xf32>, tensor<1x4x2xf32>) -> tensor<1x2x2xf32>
  return %s : tensor<1x2x2xf32>
}

// CHECK-LABEL: func.func @one_of_two
// CHECK:         prim.matmul
// CHECK-NOT:     byte_rows
// LOOP-LABEL:  loop.program @one_of_two
// LOOP-NOT:      byte_rows
func.func @one_of_two(%x: tensor<1x2x4xf32>) -> tensor<1x2x2xf32> {
  %v = prim.weight <"v", "", 0, 64> : tensor<4x4xf32>
  %w = prim.weight <"w", "", 64, 64> : tensor<4x4xf32>
  %y = prim.matmul %x, %v {prim.byte_rows} : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
  %z = prim.matmul %x, %w : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
  %t = prim.transpose %z, [0, 2, 1] : tensor<1x2x4xf32> -> tensor<1x4x2xf32>
  %s = prim.matmul %y, %t : (tensor<1x2x4xf32>, tensor<1x4x2xf32>) -> tensor<1x2x2xf32>
  return %s : tensor<1x2x2xf32>
}
