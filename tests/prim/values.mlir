// RUN: ptc-opt %s | ptc-opt | FileCheck %s

// Strings and sequences are element types; what looks inside is a call.

// CHECK-LABEL: func.func @strings
func.func @strings(%x: tensor<?x!prim.string, #prim.dims<[n]>>) -> tensor<?xi1, #prim.dims<[n]>> attributes {prim.symbols = {n = #prim.symbol<0, 9, divisor = 1, hint = 4>}} {
  // CHECK: prim.constant dense<["a", "b"]> : tensor<2x!prim.string>
  %keys = prim.constant dense<["a", "b"]> : tensor<2x!prim.string>
  // CHECK: prim.call "string_lookup"(%{{.*}}, %{{.*}}) [n, 2] : (tensor<?x!prim.string, #prim.dims<[n]>>, tensor<2x!prim.string>) -> tensor<?xsi64, #prim.dims<[n]>>
  %place = prim.call "string_lookup"(%x, %keys) [n, 2] : (tensor<?x!prim.string, #prim.dims<[n]>>, tensor<2x!prim.string>) -> tensor<?xsi64, #prim.dims<[n]>>
  %known = prim.call "string_equal"(%x, %x) [n] : (tensor<?x!prim.string, #prim.dims<[n]>>, tensor<?x!prim.string, #prim.dims<[n]>>) -> tensor<?xi1, #prim.dims<[n]>>
  return %known : tensor<?xi1, #prim.dims<[n]>>
}

// CHECK-LABEL: func.func @sequences
func.func @sequences(%x: tensor<3xf32>, %maybe: tensor<!prim.sequence<tensor<?x2xf32>, true>>) -> tensor<!prim.sequence<tensor<*xf32>, false>> {
  // CHECK: prim.call "sequence_construct"(%{{.*}}) [1, 544, 1, 3] : (tensor<3xf32>) -> tensor<!prim.sequence<tensor<3xf32>, false>>
  %s = prim.call "sequence_construct"(%x) [1, 544, 1, 3] : (tensor<3xf32>) -> tensor<!prim.sequence<tensor<3xf32>, false>>
  // CHECK: prim.bitcast
  %any = prim.bitcast %s : tensor<!prim.sequence<tensor<3xf32>, false>> -> tensor<!prim.sequence<tensor<*xf32>, false>>
  return %any : tensor<!prim.sequence<tensor<*xf32>, false>>
}
