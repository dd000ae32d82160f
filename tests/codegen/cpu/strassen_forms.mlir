// Which products with a weight that permits it are not computed by Strassen's algorithm: those that are no whole tiles.
// RUN: ptc-kernel %s | FileCheck %s

// Columns that are no whole pairs of quarters.
// CHECK-LABEL: loop.kernel @columns
// CHECK-NOT:   algorithm
// CHECK:       loop.contraction
loop.kernel @columns(%a: !loop.buffer<[56*32] x f32>, %w: !loop.buffer<[6*32*16] x f32>, %y: !loop.buffer<[56*96] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [56, 96, 32] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*32 + d2] : !loop.buffer<[56*32] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w {strassen} : !loop.buffer<[6*32*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*96 + d1] : !loop.buffer<[56*96] x f32>
  }
}

// Few rows.
// CHECK-LABEL: loop.kernel @rows
// CHECK-NOT:   algorithm
// CHECK:       loop.contraction
loop.kernel @rows(%a: !loop.buffer<[27*32] x f32>, %w: !loop.buffer<[4*32*16] x f32>, %y: !loop.buffer<[27*64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [27, 64, 32] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*32 + d2] : !loop.buffer<[27*32] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w {strassen} : !loop.buffer<[4*32*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*64 + d1] : !loop.buffer<[27*64] x f32>
  }
}

// Rows that a prologue computes are copied once more; matrices of a batch have their own.
// CHECK-LABEL: loop.kernel @prologue
// CHECK-SAME:  algorithm = "strassen"
// CHECK-SAME:  lhs = "packed_rows"
loop.kernel @prologue(%a: !loop.buffer<[2*45*64] x f32>, %w: !loop.buffer<[2*4*64*16] x f32>, %y: !loop.buffer<[2*45*64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [2, 45, 64, 64] batch 1 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*2880 + d1*64 + d3] : !loop.buffer<[2*45*64] x f32>
    %1 = arith.mulf %0, %0 : f32
    loop.yield %1 : f32
  } rhs {
    %0 = loop.panels %w {strassen} : !loop.buffer<[2*4*64*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*2880 + d1*64 + d2] : !loop.buffer<[2*45*64] x f32>
  }
}
