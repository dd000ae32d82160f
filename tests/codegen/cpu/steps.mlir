// Several steps of k are one pass of the innermost loop where a step is short. Row tiles share out what they fetch of
// the next column tile: of four steps a pass fetches one row.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=asm | FileCheck %s --check-prefix=V3
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=asm | FileCheck %s --check-prefix=V4

// 6 x 2 vectors of 256 bits: four steps. 6 x 4 of 512 bits are long enough, one.
// V3-LABEL:    whole:
// V3-COUNT-48: vfmadd231ps
// V3-NOT:      {{vfmadd|rsp}}
// V3:          prefetcht1
// V3-NOT:      {{vfmadd|rsp}}
// V3:          jl
// V4-LABEL:    whole:
// V4-COUNT-24: vfmadd231ps
// V4-NOT:      vfmadd
// V4:          jl
loop.kernel @whole(%a: !loop.buffer<[24*64] x f32>, %w: !loop.buffer<[8*64*16] x f32>, %y: !loop.buffer<[24*128] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [24, 128, 64] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*64 + d2] : !loop.buffer<[24*64] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[8*64*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*128 + d1] : !loop.buffer<[24*128] x f32>
  }
}

// 27 terms are no multiple of four: one step a pass.
// V3-LABEL:    rest:
// V3-COUNT-12: vfmadd231ps
// V3-NOT:      vfmadd
// V3:          jl
loop.kernel @rest(%a: !loop.buffer<[24*27] x f32>, %w: !loop.buffer<[27*16] x f32>, %y: !loop.buffer<[24*16] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [24, 16, 27] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*27 + d2] : !loop.buffer<[24*27] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[27*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*16 + d1] : !loop.buffer<[24*16] x f32>
  }
}
