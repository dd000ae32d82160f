// Two vectors of a long epilogue side by side, where lines of the result hold whole pairs of them. Elsewhere a vector at a
// time: the second of a pair would lie behind the end of its line. Functions of a pointwise node go in pairs, too.
// RUN: ptc-kernel %s --level=x86-64-v2 --emit=llvm | FileCheck %s --check-prefix=V2
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=V3

// V2-LABEL: define {{.*}} @lines_of_4
// V2-NOT: store <8 x float>{{.*}}, align 4
// V3-LABEL: define {{.*}} @lines_of_4
// V3-NOT: store <16 x float>{{.*}}, align 4
loop.kernel @lines_of_4(%w: !loop.buffer<[2*20*16] x f32>, %x: !loop.buffer<[3*20*4] x f32>, %y: !loop.buffer<[3*32*4] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [32, 3, 4, 20] batch 0 m 1 n 2 k 1 lhs {
    %0 = loop.panels %w : !loop.buffer<[2*20*16] x f32> -> f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.load %x[d1*80 + d3*4 + d2] : !loop.buffer<[3*20*4] x f32>
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    %0 = math.tanh %acc : f32
    %1 = math.erf %0 : f32
    %2 = math.exp %1 : f32
    %3 = math.tanh %2 : f32
    loop.store %3, %y[d1*128 + d0*4 + d2] : !loop.buffer<[3*32*4] x f32>
  }
}

// V2-LABEL: define {{.*}} @lines_of_8
// V2: store <8 x float>{{.*}}, align 4
// V3-LABEL: define {{.*}} @lines_of_8
// V3-NOT: store <16 x float>{{.*}}, align 4
loop.kernel @lines_of_8(%w: !loop.buffer<[2*20*16] x f32>, %x: !loop.buffer<[3*20*8] x f32>, %y: !loop.buffer<[3*32*8] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [32, 3, 8, 20] batch 0 m 1 n 2 k 1 lhs {
    %0 = loop.panels %w : !loop.buffer<[2*20*16] x f32> -> f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.load %x[d1*160 + d3*8 + d2] : !loop.buffer<[3*20*8] x f32>
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    %0 = math.tanh %acc : f32
    %1 = math.erf %0 : f32
    %2 = math.exp %1 : f32
    %3 = math.tanh %2 : f32
    loop.store %3, %y[d1*256 + d0*8 + d2] : !loop.buffer<[3*32*8] x f32>
  }
}

// V2-LABEL: define {{.*}} @lines_of_12
// V2-NOT: store <8 x float>{{.*}}, align 4
// V3-LABEL: define {{.*}} @lines_of_12
// V3-NOT: store <16 x float>{{.*}}, align 4
loop.kernel @lines_of_12(%w: !loop.buffer<[2*20*16] x f32>, %x: !loop.buffer<[3*20*12] x f32>, %y: !loop.buffer<[3*32*12] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [32, 3, 12, 20] batch 0 m 1 n 2 k 1 lhs {
    %0 = loop.panels %w : !loop.buffer<[2*20*16] x f32> -> f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.load %x[d1*240 + d3*12 + d2] : !loop.buffer<[3*20*12] x f32>
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    %0 = math.tanh %acc : f32
    %1 = math.erf %0 : f32
    %2 = math.exp %1 : f32
    %3 = math.tanh %2 : f32
    loop.store %3, %y[d1*384 + d0*12 + d2] : !loop.buffer<[3*32*12] x f32>
  }
}

// V2-LABEL: define {{.*}} @lines_of_16
// V2: store <8 x float>{{.*}}, align 4
// V3-LABEL: define {{.*}} @lines_of_16
// V3: store <16 x float>{{.*}}, align 4
loop.kernel @lines_of_16(%w: !loop.buffer<[2*20*16] x f32>, %x: !loop.buffer<[3*20*16] x f32>, %y: !loop.buffer<[3*32*16] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [32, 3, 16, 20] batch 0 m 1 n 2 k 1 lhs {
    %0 = loop.panels %w : !loop.buffer<[2*20*16] x f32> -> f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.load %x[d1*320 + d3*16 + d2] : !loop.buffer<[3*20*16] x f32>
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    %0 = math.tanh %acc : f32
    %1 = math.erf %0 : f32
    %2 = math.exp %1 : f32
    %3 = math.tanh %2 : f32
    loop.store %3, %y[d1*512 + d0*16 + d2] : !loop.buffer<[3*32*16] x f32>
  }
}

// V2-LABEL: define {{.*}} @lines_of_24
// V2: store <8 x float>{{.*}}, align 4
// V3-LABEL: define {{.*}} @lines_of_24
// V3-NOT: store <16 x float>{{.*}}, align 4
loop.kernel @lines_of_24(%w: !loop.buffer<[2*20*16] x f32>, %x: !loop.buffer<[3*20*24] x f32>, %y: !loop.buffer<[3*32*24] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [32, 3, 24, 20] batch 0 m 1 n 2 k 1 lhs {
    %0 = loop.panels %w : !loop.buffer<[2*20*16] x f32> -> f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.load %x[d1*480 + d3*24 + d2] : !loop.buffer<[3*20*24] x f32>
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    %0 = math.tanh %acc : f32
    %1 = math.erf %0 : f32
    %2 = math.exp %1 : f32
    %3 = math.tanh %2 : f32
    loop.store %3, %y[d1*768 + d0*24 + d2] : !loop.buffer<[3*32*24] x f32>
  }
}

// A pair and then a vector of 8 fill each line of 24.
// V3-LABEL: define {{.*}} @functions
// V3: store <16 x float>{{.*}}, align 4
// V3: store <8 x float>{{.*}}, align 4
loop.kernel @functions(%x: !loop.buffer<[24*30] x f32>, %y: !loop.buffer<[24*30] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [30, 24] {
    %0 = loop.load %x[d0*24 + d1] : !loop.buffer<[24*30] x f32>
    %1 = math.tanh %0 : f32
    loop.store %1, %y[d0*24 + d1] : !loop.buffer<[24*30] x f32>
  }
}

// V3-LABEL: define {{.*}} @no_functions
// V3-NOT: store <16 x float>{{.*}}, align 4
loop.kernel @no_functions(%x: !loop.buffer<[24*30] x f32>, %y: !loop.buffer<[24*30] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.pointwise [30, 24] {
    %0 = loop.load %x[d0*24 + d1] : !loop.buffer<[24*30] x f32>
    %1 = arith.mulf %0, %0 : f32
    loop.store %1, %y[d0*24 + d1] : !loop.buffer<[24*30] x f32>
  }
}
