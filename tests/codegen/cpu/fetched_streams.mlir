// A lone row by a weight that streams from memory: each panel's own stream is fetched ahead, as far as suits the
// vectors and the processor, and goes on from one tile to the next.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefixes=CHECK,V3,NEXT -DAHEAD=2048
// RUN: ptc-kernel %s --level=x86-64-v3-zen --emit=llvm | FileCheck %s --check-prefixes=CHECK,V3,ZEN -DAHEAD=256
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefixes=CHECK,V4

// Four panels of 48 KB, or 12288 floats, at once with 512-bit vectors: as many tiles apart as there are, each tile's
// behind those of the tile before. What is fetched lies so far behind what is loaded right before, in the same stream,
// whatever tile that is in; the second vector of a line is there by then.
// CHECK-LABEL: define {{.*}} @streams
// V4-DAG:      mul nuw nsw i64 %[[TILES:[0-9]+]], 12288
// V4-DAG:      mul nuw nsw i64 %[[TILES]], 24576
// V4-DAG:      mul nuw nsw i64 %[[TILES]], 36864
// V4:          mul i64 %{{[0-9]+}}, 49152
// V4:          %[[AHEAD:[0-9]+]] = getelementptr i8, ptr %[[OWN:[0-9]+]], i64 1024
// V4-COUNT-4:  call void @llvm.prefetch.p0(ptr %{{[0-9]+}}, i32 0, i32 2, i32 1)
// V4:          load <16 x float>, ptr %[[OWN]], align 4
// V4-NEXT:     call void @llvm.prefetch.p0(ptr %[[AHEAD]], i32 0, i32 2, i32 1)
// V3:          %[[AT:[0-9]+]] = getelementptr i8, ptr %[[OWN:[0-9]+]], i64 [[AHEAD]]
// V3-COUNT-2:  call void @llvm.prefetch.p0(ptr %{{[0-9]+}}, i32 0, i32 2, i32 1)
// V3:          load <8 x float>, ptr %[[OWN]], align 4
// V3-NEXT:     call void @llvm.prefetch.p0(ptr %[[AT]], i32 0, i32 2, i32 1)
// V3-NEXT:     load <8 x float>
// V3-NEXT:     load float
loop.kernel @streams(%a: !loop.buffer<[768] x f32>, %w: !loop.buffer<[1024*768] x f32>, %y: !loop.buffer<[1024] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [1, 1024, 768] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d2] : !loop.buffer<[768] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[1024*768] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d1] : !loop.buffer<[1024] x f32>
  }
}

// Four rows' multiply-adds of 256 bits take as long as memory. Processors that follow streams by themselves get four
// lines for each row ahead of each of the two, others the next tile's lines, which begin where no stream of the tile is.
// CHECK-LABEL: define {{.*}} @rows
// ZEN-COUNT-2: getelementptr i8, ptr %{{[0-9]+}}, i64 1024
// NEXT-NOT:    getelementptr i8, ptr %{{[0-9]+}}, i64 1024
// CHECK:       call void @llvm.prefetch
loop.kernel @rows(%a: !loop.buffer<[4*768] x f32>, %w: !loop.buffer<[1024*768] x f32>, %y: !loop.buffer<[4*1024] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [4, 1024, 768] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d0*768 + d2] : !loop.buffer<[4*768] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[1024*768] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d0*1024 + d1] : !loop.buffer<[4*1024] x f32>
  }
}

// Of a weight that stays in the second-level cache nothing is fetched.
// CHECK-LABEL: define {{.*}} @small
// CHECK-NOT:   call void @llvm.prefetch
loop.kernel @small(%a: !loop.buffer<[1024] x f32>, %w: !loop.buffer<[64*1024] x f32>, %y: !loop.buffer<[64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [1, 64, 1024] batch 0 m 1 n 1 k 1 lhs {
    %0 = loop.load %a[d2] : !loop.buffer<[1024] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[64*1024] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[d1] : !loop.buffer<[64] x f32>
  }
}
