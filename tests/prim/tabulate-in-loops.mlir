// A table of what a loop computes is one of the same bytes in all rounds.
// RUN: ptc-opt %s --ptc-tabulate-bytes | FileCheck %s

// CHECK-LABEL: @rounds
// CHECK:       prim.loop
// CHECK:         %[[TABLE:.*]] = prim.constant dense{{.*}} : tensor<256xui8>
// CHECK:         %[[Q:.*]] = prim.gather %[[TABLE]], %{{.*}}, 0
// CHECK:         prim.yield %[[Q]]
func.func @rounds(%q: tensor<5x64x64xui8>) -> tensor<5x64x64xui8> attributes {prim.symbols = {u0 = #prim.symbol<0, 4, divisor = 1, hint = 0>}} {
  %y = prim.loop "u0" below 5 states() over(%q) {
  ^bb0(%image: tensor<64x64xui8>):
    %scale = prim.constant dense<0.0625> : tensor<f32>
    %s = prim.broadcast %scale, [] : tensor<f32> -> tensor<64x64xf32>
    %0 = prim.convert %image : tensor<64x64xui8> -> tensor<64x64xf32>
    %1 = prim.mul %0, %s : tensor<64x64xf32>
    %2 = prim.sigmoid %1 : tensor<64x64xf32>
    %3 = prim.div %2, %s : tensor<64x64xf32>
    %4 = prim.convert %3 : tensor<64x64xf32> -> tensor<64x64xui8>
    prim.yield %4 : tensor<64x64xui8>
  } : (tensor<5x64x64xui8>) -> tensor<5x64x64xui8>
  return %y : tensor<5x64x64xui8>
}
