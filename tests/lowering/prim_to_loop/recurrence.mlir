// A counted loop over a body without control flow is one recurrence; states turn, rows are stored where they stay.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts | FileCheck %s
// RUN: ptc-opt %s --ptc-lower-prim-to-loop=recurrences=false | FileCheck %s --check-prefix=REPEAT
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts --ptc-linearize-accesses \
// RUN:   --ptc-normalize-nodes --ptc-fuse-nodes --ptc-outline-kernels | FileCheck %s --check-prefix=KERNEL

// REPEAT: loop.repeat "i" below seq
// REPEAT-NOT: loop.recurrence

// The last state goes straight to the result; without a step it is the first one.
// CHECK-LABEL: loop.program @cell
// CHECK: loop.recurrence seq from %arg1 : {{.*}} by %{{.*}} : {{.*}} to %arg3
// CHECK-NEXT: ^bb0(%[[NOW:.*]]: !loop.buffer<[2, 16] x f32, <[0, 1]>>, %[[NEXT:.*]]: !loop.buffer<[2, 16] x f32, <[0, 1]>>):
// CHECK: loop.contraction [2, 16, 16] batch 0 m 1 n 1 k 1 lhs {
// CHECK-NEXT: loop.load %[[NOW]] [d0, d2]
// CHECK: loop.pointwise [2, 16]
// CHECK: loop.load %arg0 [t$, d0, d1]
// CHECK: math.tanh
// CHECK: loop.store %{{.*}}, %arg4 [t$, d0, d1]
// CHECK: } otherwise {
// CHECK: loop.load %arg1
// CHECK: loop.store %{{.*}}, %arg3

// All of it is one kernel and one launch; the pointwise work is in the product's epilogue.
// KERNEL: loop.kernel @recurrence_
// KERNEL-SAME: symbols = ["s0"]
// KERNEL: loop.recurrence s0
// KERNEL: loop.fused parallel 0
// KERNEL: epilogue
// KERNEL: math.tanh
// KERNEL: loop.store %{{.*}} [16*d0 + d1]
// KERNEL: loop.store %{{.*}} [16*d0 + d1 + 32*t$]
// KERNEL: otherwise
// KERNEL: loop.program @cell
// KERNEL-COUNT-1: loop.launch
// KERNEL-NOT: loop.launch
func.func @cell(%x: tensor<?x2x16xf32, #prim.dims<[seq, 2, 16]>>, %h: tensor<2x16xf32>, %r: tensor<16x16xf32>)
    -> (tensor<2x16xf32>, tensor<?x2x16xf32, #prim.dims<[seq, 2, 16]>>) attributes {prim.symbols = {seq = #prim.symbol<0, 64, divisor = 1, hint = 4>}} {
  %last, %rows = prim.loop "i" below seq states(%h) over(%x) {
  ^bb0(%state: tensor<2x16xf32>, %element: tensor<2x16xf32>):
    %product = prim.matmul %state, %r : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
    %sum = prim.add %product, %element : tensor<2x16xf32>
    %next = prim.tanh %sum : tensor<2x16xf32>
    prim.yield %next, %next : tensor<2x16xf32>, tensor<2x16xf32>
  } : (tensor<2x16xf32>, tensor<?x2x16xf32, #prim.dims<[seq, 2, 16]>>) -> (tensor<2x16xf32>, tensor<?x2x16xf32, #prim.dims<[seq, 2, 16]>>)
  return %last, %rows : tensor<2x16xf32>, tensor<?x2x16xf32, #prim.dims<[seq, 2, 16]>>
}
