// A symbol may be used behind the op that binds it only; sizes are si64 scalars.
// RUN: ptc-opt %s --split-input-file --ptc-lower-prim-to-loop --verify-diagnostics | FileCheck %s

// CHECK-LABEL: loop.program @compact
// CHECK: loop.bind "u0" = %{{.*}} at_most n
// CHECK: loop.guard eq(n, u0)
// CHECK: loop.pointwise [u0]
func.func @compact(%x: tensor<?xf32, #prim.dims<[n]>>, %count: tensor<si64>) -> tensor<?xf32, #prim.dims<[u0]>>
    attributes {prim.symbols = {n = #prim.symbol<1, 64, divisor = 1, hint = 4>, u0 = #prim.symbol<0, 64, divisor = 1, hint = 4>}} {
  prim.bind "u0" = %count at_most n : tensor<si64>
  prim.guard eq(u0, n)
  %y = prim.slice %x [0], [1] : tensor<?xf32, #prim.dims<[n]>> -> tensor<?xf32, #prim.dims<[u0]>>
  %z = prim.neg %y : tensor<?xf32, #prim.dims<[u0]>>
  return %z : tensor<?xf32, #prim.dims<[u0]>>
}

// -----

func.func @too_early(%x: tensor<?xf32, #prim.dims<[n]>>, %count: tensor<si64>) -> tensor<?xf32, #prim.dims<[u0]>>
    attributes {prim.symbols = {n = #prim.symbol<1, 64, divisor = 1, hint = 4>}} {
  // expected-error @below {{uses the symbol 'u0' before it is bound}}
  %y = prim.slice %x [0], [1] : tensor<?xf32, #prim.dims<[n]>> -> tensor<?xf32, #prim.dims<[u0]>>
  prim.bind "u0" = %count at_most n : tensor<si64>
  return %y : tensor<?xf32, #prim.dims<[u0]>>
}

// -----

func.func @no_size(%count: tensor<f32>) {
  // expected-error @below {{needs a scalar of type si64}}
  prim.bind "u0" = %count : tensor<f32>
  return
}

// -----

func.func @circular(%count: tensor<si64>) {
  // expected-error @below {{bounds the symbol by itself}}
  prim.bind "u0" = %count at_most 2*u0 : tensor<si64>
  return
}
