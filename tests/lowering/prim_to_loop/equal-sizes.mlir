// Sizes that guards make equal keep a reshape's dims apart: no element's place takes a division.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop | FileCheck %s

// CHECK-LABEL: loop.program @constants
// CHECK:       loop.load %{{.*}} [d0, d1, d2]
// CHECK-NOT:   floordiv
// CHECK-NOT:   mod
func.func @constants(%x: tensor<?x?x?xf32, #prim.dims<[s0, s1, s2]>> {prim.name = "x"})
    -> (tensor<3x?x127xf32, #prim.dims<[3, s1, 127]>> {prim.name = "y"})
    attributes {prim.symbols = {s0 = #prim.symbol<1, 256, divisor = 1, hint = 3>, s1 = #prim.symbol<1, 256, divisor = 1, hint = 8>,
                s2 = #prim.symbol<1, 256, divisor = 1, hint = 127>}, prim.guards = [#prim.expr<eq(s0, 3)>, #prim.expr<eq(s2, 127)>]} {
  %0 = prim.reshape %x : tensor<?x?x?xf32, #prim.dims<[s0, s1, s2]>> -> tensor<3x?x127xf32, #prim.dims<[3, s1, 127]>>
  %1 = prim.exp %0 : tensor<3x?x127xf32, #prim.dims<[3, s1, 127]>>
  return %1 : tensor<3x?x127xf32, #prim.dims<[3, s1, 127]>>
}

// Through a chain of guards, the constant last.
// CHECK-LABEL: loop.program @chain
// CHECK:       loop.load %{{.*}} [d0, d1]
// CHECK-NOT:   floordiv
func.func @chain(%x: tensor<?x?xf32, #prim.dims<[a, b]>> {prim.name = "x"}, %z: tensor<?xf32, #prim.dims<[c]>> {prim.name = "z"})
    -> (tensor<5x?xf32, #prim.dims<[5, b]>> {prim.name = "y"})
    attributes {prim.symbols = {a = #prim.symbol<1, 256, divisor = 1, hint = 5>, b = #prim.symbol<1, 256, divisor = 1, hint = 8>,
                c = #prim.symbol<1, 256, divisor = 1, hint = 5>}, prim.guards = [#prim.expr<eq(c, a)>, #prim.expr<eq(5, c)>]} {
  %0 = prim.reshape %x : tensor<?x?xf32, #prim.dims<[a, b]>> -> tensor<5x?xf32, #prim.dims<[5, b]>>
  %1 = prim.exp %0 : tensor<5x?xf32, #prim.dims<[5, b]>>
  return %1 : tensor<5x?xf32, #prim.dims<[5, b]>>
}
