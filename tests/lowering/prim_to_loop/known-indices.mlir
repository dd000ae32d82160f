// Constants that index a dim as they are need no check. The model's negative indices have been normalised: a check wraps
// those alone whose normalisation it took over.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop | FileCheck %s

// CHECK-LABEL: loop.program @inside
// CHECK-NOT:     loop.check_index
// CHECK:         loop.load %{{.*}} [v$0, v$1, d1]
// CHECK-NOT:     loop.check_index
// CHECK-LABEL: loop.program @row
func.func @inside(%x: tensor<3x9x4xf32>) -> tensor<2x4xf32> {
  %i = prim.constant dense<[[0, 8], [2, 3]]> : tensor<2x2xsi64>
  %y = prim.gather_nd %x, %i, 0 : (tensor<3x9x4xf32>, tensor<2x2xsi64>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-NOT:     loop.check_index
// CHECK-LABEL: loop.program @negative
func.func @row(%x: tensor<5xf32>, %u: tensor<2xf32>) -> (tensor<2xf32>, tensor<5xf32>) {
  %i = prim.constant dense<[4, 1]> : tensor<2xui8>
  %y = prim.gather %x, %i, 0 : (tensor<5xf32>, tensor<2xui8>) -> tensor<2xf32>
  %s = prim.scatter_elements add %x, %i, %u, 0 : (tensor<5xf32>, tensor<2xui8>, tensor<2xf32>) -> tensor<5xf32>
  return %y, %s : tensor<2xf32>, tensor<5xf32>
}

// CHECK-COUNT-1: loop.check_index %{{.*}} in 5{{$}}
// CHECK-LABEL: loop.program @second
func.func @negative(%x: tensor<5xf32>) -> tensor<2xf32> {
  %i = prim.constant dense<[4, -1]> : tensor<2xsi64>
  %y = prim.gather %x, %i, 0 : (tensor<5xf32>, tensor<2xsi64>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// Outside of the second dim; nothing is known of a free dim.
// CHECK:         loop.check_index %{{.*}} in 3
// CHECK:         loop.check_index %{{.*}} in 9
// CHECK:         loop.check_index %{{.*}} in n
// CHECK-LABEL: loop.program @wrapped
func.func @second(%x: tensor<3x9xf32>, %z: tensor<?xf32, #prim.dims<[n]>>) -> (tensor<2xf32>, tensor<2xf32>) {
  %i = prim.constant dense<[[0, 8], [2, 9]]> : tensor<2x2xsi64>
  %y = prim.gather_nd %x, %i, 0 : (tensor<3x9xf32>, tensor<2x2xsi64>) -> tensor<2xf32>
  %j = prim.constant dense<[0, 1]> : tensor<2xsi64>
  %w = prim.gather %z, %j, 0 : (tensor<?xf32, #prim.dims<[n]>>, tensor<2xsi64>) -> tensor<2xf32>
  return %y, %w : tensor<2xf32>, tensor<2xf32>
}

// CHECK:         loop.check_index %{{.*}} in 5{{$}}
// CHECK:         loop.check_index %{{.*}} in 5 {loop.wraps}
func.func @wrapped(%x: tensor<5xf32>, %i: tensor<5xsi64>, %u: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %zero = prim.constant dense<0> : tensor<5xsi64>
  %five = prim.constant dense<5> : tensor<5xsi64>
  %isNegative = prim.lt %i, %zero : tensor<5xsi64>
  %sum = prim.add %i, %five : tensor<5xsi64>
  %wrapped = prim.select %isNegative, %sum, %i : tensor<5xi1>, tensor<5xsi64>
  %y = prim.gather %x, %wrapped, 0 : (tensor<5xf32>, tensor<5xsi64>) -> tensor<5xf32>
  %s = prim.scatter_elements set %x, %wrapped, %u, 0 : (tensor<5xf32>, tensor<5xsi64>, tensor<5xf32>) -> tensor<5xf32>
  return %y, %s : tensor<5xf32>, tensor<5xf32>
}
