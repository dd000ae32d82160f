// RUN: ptc-opt %s --ptc-move-bytes --split-input-file | FileCheck %s

// The largest of a window, and a border of a constant that is rounded here.
// CHECK-LABEL: @chosen
// CHECK: %[[FILL:.*]] = prim.constant dense<-6> : tensor<si8>
// CHECK: %[[P:.*]] = prim.pad constant %arg0, %[[FILL]] {{.*}} tensor<1x1x6x6xsi8>
// CHECK: %[[Y:.*]] = prim.window_reduce max %[[P]] {{.*}} -> tensor<1x1x3x3xsi8>
// CHECK: return %[[Y]]
func.func @chosen(%q: tensor<1x1x4x4xsi8>) -> tensor<1x1x3x3xsi8> {
  %fill = prim.constant dense<-3.0> : tensor<f32>
  %s0 = prim.constant dense<0.5> : tensor<1x1x4x4xf32>
  %s1 = prim.constant dense<0.5> : tensor<1x1x3x3xf32>
  %f = prim.convert %q : tensor<1x1x4x4xsi8> -> tensor<1x1x4x4xf32>
  %x = prim.mul %f, %s0 : tensor<1x1x4x4xf32>
  %b = prim.pad constant %x, %fill [0, 0, 1, 1] : (tensor<1x1x4x4xf32>, tensor<f32>) -> tensor<1x1x6x6xf32>
  %m = prim.window_reduce max %b window [2, 2] strides [2, 2] dilations [1, 1] low [0, 0] : tensor<1x1x6x6xf32> -> tensor<1x1x3x3xf32>
  %d = prim.div %m, %s1 : tensor<1x1x3x3xf32>
  %n = prim.round %d : tensor<1x1x3x3xf32>
  %y = prim.convert %n : tensor<1x1x3x3xf32> -> tensor<1x1x3x3xsi8>
  return %y : tensor<1x1x3x3xsi8>
}

// -----

// A rectifier bounds bytes by the zero point.
// CHECK-LABEL: @relu
// CHECK: %[[ZERO:.*]] = prim.constant dense<7> : tensor<ui8>
// CHECK: %[[B:.*]] = prim.broadcast %[[ZERO]]
// CHECK: %[[Y:.*]] = prim.maximum %arg0, %[[B]] : tensor<4xui8>
// CHECK-NEXT: return %[[Y]]
func.func @relu(%q: tensor<4xui8>) -> tensor<4xui8> {
  %s = prim.constant dense<0.3> : tensor<4xf32>
  %z = prim.constant dense<7> : tensor<4xsi32>
  %zf = prim.constant dense<7.0> : tensor<4xf32>
  %w = prim.convert %q : tensor<4xui8> -> tensor<4xsi32>
  %c = prim.sub %w, %z : tensor<4xsi32>
  %f = prim.convert %c : tensor<4xsi32> -> tensor<4xf32>
  %x = prim.mul %f, %s : tensor<4xf32>
  %r = prim.relu %x : tensor<4xf32>
  %d = prim.div %r, %s : tensor<4xf32>
  %n = prim.round %d : tensor<4xf32>
  %p = prim.add %n, %zf : tensor<4xf32>
  %y = prim.convert %p : tensor<4xf32> -> tensor<4xui8>
  return %y : tensor<4xui8>
}
