// Dims of a scatter that its places tell run in the order of memory; where places of two dims may meet they stay.
// RUN: ptc-opt %s --ptc-linearize-accesses --ptc-normalize-nodes | FileCheck %s

// CHECK-LABEL: loop.program @p
// CHECK: loop.scatter [4, 10, 12, 32] independent 0
// CHECK: loop.store %{{.*}}, %{{.*}} [384*d1 + 32*d2 + d3 + 3840*v$0]
// CHECK: loop.scatter [4, 12, 32] independent 0
// CHECK: loop.store %{{.*}}, %{{.*}} [
loop.program @p(%x: !loop.buffer<[4, 32, 10, 12] x f32, <[0, 2, 3, 1]>>, %i: !loop.buffer<[4] x i64, <[0]>> | %y: !loop.buffer<[9, 32, 10, 12] x f32, <[0, 2, 3, 1]>>, %z: !loop.buffer<[34560] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x", "i"], input_types = [f32, si64], output_names = ["y", "z"],
                output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  loop.scatter [4, 32, 10, 12] independent 0 {
    %0 = loop.load %x [d0, d1, d2, d3] : <[4, 32, 10, 12] x f32, <[0, 2, 3, 1]>>
    %1 = loop.load %i [d0] : <[4] x i64, <[0]>>
    %2 = loop.check_index %1 in 9
    loop.store %0, %y [v$0, d1, d2, d3] (%2) : <[9, 32, 10, 12] x f32, <[0, 2, 3, 1]>>
  }
  loop.scatter [4, 12, 32] independent 0 {
    %0 = loop.load %x [d0, d2, 0, d1] : <[4, 32, 10, 12] x f32, <[0, 2, 3, 1]>>
    %1 = loop.load %i [d0] : <[4] x i64, <[0]>>
    %2 = loop.check_index %1 in 9
    loop.store %0, %z [3840*v$0 + 8*d2 + d1] (%2) : <[34560] x f32, <[0]>>
  }
}
