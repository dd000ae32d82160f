// Into how many blocks of rows and columns a product is cut: tasks for threads.
// RUN: ptc-kernel %s | FileCheck %s

// 1.2 million multiply-adds by a weight of 26 KB: rows are cut, so that threads keep theirs.
// CHECK-LABEL: loop.kernel @small_weight
// CHECK-SAME: m_blocks = #prim.expr<16>
// CHECK-SAME: n_blocks = #prim.expr<1>
loop.kernel @small_weight(%a: !loop.buffer<[192*32] x f32>, %w: !loop.buffer<[13*32*16] x f32>, %y: !loop.buffer<[192*200] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [192, 200, 32] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*32 + d2] : !loop.buffer<[192*32] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[13*32*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*200 + d1] : !loop.buffer<[192*200] x f32>
  }
}

// A weight of 1 MB: each thread reads its own columns of it.
// CHECK-LABEL: loop.kernel @large_weight
// CHECK-SAME: m_blocks = #prim.expr<1>
// CHECK-SAME: n_blocks = #prim.expr<8>
loop.kernel @large_weight(%a: !loop.buffer<[40*512] x f32>, %w: !loop.buffer<[512*512] x f32>, %y: !loop.buffer<[40*512] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [40, 512, 512] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*512 + d2] : !loop.buffer<[40*512] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[512*512] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*512 + d1] : !loop.buffer<[40*512] x f32>
  }
}

// All rows by 768 terms stay in the second-level cache: the weight is read once, three panels for each task.
// CHECK-LABEL: loop.kernel @long_rows
// CHECK-SAME: k_blocks = #prim.expr<4>
// CHECK-SAME: m_blocks = #prim.expr<1>
// CHECK-SAME: n_blocks = #prim.expr<16>
loop.kernel @long_rows(%a: !loop.buffer<[128*3072] x f32>, %w: !loop.buffer<[48*3072*16] x f32>, %y: !loop.buffer<[128*768] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [128, 768, 3072] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*3072 + d2] : !loop.buffer<[128*3072] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[48*3072*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*768 + d1] : !loop.buffer<[128*768] x f32>
  }
}

// Too little to be worth a second thread.
// CHECK-LABEL: loop.kernel @one_task
// CHECK-SAME: m_blocks = #prim.expr<1>
// CHECK-SAME: n_blocks = #prim.expr<1>
loop.kernel @one_task(%a: !loop.buffer<[96*32] x f32>, %w: !loop.buffer<[32*32] x f32>, %y: !loop.buffer<[96*32] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [96, 32, 32] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*32 + d2] : !loop.buffer<[96*32] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[32*32] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*32 + d1] : !loop.buffer<[96*32] x f32>
  }
}

// What runs behind a product reads parts of 96 columns: blocks are cut between these, 2 and not 6.
// CHECK-LABEL: loop.kernel @parts
// CHECK-SAME: n_blocks = #prim.expr<2>
loop.kernel @parts(%a: !loop.buffer<[8*4096] x f32>, %w: !loop.buffer<[12*4096*16] x f32>, %p: !loop.buffer<[8*192] x f32>, %y: !loop.buffer<[8*192] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2, 3>} {
  loop.contraction [8, 192, 4096] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*4096 + d2] : !loop.buffer<[8*4096] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[12*4096*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %p[d0*192 + d1] : !loop.buffer<[8*192] x f32>
  }
  loop.pointwise [8, 2, 96] {
    %0 = loop.load %p[d0*192 + d1*96 - d2 + 95] : !loop.buffer<[8*192] x f32>
    loop.store %0, %y[d0*192 + d1*96 + d2] : !loop.buffer<[8*192] x f32>
  }
}
