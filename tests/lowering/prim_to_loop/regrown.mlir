// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies | FileCheck %s

// What holds a result of unknown size makes room for it and keeps nothing of what it held: a state that each round
// computes again, of a buffer of its own, and what the branches of an If give. (appended-states.mlir: what keeps it.)
// CHECK-LABEL: loop.program @state
// CHECK: %[[WHOLE:.+]] = loop.buffer : <[n] x f32, <[0]>>
// CHECK: loop.repeat
// CHECK: loop.regrow %[[WHOLE]] bytes 4*n + 4*u1 :
// CHECK-NOT: loop.regrow
func.func @state(%x: tensor<?xf32, #prim.dims<[n]>>, %go: tensor<i1>) -> tensor<?xf32, #prim.dims<[u2]>> attributes {prim.symbols = {
    n = #prim.symbol<0, 64, divisor = 1, hint = 4>, u1 = #prim.symbol<0, 128, divisor = 1, hint = 4>,
    u2 = #prim.symbol<0, 128, divisor = 1, hint = 4>}, prim.guards = []} {
  %y = prim.loop "u0" while %go carries [#prim.carried<"u1" = <n> then <u1 + n>, finally "u2">] states(%x) over() {
  ^bb0(%s: tensor<?xf32, #prim.dims<[u1]>>):
    %t = prim.concat %s, %x axis 0 : (tensor<?xf32, #prim.dims<[u1]>>, tensor<?xf32, #prim.dims<[n]>>) -> tensor<?xf32, #prim.dims<[n + u1]>>
    %u = prim.neg %t : tensor<?xf32, #prim.dims<[n + u1]>>
    prim.yield %go, %u : tensor<i1>, tensor<?xf32, #prim.dims<[n + u1]>>
  } : (tensor<i1>, tensor<?xf32, #prim.dims<[n]>>) -> tensor<?xf32, #prim.dims<[u2]>>
  return %y : tensor<?xf32, #prim.dims<[u2]>>
}

// CHECK-LABEL: loop.program @branches
// CHECK: %[[WHOLE:.+]] = loop.buffer : <[0] x f32, <[0]>>
// CHECK: loop.if
// CHECK: loop.regrow %[[WHOLE]] bytes 4*n + 4*u1 :
// CHECK: } else {
// CHECK: loop.regrow %[[WHOLE]] bytes 4*n :
func.func @branches(%k: tensor<si64>, %x: tensor<?xf32, #prim.dims<[n]>>, %flag: tensor<i1>) -> tensor<?xf32, #prim.dims<[u2]>> attributes {prim.symbols = {
    n = #prim.symbol<1, 64, divisor = 1, hint = 4>, u1 = #prim.symbol<0, 64, divisor = 1, hint = 4>,
    u2 = #prim.symbol<1, 128, divisor = 1, hint = 4>}, prim.guards = []} {
  prim.bind "u1" = %k : tensor<si64>
  %r = prim.iota 0 : tensor<?xf32, #prim.dims<[u1]>>
  %y = prim.if %flag joins [#prim.joined<"u2" = <n + u1> or <n>>] then {
    %p = prim.concat %x, %r axis 0 : (tensor<?xf32, #prim.dims<[n]>>, tensor<?xf32, #prim.dims<[u1]>>) -> tensor<?xf32, #prim.dims<[n + u1]>>
    prim.yield %p : tensor<?xf32, #prim.dims<[n + u1]>>
  } else {
    %s = prim.neg %x : tensor<?xf32, #prim.dims<[n]>>
    prim.yield %s : tensor<?xf32, #prim.dims<[n]>>
  } : (tensor<i1>) -> tensor<?xf32, #prim.dims<[u2]>>
  return %y : tensor<?xf32, #prim.dims<[u2]>>
}
