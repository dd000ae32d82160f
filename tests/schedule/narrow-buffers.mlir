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
loop.program @bounds(%a: !loop.buffer<[60] x f32, <[0]>> | %x: !loop.buffer<[60] x i32, <[0]>>, %y: !loop.buffer<[60] x i1, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["a"], input_types = [f32], output_names = ["x", "y"],
                output_types = [si32, i1], symbol_sources = {}, symbols = {}} {
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
    %4 = arith.mulf %3, %high : f32
    %5 = arith.fptosi %4 : f32 to i32
    loop.store %5, %x [d0] : <[60] x i32, <[0]>>
  }
  loop.pointwise [60] {
    %0 = loop.load %b [59 - d0] : <[60] x f32, <[0]>>
    %high = arith.constant 120.0 : f32
    %1 = arith.cmpf olt, %0, %high : f32
    %2 = arith.select %1, %0, %high : f32
    %3 = arith.cmpf ogt, %2, %high : f32
    loop.store %3, %y [d0] : <[60] x i1, <[0]>>
  }
}
