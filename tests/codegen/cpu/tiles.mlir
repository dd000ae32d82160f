// Which tiles a product is cut into: columns that end within a panel, few rows, rows that crowd the first-level cache.
// RUN: ptc-kernel %s | FileCheck %s --check-prefix=PLAN
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefixes=ALL,V3
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefixes=ALL,V4

// 12.25 panels: the last tile alone has masks, a vector for each of its rows, and they are known.
// V3-LABEL: define {{.*}} @ragged
// V3-COUNT-5:  call void @llvm.masked.store.v8f32{{.*}} <i1 true, i1 true, i1 true, i1 true, i1 false
// V3-NOT:      call void @llvm.masked
// V3:          ret i32
// V4-LABEL: define {{.*}} @ragged
// V4-COUNT-5:  call void @llvm.masked.store.v8f32{{.*}} <i1 true, i1 true, i1 true, i1 true, i1 false
// V4-NOT:      call void @llvm.masked
// V4:          ret i32
loop.kernel @ragged(%a: !loop.buffer<[5*32] x f32>, %w: !loop.buffer<[13*32*16] x f32>, %y: !loop.buffer<[5*196] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [5, 196, 32] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*32 + d2] : !loop.buffer<[5*32] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[13*32*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*196 + d1] : !loop.buffer<[5*196] x f32>
  }
}

// Half a panel is a vector of 256 bits: no mask at all.
// ALL-LABEL: define {{.*}} @half
// ALL-NOT:     call void @llvm.masked
// ALL:         ret i32
loop.kernel @half(%a: !loop.buffer<[5*32] x f32>, %w: !loop.buffer<[13*32*16] x f32>, %y: !loop.buffer<[5*200] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [5, 200, 32] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*32 + d2] : !loop.buffer<[5*32] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[13*32*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*200 + d1] : !loop.buffer<[5*200] x f32>
  }
}

// 8 rows of 16 registers: 4 x 2, whose columns of B wait in the first-level cache, not 2 x 4.
// V3-LABEL: define {{.*}} @few_rows
// V3-COUNT-2:  load <8 x float>
// V3-NOT:      load <8 x float>
// V3-COUNT-8:  llvm.fma.v8f32
loop.kernel @few_rows(%a: !loop.buffer<[8*256] x f32>, %w: !loop.buffer<[256*64] x f32>, %y: !loop.buffer<[8*64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [8, 64, 256] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*256 + d2] : !loop.buffer<[8*256] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[256*64] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*64 + d1] : !loop.buffer<[8*64] x f32>
  }
}

// Runs of 128 bytes, 12800 apart, fall into 16 of the 64 sets: rows are copied. At 12928 they are read in place.
// PLAN-LABEL: loop.kernel @crowded
// PLAN-SAME: lhs = "packed_rows"
loop.kernel @crowded(%a: !loop.buffer<[8*20*3200] x f32>, %w: !loop.buffer<[640*64] x f32>, %y: !loop.buffer<[8*8*64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [8, 8, 64, 20, 32] batch 0 m 2 n 1 k 2 lhs {
    %0 = loop.load %a[d1*64000 + d0*32 + d3*3200 + d4] : !loop.buffer<[8*20*3200] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[640*64] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*8 + d1)*64 + d2] : !loop.buffer<[8*8*64] x f32>
  }
}

// PLAN-LABEL: loop.kernel @spread
// PLAN-SAME: lhs = "in_place"
loop.kernel @spread(%a: !loop.buffer<[8*20*3232] x f32>, %w: !loop.buffer<[640*64] x f32>, %y: !loop.buffer<[8*8*64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [8, 8, 64, 20, 32] batch 0 m 2 n 1 k 2 lhs {
    %0 = loop.load %a[d1*64640 + d0*32 + d3*3232 + d4] : !loop.buffer<[8*20*3232] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[640*64] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*8 + d1)*64 + d2] : !loop.buffer<[8*8*64] x f32>
  }
}
