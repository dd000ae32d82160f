// Cheap pointwise work is done where a product reads its rows, or packs bytes; what calls functions is not, nor what
// overlapping windows would compute several times.
// RUN: ptc-opt %s --split-input-file --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts \
// RUN:   --ptc-linearize-accesses --ptc-normalize-nodes --ptc-fuse-nodes | FileCheck %s

// CHECK-LABEL: loop.program @scaled
// CHECK:         loop.fused
// CHECK-NEXT:      loop.contraction [64, 16, 32]
// CHECK:             %[[X:.*]] = loop.load
// CHECK:             %[[P:.*]] = arith.mulf %[[X]]
// CHECK-NEXT:        loop.yield %[[P]]
// CHECK-NOT:     loop.fused
func.func @scaled(%x: tensor<64x32xf32>, %s: tensor<32xf32>, %w: tensor<32x16xf32>) -> tensor<64x16xf32> {
  %b = prim.broadcast %s, [1] : tensor<32xf32> -> tensor<64x32xf32>
  %p = prim.mul %x, %b : tensor<64x32xf32>
  %y = prim.matmul %p, %w : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>
  return %y : tensor<64x16xf32>
}

// -----

// CHECK-LABEL: loop.program @exponential
// CHECK:         loop.fused
// CHECK:           math.exp
// CHECK:         loop.fused
// CHECK-NEXT:      loop.contraction
func.func @exponential(%x: tensor<64x32xf32>, %w: tensor<32x16xf32>) -> tensor<64x16xf32> {
  %p = prim.exp %x : tensor<64x32xf32>
  %y = prim.matmul %p, %w : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>
  return %y : tensor<64x16xf32>
}

// -----

// CHECK-LABEL: loop.program @windows
// CHECK:         loop.fused
// CHECK-NEXT:      loop.pointwise
// CHECK:         loop.fused
// CHECK-NEXT:      loop.contraction
func.func @windows(%x: tensor<1x8x9x9xf32>, %s: tensor<1x8x9x9xf32>, %w: tensor<16x8x3x3xf32>) -> tensor<1x16x7x7xf32> {
  %p = prim.mul %x, %s : tensor<1x8x9x9xf32>
  %y = prim.convolution %p, %w strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x8x9x9xf32>, tensor<16x8x3x3xf32>) -> tensor<1x16x7x7xf32>
  return %y : tensor<1x16x7x7xf32>
}

// -----

// A scale that differs between images: the product's rows are split into images and pixels for it.
// CHECK-LABEL: loop.program @images
// CHECK:         loop.fused
// CHECK-NEXT:      loop.contraction [batch, 64, 16, 8] batch 0 m 2 n 1 k 1
// CHECK-DAG:         loop.load %{{.*}} [512*d0 + 8*d1 + d3]
// CHECK-DAG:         loop.load %{{.*}} [8*d0 + d3]
// CHECK-NOT:     loop.fused
#image = #prim.dims<[batch, 64, 8]>
#scale = #prim.dims<[batch, 8]>
#out = #prim.dims<[batch, 64, 16]>
func.func @images(%x: tensor<?x64x8xf32, #image>, %s: tensor<?x8xf32, #scale>, %w: tensor<8x16xf32>) -> tensor<?x64x16xf32, #out>
    attributes {prim.symbols = {batch = #prim.symbol<1, 64, divisor = 1, hint = 4>}} {
  %b = prim.broadcast %s, [0, 2] : tensor<?x8xf32, #scale> -> tensor<?x64x8xf32, #image>
  %p = prim.mul %x, %b : tensor<?x64x8xf32, #image>
  %y = prim.matmul %p, %w : (tensor<?x64x8xf32, #image>, tensor<8x16xf32>) -> tensor<?x64x16xf32, #out>
  return %y : tensor<?x64x16xf32, #out>
}

// -----

// A result of the function is stored, whoever else reads it.
// CHECK-LABEL: loop.program @result
// CHECK:         loop.fused
// CHECK-NEXT:      loop.pointwise
// CHECK:         loop.fused
// CHECK-NEXT:      loop.contraction
func.func @result(%x: tensor<64x32xf32>, %s: tensor<64x32xf32>, %w: tensor<32x16xf32>) -> (tensor<64x16xf32>, tensor<64x32xf32>) {
  %p = prim.mul %x, %s : tensor<64x32xf32>
  %y = prim.matmul %p, %w : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>
  return %y, %p : tensor<64x16xf32>, tensor<64x32xf32>
}

// -----

// CHECK-LABEL: loop.program @bytes
// CHECK:         loop.fused
// CHECK-NEXT:      loop.contraction [64, 48, 32]
// CHECK:           } rhs {
// CHECK:             arith.xori
// CHECK-NOT:     loop.fused
func.func @bytes(%x: tensor<64x32xui8>, %w: tensor<32x48xsi8>, %c: tensor<si8>) -> tensor<64x48xsi32> {
  %b = prim.broadcast %c, [] : tensor<si8> -> tensor<32x48xsi8>
  %f = prim.xor %w, %b : tensor<32x48xsi8>
  %u = prim.convert %x : tensor<64x32xui8> -> tensor<64x32xsi32>
  %s = prim.convert %f : tensor<32x48xsi8> -> tensor<32x48xsi32>
  %y = prim.matmul %u, %s : (tensor<64x32xsi32>, tensor<32x48xsi32>) -> tensor<64x48xsi32>
  return %y : tensor<64x48xsi32>
}
