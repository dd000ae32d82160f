// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-join-columns{panel=2}))' | FileCheck %s

// Grouped heads: queries are wider than keys and values.
// CHECK-LABEL: func.func @grouped
// CHECK:         %[[W:.*]] = prim.weight <"q", "", 0, 64> others [#prim.weight_ref<"k", "", 64, 32>, #prim.weight_ref<"v", "", 96, 32>] {part_rows = array<i64: 4, 2, 2>} : tensor<8x4xf32>
// CHECK:         %[[T:.*]] = prim.transpose %[[W]], [1, 0]
// CHECK:         %[[P:.*]] = prim.matmul %arg0, %[[T]]
// CHECK:         %[[Q:.*]] = prim.slice %[[P]] [0, 0, 0], {{.*}} -> tensor<1x2x4xf32>
// CHECK:         %[[K:.*]] = prim.slice %[[P]] [0, 0, 4], {{.*}} -> tensor<1x2x2xf32>
// CHECK:         %[[V:.*]] = prim.slice %[[P]] [0, 0, 6], {{.*}} -> tensor<1x2x2xf32>
// CHECK-NOT:     prim.matmul
// CHECK:         prim.attention %{{.*}}, %[[K]], %[[V]]
func.func @grouped(%x: tensor<1x2x4xf32>) -> tensor<1x2x2xf32> {
  %q = prim.weight <"q", "", 0, 64> : tensor<4x4xf32>
  %k = prim.weight <"k", "", 64, 32> : tensor<2x4xf32>
  %v = prim.weight <"v", "", 96, 32> : tensor<2x4xf32>
  %qt = prim.transpose %q, [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %kt = prim.transpose %k, [1, 0] : tensor<2x4xf32> -> tensor<4x2xf32>
  %vt = prim.transpose %v, [1, 0] : tensor<2x4xf32> -> tensor<4x2xf32>
  %q0 = prim.matmul %x, %qt : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
  %k0 = prim.matmul %x, %kt : (tensor<1x2x4xf32>, tensor<4x2xf32>) -> tensor<1x2x2xf32>
  %v0 = prim.matmul %x, %vt : (tensor<1x2x4xf32>, tensor<4x2xf32>) -> tensor<1x2x2xf32>
  %a = prim.slice %q0 [0, 0, 0], [1, 1, 1] : tensor<1x2x4xf32> -> tensor<1x2x2xf32>
  %b = prim.slice %q0 [0, 0, 2], [1, 1, 1] : tensor<1x2x4xf32> -> tensor<1x2x2xf32>
  %s = prim.add %a, %b : tensor<1x2x2xf32>
  %y = prim.attention %s, %k0, %v0 scale 1.0 : (tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>) -> tensor<1x2x2xf32>
  return %y : tensor<1x2x2xf32>
}

// Weights that are stored as products read them are turned where they lie together.
// CHECK-LABEL: func.func @turned
// CHECK:         prim.weight <"k", "", 0, 64> others [#prim.weight_ref<"v", "", 64, 32>] {part_rows = array<i64: 4, 2>, turned = array<i1: true, true>} : tensor<6x4xf32>
// CHECK:         prim.matmul
// CHECK-NOT:     prim.matmul
func.func @turned(%x: tensor<1x2x4xf32>, %q: tensor<1x2x4xf32>) -> tensor<1x2x2xf32> {
  %k = prim.weight <"k", "", 0, 64> : tensor<4x4xf32>
  %v = prim.weight <"v", "", 64, 32> : tensor<4x2xf32>
  %k0 = prim.matmul %x, %k : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
  %v0 = prim.matmul %x, %v : (tensor<1x2x4xf32>, tensor<4x2xf32>) -> tensor<1x2x2xf32>
  %y = prim.attention %q, %k0, %v0 scale 1.0 : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x2xf32>) -> tensor<1x2x2xf32>
  return %y : tensor<1x2x2xf32>
}

// Weights of one type are a batch; a product whose only reader is its epilogue, and columns that fill no panel, stay.
// CHECK-LABEL: func.func @alone
// CHECK-NOT:     part_rows
// CHECK-COUNT-4: prim.matmul
// CHECK:         return
func.func @alone(%x: tensor<2x4xf32>, %z: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x2xf32>) {
  %k = prim.weight <"k", "", 0, 64> : tensor<4x4xf32>
  %v = prim.weight <"v", "", 64, 64> : tensor<4x4xf32>
  %g = prim.weight <"g", "", 128, 32> : tensor<4x2xf32>
  %o = prim.weight <"o", "", 160, 48> : tensor<4x3xf32>
  %k0 = prim.matmul %x, %k : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %v0 = prim.matmul %x, %v : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %g0 = prim.matmul %x, %g : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
  %o0 = prim.matmul %x, %o : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %g1 = prim.neg %g0 : tensor<2x2xf32>
  %r = prim.reduce sum %o0, [1] : tensor<2x3xf32> -> tensor<2xf32>
  %s = prim.broadcast %r, [0] : tensor<2xf32> -> tensor<2x2xf32>
  %t = prim.add %s, %g1 : tensor<2x2xf32>
  %a = prim.reshape %z : tensor<2x4xf32> -> tensor<1x2x4xf32>
  %b = prim.reshape %k0 : tensor<2x4xf32> -> tensor<1x2x4xf32>
  %c = prim.reshape %v0 : tensor<2x4xf32> -> tensor<1x2x4xf32>
  %y = prim.attention %a, %b, %c scale 1.0 : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %f = prim.reshape %y : tensor<1x2x4xf32> -> tensor<2x4xf32>
  return %f, %t : tensor<2x4xf32>, tensor<2x2xf32>
}
