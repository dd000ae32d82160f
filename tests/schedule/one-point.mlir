// A softmax over all elements: nodes that keep no dim run as one kernel where they are small whatever the sizes, and as
// one each where they may be large, whatever the hints say.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts --ptc-pack-weights \
// RUN:   --ptc-linearize-accesses --ptc-normalize-nodes --ptc-fuse-nodes --ptc-outline-kernels | FileCheck %s

// CHECK-LABEL: loop.program @small
// CHECK:         loop.launch
// CHECK-NOT:     loop.launch
// CHECK-LABEL: loop.program @large
// CHECK-COUNT-3: loop.launch
func.func @small(%x: tensor<1x768xf32>) -> tensor<1x768xf32> {
  %max = prim.reduce max %x, [1] : tensor<1x768xf32> -> tensor<1xf32>
  %maxs = prim.broadcast %max, [0] : tensor<1xf32> -> tensor<1x768xf32>
  %s = prim.sub %x, %maxs : tensor<1x768xf32>
  %e = prim.exp %s : tensor<1x768xf32>
  %sum = prim.reduce sum %e, [1] : tensor<1x768xf32> -> tensor<1xf32>
  %sums = prim.broadcast %sum, [0] : tensor<1xf32> -> tensor<1x768xf32>
  %d = prim.div %e, %sums : tensor<1x768xf32>
  return %d : tensor<1x768xf32>
}

#n = #prim.dims<[1, n]>
func.func @large(%x: tensor<1x?xf32, #n>) -> tensor<1x?xf32, #n>
    attributes {prim.symbols = {n = #prim.symbol<1, 1000000, divisor = 1, hint = 8>}} {
  %max = prim.reduce max %x, [1] : tensor<1x?xf32, #n> -> tensor<1xf32>
  %maxs = prim.broadcast %max, [0] : tensor<1xf32> -> tensor<1x?xf32, #n>
  %s = prim.sub %x, %maxs : tensor<1x?xf32, #n>
  %e = prim.exp %s : tensor<1x?xf32, #n>
  %sum = prim.reduce sum %e, [1] : tensor<1x?xf32, #n> -> tensor<1xf32>
  %sums = prim.broadcast %sum, [0] : tensor<1xf32> -> tensor<1x?xf32, #n>
  %d = prim.div %e, %sums : tensor<1x?xf32, #n>
  return %d : tensor<1x?xf32, #n>
}
