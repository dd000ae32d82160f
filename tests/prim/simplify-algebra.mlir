// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-simplify-algebra))' | FileCheck %s

// What is neutral goes; x + 0 stays, because -0 + 0 is 0.
// CHECK-LABEL: func.func @neutral
// CHECK-NOT:     prim.mul
// CHECK-NOT:     prim.sub
// CHECK:         %[[SUM:.*]] = prim.add %arg0
// CHECK-NEXT:    return %[[SUM]]
func.func @neutral(%x: tensor<4xf32>) -> tensor<4xf32> {
  %one = prim.constant dense<1.0> : tensor<f32>
  %zero = prim.constant dense<0.0> : tensor<f32>
  %minus = prim.constant dense<-0.0> : tensor<f32>
  %a = prim.broadcast %one, [] : tensor<f32> -> tensor<4xf32>
  %b = prim.broadcast %zero, [] : tensor<f32> -> tensor<4xf32>
  %c = prim.broadcast %minus, [] : tensor<f32> -> tensor<4xf32>
  %m = prim.mul %a, %x : tensor<4xf32>
  %s = prim.sub %m, %b : tensor<4xf32>
  %n = prim.add %c, %s : tensor<4xf32>
  %y = prim.add %n, %b : tensor<4xf32>
  return %y : tensor<4xf32>
}

// Division by a power of two is exact as a product; by 3 it is not.
// CHECK-LABEL: func.func @divide
// CHECK-DAG:     prim.constant dense<1.250000e-01>
// CHECK:         prim.mul %arg0
// CHECK:         prim.div
func.func @divide(%x: tensor<4xf32>) -> tensor<4xf32> {
  %eight = prim.constant dense<8.0> : tensor<4xf32>
  %three = prim.constant dense<3.0> : tensor<4xf32>
  %d = prim.div %x, %eight : tensor<4xf32>
  %y = prim.div %d, %three : tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @power
// CHECK-NEXT:    %[[S:.*]] = prim.mul %arg0, %arg0
// CHECK-NEXT:    %[[C:.*]] = prim.mul %[[S]], %arg0
// CHECK-NEXT:    return %[[C]]
func.func @power(%x: tensor<4xf32>) -> tensor<4xf32> {
  %three = prim.constant dense<3.0> : tensor<f32>
  %e = prim.broadcast %three, [] : tensor<f32> -> tensor<4xf32>
  %y = prim.pow %x, %e : tensor<4xf32>
  return %y : tensor<4xf32>
}

// A quotient by a power is a product with its inverse; by a square root it stays.
// CHECK-LABEL: func.func @divide_by_power
// CHECK-DAG:     prim.constant dense<-7.500000e-01>
// CHECK:         %[[P:.*]] = prim.pow %arg1
// CHECK-NEXT:    %[[M:.*]] = prim.mul %arg0, %[[P]]
// CHECK:         %[[R:.*]] = prim.pow %arg1
// CHECK-NEXT:    prim.div %[[M]], %[[R]]
func.func @divide_by_power(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %c = prim.constant dense<0.75> : tensor<4xf32>
  %half = prim.constant dense<0.5> : tensor<4xf32>
  %p = prim.pow %y, %c : tensor<4xf32>
  %q = prim.div %x, %p : tensor<4xf32>
  %r = prim.pow %y, %half : tensor<4xf32>
  %z = prim.div %q, %r : tensor<4xf32>
  return %z : tensor<4xf32>
}

// Views compose; a transpose that moves only dims of 1 is a reshape.
// CHECK-LABEL: func.func @views
// CHECK-NEXT:    %[[R:.*]] = prim.reshape %arg0 : tensor<1x2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    return %[[R]]
func.func @views(%x: tensor<1x2x3xf32>) -> tensor<2x3xf32> {
  %t = prim.transpose %x, [1, 2, 0] : tensor<1x2x3xf32> -> tensor<2x3x1xf32>
  %u = prim.transpose %t, [1, 0, 2] : tensor<2x3x1xf32> -> tensor<3x2x1xf32>
  %v = prim.transpose %u, [1, 0, 2] : tensor<3x2x1xf32> -> tensor<2x3x1xf32>
  %y = prim.reshape %v : tensor<2x3x1xf32> -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @gather
// CHECK-NEXT:    %[[S:.*]] = prim.slice %arg0 [1, 0], [1, 1] : tensor<3x4xf32> -> tensor<1x4xf32>
// CHECK-NEXT:    prim.reshape %[[S]] : tensor<1x4xf32> -> tensor<4xf32>
func.func @gather(%x: tensor<3x4xf32>) -> tensor<4xf32> {
  %i = prim.constant dense<1> : tensor<si64>
  %y = prim.gather %x, %i, 0 : (tensor<3x4xf32>, tensor<si64>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// What was split and is joined again is whole.
// CHECK-LABEL: func.func @join
// CHECK-NEXT:    prim.concat %arg0, %arg1 axis 0
func.func @join(%x: tensor<4x2xf32>, %z: tensor<1x2xf32>) -> tensor<5x2xf32> {
  %a = prim.slice %x [0, 0], [1, 1] : tensor<4x2xf32> -> tensor<3x2xf32>
  %b = prim.slice %x [3, 0], [1, 1] : tensor<4x2xf32> -> tensor<1x2xf32>
  %y = prim.concat %a, %b, %z axis 0 : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<5x2xf32>
  return %y : tensor<5x2xf32>
}

// A concat of what another concat joins reads that one, so that both can be one memory; wherever it begins and stands.
// CHECK-LABEL: func.func @nest
// CHECK-NEXT:    %[[A:.*]] = prim.concat %arg0, %arg1 axis 0
// CHECK-NEXT:    %[[B:.*]] = prim.concat %[[A]], %arg2 axis 0
// CHECK-NEXT:    %[[C:.*]] = prim.concat %arg2, %[[B]] axis 0
// CHECK-NEXT:    %[[D:.*]] = prim.concat %arg1, %arg0 axis 0
// CHECK-NEXT:    return %[[C]], %[[A]], %[[B]], %[[D]]
func.func @nest(%x: tensor<3x2xf32>, %y: tensor<1x2xf32>, %z: tensor<2x2xf32>)
    -> (tensor<8x2xf32>, tensor<4x2xf32>, tensor<6x2xf32>, tensor<4x2xf32>) {
  %c = prim.concat %z, %x, %y, %z axis 0 : (tensor<2x2xf32>, tensor<3x2xf32>, tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<8x2xf32>
  %a = prim.concat %x, %y axis 0 : (tensor<3x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
  %b = prim.concat %x, %y, %z axis 0 : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<6x2xf32>
  %d = prim.concat %y, %x axis 0 : (tensor<1x2xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  return %c, %a, %b, %d : tensor<8x2xf32>, tensor<4x2xf32>, tensor<6x2xf32>, tensor<4x2xf32>
}

// A roll is an index into what is rolled, but where few elements lie behind the axis.
// CHECK-LABEL: func.func @roll
// CHECK:         %[[R:.*]] = prim.pad wrap %arg0, %{{.*}} [-3, 0, 0] : (tensor<4x2x4xf32>, tensor<f32>) -> tensor<4x2x4xf32>
// CHECK:         %[[L:.*]] = prim.concat
// CHECK:         return %[[R]], %[[L]]
func.func @roll(%x: tensor<4x2x4xf32>) -> (tensor<4x2x4xf32>, tensor<4x2x4xf32>) {
  %a = prim.slice %x [3, 0, 0], [1, 1, 1] : tensor<4x2x4xf32> -> tensor<1x2x4xf32>
  %b = prim.slice %x [0, 0, 0], [1, 1, 1] : tensor<4x2x4xf32> -> tensor<3x2x4xf32>
  %y = prim.concat %a, %b axis 0 : (tensor<1x2x4xf32>, tensor<3x2x4xf32>) -> tensor<4x2x4xf32>
  %c = prim.slice %x [0, 1, 0], [1, 1, 1] : tensor<4x2x4xf32> -> tensor<4x1x4xf32>
  %d = prim.slice %x [0, 0, 0], [1, 1, 1] : tensor<4x2x4xf32> -> tensor<4x1x4xf32>
  %z = prim.concat %c, %d axis 1 : (tensor<4x1x4xf32>, tensor<4x1x4xf32>) -> tensor<4x2x4xf32>
  return %y, %z : tensor<4x2x4xf32>, tensor<4x2x4xf32>
}

// Parts that overlap or leave something out are no roll; strings have no constant that a pad could hold.
// CHECK-LABEL: func.func @no_roll
// CHECK-NOT:     prim.pad
func.func @no_roll(%x: tensor<4x8xf32>, %s: tensor<4x8x!prim.string>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8x!prim.string>) {
  %a = prim.slice %x [2, 0], [1, 1] : tensor<4x8xf32> -> tensor<1x8xf32>
  %b = prim.slice %x [0, 0], [1, 1] : tensor<4x8xf32> -> tensor<3x8xf32>
  %y = prim.concat %a, %b axis 0 : (tensor<1x8xf32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  %c = prim.slice %x [3, 0], [-1, 1] : tensor<4x8xf32> -> tensor<2x8xf32>
  %d = prim.slice %x [0, 0], [1, 1] : tensor<4x8xf32> -> tensor<2x8xf32>
  %z = prim.concat %c, %d axis 0 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  %e = prim.slice %s [3, 0], [1, 1] : tensor<4x8x!prim.string> -> tensor<1x8x!prim.string>
  %f = prim.slice %s [0, 0], [1, 1] : tensor<4x8x!prim.string> -> tensor<3x8x!prim.string>
  %t = prim.concat %e, %f axis 0 : (tensor<1x8x!prim.string>, tensor<3x8x!prim.string>) -> tensor<4x8x!prim.string>
  return %y, %z, %t : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8x!prim.string>
}

// Halves that change places, one of them negated (rotary embeddings): rows of two halves backwards, times -1 and 1.
// CHECK-LABEL: func.func @halves
// CHECK:         %[[SIGNS:.*]] = prim.constant dense<[-1.000000e+00, 1.000000e+00]> : tensor<2xf32>
// CHECK:         %[[R:.*]] = prim.reshape %arg0 : tensor<3x64xf32> -> tensor<3x2x32xf32>
// CHECK:         %[[S:.*]] = prim.slice %[[R]] [0, 1, 0], [1, -1, 1] : tensor<3x2x32xf32> -> tensor<3x2x32xf32>
// CHECK:         %[[F:.*]] = prim.broadcast %[[SIGNS]], [1] : tensor<2xf32> -> tensor<3x2x32xf32>
// CHECK:         %[[M:.*]] = prim.mul %[[S]], %[[F]]
// CHECK:         %[[Y:.*]] = prim.reshape %[[M]] : tensor<3x2x32xf32> -> tensor<3x64xf32>
// CHECK:         return %[[Y]]
func.func @halves(%x: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %a = prim.slice %x [0, 0], [1, 1] : tensor<3x64xf32> -> tensor<3x32xf32>
  %b = prim.slice %x [0, 32], [1, 1] : tensor<3x64xf32> -> tensor<3x32xf32>
  %n = prim.neg %b : tensor<3x32xf32>
  %y = prim.concat %n, %a axis 1 : (tensor<3x32xf32>, tensor<3x32xf32>) -> tensor<3x64xf32>
  return %y : tensor<3x64xf32>
}

// Too short for vectors; parts that are no halves.
// CHECK-LABEL: func.func @no_halves
// CHECK-COUNT-2: prim.concat
func.func @no_halves(%x: tensor<3x16xf32>, %z: tensor<3x64xf32>) -> (tensor<3x16xf32>, tensor<3x64xf32>) {
  %a = prim.slice %x [0, 0], [1, 1] : tensor<3x16xf32> -> tensor<3x8xf32>
  %b = prim.slice %x [0, 8], [1, 1] : tensor<3x16xf32> -> tensor<3x8xf32>
  %c = prim.concat %b, %a axis 1 : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x16xf32>
  %d = prim.slice %z [0, 0], [1, 1] : tensor<3x64xf32> -> tensor<3x24xf32>
  %e = prim.slice %z [0, 24], [1, 1] : tensor<3x64xf32> -> tensor<3x40xf32>
  %n = prim.neg %e : tensor<3x40xf32>
  %f = prim.concat %n, %d axis 1 : (tensor<3x40xf32>, tensor<3x24xf32>) -> tensor<3x64xf32>
  return %c, %f : tensor<3x16xf32>, tensor<3x64xf32>
}

// Mish: no logarithm. Sums in either order; a relu of another value and narrow floats stay as they are.
// CHECK-LABEL: func.func @tanh_softplus
// CHECK-NOT:     prim.log1p
// CHECK:         %[[B:.*]] = prim.minimum %arg0
// CHECK:         %[[E:.*]] = prim.exp %[[B]]
// CHECK:         %[[P:.*]] = prim.add %[[E]]
// CHECK:         %[[N:.*]] = prim.mul %[[E]], %[[P]]
// CHECK:         %[[D:.*]] = prim.add %[[N]]
// CHECK:         prim.div %[[N]], %[[D]]
// CHECK-NOT:     prim.tanh
func.func @tanh_softplus(%x: tensor<64xf32>) -> tensor<64xf32> {
  %a = prim.abs %x : tensor<64xf32>
  %n = prim.neg %a : tensor<64xf32>
  %e = prim.exp %n : tensor<64xf32>
  %l = prim.log1p %e : tensor<64xf32>
  %r = prim.relu %x : tensor<64xf32>
  %s = prim.add %l, %r : tensor<64xf32>
  %y = prim.tanh %s : tensor<64xf32>
  return %y : tensor<64xf32>
}

// CHECK-LABEL: func.func @no_softplus
// CHECK-COUNT-2: prim.log1p
func.func @no_softplus(%x: tensor<64xf32>, %z: tensor<64xf32>, %h: tensor<64xf16>) -> (tensor<64xf32>, tensor<64xf16>) {
  %a = prim.abs %x : tensor<64xf32>
  %n = prim.neg %a : tensor<64xf32>
  %e = prim.exp %n : tensor<64xf32>
  %l = prim.log1p %e : tensor<64xf32>
  %r = prim.relu %z : tensor<64xf32>
  %s = prim.add %r, %l : tensor<64xf32>
  %y = prim.tanh %s : tensor<64xf32>
  %ha = prim.abs %h : tensor<64xf16>
  %hn = prim.neg %ha : tensor<64xf16>
  %he = prim.exp %hn : tensor<64xf16>
  %hl = prim.log1p %he : tensor<64xf16>
  %hr = prim.relu %h : tensor<64xf16>
  %hs = prim.add %hr, %hl : tensor<64xf16>
  %hy = prim.tanh %hs : tensor<64xf16>
  return %y, %hy : tensor<64xf32>, tensor<64xf16>
}
