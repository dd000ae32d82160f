// Blocks of sums in matrix registers: as many rows each, and the epilogue of one between the products of the next.
// RUN: ptc-kernel %s --level=x86-64-v4-amx --emit=llvm | FileCheck %s

// Tasks have 48 rows or more, and an even number of panels: one kind of block, with one configuration.
// CHECK-LABEL: define {{.*}} @long
// CHECK:       call void @llvm.x86.ldtilecfg(
// CHECK-NOT:   call void @llvm.x86.ldtilecfg(
// CHECK:       call void @llvm.x86.tdpbusd(i8 3, i8 5, i8 7)
// CHECK-NOT:   call void @llvm.x86.t
// CHECK:       sitofp <16 x i32>
// CHECK:       call void @llvm.x86.tilestored64(i8 0,
// CHECK-NOT:   call void @llvm.x86.tdp
// CHECK:       sitofp <16 x i32>
// CHECK-NOT:   call void @llvm.x86.tdp
// CHECK:       call void @llvm.x86.tilerelease()
// CHECK:       ret i32
loop.kernel @long(%a: !loop.buffer<[1000*256] x i8>, %w: !loop.buffer<[8*64*64] x i8>, %y: !loop.buffer<[1000*128] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [1000, 128, 256] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*256 + d2] : !loop.buffer<[1000*256] x i8>
    %1 = arith.extui %0 : i8 to i32
    loop.yield %1 : i32
  } rhs {
    %0 = loop.panels %w {group = 4 : i64} : !loop.buffer<[8*64*64] x i8> -> i8
    %1 = arith.extsi %0 : i8 to i32
    loop.yield %1 : i32
  } epilogue {
  ^bb0(%acc: i32):
    %0 = arith.sitofp %acc : i32 to f32
    loop.store %0, %y[d0*128 + d1] : !loop.buffer<[1000*128] x f32>
  }
}
