// Results are row-major. Images that convolutions write or read stay channels last, and are copied into them.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies=keeps-images=1 --ptc-assign-layouts | FileCheck %s
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts | FileCheck %s --check-prefix=INPLACE

// CHECK-LABEL: loop.program @written
// CHECK: %[[IMAGE:[0-9]+]] = loop.buffer : <[1, 24, 9, 8] x f32, <[0, 2, 3, 1]>>
// CHECK: loop.contraction
// CHECK: loop.store %{{.*}}, %[[IMAGE]]
// CHECK: loop.pointwise [1, 24, 9, 8]
// CHECK: loop.load %[[IMAGE]]
// INPLACE-LABEL: loop.program @written
// INPLACE-NOT: = loop.buffer :
// INPLACE-LABEL: loop.program @read
func.func @written(%x: tensor<1x9x8x16xf32>) -> tensor<1x24x9x8xf32> {
  %a = prim.weight <"a", "", 0, 13824> : tensor<24x16x3x3xf32>
  %t = prim.transpose %x, [0, 3, 1, 2] : tensor<1x9x8x16xf32> -> tensor<1x16x9x8xf32>
  %c = prim.convolution %t, %a strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x16x9x8xf32>, tensor<24x16x3x3xf32>) -> tensor<1x24x9x8xf32>
  return %c : tensor<1x24x9x8xf32>
}

// A result that another convolution reads by windows, which a pointwise node writes.
// CHECK-LABEL: loop.program @read
// CHECK: loop.pointwise
// CHECK: math.tanh
// CHECK: loop.store %{{.*}}, %[[READ:[0-9]+]]
// CHECK: loop.contraction
// CHECK: loop.load %[[READ]]
// CHECK: loop.load %[[READ]]
func.func @read(%x: tensor<1x9x8x16xf32>) -> (tensor<1x16x9x8xf32>, tensor<1x7x6x24xf32>) {
  %a = prim.weight <"a", "", 0, 13824> : tensor<24x16x3x3xf32>
  %t = prim.transpose %x, [0, 3, 1, 2] : tensor<1x9x8x16xf32> -> tensor<1x16x9x8xf32>
  %h = prim.tanh %t : tensor<1x16x9x8xf32>
  %c = prim.convolution %h, %a strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x16x9x8xf32>, tensor<24x16x3x3xf32>) -> tensor<1x24x7x6xf32>
  %y = prim.transpose %c, [0, 2, 3, 1] : tensor<1x24x7x6xf32> -> tensor<1x7x6x24xf32>
  return %h, %y : tensor<1x16x9x8xf32>, tensor<1x7x6x24xf32>
}

// 1 x 1 convolutions write channels first where it is wanted.
// CHECK-LABEL: loop.program @product
// CHECK-NOT: = loop.buffer :
func.func @product(%x: tensor<1x9x8x16xf32>) -> tensor<1x24x9x8xf32> {
  %a = prim.weight <"a", "", 0, 1536> : tensor<24x16x1x1xf32>
  %t = prim.transpose %x, [0, 3, 1, 2] : tensor<1x9x8x16xf32> -> tensor<1x16x9x8xf32>
  %c = prim.convolution %t, %a strides [1, 1] dilations [1, 1] low [0, 0] groups 1 : (tensor<1x16x9x8xf32>, tensor<24x16x1x1xf32>) -> tensor<1x24x9x8xf32>
  return %c : tensor<1x24x9x8xf32>
}

// So is one of groups, whose channels are columns of several.
// CHECK-LABEL: loop.program @grouped
// CHECK: %[[IMAGE:[0-9]+]] = loop.buffer : <[1, 64, 9, 8] x f32, <[0, 2, 3, 1]>>
// CHECK: loop.contraction
// CHECK: loop.store %{{.*}}, %[[IMAGE]]
// CHECK: loop.pointwise [1, 64, 9, 8]
// CHECK: loop.load %[[IMAGE]]
// INPLACE-LABEL: loop.program @grouped
// INPLACE-NOT: <[0, 2, 3, 1]>
func.func @grouped(%x: tensor<1x9x8x64xf32>) -> tensor<1x64x9x8xf32> {
  %a = prim.weight <"a", "", 0, 36864> : tensor<64x16x3x3xf32>
  %t = prim.transpose %x, [0, 3, 1, 2] : tensor<1x9x8x64xf32> -> tensor<1x64x9x8xf32>
  %c = prim.convolution %t, %a strides [1, 1] dilations [1, 1] low [1, 1] groups 4 : (tensor<1x64x9x8xf32>, tensor<64x16x3x3xf32>) -> tensor<1x64x9x8xf32>
  return %c : tensor<1x64x9x8xf32>
}
