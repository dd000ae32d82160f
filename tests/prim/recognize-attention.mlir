// RUN: ptc-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(ptc-recognize-attention{remarks}))' | FileCheck %s

// Scale on both operands, an additive mask, and the guard for rows without a key.
// CHECK-LABEL: func.func @torch
// CHECK:         %[[K:.*]] = prim.transpose %arg1, [0, 1, 3, 2]
// CHECK-NEXT:    %[[Y:.*]] = prim.attention %arg0, %[[K]], %arg2 masks(%arg3) scale 1.250000e-01 zero_masked_rows
// CHECK-NEXT:    return %[[Y]]
func.func @torch(%q: tensor<1x2x5x4xf32>, %kt: tensor<1x2x4x3xf32>, %v: tensor<1x2x3x4xf32>, %m: tensor<1x2x5x3xf32>) -> tensor<1x2x5x4xf32> {
  %half = prim.constant dense<0.5> : tensor<f32>
  %quarter = prim.constant dense<0.25> : tensor<f32>
  %zero = prim.constant dense<0.0> : tensor<f32>
  %qb = prim.broadcast %half, [] : tensor<f32> -> tensor<1x2x5x4xf32>
  %kb = prim.broadcast %quarter, [] : tensor<f32> -> tensor<1x2x4x3xf32>
  %qs = prim.mul %qb, %q : tensor<1x2x5x4xf32>
  %ks = prim.mul %kt, %kb : tensor<1x2x4x3xf32>
  %s = prim.matmul %qs, %ks : (tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x5x3xf32>
  %sm = prim.add %m, %s : tensor<1x2x5x3xf32>
  %mx = prim.reduce max %sm, [3] : tensor<1x2x5x3xf32> -> tensor<1x2x5xf32>
  %mr = prim.reshape %mx : tensor<1x2x5xf32> -> tensor<1x2x5x1xf32>
  %mb = prim.broadcast %mr, [0, 1, 2, 3] : tensor<1x2x5x1xf32> -> tensor<1x2x5x3xf32>
  %d = prim.sub %sm, %mb : tensor<1x2x5x3xf32>
  %e = prim.exp %d : tensor<1x2x5x3xf32>
  %t = prim.reduce sum %e, [3] : tensor<1x2x5x3xf32> -> tensor<1x2x5xf32>
  %tr = prim.reshape %t : tensor<1x2x5xf32> -> tensor<1x2x5x1xf32>
  %tb = prim.broadcast %tr, [0, 1, 2, 3] : tensor<1x2x5x1xf32> -> tensor<1x2x5x3xf32>
  %p = prim.div %e, %tb : tensor<1x2x5x3xf32>
  %nan = prim.is_nan %p : tensor<1x2x5x3xf32>
  %zb = prim.broadcast %zero, [] : tensor<f32> -> tensor<1x2x5x3xf32>
  %g = prim.select %nan, %zb, %p : tensor<1x2x5x3xi1>, tensor<1x2x5x3xf32>
  %y = prim.matmul %g, %v : (tensor<1x2x5x3xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x5x4xf32>
  return %y : tensor<1x2x5x4xf32>
}

// -----

// Heads are one dim for the products and two for the mask; a constant triangle is causal.
// CHECK-LABEL: func.func @causal
// CHECK:         %[[Q:.*]] = prim.reshape %arg0 : tensor<2x2x4xf32> -> tensor<1x2x2x4xf32>
// CHECK:         %[[Y:.*]] = prim.attention %[[Q]], {{.*}} scale 5.000000e-01 causal :
// CHECK-NEXT:    prim.reshape %[[Y]] : tensor<1x2x2x4xf32> -> tensor<2x2x4xf32>
func.func @causal(%q: tensor<2x2x4xf32>, %kt: tensor<2x4x2xf32>, %v: tensor<2x2x4xf32>) -> tensor<2x2x4xf32> {
  %two = prim.constant dense<2.0> : tensor<1x2x2x2xf32>
  %low = prim.constant dense<-3.40282347E+38> : tensor<1x2x2x2xf32>
  %tri = prim.constant dense<[[true, false], [true, true]]> : tensor<2x2xi1>
  %c = prim.broadcast %tri, [2, 3] : tensor<2x2xi1> -> tensor<1x2x2x2xi1>
  %s0 = prim.matmul %q, %kt : (tensor<2x2x4xf32>, tensor<2x4x2xf32>) -> tensor<2x2x2xf32>
  %s1 = prim.reshape %s0 : tensor<2x2x2xf32> -> tensor<1x2x2x2xf32>
  %s2 = prim.div %s1, %two : tensor<1x2x2x2xf32>
  %s = prim.select %c, %s2, %low : tensor<1x2x2x2xi1>, tensor<1x2x2x2xf32>
  %mx = prim.reduce max %s, [3] : tensor<1x2x2x2xf32> -> tensor<1x2x2xf32>
  %mb = prim.broadcast %mx, [0, 1, 2] : tensor<1x2x2xf32> -> tensor<1x2x2x2xf32>
  %d = prim.sub %s, %mb : tensor<1x2x2x2xf32>
  %e = prim.exp %d : tensor<1x2x2x2xf32>
  %t = prim.reduce sum %e, [3] : tensor<1x2x2x2xf32> -> tensor<1x2x2xf32>
  %tb = prim.broadcast %t, [0, 1, 2] : tensor<1x2x2xf32> -> tensor<1x2x2x2xf32>
  %p = prim.div %e, %tb : tensor<1x2x2x2xf32>
  %pr = prim.reshape %p : tensor<1x2x2x2xf32> -> tensor<2x2x2xf32>
  %y = prim.matmul %pr, %v : (tensor<2x2x2xf32>, tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  return %y : tensor<2x2x4xf32>
}

// -----

// Windows are the batch of the products; a mask for each window of an image lies between two reshapes.
// CHECK-LABEL: func.func @windows
// CHECK-DAG:     %[[A:.*]] = prim.broadcast %arg3, [1, 2, 3] : tensor<3x5x5xf32> -> tensor<4x3x5x5xf32>
// CHECK-DAG:     %[[W:.*]] = prim.broadcast %arg4, [1, 3, 4] : tensor<2x5x5xf32> -> tensor<2x2x3x5x5xf32>
// CHECK:         %[[M:.*]] = prim.reshape %[[W]] : tensor<2x2x3x5x5xf32> -> tensor<4x3x5x5xf32>
// CHECK:         prim.attention %arg0, %{{.*}}, %arg2 masks(%[[A]], %[[M]]) scale 1.000000e+00 :
func.func @windows(%q: tensor<4x3x5x8xf32>, %kt: tensor<4x3x8x5xf32>, %v: tensor<4x3x5x8xf32>, %a: tensor<3x5x5xf32>, %w: tensor<2x5x5xf32>) -> tensor<4x3x5x8xf32> {
  %s0 = prim.matmul %q, %kt : (tensor<4x3x5x8xf32>, tensor<4x3x8x5xf32>) -> tensor<4x3x5x5xf32>
  %ab = prim.broadcast %a, [1, 2, 3] : tensor<3x5x5xf32> -> tensor<4x3x5x5xf32>
  %s1 = prim.add %s0, %ab : tensor<4x3x5x5xf32>
  %s2 = prim.reshape %s1 : tensor<4x3x5x5xf32> -> tensor<2x2x3x5x5xf32>
  %wb = prim.broadcast %w, [1, 3, 4] : tensor<2x5x5xf32> -> tensor<2x2x3x5x5xf32>
  %s3 = prim.add %s2, %wb : tensor<2x2x3x5x5xf32>
  %s = prim.reshape %s3 : tensor<2x2x3x5x5xf32> -> tensor<4x3x5x5xf32>
  %mx = prim.reduce max %s, [3] : tensor<4x3x5x5xf32> -> tensor<4x3x5xf32>
  %mb = prim.broadcast %mx, [0, 1, 2] : tensor<4x3x5xf32> -> tensor<4x3x5x5xf32>
  %d = prim.sub %s, %mb : tensor<4x3x5x5xf32>
  %e = prim.exp %d : tensor<4x3x5x5xf32>
  %t = prim.reduce sum %e, [3] : tensor<4x3x5x5xf32> -> tensor<4x3x5xf32>
  %tb = prim.broadcast %t, [0, 1, 2] : tensor<4x3x5xf32> -> tensor<4x3x5x5xf32>
  %p = prim.div %e, %tb : tensor<4x3x5x5xf32>
  %y = prim.matmul %p, %v : (tensor<4x3x5x5xf32>, tensor<4x3x5x8xf32>) -> tensor<4x3x5x8xf32>
  return %y : tensor<4x3x5x8xf32>
}

// -----

// The weights are a result of the function too.
// CHECK-LABEL: func.func @shared
// CHECK-NOT:     prim.attention
func.func @shared(%q: tensor<2x2x4xf32>, %kt: tensor<2x4x2xf32>, %v: tensor<2x2x4xf32>) -> (tensor<2x2x4xf32>, tensor<2x2x2xf32>) {
  %s = prim.matmul %q, %kt : (tensor<2x2x4xf32>, tensor<2x4x2xf32>) -> tensor<2x2x2xf32>
  %mx = prim.reduce max %s, [2] : tensor<2x2x2xf32> -> tensor<2x2xf32>
  %mb = prim.broadcast %mx, [0, 1] : tensor<2x2xf32> -> tensor<2x2x2xf32>
  %d = prim.sub %s, %mb : tensor<2x2x2xf32>
  %e = prim.exp %d : tensor<2x2x2xf32>
  %t = prim.reduce sum %e, [2] : tensor<2x2x2xf32> -> tensor<2x2xf32>
  %tb = prim.broadcast %t, [0, 1] : tensor<2x2xf32> -> tensor<2x2x2xf32>
  %p = prim.div %e, %tb : tensor<2x2x2xf32>
  // expected-remark @below {{not attention: the weights or scores are read elsewhere too}}
  %y = prim.matmul %p, %v : (tensor<2x2x2xf32>, tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  return %y, %p : tensor<2x2x4xf32>, tensor<2x2x2xf32>
}
