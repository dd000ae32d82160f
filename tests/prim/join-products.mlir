// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-join-products))' | FileCheck %s
// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-join-products{several-values=true}))' | FileCheck %s --check-prefix=SEVERAL

// Three weights one behind another, and three biases.
// CHECK-LABEL: func.func @heads
// CHECK-DAG:     %[[W:.*]] = prim.weight <"q", "", 0, 64> others [#prim.weight_ref<"k", "", 64, 64>, #prim.weight_ref<"v", "", 128, 64>] : tensor<3x4x4xf32>
// CHECK-DAG:     %[[B:.*]] = prim.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00], [5.000000e+00, 5.000000e+00, 5.000000e+00, 5.000000e+00], [9.000000e+00, 8.000000e+00, 7.000000e+00, 6.000000e+00]]> : tensor<3x4xf32>
// CHECK:         %[[X:.*]] = prim.broadcast %arg0, [1, 2, 3] : tensor<1x2x4xf32> -> tensor<3x1x2x4xf32>
// CHECK:         %[[P:.*]] = prim.matmul %[[X]], %[[W]]
// CHECK:         %[[BIAS:.*]] = prim.broadcast %[[B]], [0, 3] : tensor<3x4xf32> -> tensor<3x1x2x4xf32>
// CHECK:         %[[SUM:.*]] = prim.add %[[P]], %[[BIAS]]
// CHECK:         prim.slice %[[SUM]] [0, 0, 0, 0]
// CHECK:         prim.slice %[[SUM]] [1, 0, 0, 0]
// CHECK:         prim.slice %[[SUM]] [2, 0, 0, 0]
// CHECK-NOT:     prim.matmul
func.func @heads(%x: tensor<1x2x4xf32>) -> tensor<1x2x4xf32> {
  %q = prim.weight <"q", "", 0, 64> : tensor<4x4xf32>
  %k = prim.weight <"k", "", 64, 64> : tensor<4x4xf32>
  %v = prim.weight <"v", "", 128, 64> : tensor<4x4xf32>
  %bq = prim.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %bk = prim.constant dense<5.0> : tensor<4xf32>
  %bv = prim.constant dense<[9.0, 8.0, 7.0, 6.0]> : tensor<4xf32>
  %q0 = prim.matmul %x, %q : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
  %q1 = prim.broadcast %bq, [2] : tensor<4xf32> -> tensor<1x2x4xf32>
  %q2 = prim.add %q0, %q1 : tensor<1x2x4xf32>
  %k0 = prim.matmul %x, %k : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
  %k1 = prim.broadcast %bk, [2] : tensor<4xf32> -> tensor<1x2x4xf32>
  %k2 = prim.add %k0, %k1 : tensor<1x2x4xf32>
  %v0 = prim.matmul %x, %v : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
  %v1 = prim.broadcast %bv, [2] : tensor<4xf32> -> tensor<1x2x4xf32>
  %v2 = prim.add %v0, %v1 : tensor<1x2x4xf32>
  %a = prim.attention %q2, %k2, %v2 scale 1.0 : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  return %a : tensor<1x2x4xf32>
}

// Some weights are stored as the transposes of what others are: those are turned where all lie together.
// CHECK-LABEL: func.func @stored_both_ways
// CHECK:         %[[W:.*]] = prim.weight <"q", "", 0, 32> others [#prim.weight_ref<"v", "", 32, 32>] {turned = array<i1: true, false>} : tensor<2x4x2xf32>
// CHECK:         prim.matmul %{{.*}}, %[[W]]
// CHECK-NOT:     prim.matmul
func.func @stored_both_ways(%x: tensor<3x4xf32>, %k: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %q = prim.weight <"q", "", 0, 32> : tensor<2x4xf32>
  %v = prim.weight <"v", "", 32, 32> : tensor<4x2xf32>
  %qt = prim.transpose %q, [1, 0] : tensor<2x4xf32> -> tensor<4x2xf32>
  %q0 = prim.matmul %x, %qt : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %v0 = prim.matmul %x, %v : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %y = prim.attention %q0, %k, %v0 scale 1.0 : (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// Keys that have no bias get one that changes nothing; constants may have several readers.
// CHECK-LABEL: func.func @unbiased_keys
// CHECK-DAG:     %[[B:.*]] = prim.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00], [-0.000000e+00, -0.000000e+00], [1.000000e+00, 2.000000e+00]]> : tensor<3x2xf32>
// CHECK:         %[[P:.*]] = prim.matmul %{{.*}}, %{{.*}} -> tensor<3x2x2xf32>
// CHECK:         %[[BIAS:.*]] = prim.broadcast %[[B]], [0, 2] : tensor<3x2xf32> -> tensor<3x2x2xf32>
// CHECK:         prim.add %[[BIAS]], %[[P]]
// CHECK-NOT:     prim.add
// CHECK-NOT:     prim.matmul
func.func @unbiased_keys(%x: tensor<2x2xf32>) -> tensor<1x2x2xf32> {
  %q = prim.weight <"q", "", 0, 16> : tensor<2x2xf32>
  %k = prim.weight <"k", "", 16, 16> : tensor<2x2xf32>
  %v = prim.weight <"v", "", 32, 16> : tensor<2x2xf32>
  %b = prim.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %bias = prim.broadcast %b, [1] : tensor<2xf32> -> tensor<2x2xf32>
  %q0 = prim.matmul %x, %q : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %q2 = prim.add %bias, %q0 : tensor<2x2xf32>
  %q3 = prim.reshape %q2 : tensor<2x2xf32> -> tensor<1x2x2xf32>
  %k0 = prim.matmul %x, %k : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %k1 = prim.reshape %k0 : tensor<2x2xf32> -> tensor<1x2x2xf32>
  %v0 = prim.matmul %x, %v : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %v2 = prim.add %bias, %v0 : tensor<2x2xf32>
  %v3 = prim.reshape %v2 : tensor<2x2xf32> -> tensor<1x2x2xf32>
  %a = prim.attention %q3, %k1, %v3 scale 1.0 : (tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>) -> tensor<1x2x2xf32>
  return %a : tensor<1x2x2xf32>
}

// Products that are not joined keep what they had.
// CHECK-LABEL: func.func @unbiased_alone
// CHECK-COUNT-2: prim.matmul %arg0
// CHECK:         prim.add
// CHECK-NOT:     prim.add
func.func @unbiased_alone(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %w = prim.weight <"w", "", 0, 16> : tensor<2x2xf32>
  %u = prim.weight <"u", "", 16, 16> : tensor<2x2xf32>
  %b = prim.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %bias = prim.broadcast %b, [1] : tensor<2xf32> -> tensor<2x2xf32>
  %p = prim.matmul %x, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %r = prim.matmul %x, %u : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %s = prim.add %p, %bias : tensor<2x2xf32>
  return %s, %r : tensor<2x2xf32>, tensor<2x2xf32>
}

// The gate's only reader is computed in an epilogue; so two products remain.
// CHECK-LABEL: func.func @gated
// CHECK-COUNT-2: prim.matmul %arg0
func.func @gated(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %g = prim.weight <"g", "", 0, 64> : tensor<4x4xf32>
  %u = prim.weight <"u", "", 64, 64> : tensor<4x4xf32>
  %a = prim.matmul %x, %g : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %b = prim.tanh %a : tensor<2x4xf32>
  %c = prim.matmul %x, %u : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %d = prim.mul %b, %c : tensor<2x4xf32>
  return %d : tensor<2x4xf32>
}

// A result is written at once, and a weight that something else reads would be stored twice.
// CHECK-LABEL: func.func @alone
// CHECK-COUNT-3: prim.matmul %arg0
func.func @alone(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %w = prim.weight <"w", "", 0, 64> : tensor<4x4xf32>
  %u = prim.weight <"u", "", 64, 64> : tensor<4x4xf32>
  %v = prim.weight <"v", "", 128, 64> : tensor<4x4xf32>
  %a = prim.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = prim.matmul %x, %u : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = prim.matmul %x, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %d = prim.matmul %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = prim.mul %v, %d : tensor<4x4xf32>
  %f = prim.matmul %c, %d : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a, %e, %f : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// What is rounded for a product is rounded once for all: the joint lhs is a widened narrow one.
// CHECK-LABEL: func.func @narrow
// CHECK:         %[[H:.*]] = prim.convert %arg0 : tensor<2x4xf32> -> tensor<2x4xf16>
// CHECK:         %[[X:.*]] = prim.broadcast %[[H]], [1, 2] : tensor<2x4xf16> -> tensor<2x2x4xf16>
// CHECK:         %[[WIDE:.*]] = prim.convert %[[X]] : tensor<2x2x4xf16> -> tensor<2x2x4xf32>
// CHECK:         prim.matmul %[[WIDE]], %{{.*}} : (tensor<2x2x4xf32>, tensor<2x4x2xf32>) -> tensor<2x2x2xf32>
func.func @narrow(%x: tensor<2x4xf32>) -> tensor<2x2xf32> {
  %u = prim.weight <"u", "", 0, 32> : tensor<2x4xf32>
  %v = prim.weight <"v", "", 32, 32> : tensor<2x4xf32>
  %h = prim.convert %x : tensor<2x4xf32> -> tensor<2x4xf16>
  %wide = prim.convert %h : tensor<2x4xf16> -> tensor<2x4xf32>
  %ut = prim.transpose %u, [1, 0] : tensor<2x4xf32> -> tensor<4x2xf32>
  %vt = prim.transpose %v, [1, 0] : tensor<2x4xf32> -> tensor<4x2xf32>
  %a = prim.matmul %wide, %ut : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
  %b = prim.matmul %wide, %vt : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
  %c = prim.matmul %a, %b : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %c : tensor<2x2xf32>
}

// Queries and keys of one value, values of another: the two values lie one behind the other, and the first is read twice. What makes
// them must be able to write there, which an argument's maker is not.
// CHECK-LABEL: func.func @positions
// CHECK-COUNT-2: prim.matmul
// SEVERAL-LABEL: func.func @positions
// SEVERAL:         %[[BOTH:.*]] = prim.concat %{{.*}}, %{{.*}} axis 0 : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<2x2x4xf32>
// SEVERAL:         %[[TWICE:.*]] = prim.broadcast %[[BOTH]], [0, 2, 3] : tensor<2x2x4xf32> -> tensor<2x2x2x4xf32>
// SEVERAL:         %[[FOUR:.*]] = prim.reshape %[[TWICE]] : tensor<2x2x2x4xf32> -> tensor<4x2x4xf32>
// SEVERAL:         %[[LHS:.*]] = prim.slice %[[FOUR]] [0, 0, 0], [1, 1, 1] : tensor<4x2x4xf32> -> tensor<3x2x4xf32>
// SEVERAL:         prim.matmul %[[LHS]], %{{.*}} -> tensor<3x2x4xf32>
// SEVERAL-NOT:     prim.matmul
// SEVERAL-LABEL: func.func @positions_of_argument
// SEVERAL-COUNT-2: prim.matmul
func.func @positions(%x: tensor<2x4xf32>, %pos: tensor<2x4xf32>) -> tensor<1x2x4xf32> {
  %q = prim.weight <"q", "", 0, 64> : tensor<4x4xf32>
  %k = prim.weight <"k", "", 64, 64> : tensor<4x4xf32>
  %v = prim.weight <"v", "", 128, 64> : tensor<4x4xf32>
  %y = prim.tanh %x : tensor<2x4xf32>
  %p = prim.add %y, %pos : tensor<2x4xf32>
  %q0 = prim.matmul %p, %q : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %q1 = prim.reshape %q0 : tensor<2x4xf32> -> tensor<1x2x4xf32>
  %k0 = prim.matmul %p, %k : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %k1 = prim.reshape %k0 : tensor<2x4xf32> -> tensor<1x2x4xf32>
  %v0 = prim.matmul %y, %v : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %v1 = prim.reshape %v0 : tensor<2x4xf32> -> tensor<1x2x4xf32>
  %a = prim.attention %q1, %k1, %v1 scale 1.0 : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  return %a : tensor<1x2x4xf32>
}

func.func @positions_of_argument(%y: tensor<2x4xf32>, %pos: tensor<2x4xf32>) -> tensor<1x2x4xf32> {
  %q = prim.weight <"q", "", 0, 64> : tensor<4x4xf32>
  %k = prim.weight <"k", "", 64, 64> : tensor<4x4xf32>
  %v = prim.weight <"v", "", 128, 64> : tensor<4x4xf32>
  %p = prim.add %y, %pos : tensor<2x4xf32>
  %q0 = prim.matmul %p, %q : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %q1 = prim.reshape %q0 : tensor<2x4xf32> -> tensor<1x2x4xf32>
  %k0 = prim.matmul %p, %k : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %k1 = prim.reshape %k0 : tensor<2x4xf32> -> tensor<1x2x4xf32>
  %v0 = prim.matmul %y, %v : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %v1 = prim.reshape %v0 : tensor<2x4xf32> -> tensor<1x2x4xf32>
  %a = prim.attention %q1, %k1, %v1 scale 1.0 : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  return %a : tensor<1x2x4xf32>
}

// One of the two values may be the transpose of what is computed, which is then written in that order, too.
// SEVERAL-LABEL: func.func @turned
// SEVERAL:         prim.concat %{{.*}}, %{{.*}} axis 0 : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<2x2x4xf32>
// SEVERAL:         prim.matmul %{{.*}}, %{{.*}} -> tensor<3x2x4xf32>
// SEVERAL-NOT:     prim.matmul
func.func @turned(%x: tensor<4x2xf32>, %pos: tensor<2x4xf32>) -> (tensor<4x2xf32>, tensor<1x2x4xf32>) {
  %q = prim.weight <"q", "", 0, 64> : tensor<4x4xf32>
  %k = prim.weight <"k", "", 64, 64> : tensor<4x4xf32>
  %v = prim.weight <"v", "", 128, 64> : tensor<4x4xf32>
  %t = prim.tanh %x : tensor<4x2xf32>
  %y = prim.transpose %t, [1, 0] : tensor<4x2xf32> -> tensor<2x4xf32>
  %p = prim.add %y, %pos : tensor<2x4xf32>
  %q0 = prim.matmul %p, %q : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %q1 = prim.reshape %q0 : tensor<2x4xf32> -> tensor<1x2x4xf32>
  %k0 = prim.matmul %p, %k : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %k1 = prim.reshape %k0 : tensor<2x4xf32> -> tensor<1x2x4xf32>
  %v0 = prim.matmul %y, %v : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %v1 = prim.reshape %v0 : tensor<2x4xf32> -> tensor<1x2x4xf32>
  %a = prim.attention %q1, %k1, %v1 scale 1.0 : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  return %t, %a : tensor<4x2xf32>, tensor<1x2x4xf32>
}
