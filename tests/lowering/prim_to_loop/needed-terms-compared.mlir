// Causal masks that compare the numbers of a row and a column, beside constant ones (needed-terms.mlir).
// RUN: ptc-opt %s --ptc-lower-prim-to-loop | FileCheck %s

// Of any number of steps: a row's number and a column's are compared; what else hides something does not matter.
// CHECK-LABEL: loop.program @compared
// CHECK:         loop.contraction [s, s, 5] batch 0 m 1 n 1 k 1 needed [d0 - d1]
// CHECK:         loop.contraction [s, 5, s] batch 0 m 1 n 1 k 1 needed [d0 - d2]
func.func @compared(%q: tensor<?x5xf32, #prim.dims<[s, 5]>>, %k: tensor<5x?xf32, #prim.dims<[5, s]>>, %other: tensor<?x?xi1, #prim.dims<[s, s]>>)
    -> tensor<?x5xf32, #prim.dims<[s, 5]>> attributes {prim.symbols = {s = #prim.symbol<1, 1000, divisor = 1, hint = 64>}} {
  %step = prim.iota 0 : tensor<?xsi64, #prim.dims<[s]>>
  %row = prim.broadcast %step, [0] : tensor<?xsi64, #prim.dims<[s]>> -> tensor<?x?xsi64, #prim.dims<[s, s]>>
  %column = prim.iota 1 : tensor<?x?xsi64, #prim.dims<[s, s]>>
  %one = prim.constant dense<1> : tensor<si64>
  %ones = prim.broadcast %one, [] : tensor<si64> -> tensor<?x?xsi64, #prim.dims<[s, s]>>
  %next = prim.add %row, %ones : tensor<?x?xsi64, #prim.dims<[s, s]>>
  %early = prim.lt %column, %next : tensor<?x?xsi64, #prim.dims<[s, s]>>
  %seen = prim.and %early, %other : tensor<?x?xi1, #prim.dims<[s, s]>>
  %zero = prim.constant dense<0.0> : tensor<f32>
  %zeros = prim.broadcast %zero, [] : tensor<f32> -> tensor<?x?xf32, #prim.dims<[s, s]>>
  %s = prim.matmul %q, %k : (tensor<?x5xf32, #prim.dims<[s, 5]>>, tensor<5x?xf32, #prim.dims<[5, s]>>) -> tensor<?x?xf32, #prim.dims<[s, s]>>
  %p = prim.select %seen, %s, %zeros : tensor<?x?xi1, #prim.dims<[s, s]>>, tensor<?x?xf32, #prim.dims<[s, s]>>
  %y = prim.matmul %p, %q : (tensor<?x?xf32, #prim.dims<[s, s]>>, tensor<?x5xf32, #prim.dims<[s, 5]>>) -> tensor<?x5xf32, #prim.dims<[s, 5]>>
  return %y : tensor<?x5xf32, #prim.dims<[s, 5]>>
}

// A diagonal further on is no causal mask, nor is what shows later steps.
// CHECK-LABEL: loop.program @shifted
// CHECK-NOT:     needed
func.func @shifted(%q: tensor<4x5xf32>, %k: tensor<5x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %row = prim.iota 0 : tensor<4x4xsi64>
  %column = prim.iota 1 : tensor<4x4xsi64>
  %one = prim.constant dense<1> : tensor<4x4xsi64>
  %next = prim.add %row, %one : tensor<4x4xsi64>
  %nearly = prim.le %column, %next : tensor<4x4xsi64>
  %later = prim.le %row, %column : tensor<4x4xsi64>
  %zero = prim.constant dense<0.0> : tensor<4x4xf32>
  %s = prim.matmul %q, %k : (tensor<4x5xf32>, tensor<5x4xf32>) -> tensor<4x4xf32>
  %a = prim.select %nearly, %s, %zero : tensor<4x4xi1>, tensor<4x4xf32>
  %b = prim.select %later, %s, %zero : tensor<4x4xi1>, tensor<4x4xf32>
  return %a, %b : tensor<4x4xf32>, tensor<4x4xf32>
}
