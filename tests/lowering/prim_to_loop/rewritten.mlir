// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies | FileCheck %s

// What a loop goes on while is written by each round: a value that is read behind the loop, too, keeps its own memory.
// CHECK-LABEL: loop.program @condition
// CHECK: %[[FLAG:.+]] = loop.buffer : <[] x i1>
// CHECK: loop.if
// CHECK: %[[CONDITION:.+]] = loop.buffer : <[] x i1>
// CHECK: loop.load %[[FLAG]]
// CHECK-NEXT: loop.store %{{.+}}, %[[CONDITION]]
// CHECK: loop.repeat "u0" below 5 while %[[CONDITION]]
// CHECK: loop.load %[[FLAG]]
func.func @condition(%a: tensor<i1>, %b: tensor<i1>, %x: tensor<4xf32>) -> (tensor<?x4xf32, #prim.dims<[u1, 4]>>, tensor<i1>)
    attributes {prim.symbols = {}, prim.guards = []} {
  %four = prim.constant dense<4> : tensor<si64>
  %flag = prim.if %a then {
    prim.yield %b : tensor<i1>
  } else {
    prim.yield %a : tensor<i1>
  } : (tensor<i1>) -> tensor<i1>
  %rows = prim.loop "u0" below 5 while %flag binds "u1" states() over() {
    %round = prim.exprs [u0] : tensor<si64>
    %next = prim.lt %round, %four : tensor<si64>
    prim.yield %next, %x : tensor<i1>, tensor<4xf32>
  } : (tensor<i1>) -> tensor<?x4xf32, #prim.dims<[u1, 4]>>
  %not = prim.not %flag : tensor<i1>
  return %rows, %not : tensor<?x4xf32, #prim.dims<[u1, 4]>>, tensor<i1>
}
