// RUN: ptc-opt %s --ptc-drop-dead-taps | FileCheck %s

// An optional tap does not keep %unused alive, a named one does; a constant needs no showing.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32>)
// CHECK-DAG:     %[[Y:.*]] = prim.exp %[[X]]
// CHECK-DAG:     prim.tap 0 "y" %[[Y]] : tensor<4xf32> optional
// CHECK-NOT:     prim.neg
// CHECK:         prim.tap 1 "unused" optional because "part of what follows
// CHECK:         %[[N:.*]] = prim.relu %[[X]]
// CHECK:         prim.tap 2 "named" %[[N]]
// CHECK:         prim.tap 3 "c" optional because "known when the model is compiled"
// CHECK:         prim.tap 4 "x" %[[X]]
// CHECK:         return %[[Y]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = prim.exp %x : tensor<4xf32>
  prim.tap 0 "y" %y : tensor<4xf32> optional
  %unused = prim.neg %x : tensor<4xf32>
  prim.tap 1 "unused" %unused : tensor<4xf32> optional
  %named = prim.relu %x : tensor<4xf32>
  prim.tap 2 "named" %named : tensor<4xf32>
  %c = prim.constant dense<1.0> : tensor<4xf32>
  prim.tap 3 "c" %c : tensor<4xf32> optional
  prim.tap 4 "x" %x : tensor<4xf32> optional
  return %y : tensor<4xf32>
}
