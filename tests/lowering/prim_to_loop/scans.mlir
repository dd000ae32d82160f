// What a scan adds up is computed beforehand, if it takes longer than adding it up: a scan's elements wait for each other.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop | FileCheck %s

// CHECK-LABEL: loop.program @gates
// CHECK:         loop.pointwise [4, 128]
// CHECK:           math.log
// CHECK:         loop.scan [4, 128]
// CHECK-NEXT:      loop.load
// CHECK-NEXT:      loop.running sum
func.func @gates(%x: tensor<4x128xf32>) -> tensor<4x128xf32> {
  %s = prim.sigmoid %x : tensor<4x128xf32>
  %l = prim.log %s : tensor<4x128xf32>
  %y = prim.scan sum %l, 1, false, false : tensor<4x128xf32>
  return %y : tensor<4x128xf32>
}

// CHECK-LABEL: loop.program @cheap
// CHECK-NOT:     loop.pointwise
// CHECK:         loop.scan [4, 128]
func.func @cheap(%x: tensor<4x128xf32>) -> tensor<4x128xf32> {
  %n = prim.neg %x : tensor<4x128xf32>
  %y = prim.scan sum %n, 1, false, false : tensor<4x128xf32>
  return %y : tensor<4x128xf32>
}

// Positions of what is no padding: integers are quick.
// CHECK-LABEL: loop.program @positions
// CHECK-NOT:     loop.pointwise
// CHECK:         loop.scan [4, 128]
func.func @positions(%x: tensor<4x128xsi64>, %y: tensor<4x128xsi64>) -> tensor<4x128xsi64> {
  %d = prim.sub %x, %y : tensor<4x128xsi64>
  %b = prim.lt %d, %y : tensor<4x128xsi64>
  %n = prim.convert %b : tensor<4x128xi1> -> tensor<4x128xsi64>
  %s = prim.scan sum %n, 1, false, false : tensor<4x128xsi64>
  return %s : tensor<4x128xsi64>
}
