// RUN: ptc-opt %s --ptc-count-work | FileCheck %s

// x is read once, whatever the number of loads; the bias has 8 elements; a multiply-add is two operations, the epilogue's
// addition one for each result.
// CHECK-LABEL: loop.kernel @matmul
// CHECK-SAME:    bytes_read = #prim.expr<64*s0 + 544>
// CHECK-SAME:    bytes_written = #prim.expr<32*s0>
// CHECK-SAME:    flops = #prim.expr<264*s0>
loop.kernel @matmul(%x: !loop.buffer<[16*s0] x f32, <[0]>>, %w: !loop.buffer<[128] x f32, <[0]>>, %b: !loop.buffer<[8] x f32, <[0]>>, %y: !loop.buffer<[8*s0] x f32, <[0]>>)
    attributes {arguments_written = array<i64: 3>, parallel = 0 : i64, symbols = ["s0"]} {
  loop.contraction [s0, 8, 16] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %x [16*d0 + d2] : <[16*s0] x f32, <[0]>>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.load %w [d1 + 8*d2] : <[128] x f32, <[0]>>
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%sum: f32):
    %0 = loop.load %b [d1] : <[8] x f32, <[0]>>
    %1 = arith.addf %sum, %0 : f32
    loop.store %1, %y [8*d0 + d1] : <[8*s0] x f32, <[0]>>
  }
}

// Two passes over one buffer count once; a buffer of the kernel's own does not count.
// CHECK-LABEL: loop.kernel @center
// CHECK-SAME:    bytes_read = #prim.expr<256>
// CHECK-SAME:    bytes_written = #prim.expr<256>
// CHECK-SAME:    flops = #prim.expr<128>
loop.kernel @center(%x: !loop.buffer<[64] x f32, <[0]>>, %y: !loop.buffer<[64] x f32, <[0]>>)
    attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = []} {
  %m = loop.buffer : <[1] x f32, <[0]>>
  loop.reduction [4, 16] reduced 1 {
    %0 = loop.load %x [16*d0 + d1] : <[64] x f32, <[0]>>
    %1 = loop.reduce max %0 : f32
    loop.store %1, %m [0] : <[1] x f32, <[0]>>
  }
  loop.pointwise [4, 16] {
    %0 = loop.load %x [16*d0 + d1] : <[64] x f32, <[0]>>
    %1 = loop.load %m [0] : <[1] x f32, <[0]>>
    %2 = arith.subf %0, %1 : f32
    loop.store %2, %y [16*d0 + d1] : <[64] x f32, <[0]>>
  }
}

// Each step reads the weights and the state again, and a line of its own.
// CHECK-LABEL: loop.kernel @steps
// CHECK-SAME:    bytes_read = #prim.expr<64*s0 + 1088>
// CHECK-SAME:    step_bytes_read = #prim.expr<4*min(16, 16*s0) + 1088>
// CHECK-SAME:    steps = #prim.expr<s0>
loop.kernel @steps(%x: !loop.buffer<[16*s0] x f32, <[0]>>, %r: !loop.buffer<[256] x f32, <[0]>>, %first: !loop.buffer<[16] x f32, <[0]>>, %spare: !loop.buffer<[16] x f32, <[0]>>, %last: !loop.buffer<[16] x f32, <[0]>>)
    attributes {arguments_written = array<i64: 3, 4>, parallel = 0 : i64, symbols = ["s0"]} {
  loop.recurrence s0 from %first : !loop.buffer<[16] x f32, <[0]>> by %spare : !loop.buffer<[16] x f32, <[0]>>
      to %last : !loop.buffer<[16] x f32, <[0]>> {
  ^bb0(%now: !loop.buffer<[16] x f32, <[0]>>, %next: !loop.buffer<[16] x f32, <[0]>>):
    loop.fused parallel 1 {
      loop.reduction [16, 16] reduced 1 {
        %0 = loop.load %now [d1] : <[16] x f32, <[0]>>
        %1 = loop.load %r [16*d1 + d0] : <[256] x f32, <[0]>>
        %2 = arith.mulf %0, %1 : f32
        %3 = loop.reduce sum %2 : f32
        %4 = loop.load %x [16*t$ + d0] : <[16*s0] x f32, <[0]>>
        %5 = arith.addf %3, %4 : f32
        loop.store %5, %next [d0] : <[16] x f32, <[0]>>
      }
    }
  } otherwise {
    loop.fused parallel 1 {
      loop.pointwise [16] {
        %0 = loop.load %first [d0] : <[16] x f32, <[0]>>
        loop.store %0, %last [d0] : <[16] x f32, <[0]>>
      }
    }
  }
}

// Two chains: the mean of what a step of each reads, and the steps of both.
// CHECK-LABEL: loop.kernel @chains
// CHECK-SAME:    step_bytes_read = #prim.expr<96>
// CHECK-SAME:    steps = #prim.expr<14>
loop.kernel @chains(%x: !loop.buffer<[32] x f32>, %first: !loop.buffer<[16] x f32>, %a2: !loop.buffer<[16] x f32>, %b2: !loop.buffer<[16] x f32>, %a: !loop.buffer<[16] x f32>, %b: !loop.buffer<[16] x f32>)
    attributes {arguments_written = array<i64: 2, 3, 4, 5>, parallel = 0 : i64, symbols = []} {
  loop.recurrence 7 from %first, %first : !loop.buffer<[16] x f32>, !loop.buffer<[16] x f32>
      by %a2, %b2 : !loop.buffer<[16] x f32>, !loop.buffer<[16] x f32> to %a, %b : !loop.buffer<[16] x f32>, !loop.buffer<[16] x f32> {
  ^bb0(%anow: !loop.buffer<[16] x f32>, %anext: !loop.buffer<[16] x f32>, %bnow: !loop.buffer<[16] x f32>, %bnext: !loop.buffer<[16] x f32>):
    loop.fused parallel 1 {
      loop.pointwise [16] {
        %0 = loop.load %anow [d0] : <[16] x f32>
        %1 = loop.load %x [d0] : <[32] x f32>
        %2 = arith.mulf %0, %1 : f32
        loop.store %2, %anext [d0] : <[16] x f32>
      }
    }
    loop.fused parallel 1 {
      loop.pointwise [16] {
        %0 = loop.load %bnow [d0] : <[16] x f32>
        %1 = loop.load %bnow [15 - d0] : <[16] x f32>
        %2 = arith.mulf %0, %1 : f32
        loop.store %2, %bnext [d0] : <[16] x f32>
      }
    }
  }
}
