// RUN: ptc-opt %s | ptc-opt | FileCheck %s

// A scan: trips that the entry knows, one state, one scanned value, rows.
// CHECK-LABEL: func.func @scan
// CHECK: prim.loop "i" below seq states(%arg1) over(%arg0) {
// CHECK-NEXT: ^bb0(%{{.*}}: tensor<3xf32>, %{{.*}}: tensor<3xf32>):
func.func @scan(%x: tensor<?x3xf32, #prim.dims<[seq, 3]>>, %h: tensor<3xf32>)
    -> (tensor<3xf32>, tensor<?x3xf32, #prim.dims<[seq, 3]>>) {
  %last, %rows = prim.loop "i" below seq states(%h) over(%x) {
  ^bb0(%state: tensor<3xf32>, %element: tensor<3xf32>):
    %sum = prim.add %state, %element : tensor<3xf32>
    prim.yield %sum, %sum : tensor<3xf32>, tensor<3xf32>
  } : (tensor<3xf32>, tensor<?x3xf32, #prim.dims<[seq, 3]>>) -> (tensor<3xf32>, tensor<?x3xf32, #prim.dims<[seq, 3]>>)
  return %last, %rows : tensor<3xf32>, tensor<?x3xf32, #prim.dims<[seq, 3]>>
}

// A loop that its condition ends; how many rows it leaves, a symbol says.
// CHECK-LABEL: func.func @while
// CHECK: prim.loop "i" limit %arg2 while %arg1 binds "rounds" states(%arg0) over() {
func.func @while(%x: tensor<f32>, %go: tensor<i1>, %limit: tensor<si64>) -> tensor<f32> {
  %last, %rows = prim.loop "i" limit %limit while %go binds "rounds" states(%x) over() {
  ^bb0(%state: tensor<f32>):
    %next = prim.mul %state, %state : tensor<f32>
    %less = prim.lt %next, %x : tensor<f32>
    prim.yield %less, %next, %next : tensor<i1>, tensor<f32>, tensor<f32>
  } : (tensor<si64>, tensor<i1>, tensor<f32>) -> (tensor<f32>, tensor<?xf32, #prim.dims<[rounds]>>)
  %y = prim.reduce sum %rows, [0] : tensor<?xf32, #prim.dims<[rounds]>> -> tensor<f32>
  return %y : tensor<f32>
}

// A state that grows by a row in each round.
// CHECK-LABEL: func.func @grow
// CHECK: prim.loop "i" below 3 carries [#prim.carried<"n" = <1> then <n + 1>, finally "m">] states(%arg0) over() {
func.func @grow(%x: tensor<1x2xf32>) -> tensor<?x2xf32, #prim.dims<[m, 2]>> {
  %y = prim.loop "i" below 3 carries [#prim.carried<"n" = <1> then <n + 1>, finally "m">] states(%x) over() {
  ^bb0(%state: tensor<?x2xf32, #prim.dims<[n, 2]>>):
    %next = prim.concat %state, %x axis 0 : (tensor<?x2xf32, #prim.dims<[n, 2]>>, tensor<1x2xf32>) -> tensor<?x2xf32, #prim.dims<[n + 1, 2]>>
    prim.yield %next : tensor<?x2xf32, #prim.dims<[n + 1, 2]>>
  } : (tensor<1x2xf32>) -> tensor<?x2xf32, #prim.dims<[m, 2]>>
  return %y : tensor<?x2xf32, #prim.dims<[m, 2]>>
}
