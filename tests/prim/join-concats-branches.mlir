// Concats in a branch are joined as anywhere: their weights stand in front of it. Those of several blocks are not.
// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-join-products{several-values=true}))' | FileCheck %s

// CHECK-LABEL: func.func @inside
// CHECK-DAG:     prim.weight <"c0", "", 0, 64> others [#prim.weight_ref<"c1", "", 64, 64>] : tensor<2x4x4xf32>
// CHECK-DAG:     prim.weight <"p0", "", 128, 64> others [#prim.weight_ref<"p1", "", 192, 64>] : tensor<2x4x4xf32>
// CHECK-NOT:     prim.matmul
// CHECK:         prim.if
// CHECK-COUNT-2: prim.matmul
// CHECK-NOT:     prim.matmul
// CHECK:         %[[ALL:.*]] = prim.concat {{.*}} -> tensor<2x3x2x4xf32>
// CHECK:         prim.slice %[[ALL]] [0, 0, 0, 0]
// CHECK:         prim.slice %[[ALL]] [1, 0, 0, 0]
// CHECK-NOT:     prim.concat
// CHECK:         } else {
func.func @inside(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>, %q: tensor<3x2x4xf32>, %flag: tensor<i1>) -> tensor<3x2x4xf32> {
  %c0 = prim.weight <"c0", "", 0, 64> : tensor<4x4xf32>
  %c1 = prim.weight <"c1", "", 64, 64> : tensor<4x4xf32>
  %p0 = prim.weight <"p0", "", 128, 64> : tensor<4x4xf32>
  %p1 = prim.weight <"p1", "", 192, 64> : tensor<4x4xf32>
  %r = prim.if %flag then {
    %a0 = prim.matmul %x, %c0 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %b0 = prim.matmul %y, %p0 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %ah0 = prim.reshape %a0 : tensor<3x4xf32> -> tensor<3x2x2xf32>
    %bh0 = prim.reshape %b0 : tensor<3x4xf32> -> tensor<3x2x2xf32>
    %k0 = prim.concat %ah0, %bh0 axis 2 : (tensor<3x2x2xf32>, tensor<3x2x2xf32>) -> tensor<3x2x4xf32>
    %r0 = prim.attention %q, %k0, %k0 scale 1.0 : (tensor<3x2x4xf32>, tensor<3x2x4xf32>, tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
    %a1 = prim.matmul %x, %c1 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %b1 = prim.matmul %y, %p1 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %ah1 = prim.reshape %a1 : tensor<3x4xf32> -> tensor<3x2x2xf32>
    %bh1 = prim.reshape %b1 : tensor<3x4xf32> -> tensor<3x2x2xf32>
    %k1 = prim.concat %ah1, %bh1 axis 2 : (tensor<3x2x2xf32>, tensor<3x2x2xf32>) -> tensor<3x2x4xf32>
    %r1 = prim.attention %r0, %k1, %k1 scale 1.0 : (tensor<3x2x4xf32>, tensor<3x2x4xf32>, tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
    prim.yield %r1 : tensor<3x2x4xf32>
  } else {
    prim.yield %q : tensor<3x2x4xf32>
  } : (tensor<i1>) -> tensor<3x2x4xf32>
  return %r : tensor<3x2x4xf32>
}

// CHECK-LABEL: func.func @both
// CHECK-COUNT-2: prim.matmul
// CHECK:         prim.concat
// CHECK:         prim.if
// CHECK-COUNT-2: prim.matmul
// CHECK:         prim.concat
// CHECK:         } else {
func.func @both(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>, %q: tensor<3x2x4xf32>, %flag: tensor<i1>) -> tensor<3x2x4xf32> {
  %c0 = prim.weight <"c0", "", 0, 64> : tensor<4x4xf32>
  %c1 = prim.weight <"c1", "", 64, 64> : tensor<4x4xf32>
  %p0 = prim.weight <"p0", "", 128, 64> : tensor<4x4xf32>
  %p1 = prim.weight <"p1", "", 192, 64> : tensor<4x4xf32>
  %a0 = prim.matmul %x, %c0 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %b0 = prim.matmul %y, %p0 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %ah0 = prim.reshape %a0 : tensor<3x4xf32> -> tensor<3x2x2xf32>
  %bh0 = prim.reshape %b0 : tensor<3x4xf32> -> tensor<3x2x2xf32>
  %k0 = prim.concat %ah0, %bh0 axis 2 : (tensor<3x2x2xf32>, tensor<3x2x2xf32>) -> tensor<3x2x4xf32>
  %r0 = prim.attention %q, %k0, %k0 scale 1.0 : (tensor<3x2x4xf32>, tensor<3x2x4xf32>, tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
  %r = prim.if %flag then {
    %a1 = prim.matmul %x, %c1 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %b1 = prim.matmul %y, %p1 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %ah1 = prim.reshape %a1 : tensor<3x4xf32> -> tensor<3x2x2xf32>
    %bh1 = prim.reshape %b1 : tensor<3x4xf32> -> tensor<3x2x2xf32>
    %k1 = prim.concat %ah1, %bh1 axis 2 : (tensor<3x2x2xf32>, tensor<3x2x2xf32>) -> tensor<3x2x4xf32>
    %r1 = prim.attention %r0, %k1, %k1 scale 1.0 : (tensor<3x2x4xf32>, tensor<3x2x4xf32>, tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
    prim.yield %r1 : tensor<3x2x4xf32>
  } else {
    prim.yield %r0 : tensor<3x2x4xf32>
  } : (tensor<i1>) -> tensor<3x2x4xf32>
  return %r : tensor<3x2x4xf32>
}
