// Floats that do not become bytes between nodes.
// RUN: ptc-opt %s --ptc-narrow-buffers | FileCheck %s

// 257 integers, numbers that are no integers, a reader without a bound, bounds that differ from what is compared,
// bounds that cross where another part has others, -0 that is read as it is.
// CHECK-LABEL: loop.program @others
// CHECK-COUNT-6: loop.buffer : <[60] x f32
loop.program @others(%a: !loop.buffer<[60] x f32, <[0]>> | %x: !loop.buffer<[60] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["a"], input_types = [f32], output_names = ["x"],
                output_types = [f32], symbol_sources = {}, symbols = {}} {
  %many = loop.buffer : <[60] x f32, <[0]>>
  %whole = loop.buffer : <[60] x f32, <[0]>>
  %open = loop.buffer : <[60] x f32, <[0]>>
  %other = loop.buffer : <[60] x f32, <[0]>>
  %cross = loop.buffer : <[60] x f32, <[0]>>
  %sign = loop.buffer : <[60] x f32, <[0]>>
  loop.pointwise [60] {
    %0 = loop.load %a [d0] : <[60] x f32, <[0]>>
    %1 = math.roundeven %0 : f32
    %low = arith.constant 0.0 : f32
    %2 = arith.cmpf ogt, %1, %low : f32
    %3 = arith.select %2, %1, %low : f32
    %4 = arith.cmpf ogt, %0, %low : f32
    %5 = arith.select %4, %0, %low : f32
    %6 = arith.select %4, %1, %low : f32
    loop.store %3, %many [d0] : <[60] x f32, <[0]>>
    loop.store %5, %whole [d0] : <[60] x f32, <[0]>>
    loop.store %3, %open [d0] : <[60] x f32, <[0]>>
    loop.store %6, %other [d0] : <[60] x f32, <[0]>>
    %top = arith.constant 100.0 : f32
    %7 = arith.cmpf olt, %3, %top : f32
    %8 = arith.select %7, %3, %top : f32
    %low2 = arith.constant 400.0 : f32
    %9 = arith.cmpf ogt, %8, %low2 : f32
    %10 = arith.select %9, %8, %low2 : f32
    loop.store %10, %cross [0] : <[60] x f32, <[0]>>
    %20 = arith.constant 20.0 : f32
    %11 = arith.cmpf olt, %3, %20 : f32
    %12 = arith.select %11, %3, %20 : f32
    loop.store %12, %cross [d0] : <[60] x f32, <[0]>>
    %minus = arith.constant -20.0 : f32
    %13 = arith.cmpf ogt, %1, %minus : f32
    %14 = arith.select %13, %1, %minus : f32
    %15 = arith.cmpf olt, %14, %20 : f32
    %16 = arith.select %15, %14, %20 : f32
    loop.store %16, %sign [d0] : <[60] x f32, <[0]>>
  }
  loop.pointwise [60] {
    %0 = loop.load %many [d0] : <[60] x f32, <[0]>>
    %1 = loop.load %whole [d0] : <[60] x f32, <[0]>>
    %2 = loop.load %open [d0] : <[60] x f32, <[0]>>
    %3 = loop.load %other [d0] : <[60] x f32, <[0]>>
    %256 = arith.constant 256.0 : f32
    %100 = arith.constant 100.0 : f32
    %4 = arith.cmpf olt, %0, %256 : f32
    %5 = arith.select %4, %0, %256 : f32
    %6 = arith.cmpf olt, %1, %100 : f32
    %7 = arith.select %6, %1, %100 : f32
    %8 = arith.cmpf olt, %3, %100 : f32
    %9 = arith.select %8, %3, %100 : f32
    %10 = arith.addf %5, %7 : f32
    %11 = arith.addf %2, %9 : f32
    %12 = arith.addf %10, %11 : f32
    %13 = loop.load %cross [d0] : <[60] x f32, <[0]>>
    %14 = loop.load %sign [d0] : <[60] x f32, <[0]>>
    %15 = arith.addf %13, %14 : f32
    %16 = arith.addf %12, %15 : f32
    loop.store %16, %x [d0] : <[60] x f32, <[0]>>
  }
}
