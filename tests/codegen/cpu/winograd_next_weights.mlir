// Products of Winograd's algorithm fetch the weights of the column tile that follows: behind a task's last columns its
// first ones of the next position, behind the last position the next task's. A panel has 8 KiB here, a tile four of them.
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s

// CHECK-LABEL: define {{.*}} @images
// CHECK:       %[[MORE:[0-9]+]] = icmp slt i64 %{{[0-9]+}}, 36
// CHECK:       %[[PANELS:[0-9]+]] = select i1 %[[MORE]], i64 %{{[0-9]+}}, i64
// CHECK:       %[[BEHIND:[0-9]+]] = shl nsw i64 %[[PANELS]], 13
// CHECK:       %[[BYTES:[0-9]+]] = select i1 %{{.*}}, i64 32768, i64 %[[BEHIND]]
// CHECK:       %[[FROM:[0-9]+]] = getelementptr i8, ptr %{{[0-9]+}}, i64 %[[BYTES]]
// CHECK:       %[[SHARE:[0-9]+]] = getelementptr i8, ptr %[[FROM]], i64
// CHECK:       %[[HIDDEN:[0-9]+]] = call ptr asm "", "=r,0"(ptr %[[SHARE]])
// CHECK:       %[[KEPT:[0-9]+]] = freeze ptr %[[HIDDEN]]
// CHECK:       %[[LINE:[0-9]+]] = getelementptr i8, ptr %[[KEPT]], i64
// CHECK:       call void @llvm.prefetch.p0(ptr %[[LINE]], i32 0, i32 2, i32 1)
loop.kernel @images(%x: !loop.buffer<[28*28*128] x f32>, %w: !loop.buffer<[36*128*128] x f32>, %y: !loop.buffer<[28*28*128] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [1, 28, 28, 128, 3, 3, 128] batch 0 m 3 n 1 k 3 lhs {
    %z = arith.constant 0.0 : f32
    %0 = loop.masked [d1 + d4 - 1, 28 - d1 - d4, d2 + d5 - 1, 28 - d2 - d5] else %z {
      %1 = loop.load %x[(d1 + d4)*3584 + (d2 + d5)*128 + d6 - 3712] : !loop.buffer<[28*28*128] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w {winograd = array<i64: 4, 3, 3>} : !loop.buffer<[36*128*128] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d1*3584 + d2*128 + d3] : !loop.buffer<[28*28*128] x f32>
  }
}
