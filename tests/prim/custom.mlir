// Calls of the user's own operators: what they carry, and what belongs together.
// RUN: ptc-opt %s -split-input-file -verify-diagnostics | ptc-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @scale
func.func @scale(%x: tensor<?x3xf32, #prim.dims<[n, 3]>>) attributes {prim.symbols = {n = #prim.symbol<1, 8, divisor = 1, hint = 1>}} {
  // CHECK: prim.call "custom_run"(%{{.*}}) [n, 3, -1, n, 3] of <"libops.so", "scale_op", "my", "Scale", 1, [tensor<?x?xf32>], [tensor<?x?xf32>, unit], {factor = 2.000000e+00 : f32}>
  %y = prim.call "custom_run"(%x) [n, 3, -1, n, 3] of <"libops.so", "scale_op", "my", "Scale", 1, [tensor<?x?xf32>], [tensor<?x?xf32>, unit], {factor = 2.0 : f32}>
    : (tensor<?x3xf32, #prim.dims<[n, 3]>>) -> tensor<?x3xf32, #prim.dims<[n, 3]>>
  return
}

// -----

func.func @nobody(%x: tensor<3xf32>) {
  // expected-error @+1 {{says whose operator it is, if and only if it calls the user's own}}
  %y = prim.call "custom_run"(%x) [3, -1, 3] : (tensor<3xf32>) -> tensor<3xf32>
  return
}
