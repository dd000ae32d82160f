// RUN: ptc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(ptc-recognize-attention))' | FileCheck %s

// Rows of weights that are 0 whatever the scores are: ONNX's guard for rows without a key becomes one on the result.
// CHECK-LABEL: func.func @rows
// CHECK:         %[[Y:.*]] = prim.attention %arg0, {{.*}} masks(%arg3) scale 1.000000e+00 :
// CHECK-NEXT:    %[[G:.*]] = prim.broadcast %arg4, [2, 3] : tensor<5x1xi1> -> tensor<1x2x5x4xi1>
// CHECK:         %[[Z:.*]] = prim.broadcast %{{.*}}, [] : tensor<f32> -> tensor<1x2x5x4xf32>
// CHECK-NEXT:    %[[R:.*]] = prim.select %[[G]], %[[Z]], %[[Y]]
// CHECK-NEXT:    return %[[R]]
func.func @rows(%q: tensor<1x2x5x4xf32>, %kt: tensor<1x2x4x3xf32>, %v: tensor<1x2x3x4xf32>, %m: tensor<1x2x5x3xf32>, %r: tensor<5x1xi1>) -> tensor<1x2x5x4xf32> {
  %zero = prim.constant dense<0.0> : tensor<f32>
  %s = prim.matmul %q, %kt : (tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x5x3xf32>
  %sm = prim.add %s, %m : tensor<1x2x5x3xf32>
  %mx = prim.reduce max %sm, [3] : tensor<1x2x5x3xf32> -> tensor<1x2x5xf32>
  %mb = prim.broadcast %mx, [0, 1, 2] : tensor<1x2x5xf32> -> tensor<1x2x5x3xf32>
  %d = prim.sub %sm, %mb : tensor<1x2x5x3xf32>
  %e = prim.exp %d : tensor<1x2x5x3xf32>
  %t = prim.reduce sum %e, [3] : tensor<1x2x5x3xf32> -> tensor<1x2x5xf32>
  %tb = prim.broadcast %t, [0, 1, 2] : tensor<1x2x5xf32> -> tensor<1x2x5x3xf32>
  %p = prim.div %e, %tb : tensor<1x2x5x3xf32>
  %rows = prim.broadcast %r, [2, 3] : tensor<5x1xi1> -> tensor<1x2x5x3xi1>
  %zb = prim.broadcast %zero, [] : tensor<f32> -> tensor<1x2x5x3xf32>
  %g = prim.select %rows, %zb, %p : tensor<1x2x5x3xi1>, tensor<1x2x5x3xf32>
  %y = prim.matmul %g, %v : (tensor<1x2x5x3xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x5x4xf32>
  return %y : tensor<1x2x5x4xf32>
}

// -----

// Single weights that are put to 0 stay as they are.
// CHECK-LABEL: func.func @weights
// CHECK-NOT:     prim.attention
func.func @weights(%q: tensor<1x2x5x4xf32>, %kt: tensor<1x2x4x3xf32>, %v: tensor<1x2x3x4xf32>, %r: tensor<5x3xi1>) -> tensor<1x2x5x4xf32> {
  %zero = prim.constant dense<0.0> : tensor<f32>
  %s = prim.matmul %q, %kt : (tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x5x3xf32>
  %mx = prim.reduce max %s, [3] : tensor<1x2x5x3xf32> -> tensor<1x2x5xf32>
  %mb = prim.broadcast %mx, [0, 1, 2] : tensor<1x2x5xf32> -> tensor<1x2x5x3xf32>
  %d = prim.sub %s, %mb : tensor<1x2x5x3xf32>
  %e = prim.exp %d : tensor<1x2x5x3xf32>
  %t = prim.reduce sum %e, [3] : tensor<1x2x5x3xf32> -> tensor<1x2x5xf32>
  %tb = prim.broadcast %t, [0, 1, 2] : tensor<1x2x5xf32> -> tensor<1x2x5x3xf32>
  %p = prim.div %e, %tb : tensor<1x2x5x3xf32>
  %some = prim.broadcast %r, [2, 3] : tensor<5x3xi1> -> tensor<1x2x5x3xi1>
  %zb = prim.broadcast %zero, [] : tensor<f32> -> tensor<1x2x5x3xf32>
  %g = prim.select %some, %zb, %p : tensor<1x2x5x3xi1>, tensor<1x2x5x3xf32>
  %y = prim.matmul %g, %v : (tensor<1x2x5x3xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x5x4xf32>
  return %y : tensor<1x2x5x4xf32>
}

// -----

// Without keys the product is 0, while weights without a sum are NaN.
// CHECK-LABEL: func.func @perhaps_no_keys
// CHECK:         %[[Y:.*]] = prim.attention
// CHECK-NEXT:    %[[E:.*]] = prim.exprs [lt(n, 1)] : tensor<si64>
// CHECK-NEXT:    %[[N:.*]] = prim.convert %[[E]] : tensor<si64> -> tensor<i1>
// CHECK:         prim.select %{{.*}}, %{{.*}}, %[[Y]]
// CHECK-LABEL: func.func @some_keys
// CHECK:         prim.attention
// CHECK-NEXT:    return
func.func @perhaps_no_keys(%q: tensor<5x4xf32>, %kt: tensor<4x?xf32, #prim.dims<[4, n]>>, %v: tensor<?x4xf32, #prim.dims<[n, 4]>>) -> tensor<5x4xf32>
    attributes {prim.symbols = {n = #prim.symbol<0, 100, divisor = 1, hint = 3>}} {
  %s = prim.matmul %q, %kt : (tensor<5x4xf32>, tensor<4x?xf32, #prim.dims<[4, n]>>) -> tensor<5x?xf32, #prim.dims<[5, n]>>
  %mx = prim.reduce max %s, [1] : tensor<5x?xf32, #prim.dims<[5, n]>> -> tensor<5xf32>
  %mb = prim.broadcast %mx, [0] : tensor<5xf32> -> tensor<5x?xf32, #prim.dims<[5, n]>>
  %d = prim.sub %s, %mb : tensor<5x?xf32, #prim.dims<[5, n]>>
  %e = prim.exp %d : tensor<5x?xf32, #prim.dims<[5, n]>>
  %t = prim.reduce sum %e, [1] : tensor<5x?xf32, #prim.dims<[5, n]>> -> tensor<5xf32>
  %tb = prim.broadcast %t, [0] : tensor<5xf32> -> tensor<5x?xf32, #prim.dims<[5, n]>>
  %p = prim.div %e, %tb : tensor<5x?xf32, #prim.dims<[5, n]>>
  %y = prim.matmul %p, %v : (tensor<5x?xf32, #prim.dims<[5, n]>>, tensor<?x4xf32, #prim.dims<[n, 4]>>) -> tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}
func.func @some_keys(%q: tensor<5x4xf32>, %kt: tensor<4x?xf32, #prim.dims<[4, n]>>, %v: tensor<?x4xf32, #prim.dims<[n, 4]>>) -> tensor<5x4xf32>
    attributes {prim.symbols = {n = #prim.symbol<1, 100, divisor = 1, hint = 3>}} {
  %s = prim.matmul %q, %kt : (tensor<5x4xf32>, tensor<4x?xf32, #prim.dims<[4, n]>>) -> tensor<5x?xf32, #prim.dims<[5, n]>>
  %mx = prim.reduce max %s, [1] : tensor<5x?xf32, #prim.dims<[5, n]>> -> tensor<5xf32>
  %mb = prim.broadcast %mx, [0] : tensor<5xf32> -> tensor<5x?xf32, #prim.dims<[5, n]>>
  %d = prim.sub %s, %mb : tensor<5x?xf32, #prim.dims<[5, n]>>
  %e = prim.exp %d : tensor<5x?xf32, #prim.dims<[5, n]>>
  %t = prim.reduce sum %e, [1] : tensor<5x?xf32, #prim.dims<[5, n]>> -> tensor<5xf32>
  %tb = prim.broadcast %t, [0] : tensor<5xf32> -> tensor<5x?xf32, #prim.dims<[5, n]>>
  %p = prim.div %e, %tb : tensor<5x?xf32, #prim.dims<[5, n]>>
  %y = prim.matmul %p, %v : (tensor<5x?xf32, #prim.dims<[5, n]>>, tensor<?x4xf32, #prim.dims<[n, 4]>>) -> tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}

// -----

// A row alone is broadcast from either of its dims of 1.
// CHECK-LABEL: func.func @one_query
// CHECK:         prim.attention %arg0, %{{.*}}, %arg2
// CHECK-NOT:     prim.matmul
func.func @one_query(%q: tensor<2x1x4xf32>, %kt: tensor<2x4x3xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x1x4xf32> {
  %s = prim.matmul %q, %kt : (tensor<2x1x4xf32>, tensor<2x4x3xf32>) -> tensor<2x1x3xf32>
  %mx = prim.reduce max %s, [2] : tensor<2x1x3xf32> -> tensor<2x1xf32>
  %mb = prim.broadcast %mx, [0, 2] : tensor<2x1xf32> -> tensor<2x1x3xf32>
  %d = prim.sub %s, %mb : tensor<2x1x3xf32>
  %e = prim.exp %d : tensor<2x1x3xf32>
  %t = prim.reduce sum %e, [2] : tensor<2x1x3xf32> -> tensor<2x1xf32>
  %tb = prim.broadcast %t, [0, 2] : tensor<2x1xf32> -> tensor<2x1x3xf32>
  %p = prim.div %e, %tb : tensor<2x1x3xf32>
  %y = prim.matmul %p, %v : (tensor<2x1x3xf32>, tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  return %y : tensor<2x1x4xf32>
}
