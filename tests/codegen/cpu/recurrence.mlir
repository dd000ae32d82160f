// RUN: ptc-kernel %s --check | FileCheck %s
// RUN: ptc-kernel %s | FileCheck %s --check-prefix=PLAN
// CHECK-NOT: FAIL

// Each group of nodes is planned like a kernel; a group comes one phase after those that it depends on.
// PLAN: loop.kernel @lstm
// PLAN-SAME: iterations = #prim.expr<64*max(1, 2*t)>
// PLAN-SAME: phase = #prim.expr<64>
// PLAN: phase = 0 : i64
// PLAN: phase = 1 : i64
// CHECK: ok lstm
loop.kernel @lstm(%xw: !loop.buffer<[t*b*96] x f32>, %r: !loop.buffer<[2304] x f32>, %h0: !loop.buffer<[b*24] x f32>,
                  %c0: !loop.buffer<[b*24] x f32>, %gates: !loop.buffer<[b*96] x f32>, %y: !loop.buffer<[t*b*24] x f32>,
                  %h2: !loop.buffer<[b*24] x f32>, %c2: !loop.buffer<[b*24] x f32>,
                  %hn: !loop.buffer<[b*24] x f32>, %cn: !loop.buffer<[b*24] x f32>)
    attributes {symbols = ["t", "b"], parallel = 0 : i64, arguments_written = array<i64: 4, 5, 6, 7, 8, 9>,
                test.tolerance = 1.0e-4,
                test.symbols = [{t = 1, b = 1}, {t = 2, b = 1}, {t = 5, b = 3}, {t = 0, b = 2}, {t = 3, b = 0}, {t = 4, b = 9}]} {
  loop.recurrence t from %h0, %c0 : !loop.buffer<[b*24] x f32>, !loop.buffer<[b*24] x f32>
      by %h2, %c2 : !loop.buffer<[b*24] x f32>, !loop.buffer<[b*24] x f32>
      to %hn, %cn : !loop.buffer<[b*24] x f32>, !loop.buffer<[b*24] x f32> {
  ^bb0(%h: !loop.buffer<[b*24] x f32>, %hnext: !loop.buffer<[b*24] x f32>,
       %c: !loop.buffer<[b*24] x f32>, %cnext: !loop.buffer<[b*24] x f32>):
    loop.fused parallel 2 {
      loop.reduction [b, 96, 24] reduced 1 {
        %0 = loop.load %h[24*d0 + d2] : !loop.buffer<[b*24] x f32>
        %1 = loop.load %r[96*d2 + d1] : !loop.buffer<[2304] x f32>
        %2 = arith.mulf %0, %1 : f32
        %acc = loop.reduce sum %2 : f32
        %3 = loop.load %xw[t$*b*96 + 96*d0 + d1] : !loop.buffer<[t*b*96] x f32>
        %4 = arith.addf %acc, %3 : f32
        loop.store %4, %gates[96*d0 + d1] : !loop.buffer<[b*96] x f32>
      }
    }
    loop.fused parallel 1 {
      loop.pointwise [b, 24] {
        %one = arith.constant 1.0 : f32
        %i0 = loop.load %gates[96*d0 + d1] : !loop.buffer<[b*96] x f32>
        %o0 = loop.load %gates[96*d0 + d1 + 24] : !loop.buffer<[b*96] x f32>
        %f0 = loop.load %gates[96*d0 + d1 + 48] : !loop.buffer<[b*96] x f32>
        %g0 = loop.load %gates[96*d0 + d1 + 72] : !loop.buffer<[b*96] x f32>
        %i = math.tanh %i0 : f32
        %o = math.tanh %o0 : f32
        %f = math.tanh %f0 : f32
        %g = math.tanh %g0 : f32
        %before = loop.load %c[24*d0 + d1] : !loop.buffer<[b*24] x f32>
        %kept = arith.mulf %f, %before : f32
        %fresh = arith.mulf %i, %g : f32
        %cell = arith.addf %kept, %fresh : f32
        %top = math.tanh %cell : f32
        %hidden = arith.mulf %o, %top : f32
        loop.store %cell, %cnext[24*d0 + d1] : !loop.buffer<[b*24] x f32>
        loop.store %hidden, %hnext[24*d0 + d1] : !loop.buffer<[b*24] x f32>
        loop.store %hidden, %y[t$*b*24 + 24*d0 + d1] : !loop.buffer<[t*b*24] x f32>
      }
    }
  } otherwise {
    loop.fused parallel 1 {
      loop.pointwise [24*b] {
        %0 = loop.load %h0[d0] : !loop.buffer<[b*24] x f32>
        loop.store %0, %hn[d0] : !loop.buffer<[b*24] x f32>
        %1 = loop.load %c0[d0] : !loop.buffer<[b*24] x f32>
        loop.store %1, %cn[d0] : !loop.buffer<[b*24] x f32>
      }
    }
  }
}

// Two chains that know nothing of each other share a phase. One thread alone runs one after the other.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=CHAINS
// CHAINS-LABEL: define i32 @lstm
// CHAINS-NOT: call i32 @lstm.stage0({{.*}}, i64 0, i64 %{{.*}}, ptr
// CHAINS-LABEL: define i32 @two
// CHAINS: call i32 @two.stage0({{.*}}, i64 0, i64 %[[ALL:.*]], ptr
// CHAINS: call i32 @two.stage1({{.*}}, i64 0, i64 %[[ALL]], ptr
// PLAN: loop.kernel @two
// PLAN-SAME: iterations = #prim.expr<448>
// PLAN: phase = 0 : i64
// PLAN: phase = 0 : i64
// CHECK: ok two
loop.kernel @two(%x: !loop.buffer<[7*n] x f32>, %a0: !loop.buffer<[n] x f32>, %b0: !loop.buffer<[n] x f32>,
                 %a2: !loop.buffer<[n] x f32>, %b2: !loop.buffer<[n] x f32>, %an: !loop.buffer<[n] x f32>, %bn: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 0 : i64, arguments_written = array<i64: 3, 4, 5, 6>,
                test.symbols = [{n = 1}, {n = 33}, {n = 1000}]} {
  loop.recurrence 7 from %a0, %b0 : !loop.buffer<[n] x f32>, !loop.buffer<[n] x f32>
      by %a2, %b2 : !loop.buffer<[n] x f32>, !loop.buffer<[n] x f32>
      to %an, %bn : !loop.buffer<[n] x f32>, !loop.buffer<[n] x f32> {
  ^bb0(%a: !loop.buffer<[n] x f32>, %anext: !loop.buffer<[n] x f32>, %b: !loop.buffer<[n] x f32>, %bnext: !loop.buffer<[n] x f32>):
    loop.fused parallel 1 {
      loop.pointwise [n] {
        %0 = loop.load %x[t$*n + d0] : !loop.buffer<[7*n] x f32>
        %1 = loop.load %a[d0] : !loop.buffer<[n] x f32>
        %2 = arith.addf %0, %1 : f32
        loop.store %2, %anext[d0] : !loop.buffer<[n] x f32>
      }
    }
    loop.fused parallel 1 {
      loop.pointwise [n] {
        %0 = loop.load %x[(6 - t$)*n + d0] : !loop.buffer<[7*n] x f32>
        %1 = loop.load %b[d0] : !loop.buffer<[n] x f32>
        %2 = arith.maximumf %0, %1 : f32
        loop.store %2, %bnext[d0] : !loop.buffer<[n] x f32>
      }
    }
  }
}
