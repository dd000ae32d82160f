// RUN: ptc-opt %s --ptc-move-bytes --split-input-file | FileCheck %s

// Rounding to the bytes that were there, behind views: the bytes are viewed.
// CHECK-LABEL: @views
// CHECK-NEXT: %[[R:.*]] = prim.reshape %arg0 : tensor<2x8xui8> -> tensor<4x4xui8>
// CHECK-NEXT: %[[T:.*]] = prim.transpose %[[R]], [1, 0]
// CHECK-NEXT: return %[[T]]
func.func @views(%q: tensor<2x8xui8>) -> tensor<4x4xui8> {
  %s0 = prim.constant dense<0.3> : tensor<2x8xf32>
  %z0 = prim.constant dense<7> : tensor<2x8xsi32>
  %s1 = prim.constant dense<0.3> : tensor<4x4xf32>
  %z1 = prim.constant dense<7.0> : tensor<4x4xf32>
  %w = prim.convert %q : tensor<2x8xui8> -> tensor<2x8xsi32>
  %c = prim.sub %w, %z0 : tensor<2x8xsi32>
  %f = prim.convert %c : tensor<2x8xsi32> -> tensor<2x8xf32>
  %x = prim.mul %f, %s0 : tensor<2x8xf32>
  %r = prim.reshape %x : tensor<2x8xf32> -> tensor<4x4xf32>
  %t = prim.transpose %r, [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %d = prim.div %t, %s1 : tensor<4x4xf32>
  %n = prim.round %d : tensor<4x4xf32>
  %p = prim.add %n, %z1 : tensor<4x4xf32>
  %y = prim.convert %p : tensor<4x4xf32> -> tensor<4x4xui8>
  return %y : tensor<4x4xui8>
}

// -----

// A concat that nothing else reads is one of rounded parts; one of them has another scale.
// CHECK-LABEL: @concat
// CHECK: %[[D:.*]] = prim.div %arg1
// CHECK: %[[N:.*]] = prim.round %[[D]]
// CHECK: %[[Q:.*]] = prim.convert %[[N]] : tensor<4xf32> -> tensor<4xui8>
// CHECK: %[[C:.*]] = prim.concat %arg0, %[[Q]] axis 0 : (tensor<4xui8>, tensor<4xui8>)
// CHECK: return %[[C]]
func.func @concat(%q: tensor<4xui8>, %x: tensor<4xf32>) -> tensor<8xui8> {
  %s0 = prim.constant dense<0.5> : tensor<4xf32>
  %s1 = prim.constant dense<0.5> : tensor<8xf32>
  %f = prim.convert %q : tensor<4xui8> -> tensor<4xf32>
  %m = prim.mul %f, %s0 : tensor<4xf32>
  %c = prim.concat %m, %x axis 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %d = prim.div %c, %s1 : tensor<8xf32>
  %n = prim.round %d : tensor<8xf32>
  %y = prim.convert %n : tensor<8xf32> -> tensor<8xui8>
  return %y : tensor<8xui8>
}

// -----

// Another scale: what is rounded is no byte that was there.
// CHECK-LABEL: @other
// CHECK: prim.reshape %{{.*}} : tensor<4xf32>
// CHECK: prim.div
func.func @other(%q: tensor<4xui8>) -> tensor<2x2xui8> {
  %s0 = prim.constant dense<0.5> : tensor<4xf32>
  %s1 = prim.constant dense<0.25> : tensor<2x2xf32>
  %f = prim.convert %q : tensor<4xui8> -> tensor<4xf32>
  %x = prim.mul %f, %s0 : tensor<4xf32>
  %r = prim.reshape %x : tensor<4xf32> -> tensor<2x2xf32>
  %d = prim.div %r, %s1 : tensor<2x2xf32>
  %n = prim.round %d : tensor<2x2xf32>
  %y = prim.convert %n : tensor<2x2xf32> -> tensor<2x2xui8>
  return %y : tensor<2x2xui8>
}
