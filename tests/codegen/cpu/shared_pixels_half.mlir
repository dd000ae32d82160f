// Eight columns of eight channels: rows of half a 512-bit vector share pixels, and what follows the sums runs on halves.
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s

// 10 outputs by 3 columns of the window, then the function on eight sums, unmasked.
// CHECK-LABEL:    define {{.*}}@eight(
// CHECK-COUNT-30: call <8 x float> @llvm.fma.v8f32
// CHECK-NOT:      @llvm.fma
// CHECK:          store <8 x float>
// CHECK:          fdiv {{.*}}<8 x float>
// CHECK-NEXT:     store <8 x float>
// CHECK:          ret i32
loop.kernel @eight(%x: !loop.buffer<[20*20*8] x f32>, %w: !loop.buffer<[9*8*16] x f32>, %y: !loop.buffer<[20*20*8] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [20, 20, 8, 3, 3, 8] batch 0 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d3 - 1, 20 - d0 - d3, d1 + d4 - 1, 20 - d1 - d4] else %zero {
      %1 = loop.load %x[((d0 + d3 - 1)*20 + d1 + d4 - 1)*8 + d5] : !loop.buffer<[20*20*8] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[9*8*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    %one = arith.constant 1.0 : f32
    %magnitude = math.absf %acc : f32
    %negated = arith.negf %magnitude : f32
    %power = math.exp %negated : f32
    %sum = arith.addf %one, %power : f32
    %0 = arith.divf %acc, %sum : f32
    loop.store %0, %y[(d0*20 + d1)*8 + d2] : !loop.buffer<[20*20*8] x f32>
  }
}
