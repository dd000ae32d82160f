// How contractions are read and cut, and the tile at two levels.
// RUN: ptc-kernel %s | FileCheck %s --check-prefix=PLAN
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefix=V4
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=V3

// A plain product by a packed weight: nothing is copied. 6 x 64 at v4: 24 accumulators, no spill of a remainder tile.
// PLAN-LABEL: loop.kernel @product
// PLAN-SAME: lhs = "in_place"
// PLAN-SAME: rhs = "panels"
// V4-LABEL: define {{.*}} @product
// V4-COUNT-24: llvm.fma.v16f32
// V4-NOT: llvm.masked
// V4: ret i32
// V3-LABEL: define {{.*}} @product
// V3-COUNT-12: llvm.fma.v8f32
// V3: ret i32
loop.kernel @product(%a: !loop.buffer<[96*256] x f32>, %w: !loop.buffer<[256*256] x f32>, %y: !loop.buffer<[96*256] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [96, 256, 256] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*256 + d2] : !loop.buffer<[96*256] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[256*256] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*256 + d1] : !loop.buffer<[96*256] x f32>
  }
}

// Padding does not copy: rows outside the image are read from a run of zeros.
// PLAN-LABEL: loop.kernel @padded
// PLAN-SAME: lhs = "redirected"
// V4-LABEL: define {{.*}} @padded
loop.kernel @padded(%x: !loop.buffer<[14*14*32] x f32>, %w: !loop.buffer<[9*32*64] x f32>, %y: !loop.buffer<[14*14*64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [14, 14, 64, 3, 3, 32] batch 0 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d3 - 1, 14 - d0 - d3, d1 + d4 - 1, 14 - d1 - d4] else %zero {
      %1 = loop.load %x[((d0 + d3 - 1)*14 + d1 + d4 - 1)*32 + d5] : !loop.buffer<[14*14*32] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[9*32*64] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*14 + d1)*64 + d2] : !loop.buffer<[14*14*64] x f32>
  }
}

// A result that is contiguous along m: the roles are swapped, the weight's panels serve as rows.
// PLAN-LABEL: loop.kernel @transposed
// PLAN-SAME: lhs = "panels"
// PLAN-SAME: rhs = "packed_along_n"
// PLAN: loop.contraction [64, 1024, 32] batch 0 m 1 n 1 k 1
loop.kernel @transposed(%x: !loop.buffer<[32*1024] x f32>, %w: !loop.buffer<[32*64] x f32>, %y: !loop.buffer<[64*1024] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [1024, 64, 32] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %x[d2*1024 + d0] : !loop.buffer<[32*1024] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[32*64] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d1*1024 + d0] : !loop.buffer<[64*1024] x f32>
  }
}

// Dims that all regions use as one are merged, those of extent 1 dropped: a 1 x 1 convolution is a product.
// PLAN-LABEL: loop.kernel @pointwise_convolution
// PLAN: loop.contraction [784, 64, 32] batch 0 m 1 n 1 k 1
loop.kernel @pointwise_convolution(%x: !loop.buffer<[784*32] x f32>, %w: !loop.buffer<[32*64] x f32>, %y: !loop.buffer<[784*64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [1, 28, 28, 64, 1, 1, 32] batch 0 m 3 n 1 k 3 lhs {
    %0 = loop.load %x[((d0*28 + d1 + d4)*28 + d2 + d5)*32 + d6] : !loop.buffer<[784*32] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[32*64] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[((d0*28 + d1)*28 + d2)*64 + d3] : !loop.buffer<[784*64] x f32>
  }
}

// One column: a reduction.
// PLAN-LABEL: loop.kernel @matrix_vector
// PLAN: loop.reduction [m, 256] reduced 1
loop.kernel @matrix_vector(%a: !loop.buffer<[m*256] x f32>, %x: !loop.buffer<[256] x f32>, %y: !loop.buffer<[m] x f32>)
    attributes {symbols = ["m"], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [m, 1, 256] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*256 + d2] : !loop.buffer<[m*256] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.load %x[d2] : !loop.buffer<[256] x f32>
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0] : !loop.buffer<[m] x f32>
  }
}
