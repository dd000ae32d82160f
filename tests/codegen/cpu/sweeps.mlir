// A weight that does not wait in the first-level cache is swept forwards and backwards in turn: what the step before read
// last is still near. A small one is not.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s

// CHECK-LABEL: define internal i32 @sweep.stage0
// CHECK: %[[STEP:.*]] = load i64
// CHECK: %[[ODD:.*]] = and i64 %[[STEP]], 1
// CHECK: %[[EVEN:.*]] = icmp eq i64 %[[ODD]], 0
// CHECK: %[[TILE:.*]] = phi i64 [ 0
// CHECK: %[[BACK:.*]] = sub nsw i64 11, %[[TILE]]
// CHECK: select i1 %[[EVEN]], i64 %[[TILE]], i64 %[[BACK]]
loop.kernel @sweep(%r: !loop.buffer<[9216] x f32>, %h0: !loop.buffer<[48] x f32>, %a: !loop.buffer<[192] x f32>, %h2: !loop.buffer<[48] x f32>, %hn: !loop.buffer<[48] x f32>,
                   %y: !loop.buffer<[t*48] x f32>)
    attributes {symbols = ["t"], parallel = 0 : i64, arguments_written = array<i64: 2, 3, 4, 5>} {
  loop.recurrence t from %h0 : !loop.buffer<[48] x f32> by %h2 : !loop.buffer<[48] x f32> to %hn : !loop.buffer<[48] x f32> {
  ^bb0(%h: !loop.buffer<[48] x f32>, %hnext: !loop.buffer<[48] x f32>):
    loop.fused parallel 0 {
      loop.contraction [1, 192, 48] batch 0 m 1 n 1 k 1 lhs {
        %0 = loop.load %h[d2] : !loop.buffer<[48] x f32>
        loop.yield %0 : f32
      } rhs {
        %0 = loop.panels %r : !loop.buffer<[9216] x f32> -> f32
        loop.yield %0 : f32
      } epilogue {
      ^bb0(%sum: f32):
        loop.store %sum, %a[d1] : !loop.buffer<[192] x f32>
      }
    }
    loop.fused parallel 1 {
      loop.pointwise [48] {
        %0 = loop.load %a[d0] : !loop.buffer<[192] x f32>
        %1 = loop.load %a[d0 + 144] : !loop.buffer<[192] x f32>
        %2 = arith.mulf %0, %1 : f32
        %3 = math.tanh %2 : f32
        loop.store %3, %hnext[d0] : !loop.buffer<[48] x f32>
        loop.store %3, %y[48*t$ + d0] : !loop.buffer<[t*48] x f32>
      }
    }
  }
}

// CHECK-LABEL: define internal i32 @small.stage0
// CHECK-NOT: select i1
// CHECK-LABEL: define internal i32 @small.stage1
loop.kernel @small(%r: !loop.buffer<[3072] x f32>, %h0: !loop.buffer<[48] x f32>, %a: !loop.buffer<[64] x f32>, %h2: !loop.buffer<[48] x f32>, %hn: !loop.buffer<[48] x f32>,
                   %y: !loop.buffer<[t*48] x f32>)
    attributes {symbols = ["t"], parallel = 0 : i64, arguments_written = array<i64: 2, 3, 4, 5>} {
  loop.recurrence t from %h0 : !loop.buffer<[48] x f32> by %h2 : !loop.buffer<[48] x f32> to %hn : !loop.buffer<[48] x f32> {
  ^bb0(%h: !loop.buffer<[48] x f32>, %hnext: !loop.buffer<[48] x f32>):
    loop.fused parallel 0 {
      loop.contraction [1, 64, 48] batch 0 m 1 n 1 k 1 lhs {
        %0 = loop.load %h[d2] : !loop.buffer<[48] x f32>
        loop.yield %0 : f32
      } rhs {
        %0 = loop.panels %r : !loop.buffer<[3072] x f32> -> f32
        loop.yield %0 : f32
      } epilogue {
      ^bb0(%sum: f32):
        loop.store %sum, %a[d1] : !loop.buffer<[64] x f32>
      }
    }
    loop.fused parallel 1 {
      loop.pointwise [48] {
        %0 = loop.load %a[d0] : !loop.buffer<[64] x f32>
        %1 = loop.load %a[d0 + 16] : !loop.buffer<[64] x f32>
        %2 = arith.mulf %0, %1 : f32
        %3 = math.tanh %2 : f32
        loop.store %3, %hnext[d0] : !loop.buffer<[48] x f32>
        loop.store %3, %y[48*t$ + d0] : !loop.buffer<[t*48] x f32>
      }
    }
  }
}
