// Sums in matrix registers: what is loaded, multiplied, stored and released.
// RUN: ptc-kernel %s --level=x86-64-v4-amx --emit=asm | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v4-vnni-bf16 --emit=asm | FileCheck %s --check-prefix=VECTORS

// VECTORS-NOT: tmm

// 64 rows in place, 4 panels, 3 steps: two of A and two of B for four products, one configuration for all rows.
// CHECK-LABEL: products:
// CHECK:       ldtilecfg
// CHECK-COUNT-4: tilezero
// CHECK-DAG:   tileloadd {{.*}}, %tmm4
// CHECK-DAG:   tileloadd {{.*}}, %tmm5
// CHECK-DAG:   tileloadd {{.*}}, %tmm6
// CHECK:       tdpbf16ps %tmm6, %tmm4, %tmm0
// CHECK:       tdpbf16ps %tmm6, %tmm5, %tmm2
// CHECK:       tileloadd {{.*}}, %tmm7
// CHECK:       tdpbf16ps %tmm7, %tmm4, %tmm1
// CHECK:       tdpbf16ps %tmm7, %tmm5, %tmm3
// CHECK-COUNT-4: tilestored
// CHECK:       tilerelease
// CHECK:       retq
loop.kernel @products(%a: !loop.buffer<[64*96] x bf16>, %w: !loop.buffer<[4*48*32] x bf16>, %y: !loop.buffer<[64*64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [64, 64, 96] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*96 + d2] : !loop.buffer<[64*96] x bf16>
    %1 = arith.extf %0 : bf16 to f32
    loop.yield %1 : f32
  } rhs {
    %0 = loop.panels %w {group = 2 : i64} : !loop.buffer<[4*48*32] x bf16> -> bf16
    %1 = arith.extf %0 : bf16 to f32
    loop.yield %1 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*64 + d1] : !loop.buffer<[64*64] x f32>
  }
}
