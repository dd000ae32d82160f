// A product with its bias and the softmax behind its rows are one kernel; rows between the nodes are the kernel's own.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts --ptc-pack-weights \
// RUN:   --ptc-linearize-accesses --ptc-normalize-nodes --ptc-fuse-nodes --ptc-outline-kernels | FileCheck %s

// CHECK-LABEL: loop.kernel @contraction_
// CHECK-SAME:    parallel = 1
// CHECK-DAG:     loop.buffer : <[1] x f32, <[0]>>
// CHECK-DAG:     loop.buffer : <[32] x f32, <[0]>>
// CHECK:         loop.panels
// CHECK:         epilogue
// CHECK:           arith.addf
// CHECK:           loop.store
// CHECK:         loop.reduce max
// CHECK:         math.exp
// CHECK:         loop.reduce sum
// CHECK:         arith.divf
// CHECK-NOT:   loop.kernel
// CHECK-LABEL: loop.program @mlp
// CHECK:         loop.launch
// CHECK-NOT:     loop.launch
#wide = #prim.dims<[batch, 64]>
#out = #prim.dims<[batch, 32]>
#row = #prim.dims<[batch]>
func.func @mlp(%x: tensor<?x64xf32, #wide>) -> tensor<?x32xf32, #out>
    attributes {prim.symbols = {batch = #prim.symbol<1, 1024, divisor = 1, hint = 8>}} {
  %w = prim.weight <"w", "", 100, 8192> : tensor<64x32xf32>
  %b = prim.weight <"b", "", 10000, 128> : tensor<32xf32>
  %m = prim.matmul %x, %w : (tensor<?x64xf32, #wide>, tensor<64x32xf32>) -> tensor<?x32xf32, #out>
  %bb = prim.broadcast %b, [1] : tensor<32xf32> -> tensor<?x32xf32, #out>
  %a = prim.add %m, %bb : tensor<?x32xf32, #out>
  %mx = prim.reduce max %a, [1] : tensor<?x32xf32, #out> -> tensor<?xf32, #row>
  %mb = prim.broadcast %mx, [0] : tensor<?xf32, #row> -> tensor<?x32xf32, #out>
  %s = prim.sub %a, %mb : tensor<?x32xf32, #out>
  %e = prim.exp %s : tensor<?x32xf32, #out>
  %sum = prim.reduce sum %e, [1] : tensor<?x32xf32, #out> -> tensor<?xf32, #row>
  %sb = prim.broadcast %sum, [0] : tensor<?xf32, #row> -> tensor<?x32xf32, #out>
  %d = prim.div %e, %sb : tensor<?x32xf32, #out>
  return %d : tensor<?x32xf32, #out>
}
