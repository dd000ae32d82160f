// What products alone read, through concats of concats, too, is rounded and stored narrow once, below all of them.
// RUN: ptc-opt %s --ptc-autocast=type=bf16 --cse | FileCheck %s

// CHECK-LABEL: func.func @block
// CHECK-DAG:     %[[A:.*]] = prim.convert %arg0 : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK-DAG:     %[[B:.*]] = prim.convert %arg1 : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK-DAG:     %[[C:.*]] = prim.concat %[[A]], %[[B]] axis 1
// CHECK-DAG:     %[[D:.*]] = prim.convert %arg2 : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK-DAG:     %[[E:.*]] = prim.concat %[[C]], %[[D]] axis 1
// CHECK-NOT:     prim.concat
func.func @block(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %d: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %v = prim.weight <"v", "", 0, 512> : tensor<16x8xf32>
  %w = prim.weight <"w", "", 0, 768> : tensor<24x8xf32>
  %c = prim.concat %a, %b axis 1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  %e = prim.concat %c, %d axis 1 : (tensor<4x16xf32>, tensor<4x8xf32>) -> tensor<4x24xf32>
  %y = prim.matmul %c, %v : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %z = prim.matmul %e, %w : (tensor<4x24xf32>, tensor<24x8xf32>) -> tensor<4x8xf32>
  return %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
}

// Where something else reads the outer one, both are wide.
// CHECK-LABEL: func.func @shared
// CHECK-NEXT:    prim.weight
// CHECK-NEXT:    %[[C:.*]] = prim.concat %arg0, %arg1 axis 1 : (tensor<4x8xf32>
// CHECK:         prim.convert %[[C]] : tensor<4x16xf32> -> tensor<4x16xbf16>
func.func @shared(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %d: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x24xf32>) {
  %v = prim.weight <"v", "", 0, 512> : tensor<16x8xf32>
  %c = prim.concat %a, %b axis 1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  %e = prim.concat %c, %d axis 1 : (tensor<4x16xf32>, tensor<4x8xf32>) -> tensor<4x24xf32>
  %y = prim.matmul %c, %v : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  return %y, %e : tensor<4x8xf32>, tensor<4x24xf32>
}
