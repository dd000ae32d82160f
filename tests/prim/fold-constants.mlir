// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-fold-constants))' | FileCheck %s
// RUN: ptc-opt %s --pass-pipeline='builtin.module(func.func(ptc-fold-constants{max-bytes=8}))' | FileCheck %s --check-prefix=SMALL

// Chains become one constant; nothing of them remains.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT: %[[C:.*]] = prim.constant dense<[-4.000000e+00, -5.000000e+00, -6.000000e+00]>
// CHECK-NEXT: prim.add %{{.*}}, %[[C]]
// SMALL-LABEL: func.func @chain
// SMALL: prim.neg
func.func @chain(%x: tensor<3xf32>) -> tensor<3xf32> {
  %a = prim.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %three = prim.constant dense<3.0> : tensor<f32>
  %b = prim.broadcast %three, [] : tensor<f32> -> tensor<3xf32>
  %sum = prim.add %a, %b : tensor<3xf32>
  %n = prim.neg %sum : tensor<3xf32>
  %y = prim.add %x, %n : tensor<3xf32>
  return %y : tensor<3xf32>
}

// A broadcast stays a view, of the folded value.
// CHECK-LABEL: func.func @view
// CHECK-NEXT: %[[C:.*]] = prim.constant dense<-2.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[B:.*]] = prim.broadcast %[[C]]
// CHECK-NEXT: prim.add %{{.*}}, %[[B]]
func.func @view(%x: tensor<3xf32>) -> tensor<3xf32> {
  %two = prim.constant dense<2.0> : tensor<f32>
  %n = prim.neg %two : tensor<f32>
  %b = prim.broadcast %n, [] : tensor<f32> -> tensor<3xf32>
  %y = prim.add %x, %b : tensor<3xf32>
  return %y : tensor<3xf32>
}

// Weights and their views stay references.
// CHECK-LABEL: func.func @weight
// CHECK-NEXT: prim.weight
// CHECK-NEXT: prim.transpose
// CHECK-NEXT: prim.add
func.func @weight(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = prim.weight <"w", "", 0, 24> : tensor<2x3xf32>
  %t = prim.transpose %w, [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  %y = prim.add %x, %t : tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// The branch that is taken is inlined, and folds on.
// CHECK-LABEL: func.func @branch
// CHECK-NEXT: %[[C:.*]] = prim.constant dense<-1.000000e+00> : tensor<f32>
// CHECK-NEXT: return %[[C]]
func.func @branch() -> tensor<f32> {
  %one = prim.constant dense<1.0> : tensor<f32>
  %two = prim.constant dense<2.0> : tensor<f32>
  %less = prim.lt %one, %two : tensor<f32>
  %y = prim.if %less then {
    %n = prim.neg %one : tensor<f32>
    prim.yield %n : tensor<f32>
  } else {
    prim.yield %two : tensor<f32>
  } : (tensor<i1>) -> tensor<f32>
  return %y : tensor<f32>
}

// An op that fails on its constants stays as it is, and so does one of dynamic dims.
// CHECK-LABEL: func.func @stays
// CHECK: prim.gather
// CHECK: prim.broadcast
func.func @stays() -> (tensor<1xf32>, tensor<?xf32, #prim.dims<[batch]>>) {
  %a = prim.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %i = prim.constant dense<2> : tensor<1xsi64>
  %g = prim.gather %a, %i, 0 : (tensor<2xf32>, tensor<1xsi64>) -> tensor<1xf32>
  %s = prim.constant dense<0.0> : tensor<f32>
  %b = prim.broadcast %s, [] : tensor<f32> -> tensor<?xf32, #prim.dims<[batch]>>
  return %g, %b : tensor<1xf32>, tensor<?xf32, #prim.dims<[batch]>>
}

// Words 0 and 1 of the vector that the authors of Philox 4x32-10 published for counter 0 and key 0.
// CHECK-LABEL: @philox
// CHECK: prim.constant dense<16242730742183356629> : tensor<ui64>
func.func @philox() -> tensor<ui64> {
  %zero = prim.constant dense<0> : tensor<ui64>
  %r = prim.philox %zero, %zero : tensor<ui64>
  return %r : tensor<ui64>
}

// CHECK-LABEL: @bitcast
// CHECK-DAG: prim.constant dense<[1065353216, -1073741824]> : tensor<2xsi32>
// CHECK-DAG: prim.constant dense<[0, 1]> : tensor<2xui8>
func.func @bitcast() -> (tensor<2xsi32>, tensor<2xui8>) {
  %x = prim.constant dense<[1.0, -2.0]> : tensor<2xf32>
  %b = prim.constant dense<[false, true]> : tensor<2xi1>
  %r = prim.bitcast %x : tensor<2xf32> -> tensor<2xsi32>
  %s = prim.bitcast %b : tensor<2xi1> -> tensor<2xui8>
  return %r, %s : tensor<2xsi32>, tensor<2xui8>
}
