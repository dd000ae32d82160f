// A maximum need not be NaN where all that it enters is NaN anyway. What is known of a softmax's exponentials and
// quotients is said where they stand.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop | FileCheck %s

// CHECK-LABEL: loop.program @softmax
// CHECK:         loop.reduce max %{{.*}} no_nan
// CHECK:         math.exp %{{.*}} {loop.not_positive}
// CHECK:         arith.divf %{{.*}} {loop.of_softmax}
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %m = prim.reduce max %x, [1] : tensor<4x8xf32> -> tensor<4xf32>
  %b = prim.broadcast %m, [0] : tensor<4xf32> -> tensor<4x8xf32>
  %d = prim.sub %x, %b : tensor<4x8xf32>
  %e = prim.exp %d : tensor<4x8xf32>
  %s = prim.reduce sum %e, [1] : tensor<4x8xf32> -> tensor<4xf32>
  %t = prim.broadcast %s, [0] : tensor<4xf32> -> tensor<4x8xf32>
  %y = prim.div %e, %t : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// Over two dims, with a finite number for an infinite maximum: a logarithm of a sum of exponentials.
// CHECK-LABEL: loop.program @logarithm
// CHECK:         loop.reduce max %{{.*}} no_nan
func.func @logarithm(%x: tensor<4x8x2xf16>, %z: tensor<1x8x1xf16>) -> tensor<1x8x1xf16> {
  %m = prim.reduce max %x, [0, 2] : tensor<4x8x2xf16> -> tensor<8xf16>
  %k = prim.reshape %m : tensor<8xf16> -> tensor<1x8x1xf16>
  %i = prim.is_inf %k : tensor<1x8x1xf16>
  %f = prim.select %i, %z, %k : tensor<1x8x1xi1>, tensor<1x8x1xf16>
  %b = prim.broadcast %f, [0, 1, 2] : tensor<1x8x1xf16> -> tensor<4x8x2xf16>
  %d = prim.sub %x, %b : tensor<4x8x2xf16>
  %e = prim.exp %d : tensor<4x8x2xf16>
  %s = prim.reduce sum %e, [0, 2] : tensor<4x8x2xf16> -> tensor<8xf16>
  %l = prim.log %s : tensor<8xf16>
  %r = prim.reshape %l : tensor<8xf16> -> tensor<1x8x1xf16>
  %y = prim.add %r, %f : tensor<1x8x1xf16>
  return %y : tensor<1x8x1xf16>
}

// The sum is of columns: rows with a NaN have elements that are none.
// CHECK-LABEL: loop.program @columns
// CHECK:         loop.reduce max %{{.*}} : f32
// CHECK:         math.exp %{{.*}} {loop.not_positive}
// CHECK:         arith.divf %{{[0-9]+}}, %{{[0-9]+}} : f32
func.func @columns(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %m = prim.reduce max %x, [1] : tensor<8x8xf32> -> tensor<8xf32>
  %b = prim.broadcast %m, [0] : tensor<8xf32> -> tensor<8x8xf32>
  %d = prim.sub %x, %b : tensor<8x8xf32>
  %e = prim.exp %d : tensor<8x8xf32>
  %s = prim.reduce sum %e, [0] : tensor<8x8xf32> -> tensor<8xf32>
  %t = prim.broadcast %s, [0] : tensor<8xf32> -> tensor<8x8xf32>
  %y = prim.div %e, %t : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// The maximum of each row is subtracted from a column.
// CHECK-LABEL: loop.program @turned
// CHECK:         loop.reduce max %{{.*}} : f32
func.func @turned(%x: tensor<8x8xf32>) -> tensor<8xf32> {
  %m = prim.reduce max %x, [1] : tensor<8x8xf32> -> tensor<8xf32>
  %b = prim.broadcast %m, [1] : tensor<8xf32> -> tensor<8x8xf32>
  %d = prim.sub %x, %b : tensor<8x8xf32>
  %s = prim.reduce sum %d, [1] : tensor<8x8xf32> -> tensor<8xf32>
  return %s : tensor<8xf32>
}

// A comparison shows whether the maximum is NaN, as the result itself does.
// CHECK-LABEL: loop.program @compared
// CHECK:         loop.reduce max %{{.*}} : f32
func.func @compared(%x: tensor<8x8xf32>, %z: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi1>) {
  %m = prim.reduce max %x, [1] : tensor<8x8xf32> -> tensor<8xf32>
  %b = prim.broadcast %m, [0] : tensor<8xf32> -> tensor<8x8xf32>
  %d = prim.sub %x, %b : tensor<8x8xf32>
  %s = prim.reduce sum %d, [1] : tensor<8x8xf32> -> tensor<8xf32>
  %c = prim.lt %m, %z : tensor<8xf32>
  return %s, %c : tensor<8xf32>, tensor<8xi1>
}
