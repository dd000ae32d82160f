// Sums in matrix registers: two by two of them, or four in a row beside few rows; rows that are copied; ends of k.
// RUN: ptc-kernel %s --level=x86-64-v4-amx --emit=llvm | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v4-amx --emit=asm | FileCheck %s --check-prefix=ASM
// RUN: ptc-kernel %s --level=x86-64-v4-vnni-bf16 --emit=asm | FileCheck %s --check-prefix=VECTORS

// The state of the registers ends with the kernel, on each of its ways out.
// ASM-LABEL: products:
// ASM:       ldtilecfg
// ASM:       tdpbf16ps
// ASM:       tilerelease
// ASM:       retq
// ASM-NOT:   tmm
// ASM-LABEL: window:
// ASM:       ldtilecfg
// ASM:       tdpbusd
// ASM:       tilerelease
// ASM:       retq
// ASM-NOT:   tmm
// ASM-LABEL: row:
// ASM-NOT:   {{tmm|tile}}
// ASM-LABEL: any_rows:
// ASM:       tdpbf16ps
// ASM:       tilerelease
// ASM:       vdpbf16ps
// VECTORS-NOT: {{tmm|tile}}

// 200 rows in place, 16 of a task, beside four panels. 3 steps of 16 pairs, nothing is copied.
// CHECK-LABEL: define {{.*}} @products
// CHECK:       call void @llvm.x86.ldtilecfg(
// CHECK:       call void @llvm.x86.tdpbf16ps(i8 0, i8 4, i8 6)
// CHECK:       call void @llvm.x86.tdpbf16ps(i8 1, i8 4, i8 7)
// CHECK:       call void @llvm.x86.tdpbf16ps(i8 2, i8 4, i8 6)
// CHECK:       call void @llvm.x86.tdpbf16ps(i8 3, i8 4, i8 7)
// CHECK-NOT:   {{load <64 x i8>|i8 5}}
// CHECK:       call void @llvm.x86.tilerelease()
// CHECK:       ret i32
loop.kernel @products(%a: !loop.buffer<[200*96] x bf16>, %w: !loop.buffer<[20*48*32] x bf16>, %y: !loop.buffer<[200*320] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [200, 320, 96] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*96 + d2] : !loop.buffer<[200*96] x bf16>
    %1 = arith.extf %0 : bf16 to f32
    loop.yield %1 : f32
  } rhs {
    %0 = loop.panels %w {group = 2 : i64} : !loop.buffer<[20*48*32] x bf16> -> bf16
    %1 = arith.extf %0 : bf16 to f32
    loop.yield %1 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*320 + d1] : !loop.buffer<[200*320] x f32>
  }
}

// A 3x3 window over 68 channels: 17 groups are a step of 16 and one from copies, and rows come through copies too.
// CHECK-LABEL: define {{.*}} @window
// CHECK-DAG:   load <64 x i8>
// CHECK-DAG:   call {{.*}} @llvm.masked.load.v64i8
// CHECK-DAG:   call void @llvm.x86.tdpbusd(i8 3, i8 5, i8 7)
// CHECK-DAG:   call void @llvm.x86.tdpbusd(i8 1, i8 4, i8 7)
// CHECK:       call void @llvm.x86.tilerelease()
// CHECK:       ret i32
loop.kernel @window(%x: !loop.buffer<[11*12*68] x i8>, %w: !loop.buffer<[3*153*64] x i8>, %y: !loop.buffer<[9*10*40] x i32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [9, 10, 40, 3, 3, 68] batch 0 m 2 n 1 k 3 lhs {
    %0 = loop.load %x[d0*816 + d3*816 + d1*68 + d4*68 + d5] : !loop.buffer<[11*12*68] x i8>
    %1 = arith.extui %0 : i8 to i32
    loop.yield %1 : i32
  } rhs {
    %0 = loop.panels %w {group = 4 : i64} : !loop.buffer<[3*153*64] x i8> -> i8
    %1 = arith.extsi %0 : i8 to i32
    loop.yield %1 : i32
  } epilogue {
  ^bb0(%acc: i32):
    loop.store %acc, %y[d0*400 + d1*40 + d2] : !loop.buffer<[9*10*40] x i32>
  }
}

// One row reads its weight as fast with vectors.
loop.kernel @row(%a: !loop.buffer<[96] x bf16>, %w: !loop.buffer<[4*48*32] x bf16>, %y: !loop.buffer<[64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [64, 96] batch 0 m 0 n 1 k 1 lhs {
    %0 = loop.load %a[d1] : !loop.buffer<[96] x bf16>
    %1 = arith.extf %0 : bf16 to f32
    loop.yield %1 : f32
  } rhs {
    %0 = loop.panels %w {group = 2 : i64} : !loop.buffer<[4*48*32] x bf16> -> bf16
    %1 = arith.extf %0 : bf16 to f32
    loop.yield %1 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0] : !loop.buffer<[64] x f32>
  }
}

// How many rows there are is known to a run: up to 4 of them are multiplied by vectors.
// CHECK-LABEL: define {{.*}} @any_rows
// CHECK-DAG:   icmp slt i64 %{{.*}}, 5
// CHECK-DAG:   icmp sgt i64 %{{.*}}, 4
// CHECK-DAG:   call void @llvm.x86.tdpbf16ps(i8 3, i8 5, i8 7)
// CHECK-DAG:   call void @llvm.x86.tdpbf16ps(i8 3, i8 4, i8 7)
// CHECK:       call void @llvm.x86.tilerelease()
// CHECK-COUNT-40: call <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(
// CHECK:       ret i32
loop.kernel @any_rows(%a: !loop.buffer<[m*96] x bf16>, %w: !loop.buffer<[4*48*32] x bf16>, %y: !loop.buffer<[m*64] x f32>)
    attributes {symbols = ["m"], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [m, 64, 96] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*96 + d2] : !loop.buffer<[m*96] x bf16>
    %1 = arith.extf %0 : bf16 to f32
    loop.yield %1 : f32
  } rhs {
    %0 = loop.panels %w {group = 2 : i64} : !loop.buffer<[4*48*32] x bf16> -> bf16
    %1 = arith.extf %0 : bf16 to f32
    loop.yield %1 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*64 + d1] : !loop.buffer<[m*64] x f32>
  }
}
