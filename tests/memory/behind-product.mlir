// What several nodes behind a product read stays: while one writes its part of a block, another thread may still read
// there for another block.
// RUN: ptc-opt %s --ptc-plan-memory | FileCheck %s

// CHECK: %[[T:.*]] = loop.at [[AT:[0-9]+]] {{.*}} : <[512] x f32, <[0]>>
// CHECK-NOT: loop.at [[AT]] {
// CHECK: loop.launch @rotations
loop.kernel @copy(%a: !loop.buffer<[512] x f32, <[0]>>, %b: !loop.buffer<[512] x f32, <[0]>>) attributes {symbols = [], parallel = 1, arguments_written = array<i64: 1>} {
  loop.pointwise [512] {
    %0 = loop.load %a [d0] : <[512] x f32, <[0]>>
    loop.store %0, %b [d0] : <[512] x f32, <[0]>>
  }
}
loop.kernel @rotations(%x: !loop.buffer<[512] x f32, <[0]>>, %w: !loop.buffer<[2048] x f32, <[0]>>, %t: !loop.buffer<[512] x f32, <[0]>>,
                       %p: !loop.buffer<[1024] x f32, <[0]>>, %q: !loop.buffer<[512] x f32, <[0]>>, %k: !loop.buffer<[512] x f32, <[0]>>)
    attributes {symbols = [], parallel = 0, arguments_written = array<i64: 3, 4, 5>} {
  loop.contraction [16, 64, 32] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %x [32*d0 + d2] : <[512] x f32, <[0]>>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : <[2048] x f32, <[0]>> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%0: f32):
    loop.store %0, %p [64*d0 + d1] : <[1024] x f32, <[0]>>
  }
  loop.pointwise [16, 2, 16] {
    %0 = loop.load %p [64*d0 + 16*d1 + d2] : <[1024] x f32, <[0]>>
    %1 = loop.load %t [32*d0 + 16*d1 + d2] : <[512] x f32, <[0]>>
    %2 = arith.mulf %0, %1 : f32
    loop.store %2, %q [32*d0 + 16*d1 + d2] : <[512] x f32, <[0]>>
  }
  loop.pointwise [16, 2, 16] {
    %0 = loop.load %p [64*d0 + 16*d1 + d2 + 32] : <[1024] x f32, <[0]>>
    %1 = loop.load %t [32*d0 + 16*d1 + d2] : <[512] x f32, <[0]>>
    %2 = arith.mulf %0, %1 : f32
    loop.store %2, %k [32*d0 + 16*d1 + d2] : <[512] x f32, <[0]>>
  }
}
loop.program @p(%x: !loop.buffer<[512] x f32, <[0]>> | %y: !loop.buffer<[512] x f32, <[0]>>, %z: !loop.buffer<[512] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y", "z"],
                output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  %w = loop.weight <"w", "", 0, 8192> : <[2048] x f32, <[0]>>
  %t = loop.buffer : <[512] x f32, <[0]>>
  %p = loop.buffer : <[1024] x f32, <[0]>>
  %k = loop.buffer : <[512] x f32, <[0]>>
  loop.launch @copy(%x, %t) symbols [] : !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
  loop.launch @rotations(%x, %w, %t, %p, %y, %k) symbols [] : !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[2048] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[1024] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
  loop.launch @copy(%k, %z) symbols [] : !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
}
