// What binds sizes goes with the last use of its results and of these, though canonicalization keeps it: here with a
// branch that is never taken.
// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-fold-constants))' | FileCheck %s

// CHECK-LABEL: func.func @unused
// CHECK-NOT:   prim.loop
// CHECK:       prim.neg
// CHECK:       return
func.func @unused(%x: tensor<4xf32>, %limit: tensor<si64>, %go: tensor<i1>) -> tensor<4xf32> {
  %rows = prim.loop "i" limit %limit while %go binds "n" states() over() {
    %e = prim.exp %x : tensor<4xf32>
    prim.yield %go, %e : tensor<i1>, tensor<4xf32>
  } : (tensor<si64>, tensor<i1>) -> tensor<?x4xf32, #prim.dims<[n, 4]>>
  %false = prim.constant dense<false> : tensor<i1>
  %y = prim.if %false then {
    %s = prim.reduce sum %rows, [0] : tensor<?x4xf32, #prim.dims<[n, 4]>> -> tensor<4xf32>
    prim.yield %s : tensor<4xf32>
  } else {
    %n = prim.neg %x : tensor<4xf32>
    prim.yield %n : tensor<4xf32>
  } : (tensor<i1>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// A guard uses the size: the loop stays.
// CHECK-LABEL: func.func @guarded
// CHECK:       prim.loop
// CHECK:       prim.guard
func.func @guarded(%x: tensor<4xf32>, %limit: tensor<si64>, %go: tensor<i1>) -> tensor<4xf32> {
  %rows = prim.loop "i" limit %limit while %go binds "n" states() over() {
    %e = prim.exp %x : tensor<4xf32>
    prim.yield %go, %e : tensor<i1>, tensor<4xf32>
  } : (tensor<si64>, tensor<i1>) -> tensor<?x4xf32, #prim.dims<[n, 4]>>
  prim.guard lt(n, 8)
  %n = prim.neg %x : tensor<4xf32>
  return %n : tensor<4xf32>
}
