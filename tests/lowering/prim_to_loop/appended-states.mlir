// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies | FileCheck %s

// What each round puts behind a state is written where it stays; nothing of the state is copied.
// CHECK-LABEL: loop.program @bounded
// CHECK: %[[WHOLE:.+]] = loop.buffer : <[m + n, 4] x f32, <[0, 1]>>
// CHECK: loop.repeat
// CHECK: %[[STATE:.+]] = loop.part %[[WHOLE]] from 0 : {{.+}} -> <[u1, 4]
// CHECK: %[[ROW:.+]] = loop.part %[[WHOLE]] from 4*u1 : {{.+}} -> <[1, 4]
// CHECK: loop.load %[[STATE]]
// CHECK-NOT: loop.load %[[STATE]]
// CHECK: loop.store %{{.+}}, %[[ROW]] [0, d0]
// CHECK: loop.part %[[WHOLE]] from 0 : {{.+}} -> <[u2, 4]
func.func @bounded(%x: tensor<?x4xf32, #prim.dims<[n, 4]>>, %z: tensor<?xf32, #prim.dims<[m]>>)
    -> tensor<?x4xf32, #prim.dims<[u2, 4]>> attributes {prim.symbols = {
    n = #prim.symbol<0, 64, divisor = 1, hint = 4>, m = #prim.symbol<0, 64, divisor = 1, hint = 4>,
    u1 = #prim.symbol<0, 128, divisor = 1, hint = 4>, u2 = #prim.symbol<0, 128, divisor = 1, hint = 4>}, prim.guards = []} {
  %y = prim.loop "u0" below m carries [#prim.carried<"u1" = <n> then <u1 + 1>, finally "u2", at_most <n + m>>] states(%x) over() {
  ^bb0(%s: tensor<?x4xf32, #prim.dims<[u1, 4]>>):
    %sum = prim.reduce sum %s, [0] : tensor<?x4xf32, #prim.dims<[u1, 4]>> -> tensor<4xf32>
    %row = prim.broadcast %sum, [1] : tensor<4xf32> -> tensor<1x4xf32>
    %t = prim.concat %s, %row axis 0 : (tensor<?x4xf32, #prim.dims<[u1, 4]>>, tensor<1x4xf32>) -> tensor<?x4xf32, #prim.dims<[u1 + 1, 4]>>
    prim.yield %t : tensor<?x4xf32, #prim.dims<[u1 + 1, 4]>>
  } : (tensor<?x4xf32, #prim.dims<[n, 4]>>) -> tensor<?x4xf32, #prim.dims<[u2, 4]>>
  return %y : tensor<?x4xf32, #prim.dims<[u2, 4]>>
}

// Without bounds the memory grows first, and keeps what it holds.
// CHECK-LABEL: loop.program @unbounded
// CHECK: %[[WHOLE:.+]] = loop.buffer : <[n, 4] x f32, <[0, 1]>>
// CHECK: loop.repeat
// CHECK: loop.regrow %[[WHOLE]] keeps bytes 16*n + 16*u1
// CHECK: %[[LONGER:.+]] = loop.part %[[WHOLE]] from 0 : {{.+}} -> <[n + u1, 4]
// CHECK: %[[ROWS:.+]] = loop.part %[[LONGER]] from 4*u1
// CHECK: loop.store %{{.+}}, %[[ROWS]] [d0, d1]
// CHECK: loop.load %{{.+}} []
// CHECK: loop.part %[[WHOLE]] from 0 : {{.+}} -> <[u2, 4]
func.func @unbounded(%x: tensor<?x4xf32, #prim.dims<[n, 4]>>, %go: tensor<i1>)
    -> tensor<?x4xf32, #prim.dims<[u2, 4]>> attributes {prim.symbols = {
    n = #prim.symbol<0, 64, divisor = 1, hint = 4>, u1 = #prim.symbol<0, 128, divisor = 1, hint = 4>,
    u2 = #prim.symbol<0, 128, divisor = 1, hint = 4>}, prim.guards = []} {
  %y = prim.loop "u0" while %go carries [#prim.carried<"u1" = <n> then <u1 + n>, finally "u2">] states(%x) over() {
  ^bb0(%s: tensor<?x4xf32, #prim.dims<[u1, 4]>>):
    %t = prim.concat %s, %x axis 0 : (tensor<?x4xf32, #prim.dims<[u1, 4]>>, tensor<?x4xf32, #prim.dims<[n, 4]>>) -> tensor<?x4xf32, #prim.dims<[n + u1, 4]>>
    prim.yield %go, %t : tensor<i1>, tensor<?x4xf32, #prim.dims<[n + u1, 4]>>
  } : (tensor<i1>, tensor<?x4xf32, #prim.dims<[n, 4]>>) -> tensor<?x4xf32, #prim.dims<[u2, 4]>>
  return %y : tensor<?x4xf32, #prim.dims<[u2, 4]>>
}

// Halves: rows of a batch do not lie behind all others, and what somebody reads at once is no state's memory.
// CHECK-LABEL: loop.program @halves
// CHECK: loop.repeat
// CHECK-DAG: loop.part %[[A:.+]] from {{.*}}mod(u0 + 1, 2)
// CHECK-DAG: loop.part %[[B:.+]] from {{.*}}mod(u0 + 1, 2)
func.func @halves(%x: tensor<2x?xf32, #prim.dims<[2, n]>>, %z: tensor<?xf32, #prim.dims<[m]>>)
    -> (tensor<2x?xf32, #prim.dims<[2, u2]>>, tensor<?xf32, #prim.dims<[u4]>>, tensor<?xf32, #prim.dims<[m]>>) attributes {prim.symbols = {
    n = #prim.symbol<0, 64, divisor = 1, hint = 4>, m = #prim.symbol<0, 64, divisor = 1, hint = 4>,
    u1 = #prim.symbol<0, 4096, divisor = 1, hint = 4>, u2 = #prim.symbol<0, 4096, divisor = 1, hint = 4>,
    u3 = #prim.symbol<0, 4096, divisor = 1, hint = 4>, u4 = #prim.symbol<0, 4096, divisor = 1, hint = 4>}, prim.guards = []} {
  %a, %b, %sums = prim.loop "u0" below m carries [#prim.carried<"u1" = <n> then <u1 + n>, finally "u2", at_most <n*m + n>>,
      #prim.carried<"u3" = <m> then <u3 + m>, finally "u4", at_most <m*m + m>>] states(%x, %z) over() {
  ^bb0(%s: tensor<2x?xf32, #prim.dims<[2, u1]>>, %t: tensor<?xf32, #prim.dims<[u3]>>):
    %s2 = prim.concat %s, %x axis 1 : (tensor<2x?xf32, #prim.dims<[2, u1]>>, tensor<2x?xf32, #prim.dims<[2, n]>>) -> tensor<2x?xf32, #prim.dims<[2, n + u1]>>
    %t2 = prim.concat %t, %z axis 0 : (tensor<?xf32, #prim.dims<[u3]>>, tensor<?xf32, #prim.dims<[m]>>) -> tensor<?xf32, #prim.dims<[m + u3]>>
    %sum = prim.reduce sum %t2, [0] : tensor<?xf32, #prim.dims<[m + u3]>> -> tensor<f32>
    prim.yield %s2, %t2, %sum : tensor<2x?xf32, #prim.dims<[2, n + u1]>>, tensor<?xf32, #prim.dims<[m + u3]>>, tensor<f32>
  } : (tensor<2x?xf32, #prim.dims<[2, n]>>, tensor<?xf32, #prim.dims<[m]>>) -> (tensor<2x?xf32, #prim.dims<[2, u2]>>, tensor<?xf32, #prim.dims<[u4]>>, tensor<?xf32, #prim.dims<[m]>>)
  return %a, %b, %sums : tensor<2x?xf32, #prim.dims<[2, u2]>>, tensor<?xf32, #prim.dims<[u4]>>, tensor<?xf32, #prim.dims<[m]>>
}
