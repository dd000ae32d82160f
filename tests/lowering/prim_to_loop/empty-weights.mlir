// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-pack-weights=panel-width=16 | FileCheck %s

// A weight without elements has no panels.
// CHECK-LABEL: loop.program @empty
// CHECK: %[[WEIGHT:.+]] = loop.constant dense<> : tensor<0x31x33xf32>
// CHECK: loop.contraction [0, 2, 33, 31]
// CHECK: loop.load %[[WEIGHT]]
func.func @empty(%x: tensor<1x2x31xf32>) -> tensor<0x2x33xf32> {
  %w = prim.constant dense<> : tensor<0x31x33xf32>
  %row = prim.broadcast %x, [0, 1, 2] : tensor<1x2x31xf32> -> tensor<0x2x31xf32>
  %y = prim.matmul %row, %w : (tensor<0x2x31xf32>, tensor<0x31x33xf32>) -> tensor<0x2x33xf32>
  return %y : tensor<0x2x33xf32>
}
