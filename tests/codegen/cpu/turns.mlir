// A turn of a tile's loop takes several steps of k, each but the last ended by a fence: LLVM would move the loads of all
// steps ahead. Short loops have as many as divide them; vectors of 512 bits and tiles of many sums have one.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefix=V4
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=asm | FileCheck %s --check-prefix=ASM

// Six rows by two vectors: four steps. What comes from outside is frozen, so that a few registers hold the addresses.
// CHECK-LABEL:    define {{.*}} @four
// CHECK:          freeze ptr
// CHECK-COUNT-12: call <8 x float> @llvm.fma
// CHECK-NEXT:     fence syncscope("singlethread") seq_cst
// CHECK-COUNT-12: call <8 x float> @llvm.fma
// CHECK-NEXT:     fence
// CHECK-COUNT-12: call <8 x float> @llvm.fma
// CHECK-NEXT:     fence
// CHECK-COUNT-12: call <8 x float> @llvm.fma
// CHECK-NOT:      fence
// CHECK:          ret i32
// V4-LABEL:       define {{.*}} @four
// V4-NOT:         fence
// V4:             ret i32
// ASM-LABEL:      four:
// ASM:            .p2align 6
// ASM-NEXT:       .LBB{{.*}}:
// ASM-NOT:        (%rsp)
// ASM-COUNT-48:   vfmadd231ps %ymm
// ASM-NOT:        vfmadd
// ASM:            jl
loop.kernel @four(%a: !loop.buffer<[6*384] x f32>, %w: !loop.buffer<[1*384*16] x f32>, %y: !loop.buffer<[6*16] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [6, 16, 384] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*384 + d2] : !loop.buffer<[6*384] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[1*384*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*16 + d1] : !loop.buffer<[6*16] x f32>
  }
}

// 18 steps: nine turns of two. 35: eight of four, and three steps.
// CHECK-LABEL:    define {{.*}} @short
// CHECK-COUNT-12: call <8 x float> @llvm.fma
// CHECK-NEXT:     fence
// CHECK-COUNT-12: call <8 x float> @llvm.fma
// CHECK-NOT:      @llvm.fma
// CHECK:          ret i32
// CHECK-LABEL:    define {{.*}} @rest
// CHECK-COUNT-48: call <8 x float> @llvm.fma
// CHECK:          call <8 x float> @llvm.fma
loop.kernel @short(%a: !loop.buffer<[6*18] x f32>, %w: !loop.buffer<[1*18*16] x f32>, %y: !loop.buffer<[6*16] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [6, 16, 18] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*18 + d2] : !loop.buffer<[6*18] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[1*18*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*16 + d1] : !loop.buffer<[6*16] x f32>
  }
}

loop.kernel @rest(%a: !loop.buffer<[6*35] x f32>, %w: !loop.buffer<[1*35*16] x f32>, %y: !loop.buffer<[6*16] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [6, 16, 35] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*35 + d2] : !loop.buffer<[6*35] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[1*35*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*16 + d1] : !loop.buffer<[6*16] x f32>
  }
}
