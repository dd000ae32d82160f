// What a norm behind a product writes lies neither over an operand, of which other tasks still read their rows, nor over the product.
// RUN: ptc-opt %s --ptc-plan-memory | FileCheck %s

// CHECK:      loop.at [[A:[0-9]+]] {
// CHECK-NOT:  loop.at [[A]] {
// CHECK:      loop.at [[P:[0-9]+]] {
// CHECK-NOT:  loop.at [[A]] {
// CHECK-NOT:  loop.at [[P]] {
// CHECK:      loop.launch @copy
loop.kernel @copy(%a: !loop.buffer<[512] x f32, <[0]>>, %b: !loop.buffer<[512] x f32, <[0]>>) attributes {symbols = [], parallel = 1, arguments_written = array<i64: 1>} {
  loop.pointwise [512] {
    %0 = loop.load %a [d0] : <[512] x f32, <[0]>>
    loop.store %0, %b [d0] : <[512] x f32, <[0]>>
  }
}
loop.kernel @norm(%a: !loop.buffer<[512] x f32, <[0]>>, %w: !loop.buffer<[1024] x f32, <[0]>>, %p: !loop.buffer<[512] x f32, <[0]>>,
                  %q: !loop.buffer<[512] x f32, <[0]>>) attributes {symbols = [], parallel = 1, arguments_written = array<i64: 2, 3>} {
  %s = loop.buffer : <[1] x f32, <[0]>>
  loop.contraction [16, 32, 32] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a [32*d0 + d2] : <[512] x f32, <[0]>>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : <[1024] x f32, <[0]>> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%0: f32):
    loop.store %0, %p [32*d0 + d1] : <[512] x f32, <[0]>>
  }
  loop.reduction [16, 32] reduced 1 {
    %0 = loop.load %p [32*d0 + d1] : <[512] x f32, <[0]>>
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %s [0] : <[1] x f32, <[0]>>
  }
  loop.pointwise [16, 32] {
    %0 = loop.load %p [32*d0 + d1] : <[512] x f32, <[0]>>
    %1 = loop.load %s [0] : <[1] x f32, <[0]>>
    %2 = arith.subf %0, %1 : f32
    loop.store %2, %q [32*d0 + d1] : <[512] x f32, <[0]>>
  }
}
loop.program @p(%x: !loop.buffer<[512] x f32, <[0]>> | %y: !loop.buffer<[512] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y"],
                output_types = [f32], symbol_sources = {}, symbols = {}} {
  %w = loop.weight <"w", "", 0, 4096> : <[1024] x f32, <[0]>>
  %a = loop.buffer : <[512] x f32, <[0]>>
  %p = loop.buffer : <[512] x f32, <[0]>>
  %q = loop.buffer : <[512] x f32, <[0]>>
  loop.launch @copy(%x, %a) symbols [] : !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
  loop.launch @norm(%a, %w, %p, %q) symbols [] : !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[1024] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
  loop.launch @copy(%q, %y) symbols [] : !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
}
