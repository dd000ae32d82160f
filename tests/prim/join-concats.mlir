// Products whose results stand side by side in concats.
// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-join-products{several-values=true}))' | FileCheck %s
// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-join-products))' | FileCheck %s --check-prefix=ONE

// Keys of two layers, by content and by position: one product of each value, and one concat of both.
// CHECK-LABEL: func.func @layers
// CHECK-DAG:     prim.weight <"c0", "", 0, 64> others [#prim.weight_ref<"c1", "", 64, 64>] : tensor<2x4x4xf32>
// CHECK-DAG:     prim.weight <"p0", "", 128, 64> others [#prim.weight_ref<"p1", "", 192, 64>] : tensor<2x4x4xf32>
// CHECK-COUNT-2: prim.matmul
// CHECK-NOT:     prim.matmul
// CHECK:         %[[C:.*]] = prim.reshape %{{.*}} : tensor<2x3x4xf32> -> tensor<2x3x2x2xf32>
// CHECK:         %[[P:.*]] = prim.reshape %{{.*}} : tensor<2x3x4xf32> -> tensor<2x3x2x2xf32>
// CHECK:         %[[ALL:.*]] = prim.concat %[[C]], %[[P]] axis 3 : (tensor<2x3x2x2xf32>, tensor<2x3x2x2xf32>) -> tensor<2x3x2x4xf32>
// CHECK:         prim.slice %[[ALL]] [0, 0, 0, 0]
// CHECK:         prim.slice %[[ALL]] [1, 0, 0, 0]
// CHECK-NOT:     prim.concat
// ONE-LABEL:   func.func @layers
// ONE-COUNT-4:   prim.matmul
func.func @layers(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>, %q: tensor<3x2x4xf32>) -> (tensor<3x2x4xf32>, tensor<3x2x4xf32>) {
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
  %a1 = prim.matmul %x, %c1 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %b1 = prim.matmul %y, %p1 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %ah1 = prim.reshape %a1 : tensor<3x4xf32> -> tensor<3x2x2xf32>
  %bh1 = prim.reshape %b1 : tensor<3x4xf32> -> tensor<3x2x2xf32>
  %k1 = prim.concat %ah1, %bh1 axis 2 : (tensor<3x2x2xf32>, tensor<3x2x2xf32>) -> tensor<3x2x4xf32>
  %r1 = prim.attention %r0, %k1, %k1 scale 1.0 : (tensor<3x2x4xf32>, tensor<3x2x4xf32>, tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
  return %r0, %r1 : tensor<3x2x4xf32>, tensor<3x2x4xf32>
}

// One concat of products of two values that are computed here: the values lie one behind the other.
// CHECK-LABEL: func.func @queries
// CHECK:         %[[BOTH:.*]] = prim.concat %{{.*}}, %{{.*}} axis 0 : (tensor<1x3x4xf32>, tensor<1x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK:         prim.matmul %[[BOTH]], %{{.*}} -> tensor<2x3x4xf32>
// CHECK-NOT:     prim.matmul
// CHECK:         prim.concat %{{.*}}, %{{.*}} axis 2
// ONE-LABEL:   func.func @queries
// ONE-COUNT-2:   prim.matmul
func.func @queries(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>, %k: tensor<3x2x4xf32>) -> tensor<3x2x4xf32> {
  %c = prim.weight <"c", "", 0, 64> : tensor<4x4xf32>
  %p = prim.weight <"p", "", 64, 64> : tensor<4x4xf32>
  %xt = prim.tanh %x : tensor<3x4xf32>
  %yt = prim.tanh %y : tensor<3x4xf32>
  %a = prim.matmul %xt, %c : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %b = prim.matmul %yt, %p : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %ah = prim.reshape %a : tensor<3x4xf32> -> tensor<3x2x2xf32>
  %bh = prim.reshape %b : tensor<3x4xf32> -> tensor<3x2x2xf32>
  %q = prim.concat %ah, %bh axis 2 : (tensor<3x2x2xf32>, tensor<3x2x2xf32>) -> tensor<3x2x4xf32>
  %r = prim.attention %q, %k, %k scale 1.0 : (tensor<3x2x4xf32>, tensor<3x2x4xf32>, tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
  return %r : tensor<3x2x4xf32>
}

// A part that is more than a product and a bias is none: nothing is joined.
// CHECK-LABEL: func.func @sums
// CHECK-COUNT-3: prim.matmul
func.func @sums(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>, %k: tensor<3x2x4xf32>) -> tensor<3x2x4xf32> {
  %c = prim.weight <"c", "", 0, 64> : tensor<4x4xf32>
  %p = prim.weight <"p", "", 64, 64> : tensor<4x4xf32>
  %o = prim.weight <"o", "", 128, 32> : tensor<2x4xf32>
  %xt = prim.tanh %x : tensor<3x4xf32>
  %yt = prim.tanh %y : tensor<3x4xf32>
  %ys = prim.slice %y [0, 0], [1, 1] : tensor<3x4xf32> -> tensor<3x2xf32>
  %a = prim.matmul %xt, %c : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %b = prim.matmul %yt, %p : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %d = prim.matmul %ys, %o : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %s = prim.add %a, %d : tensor<3x4xf32>
  %ah = prim.reshape %s : tensor<3x4xf32> -> tensor<3x2x2xf32>
  %bh = prim.reshape %b : tensor<3x4xf32> -> tensor<3x2x2xf32>
  %q = prim.concat %ah, %bh axis 2 : (tensor<3x2x2xf32>, tensor<3x2x2xf32>) -> tensor<3x2x4xf32>
  %r = prim.attention %q, %k, %k scale 1.0 : (tensor<3x2x4xf32>, tensor<3x2x4xf32>, tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
  return %r : tensor<3x2x4xf32>
}
