// Between quantised tensors there is one scale: constants are multiplied and divided beforehand.
// RUN: ptc-opt %s --ptc-join-scales | FileCheck %s

// A product's sums, a bias of each channel and a rectifier: one factor and one sum a channel.
// CHECK-LABEL: func.func @product
// CHECK-NOT:     prim.div
// CHECK-NOT:     prim.relu
// CHECK:         prim.convert %arg0 : tensor<1x2x3xsi32> -> tensor<1x2x3xf32>
// CHECK:         prim.constant dense<[5.000000e-01, 2.500000e-01]>
// CHECK:         prim.mul
// CHECK:         prim.constant dense<[2.000000e+00, 4.000000e+00]>
// CHECK:         prim.add
// CHECK-NEXT:    prim.round
func.func @product(%acc: tensor<1x2x3xsi32>) -> tensor<1x2x3xui8> {
  %f = prim.constant dense<[0.25, 0.125]> : tensor<2xf32>
  %b = prim.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %s = prim.constant dense<0.5> : tensor<f32>
  %z = prim.constant dense<0.0> : tensor<f32>
  %x = prim.convert %acc : tensor<1x2x3xsi32> -> tensor<1x2x3xf32>
  %fs = prim.broadcast %f, [1] : tensor<2xf32> -> tensor<1x2x3xf32>
  %bs = prim.broadcast %b, [1] : tensor<2xf32> -> tensor<1x2x3xf32>
  %ss = prim.broadcast %s, [] : tensor<f32> -> tensor<1x2x3xf32>
  %zs = prim.broadcast %z, [] : tensor<f32> -> tensor<1x2x3xf32>
  %m = prim.mul %x, %fs : tensor<1x2x3xf32>
  %a = prim.add %m, %bs : tensor<1x2x3xf32>
  %r = prim.relu %a : tensor<1x2x3xf32>
  %d = prim.div %r, %ss : tensor<1x2x3xf32>
  %n = prim.round %d : tensor<1x2x3xf32>
  %p = prim.add %n, %zs : tensor<1x2x3xf32>
  %q = prim.convert %p : tensor<1x2x3xf32> -> tensor<1x2x3xui8>
  return %q : tensor<1x2x3xui8>
}

// Bytes that are rounded to what they were.
// CHECK-LABEL: func.func @same
// CHECK-NEXT:    return %arg0
func.func @same(%q: tensor<4xui8>) -> tensor<4xui8> {
  %s = prim.constant dense<0.3> : tensor<f32>
  %z = prim.constant dense<7> : tensor<si32>
  %zf = prim.constant dense<7.0> : tensor<f32>
  %ss = prim.broadcast %s, [] : tensor<f32> -> tensor<4xf32>
  %zs = prim.broadcast %z, [] : tensor<si32> -> tensor<4xsi32>
  %zfs = prim.broadcast %zf, [] : tensor<f32> -> tensor<4xf32>
  %w = prim.convert %q : tensor<4xui8> -> tensor<4xsi32>
  %c = prim.sub %w, %zs : tensor<4xsi32>
  %f = prim.convert %c : tensor<4xsi32> -> tensor<4xf32>
  %x = prim.mul %f, %ss : tensor<4xf32>
  %d = prim.div %x, %ss : tensor<4xf32>
  %n = prim.round %d : tensor<4xf32>
  %p = prim.add %n, %zfs : tensor<4xf32>
  %r = prim.convert %p : tensor<4xf32> -> tensor<4xui8>
  return %r : tensor<4xui8>
}

// A residual sum: what was rounded for it alone is clamped and stays real.
// CHECK-LABEL: func.func @residual
// CHECK:         %[[N:.*]] = prim.round
// CHECK:         %[[L:.*]] = prim.lt %{{.*}}, %[[N]]
// CHECK:         %[[C:.*]] = prim.select %[[L]], %[[N]]
// CHECK:         prim.lt %[[C]]
// CHECK-NOT:     prim.div
// CHECK:         prim.convert %{{.*}} : tensor<4xf32> -> tensor<4xui8>
// CHECK-NEXT:    return
func.func @residual(%acc: tensor<4xsi32>, %other: tensor<4xui8>) -> tensor<4xui8> {
  %s = prim.constant dense<0.3> : tensor<f32>
  %z = prim.constant dense<7> : tensor<si32>
  %zf = prim.constant dense<7.0> : tensor<f32>
  %ss = prim.broadcast %s, [] : tensor<f32> -> tensor<4xf32>
  %zs = prim.broadcast %z, [] : tensor<si32> -> tensor<4xsi32>
  %zfs = prim.broadcast %zf, [] : tensor<f32> -> tensor<4xf32>
  %x = prim.convert %acc : tensor<4xsi32> -> tensor<4xf32>
  %m = prim.mul %x, %ss : tensor<4xf32>
  %d = prim.div %m, %ss : tensor<4xf32>
  %n = prim.round %d : tensor<4xf32>
  %p = prim.add %n, %zfs : tensor<4xf32>
  %q = prim.convert %p : tensor<4xf32> -> tensor<4xui8>
  %w = prim.convert %q : tensor<4xui8> -> tensor<4xsi32>
  %c = prim.sub %w, %zs : tensor<4xsi32>
  %f = prim.convert %c : tensor<4xsi32> -> tensor<4xf32>
  %y = prim.mul %f, %ss : tensor<4xf32>
  %ow = prim.convert %other : tensor<4xui8> -> tensor<4xsi32>
  %of = prim.convert %ow : tensor<4xsi32> -> tensor<4xf32>
  %oy = prim.mul %of, %ss : tensor<4xf32>
  %a = prim.add %y, %oy : tensor<4xf32>
  %e = prim.div %a, %ss : tensor<4xf32>
  %en = prim.round %e : tensor<4xf32>
  %r = prim.convert %en : tensor<4xf32> -> tensor<4xui8>
  return %r : tensor<4xui8>
}

// An activation of bytes that it alone reads: of the real number, clamped once however often it is rounded to the same.
// CHECK-LABEL: func.func @activation
// CHECK:         %[[N:.*]] = prim.round
// CHECK:         %[[L:.*]] = prim.lt %{{.*}}, %[[N]]
// CHECK:         %[[C:.*]] = prim.select %[[L]], %[[N]]
// CHECK:         %[[H:.*]] = prim.lt %[[C]]
// CHECK:         %[[R:.*]] = prim.select %[[H]], %[[C]]
// CHECK-NOT:     prim.round
// CHECK-NOT:     ui8
// CHECK:         prim.add %[[R]]
// CHECK:         prim.erf
// CHECK:         prim.div
// CHECK:         prim.convert %{{.*}} : tensor<4xf32> -> tensor<4xui8>
// CHECK-NEXT:    return
func.func @activation(%acc: tensor<4xsi32>) -> tensor<4xui8> {
  %s = prim.constant dense<0.3> : tensor<f32>
  %z = prim.constant dense<7> : tensor<si32>
  %zf = prim.constant dense<7.0> : tensor<f32>
  %ss = prim.broadcast %s, [] : tensor<f32> -> tensor<4xf32>
  %zs = prim.broadcast %z, [] : tensor<si32> -> tensor<4xsi32>
  %zfs = prim.broadcast %zf, [] : tensor<f32> -> tensor<4xf32>
  %x = prim.convert %acc : tensor<4xsi32> -> tensor<4xf32>
  %m = prim.mul %x, %ss : tensor<4xf32>
  %d = prim.div %m, %ss : tensor<4xf32>
  %n = prim.round %d : tensor<4xf32>
  %p = prim.add %n, %zfs : tensor<4xf32>
  %q = prim.convert %p : tensor<4xf32> -> tensor<4xui8>
  %w = prim.convert %q : tensor<4xui8> -> tensor<4xsi32>
  %c = prim.sub %w, %zs : tensor<4xsi32>
  %f = prim.convert %c : tensor<4xsi32> -> tensor<4xf32>
  %y = prim.mul %f, %ss : tensor<4xf32>
  %d2 = prim.div %y, %ss : tensor<4xf32>
  %n2 = prim.round %d2 : tensor<4xf32>
  %p2 = prim.add %n2, %zfs : tensor<4xf32>
  %q2 = prim.convert %p2 : tensor<4xf32> -> tensor<4xui8>
  %w2 = prim.convert %q2 : tensor<4xui8> -> tensor<4xsi32>
  %c2 = prim.sub %w2, %zs : tensor<4xsi32>
  %f2 = prim.convert %c2 : tensor<4xsi32> -> tensor<4xf32>
  %y2 = prim.mul %f2, %ss : tensor<4xf32>
  %a = prim.erf %y2 : tensor<4xf32>
  %e = prim.div %a, %ss : tensor<4xf32>
  %en = prim.round %e : tensor<4xf32>
  %r = prim.convert %en : tensor<4xf32> -> tensor<4xui8>
  return %r : tensor<4xui8>
}

// What is no sum of integers is divided.
// CHECK-LABEL: func.func @reals
// CHECK:         prim.div
func.func @reals(%x: tensor<4xf32>) -> tensor<4xui8> {
  %s = prim.constant dense<0.3> : tensor<f32>
  %ss = prim.broadcast %s, [] : tensor<f32> -> tensor<4xf32>
  %d = prim.div %x, %ss : tensor<4xf32>
  %n = prim.round %d : tensor<4xf32>
  %r = prim.convert %n : tensor<4xf32> -> tensor<4xui8>
  return %r : tensor<4xui8>
}

// The largest of a window of bytes is a byte: nothing is computed in real numbers.
// CHECK-LABEL: func.func @pool
// CHECK-NEXT:    %[[P:.*]] = prim.window_reduce max %arg0
// CHECK-NEXT:    return %[[P]]
func.func @pool(%q: tensor<1x2x4x4xui8>) -> tensor<1x2x2x2xui8> {
  %s = prim.constant dense<0.3> : tensor<f32>
  %ss = prim.broadcast %s, [] : tensor<f32> -> tensor<1x2x4x4xf32>
  %st = prim.broadcast %s, [] : tensor<f32> -> tensor<1x2x2x2xf32>
  %w = prim.convert %q : tensor<1x2x4x4xui8> -> tensor<1x2x4x4xsi32>
  %f = prim.convert %w : tensor<1x2x4x4xsi32> -> tensor<1x2x4x4xf32>
  %x = prim.mul %f, %ss : tensor<1x2x4x4xf32>
  %p = prim.window_reduce max %x window [3, 3] strides [2, 2] dilations [1, 1] low [1, 1] : tensor<1x2x4x4xf32> -> tensor<1x2x2x2xf32>
  %d = prim.div %p, %st : tensor<1x2x2x2xf32>
  %n = prim.round %d : tensor<1x2x2x2xf32>
  %r = prim.convert %n : tensor<1x2x2x2xf32> -> tensor<1x2x2x2xui8>
  return %r : tensor<1x2x2x2xui8>
}

// A difference of unsigned bytes wraps, and so does one of unsigned words: it is not q - zero.
// CHECK-LABEL: func.func @wraps
// CHECK:         prim.sub {{.*}} : tensor<4xui8>
// CHECK:         prim.sub {{.*}} : tensor<4xui32>
func.func @wraps(%q: tensor<4xui8>) -> (tensor<4xui8>, tensor<4xui8>) {
  %s = prim.constant dense<2.0> : tensor<f32>
  %z = prim.constant dense<10> : tensor<ui8>
  %zw = prim.constant dense<10> : tensor<ui32>
  %zf = prim.constant dense<0.0> : tensor<f32>
  %ss = prim.broadcast %s, [] : tensor<f32> -> tensor<4xf32>
  %zs = prim.broadcast %z, [] : tensor<ui8> -> tensor<4xui8>
  %zws = prim.broadcast %zw, [] : tensor<ui32> -> tensor<4xui32>
  %zfs = prim.broadcast %zf, [] : tensor<f32> -> tensor<4xf32>
  %c = prim.sub %q, %zs : tensor<4xui8>
  %f = prim.convert %c : tensor<4xui8> -> tensor<4xf32>
  %d = prim.div %f, %ss : tensor<4xf32>
  %n = prim.round %d : tensor<4xf32>
  %p = prim.add %n, %zfs : tensor<4xf32>
  %r = prim.convert %p : tensor<4xf32> -> tensor<4xui8>
  %w = prim.convert %q : tensor<4xui8> -> tensor<4xui32>
  %cw = prim.sub %w, %zws : tensor<4xui32>
  %fw = prim.convert %cw : tensor<4xui32> -> tensor<4xf32>
  %dw = prim.div %fw, %ss : tensor<4xf32>
  %nw = prim.round %dw : tensor<4xf32>
  %pw = prim.add %nw, %zfs : tensor<4xf32>
  %rw = prim.convert %pw : tensor<4xf32> -> tensor<4xui8>
  return %r, %rw : tensor<4xui8>, tensor<4xui8>
}
