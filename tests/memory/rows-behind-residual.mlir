// What a product's epilogue alone reads of an operand may be overwritten by its result, which a norm behind it reads; not where the norm reads
// the operand, too.
// RUN: ptc-opt %s --ptc-plan-memory | FileCheck %s

// CHECK:      loop.program
// CHECK:      %[[R:.*]] = loop.at [[R_AT:[0-9]+]] {
// CHECK:      %[[P:.*]] = loop.at [[R_AT]] {
// CHECK:      %[[Q:.*]] = loop.at [[Q_AT:[0-9]+]] {
// CHECK-NOT:  loop.at [[Q_AT]] {
// CHECK:      loop.launch @norm(%{{.*}}, %{{.*}}, %[[R]], %[[P]],
// CHECK:      loop.launch @both(%{{.*}}, %{{.*}}, %[[Q]],
loop.kernel @copy(%a: !loop.buffer<[512] x f32, <[0]>>, %b: !loop.buffer<[512] x f32, <[0]>>) attributes {symbols = [], parallel = 1, arguments_written = array<i64: 1>} {
  loop.pointwise [512] {
    %0 = loop.load %a [d0] : <[512] x f32, <[0]>>
    loop.store %0, %b [d0] : <[512] x f32, <[0]>>
  }
}
loop.kernel @norm(%a: !loop.buffer<[512] x f32, <[0]>>, %w: !loop.buffer<[1024] x f32, <[0]>>, %r: !loop.buffer<[512] x f32, <[0]>>,
                  %p: !loop.buffer<[512] x f32, <[0]>>, %q: !loop.buffer<[512] x f32, <[0]>>) attributes {symbols = [], parallel = 1, arguments_written = array<i64: 3, 4>} {
  %s = loop.buffer : <[1] x f32, <[0]>>
  loop.contraction [16, 32, 32] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a [32*d0 + d2] : <[512] x f32, <[0]>>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : <[1024] x f32, <[0]>> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%0: f32):
    %1 = loop.load %r [32*d0 + d1] : <[512] x f32, <[0]>>
    %2 = arith.addf %0, %1 : f32
    loop.store %2, %p [32*d0 + d1] : <[512] x f32, <[0]>>
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
loop.kernel @both(%a: !loop.buffer<[512] x f32, <[0]>>, %w: !loop.buffer<[1024] x f32, <[0]>>, %r: !loop.buffer<[512] x f32, <[0]>>,
                  %p: !loop.buffer<[512] x f32, <[0]>>, %q: !loop.buffer<[512] x f32, <[0]>>) attributes {symbols = [], parallel = 1, arguments_written = array<i64: 3, 4>} {
  %s = loop.buffer : <[1] x f32, <[0]>>
  loop.contraction [16, 32, 32] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a [32*d0 + d2] : <[512] x f32, <[0]>>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : <[1024] x f32, <[0]>> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%0: f32):
    %1 = loop.load %r [32*d0 + d1] : <[512] x f32, <[0]>>
    %2 = arith.addf %0, %1 : f32
    loop.store %2, %p [32*d0 + d1] : <[512] x f32, <[0]>>
  }
  loop.reduction [16, 32] reduced 1 {
    %0 = loop.load %p [32*d0 + d1] : <[512] x f32, <[0]>>
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %s [0] : <[1] x f32, <[0]>>
  }
  loop.pointwise [16, 32] {
    %0 = loop.load %p [32*d0 + d1] : <[512] x f32, <[0]>>
    %1 = loop.load %s [0] : <[1] x f32, <[0]>>
    %3 = loop.load %r [32*d0 + d1] : <[512] x f32, <[0]>>
    %4 = arith.mulf %0, %3 : f32
    %2 = arith.subf %4, %1 : f32
    loop.store %2, %q [32*d0 + d1] : <[512] x f32, <[0]>>
  }
}
loop.program @p(%x: !loop.buffer<[512] x f32, <[0]>> | %y: !loop.buffer<[512] x f32, <[0]>>, %z: !loop.buffer<[512] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y", "z"],
                output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  %w = loop.weight <"w", "", 0, 4096> : <[1024] x f32, <[0]>>
  %r = loop.buffer : <[512] x f32, <[0]>>
  %p = loop.buffer : <[512] x f32, <[0]>>
  %q = loop.buffer : <[512] x f32, <[0]>>
  %u = loop.buffer : <[512] x f32, <[0]>>
  loop.launch @copy(%x, %r) symbols [] : !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
  loop.launch @norm(%x, %w, %r, %p, %y) symbols [] : !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[1024] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
  loop.launch @copy(%p, %q) symbols [] : !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
  loop.launch @both(%x, %w, %q, %u, %z) symbols [] : !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[1024] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>, !loop.buffer<[512] x f32, <[0]>>
}
