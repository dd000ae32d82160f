// What is rounded and bounded to at most 256 integers lies between nodes as bytes.
// RUN: ptc-opt %s --ptc-narrow-buffers | FileCheck %s

// The upper bound is the readers', the largest of them.
// CHECK-LABEL: loop.program @bounds
// CHECK: %[[B:.*]] = loop.buffer : <[60] x i8, <[0]>>
// CHECK: %[[V:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK: %[[TOP:.*]] = arith.constant 1.330000e+02
// CHECK: arith.cmpf olt, %[[V]], %[[TOP]]
// CHECK: arith.constant -1.220000e+02
// CHECK: arith.subf
// CHECK: loop.store %{{.*}}, %[[B]] [d0] : <[60] x i8
// CHECK: loop.load %[[B]]
// CHECK-NEXT: arith.extui
// CHECK-NEXT: arith.sitofp
// CHECK-NEXT: arith.constant -1.220000e+02
// CHECK-NEXT: arith.addf
loop.program @bounds(%a: !loop.buffer<[60] x f32, <[0]>> | %x: !loop.buffer<[60] x f32, <[0]>>, %y: !loop.buffer<[60] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["a"], input_types = [f32], output_names = ["x", "y"],
                output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  %b = loop.buffer : <[60] x f32, <[0]>>
  loop.pointwise [60] {
    %0 = loop.load %a [d0] : <[60] x f32, <[0]>>
    %1 = math.roundeven %0 : f32
    %low = arith.constant -122.0 : f32
    %2 = arith.cmpf olt, %low, %1 : f32
    %3 = arith.select %2, %1, %low : f32
    loop.store %3, %b [d0] : <[60] x f32, <[0]>>
  }
  loop.pointwise [60] {
    %0 = loop.load %b [d0] : <[60] x f32, <[0]>>
    %high = arith.constant 133.0 : f32
    %1 = arith.cmpf olt, %0, %high : f32
    %2 = loop.load %b [d0] : <[60] x f32, <[0]>>
    %3 = arith.select %1, %2, %high : f32
    loop.store %3, %x [d0] : <[60] x f32, <[0]>>
  }
  loop.pointwise [60] {
    %0 = loop.load %b [59 - d0] : <[60] x f32, <[0]>>
    %high = arith.constant 120.0 : f32
    %1 = arith.cmpf olt, %0, %high : f32
    %2 = arith.select %1, %0, %high : f32
    loop.store %2, %y [d0] : <[60] x f32, <[0]>>
  }
}

// Not: 257 integers, numbers that are no integers, a reader without a bound, bounds that differ from what is compared.
// CHECK-LABEL: loop.program @others
// CHECK-COUNT-4: loop.buffer : <[60] x f32
loop.program @others(%a: !loop.buffer<[60] x f32, <[0]>> | %x: !loop.buffer<[60] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["a"], input_types = [f32], output_names = ["x"],
                output_types = [f32], symbol_sources = {}, symbols = {}} {
  %many = loop.buffer : <[60] x f32, <[0]>>
  %whole = loop.buffer : <[60] x f32, <[0]>>
  %open = loop.buffer : <[60] x f32, <[0]>>
  %other = loop.buffer : <[60] x f32, <[0]>>
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
    loop.store %12, %x [d0] : <[60] x f32, <[0]>>
  }
}
