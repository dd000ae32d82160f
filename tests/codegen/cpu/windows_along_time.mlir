// Windows along time alone meet images again that are larger than the second-level cache: tasks take 56 pixels of an
// image for all times before the next ones. Small images stay whole.
// RUN: ptc-kernel %s | FileCheck %s

// CHECK-LABEL: @large
// CHECK:         loop.contraction [56, 6, 56, 32, 3, 64] batch 0 m 3 n 1 k 2
// CHECK:           loop.masked [d1 + d4 - 1, -d1 - d4 + 6]
// CHECK:           loop.load %{{.*}} [3584*d0 + 200704*d1 + 64*d2 + 200704*d4 + d5 - 200704]
// CHECK:           loop.store %{{.*}} [1792*d0 + 100352*d1 + 32*d2 + d3]
loop.kernel @large(%x: !loop.buffer<[6*3136*64] x f32>, %w: !loop.buffer<[3*64*32] x f32>, %y: !loop.buffer<[6*3136*32] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [6, 3136, 32, 3, 64] batch 0 m 2 n 1 k 2 lhs {
    %z = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d3 - 1, 6 - d0 - d3] else %z {
      %1 = loop.load %x[200704*d0 + 64*d1 + 200704*d3 + d4 - 200704] : !loop.buffer<[6*3136*64] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[3*64*32] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[100352*d0 + 32*d1 + d2] : !loop.buffer<[6*3136*32] x f32>
  }
}

// CHECK-LABEL: @small
// CHECK:         loop.contraction [6, 784, 32, 3, 64] batch 0 m 2 n 1 k 2
loop.kernel @small(%x: !loop.buffer<[6*784*64] x f32>, %w: !loop.buffer<[3*64*32] x f32>, %y: !loop.buffer<[6*784*32] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [6, 784, 32, 3, 64] batch 0 m 2 n 1 k 2 lhs {
    %z = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d3 - 1, 6 - d0 - d3] else %z {
      %1 = loop.load %x[50176*d0 + 64*d1 + 50176*d3 + d4 - 50176] : !loop.buffer<[6*784*64] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[3*64*32] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[25088*d0 + 32*d1 + d2] : !loop.buffer<[6*784*32] x f32>
  }
}
