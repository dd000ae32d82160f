// Blocks of rows fetch the next panels of their matrix while they multiply, unless all panels are in the nearest cache.
// RUN: ptc-kernel %s --level=x86-64-v4-amx --emit=llvm | FileCheck %s

// CHECK-LABEL: define {{.*}} @few
// CHECK:       call void @llvm.prefetch
// CHECK:       call void @llvm.x86.tdpbusd
// CHECK:       ret i32
loop.kernel @few(%a: !loop.buffer<[80*1024] x i8>, %w: !loop.buffer<[8*256*64] x i8>, %y: !loop.buffer<[80*128] x i32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [80, 128, 1024] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[1024*d0 + d2] : !loop.buffer<[80*1024] x i8>
    %1 = arith.extui %0 : i8 to i32
    loop.yield %1 : i32
  } rhs {
    %0 = loop.panels %w {group = 4 : i64} : !loop.buffer<[8*256*64] x i8> -> i8
    %1 = arith.extsi %0 : i8 to i32
    loop.yield %1 : i32
  } epilogue {
  ^bb0(%sum: i32):
    loop.store %sum, %y[128*d0 + d1] : !loop.buffer<[80*128] x i32>
  }
}

// CHECK-LABEL: define {{.*}} @near
// CHECK-NOT:   call void @llvm.prefetch
// CHECK:       ret i32
loop.kernel @near(%a: !loop.buffer<[80*128] x i8>, %w: !loop.buffer<[8*32*64] x i8>, %y: !loop.buffer<[80*128] x i32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [80, 128, 128] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[128*d0 + d2] : !loop.buffer<[80*128] x i8>
    %1 = arith.extui %0 : i8 to i32
    loop.yield %1 : i32
  } rhs {
    %0 = loop.panels %w {group = 4 : i64} : !loop.buffer<[8*32*64] x i8> -> i8
    %1 = arith.extsi %0 : i8 to i32
    loop.yield %1 : i32
  } epilogue {
  ^bb0(%sum: i32):
    loop.store %sum, %y[128*d0 + d1] : !loop.buffer<[80*128] x i32>
  }
}
