// RUN: ptc-opt %s -split-input-file -verify-diagnostics

func.func @unknown(%x: tensor<2x!prim.string>) {
  // expected-error @+1 {{has no such function: string_reverse}}
  %y = prim.call "string_reverse"(%x) [2] : (tensor<2x!prim.string>) -> tensor<2x!prim.string>
  return
}

// -----

func.func @operands(%x: tensor<2x!prim.string>) {
  // expected-error @+1 {{takes other operands, numbers or results}}
  %y = prim.call "string_equal"(%x) [2] : (tensor<2x!prim.string>) -> tensor<2xi1>
  return
}

// -----

func.func @numbers(%x: tensor<2x!prim.string>) {
  // expected-error @+1 {{takes other operands, numbers or results}}
  %y = prim.call "string_equal"(%x, %x) [] : (tensor<2x!prim.string>, tensor<2x!prim.string>) -> tensor<2xi1>
  return
}
