// Products leave out terms that a causal mask makes zero, and sums that it hides.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop | FileCheck %s
// RUN: ptc-opt %s --ptc-lower-prim-to-loop=skips-zeros=false | FileCheck %s --check-prefix=STRICT
// STRICT-NOT: needed

// Weights are exponentials of what is -inf behind the diagonal, without the maximum of their row.
// CHECK-LABEL: loop.program @memory
// CHECK:         loop.contraction [2, 3, 3, 5] batch 1 m 1 n 1 k 1 needed [d1 - d2]
// CHECK:         loop.contraction [2, 3, 5, 3] batch 1 m 1 n 1 k 1 needed [d1 - d3]
func.func @memory(%q: tensor<2x3x5xf32>, %k: tensor<2x5x3xf32>, %v: tensor<2x3x5xf32>, %d: tensor<2x3x3xf32>) -> tensor<2x3x5xf32> {
  %mask = prim.constant dense<[[0, 1, 1], [0, 0, 1], [0, 0, 0]]> : tensor<3x3xi1>
  %masks = prim.broadcast %mask, [1, 2] : tensor<3x3xi1> -> tensor<2x3x3xi1>
  %low = prim.constant dense<0xFF800000> : tensor<f32>
  %lows = prim.broadcast %low, [] : tensor<f32> -> tensor<2x3x3xf32>
  %decay = prim.select %masks, %lows, %d : tensor<2x3x3xi1>, tensor<2x3x3xf32>
  %most = prim.reduce max %decay, [2] : tensor<2x3x3xf32> -> tensor<2x3xf32>
  %mosts = prim.broadcast %most, [0, 1] : tensor<2x3xf32> -> tensor<2x3x3xf32>
  %less = prim.sub %decay, %mosts : tensor<2x3x3xf32>
  %w = prim.exp %less : tensor<2x3x3xf32>
  %s = prim.matmul %q, %k : (tensor<2x3x5xf32>, tensor<2x5x3xf32>) -> tensor<2x3x3xf32>
  %n = prim.neg %s : tensor<2x3x3xf32>
  %p = prim.mul %n, %w : tensor<2x3x3xf32>
  %y = prim.matmul %p, %v : (tensor<2x3x3xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// A constant triangle (decayed linear attention), as the weights and as a matrix of its own.
// CHECK-LABEL: loop.program @retention
// CHECK:         loop.contraction [3, 3, 5] batch 0 m 1 n 1 k 1 needed [d0 - d1]
// CHECK:         loop.contraction [3, 3, 3] batch 0 m 1 n 1 k 1 needed [d0 - d2, -d1 + d2]
func.func @retention(%q: tensor<3x5xf32>, %k: tensor<5x3xf32>) -> tensor<3x3xf32> {
  %decay = prim.constant dense<[[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.25, 0.5, 1.0]]> : tensor<3x3xf32>
  %s = prim.matmul %q, %k : (tensor<3x5xf32>, tensor<5x3xf32>) -> tensor<3x3xf32>
  %p = prim.mul %decay, %s : tensor<3x3xf32>
  %y = prim.matmul %p, %decay : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  return %y : tensor<3x3xf32>
}

// Sums that are read elsewhere, a maximum of something else, another triangle.
// CHECK-LABEL: loop.program @seen
// CHECK-NOT:     needed
func.func @seen(%q: tensor<3x5xf32>, %k: tensor<5x3xf32>, %d: tensor<3x3xf32>, %most: tensor<3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  %mask = prim.constant dense<[[0, 1, 1], [0, 0, 1], [0, 0, 0]]> : tensor<3x3xi1>
  %low = prim.constant dense<0xFF800000> : tensor<3x3xf32>
  %decay = prim.select %mask, %low, %d : tensor<3x3xi1>, tensor<3x3xf32>
  %mosts = prim.broadcast %most, [0] : tensor<3xf32> -> tensor<3x3xf32>
  %less = prim.sub %decay, %mosts : tensor<3x3xf32>
  %w = prim.exp %less : tensor<3x3xf32>
  %upper = prim.constant dense<[[1.0, 2.0, 3.0], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0]]> : tensor<3x3xf32>
  %s = prim.matmul %q, %k : (tensor<3x5xf32>, tensor<5x3xf32>) -> tensor<3x3xf32>
  %p = prim.mul %s, %w : tensor<3x3xf32>
  %y = prim.matmul %p, %upper : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  return %s, %y : tensor<3x3xf32>, tensor<3x3xf32>
}

// The lowest finite number: its exponential is 0 as well, but not where it is its row's maximum.
// CHECK-LABEL: loop.program @finite
// CHECK:         loop.contraction [3, 3, 5] batch 0 m 1 n 1 k 1 needed [d0 - d1]
// CHECK-NOT:     needed
func.func @finite(%q: tensor<3x5xf32>, %k: tensor<5x3xf32>, %d: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  %mask = prim.constant dense<[[0, 1, 1], [0, 0, 1], [0, 0, 0]]> : tensor<3x3xi1>
  %low = prim.constant dense<-3.40282347E+38> : tensor<3x3xf32>
  %decay = prim.select %mask, %low, %d : tensor<3x3xi1>, tensor<3x3xf32>
  %w = prim.exp %decay : tensor<3x3xf32>
  %s = prim.matmul %q, %k : (tensor<3x5xf32>, tensor<5x3xf32>) -> tensor<3x3xf32>
  %x = prim.mul %s, %w : tensor<3x3xf32>
  %most = prim.reduce max %decay, [1] : tensor<3x3xf32> -> tensor<3xf32>
  %mosts = prim.broadcast %most, [0] : tensor<3xf32> -> tensor<3x3xf32>
  %less = prim.sub %decay, %mosts : tensor<3x3xf32>
  %v = prim.exp %less : tensor<3x3xf32>
  %u = prim.matmul %q, %k : (tensor<3x5xf32>, tensor<5x3xf32>) -> tensor<3x3xf32>
  %y = prim.mul %u, %v : tensor<3x3xf32>
  return %x, %y : tensor<3x3xf32>, tensor<3x3xf32>
}

// A product with what no op makes of a mask.
// CHECK-LABEL: loop.program @counted
// CHECK-NOT:     needed
func.func @counted(%q: tensor<3x5xf32>, %k: tensor<5x3xf32>) -> tensor<3x3xf32> {
  %i = prim.iota 1 : tensor<3x3xf32>
  %s = prim.matmul %q, %k : (tensor<3x5xf32>, tensor<5x3xf32>) -> tensor<3x3xf32>
  %y = prim.mul %i, %s : tensor<3x3xf32>
  return %y : tensor<3x3xf32>
}
