// Blocks of products of two computed operands: tasks pack their columns of B, of long sums in each block of k anew.
// RUN: ptc-kernel %s | FileCheck %s

// As many rows as columns: these are cut, and packed once.
// CHECK-LABEL: loop.kernel @long_sum
// CHECK-SAME: k_blocks = #prim.expr<3>
// CHECK-SAME: m_blocks = #prim.expr<1>
// CHECK-SAME: n_blocks = #prim.expr<2>
loop.kernel @long_sum(%a: !loop.buffer<[64*2100] x f32>, %b: !loop.buffer<[2100*64] x f32>, %y: !loop.buffer<[64*64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [64, 64, 2100] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*2100 + d2] : !loop.buffer<[64*2100] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.load %b[d2*64 + d1] : !loop.buffer<[2100*64] x f32>
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*64 + d1] : !loop.buffer<[64*64] x f32>
  }
}

// The sum is one block, so tasks of the same columns find them packed: rows are cut.
// CHECK-LABEL: loop.kernel @short_sum
// CHECK-SAME: k_blocks = #prim.expr<1>
// CHECK-SAME: m_blocks = #prim.expr<4>
// CHECK-SAME: n_blocks = #prim.expr<1>
loop.kernel @short_sum(%a: !loop.buffer<[64*500] x f32>, %b: !loop.buffer<[500*64] x f32>, %y: !loop.buffer<[64*64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [64, 64, 500] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*500 + d2] : !loop.buffer<[64*500] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.load %b[d2*64 + d1] : !loop.buffer<[500*64] x f32>
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*64 + d1] : !loop.buffer<[64*64] x f32>
  }
}

// A is packed, too, along rows: tasks of the same rows follow each other and find these.
// CHECK-LABEL: loop.kernel @packed_rows
// CHECK-SAME: m_blocks = #prim.expr<2>
// CHECK-SAME: n_blocks = #prim.expr<8>
loop.kernel @packed_rows(%a: !loop.buffer<[2100*128] x f32>, %b: !loop.buffer<[2100*256] x f32>, %y: !loop.buffer<[128*256] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [128, 256, 2100] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d2*128 + d0] : !loop.buffer<[2100*128] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.load %b[d2*256 + d1] : !loop.buffer<[2100*256] x f32>
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*256 + d1] : !loop.buffer<[128*256] x f32>
  }
}
