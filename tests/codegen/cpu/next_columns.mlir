// The row tiles of a task fetch the columns that come next, each a share of a panel, as many bytes in each step of k.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefixes=CHECK,V3
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefixes=CHECK,V4

// Tasks of 48 rows. x86-64-v3: 8 tiles of 6 x 16, each an eighth of the 64 bytes of a row of the next panel. x86-64-v4: 8
// tiles of 6 x 64, two share each of four panels.
// CHECK-LABEL: define {{.*}} @shares
// CHECK:       phi <{{8|16}} x float> [ zeroinitializer,
// V3:          %[[BY:[0-9]+]] = shl {{(nsw )?}}i64 %{{[0-9]+}}, 3
// V4:          %[[BY:[0-9]+]] = shl {{(nsw )?}}i64 %{{[0-9]+}}, 5
// CHECK-NEXT:  %[[AT:[0-9]+]] = getelementptr i8, ptr %{{[0-9]+}}, i64 %[[BY]]
// CHECK:       call void @llvm.prefetch.p0(ptr %[[AT]], i32 0, i32 2, i32 1)
// CHECK-NOT:   call void @llvm.prefetch
loop.kernel @shares(%a: !loop.buffer<[96*384] x f32>, %w: !loop.buffer<[512*384] x f32>, %y: !loop.buffer<[96*512] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [96, 512, 384] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*384 + d2] : !loop.buffer<[96*384] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[512*384] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*512 + d1] : !loop.buffer<[96*512] x f32>
  }
}

// Two tiles of 8 rows beside three panels fetch a half of each of the next three in every step: 32 bytes of a line.
// CHECK-LABEL: define {{.*}} @few
// V4:          phi <16 x float> [ zeroinitializer,
// V4:          %[[BY:[0-9]+]] = shl {{(nsw )?}}i64 %{{[0-9]+}}, 5
// V4-COUNT-3:  getelementptr i8, ptr %{{[0-9]+}}, i64 %[[BY]]
// V4:          call void @llvm.prefetch
// V4-NEXT:     call void @llvm.prefetch
// V4-NEXT:     call void @llvm.prefetch
// V4-NOT:      call void @llvm.prefetch
loop.kernel @few(%a: !loop.buffer<[16*384] x f32>, %w: !loop.buffer<[768*384] x f32>, %y: !loop.buffer<[16*768] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [16, 768, 384] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*384 + d2] : !loop.buffer<[16*384] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[768*384] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*768 + d1] : !loop.buffer<[16*768] x f32>
  }
}

// A weight that streams from memory: 12 rows are one tile, of two panels, and fetch two more.
// CHECK-LABEL: define {{.*}} @alone
// V4:          phi <16 x float> [ zeroinitializer,
// V4-COUNT-24: call <16 x float> @llvm.fma
// V4-NOT:      call <16 x float> @llvm.fma
loop.kernel @alone(%a: !loop.buffer<[12*384] x f32>, %w: !loop.buffer<[768*384] x f32>, %y: !loop.buffer<[12*768] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [12, 768, 384] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*384 + d2] : !loop.buffer<[12*384] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[768*384] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*768 + d1] : !loop.buffer<[12*768] x f32>
  }
}

// Of a sum in blocks of k the next columns' rows of the same block, behind a task's last columns the first ones' rows of
// the next block; how many tiles share a panel is known to a run.
// CHECK-LABEL: define {{.*}} @blocks
// V3:          %[[BACK:[0-9]+]] = select i1 %{{[^,]+}}, i64 131072, i64 %{{[0-9]+}}
// V4:          %[[BACK:[0-9]+]] = select i1 %{{[^,]+}}, i64 393216, i64 %{{[0-9]+}}
// CHECK-NEXT:  %[[ROWS:[0-9]+]] = select i1 %{{[^,]+}}, i64 0, i64 %{{[0-9]+}}
// CHECK-NEXT:  add nsw i64 %[[BACK]], %[[ROWS]]
// CHECK:       call void @llvm.prefetch
loop.kernel @blocks(%a: !loop.buffer<[m*2048] x f32>, %w: !loop.buffer<[128*2048] x f32>, %y: !loop.buffer<[m*128] x f32>)
    attributes {symbols = ["m"], parallel = 0 : i64, arguments_written = array<i64: 2>, test.symbols = [{m = 7}, {m = 40}]} {
  loop.contraction [m, 128, 2048] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*2048 + d2] : !loop.buffer<[m*2048] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[128*2048] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*128 + d1] : !loop.buffer<[m*128] x f32>
  }
}
