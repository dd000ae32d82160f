// RUN: ptc-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(ptc-recognize-attention{remarks}))' | FileCheck %s

// Scores between two caps: 8 tanh(0.5 q k / 8), masked behind that.
// CHECK-LABEL: func.func @capped
// CHECK:         prim.attention %arg0, {{.*}} masks(%arg3) scale 6.250000e-02 softcap 8.000000e+00 :
func.func @capped(%q: tensor<2x5x4xf32>, %kt: tensor<2x4x3xf32>, %v: tensor<2x3x4xf32>, %m: tensor<2x5x3xf32>) -> tensor<2x5x4xf32> {
  %half = prim.constant dense<0.5> : tensor<2x5x3xf32>
  %cap = prim.constant dense<8.0> : tensor<2x5x3xf32>
  %s0 = prim.matmul %q, %kt : (tensor<2x5x4xf32>, tensor<2x4x3xf32>) -> tensor<2x5x3xf32>
  %s1 = prim.mul %s0, %half : tensor<2x5x3xf32>
  %s2 = prim.div %s1, %cap : tensor<2x5x3xf32>
  %s3 = prim.tanh %s2 : tensor<2x5x3xf32>
  %s4 = prim.mul %s3, %cap : tensor<2x5x3xf32>
  %s = prim.add %s4, %m : tensor<2x5x3xf32>
  %mx = prim.reduce max %s, [2] : tensor<2x5x3xf32> -> tensor<2x5xf32>
  %mb = prim.broadcast %mx, [0, 1] : tensor<2x5xf32> -> tensor<2x5x3xf32>
  %d = prim.sub %s, %mb : tensor<2x5x3xf32>
  %e = prim.exp %d : tensor<2x5x3xf32>
  %t = prim.reduce sum %e, [2] : tensor<2x5x3xf32> -> tensor<2x5xf32>
  %tb = prim.broadcast %t, [0, 1] : tensor<2x5xf32> -> tensor<2x5x3xf32>
  %p = prim.div %e, %tb : tensor<2x5x3xf32>
  %y = prim.matmul %p, %v : (tensor<2x5x3xf32>, tensor<2x3x4xf32>) -> tensor<2x5x4xf32>
  return %y : tensor<2x5x4xf32>
}

// -----

// A mask below the cap is no mask.
// CHECK-LABEL: func.func @masked_before
// CHECK-NOT:     prim.attention
func.func @masked_before(%q: tensor<2x5x4xf32>, %kt: tensor<2x4x3xf32>, %v: tensor<2x3x4xf32>, %m: tensor<2x5x3xf32>) -> tensor<2x5x4xf32> {
  %s0 = prim.matmul %q, %kt : (tensor<2x5x4xf32>, tensor<2x4x3xf32>) -> tensor<2x5x3xf32>
  %s1 = prim.add %s0, %m : tensor<2x5x3xf32>
  %s = prim.tanh %s1 : tensor<2x5x3xf32>
  %mx = prim.reduce max %s, [2] : tensor<2x5x3xf32> -> tensor<2x5xf32>
  %mb = prim.broadcast %mx, [0, 1] : tensor<2x5xf32> -> tensor<2x5x3xf32>
  %d = prim.sub %s, %mb : tensor<2x5x3xf32>
  %e = prim.exp %d : tensor<2x5x3xf32>
  %t = prim.reduce sum %e, [2] : tensor<2x5x3xf32> -> tensor<2x5xf32>
  %tb = prim.broadcast %t, [0, 1] : tensor<2x5xf32> -> tensor<2x5x3xf32>
  %p = prim.div %e, %tb : tensor<2x5x3xf32>
  // expected-remark @below {{not attention: the scores are capped after a mask}}
  %y = prim.matmul %p, %v : (tensor<2x5x3xf32>, tensor<2x3x4xf32>) -> tensor<2x5x4xf32>
  return %y : tensor<2x5x4xf32>
}
