// RUN: ptc-opt %s -split-input-file -verify-diagnostics

func.func @endless(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{never ends: it has no trips, no limit and no condition}}
  %y = prim.loop "i" states(%x) over() {
  ^bb0(%state: tensor<f32>):
    prim.yield %state : tensor<f32>
  } : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}

// -----

func.func @scans(%x: tensor<4xf32>, %go: tensor<i1>) {
  // expected-error @below {{scans values without trips}}
  prim.loop "i" while %go states() over(%x) {
  ^bb0(%element: tensor<f32>):
    prim.yield %go : tensor<i1>
  } : (tensor<i1>, tensor<4xf32>) -> ()
  return
}

// -----

func.func @state(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{carries state 0 of type 'tensor<2xf32>' from 'tensor<2xf32>' over 'tensor<f32>' to 'tensor<2xf32>'}}
  %y = prim.loop "i" below 2 states(%x) over() {
  ^bb0(%state: tensor<2xf32>):
    %sum = prim.reduce sum %state, [0] : tensor<2xf32> -> tensor<f32>
    prim.yield %sum : tensor<f32>
  } : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func @rows(%x: tensor<f32>, %go: tensor<i1>) -> tensor<2xf32> {
  // expected-error @below {{stacks rows, but no symbol is bound to the number of rounds}}
  %y = prim.loop "i" below 2 while %go states() over() {
    prim.yield %go, %x : tensor<i1>, tensor<f32>
  } : (tensor<i1>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func @elements(%x: tensor<4x3xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{scans 'tensor<4x3xf32>' as 'tensor<4xf32>'}}
  %y = prim.loop "i" below 4 states() over(%x) {
  ^bb0(%element: tensor<4xf32>):
    prim.yield %element : tensor<4xf32>
  } : (tensor<4x3xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

func.func @counts(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{has 1 states, 0 scanned values and 1 results, its region 1 arguments and 2 values}}
  %y = prim.loop "i" below 4 states(%x) over() {
  ^bb0(%state: tensor<f32>):
    prim.yield %state, %state : tensor<f32>, tensor<f32>
  } : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
