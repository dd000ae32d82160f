// Columns that are several dims of a weight, which do not follow each other in memory, are packed by the digits of
// their numbers, as those of a transposed convolution's phases.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-assign-layouts --ptc-pack-weights | FileCheck %s

// (phases, out) with whole panels of channels: no panel has a limit.
// CHECK-LABEL: loop.program @phases_first
// CHECK:         loop.weight <"w", "", 0, 49152> recipe <extents = [2, 2, 2, 2, 2, 24, 16], strides = [4, 1, 256, -8, -2, 512, 16], offset = 10, panel = -1, lane = -1, limit = 0>
// CHECK:         loop.contraction [1, 9, 9, 128, 2, 2, 24] batch 0 m 3 n 1 k 3
// CHECK:           loop.panels
func.func @phases_first(%x: tensor<1x24x8x8xf32>) -> tensor<1x128x9x9xf32> {
  %w = prim.weight <"w", "", 0, 49152> : tensor<24x32x4x4xf32>
  %split = prim.reshape %w : tensor<24x32x4x4xf32> -> tensor<24x32x2x2x2x2xf32>
  %turned = prim.slice %split [0, 0, 1, 0, 1, 0], [1, 1, -1, 1, -1, 1] : tensor<24x32x2x2x2x2xf32> -> tensor<24x32x2x2x2x2xf32>
  %order = prim.transpose %turned, [3, 5, 1, 0, 2, 4] : tensor<24x32x2x2x2x2xf32> -> tensor<2x2x32x24x2x2xf32>
  %k = prim.reshape %order : tensor<2x2x32x24x2x2xf32> -> tensor<128x24x2x2xf32>
  %y = prim.convolution %x, %k strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x24x8x8xf32>, tensor<128x24x2x2xf32>) -> tensor<1x128x9x9xf32>
  return %y : tensor<1x128x9x9xf32>
}

// (out, phases) of five channels: four phases of four channels fill a panel, of which the last has one.
// CHECK-LABEL: loop.program @out_first
// CHECK:         loop.weight <"w", "", 0, 7680> recipe <extents = [2, 2, 2, 24, 4, 2, 2], strides = [64, -8, -2, 80, 16, 4, 1], offset = 10, panel = 0, lane = 4, limit = 5>
// CHECK:         loop.contraction [1, 9, 9, 20, 2, 2, 24] batch 0 m 3 n 1 k 3
// CHECK:           loop.panels
func.func @out_first(%x: tensor<1x24x8x8xf32>) -> tensor<1x20x9x9xf32> {
  %w = prim.weight <"w", "", 0, 7680> : tensor<24x5x4x4xf32>
  %split = prim.reshape %w : tensor<24x5x4x4xf32> -> tensor<24x5x2x2x2x2xf32>
  %turned = prim.slice %split [0, 0, 1, 0, 1, 0], [1, 1, -1, 1, -1, 1] : tensor<24x5x2x2x2x2xf32> -> tensor<24x5x2x2x2x2xf32>
  %order = prim.transpose %turned, [1, 3, 5, 0, 2, 4] : tensor<24x5x2x2x2x2xf32> -> tensor<5x2x2x24x2x2xf32>
  %k = prim.reshape %order : tensor<5x2x2x24x2x2xf32> -> tensor<20x24x2x2xf32>
  %y = prim.convolution %x, %k strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x24x8x8xf32>, tensor<20x24x2x2xf32>) -> tensor<1x20x9x9xf32>
  return %y : tensor<1x20x9x9xf32>
}

// Panels that would end among the channels of a phase: the weight is one more operand.
// CHECK-LABEL: loop.program @neither
// CHECK:         loop.contraction [1, 9, 9, 20, 2, 2, 24] batch 0 m 3 n 1 k 3
// CHECK-NOT:       loop.panels
// CHECK:           loop.store
func.func @neither(%x: tensor<1x24x8x8xf32>) -> tensor<1x20x9x9xf32> {
  %w = prim.weight <"w", "", 0, 7680> : tensor<24x5x4x4xf32>
  %split = prim.reshape %w : tensor<24x5x4x4xf32> -> tensor<24x5x2x2x2x2xf32>
  %turned = prim.slice %split [0, 0, 1, 0, 1, 0], [1, 1, -1, 1, -1, 1] : tensor<24x5x2x2x2x2xf32> -> tensor<24x5x2x2x2x2xf32>
  %order = prim.transpose %turned, [3, 5, 1, 0, 2, 4] : tensor<24x5x2x2x2x2xf32> -> tensor<2x2x5x24x2x2xf32>
  %k = prim.reshape %order : tensor<2x2x5x24x2x2xf32> -> tensor<20x24x2x2xf32>
  %y = prim.convolution %x, %k strides [1, 1] dilations [1, 1] low [1, 1] groups 1 : (tensor<1x24x8x8xf32>, tensor<20x24x2x2xf32>) -> tensor<1x20x9x9xf32>
  return %y : tensor<1x20x9x9xf32>
}
