// Images of any size are read where they are, too, with copies of the rows at borders alone.
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s

// The two highest tiles, of 8 and 7 rows, have such loops; many rows have no lower ones.
// CHECK-LABEL:         define {{.*}} @free_sizes
// CHECK-COUNT-2:       call void @llvm.prefetch{{.*}}(ptr {{.*}}, i32 0, i32 3, i32 1)
// CHECK-NOT:           @llvm.prefetch
// CHECK:               ret i32
loop.kernel @free_sizes(%x: !loop.buffer<[3*h*w] x f32>, %w: !loop.buffer<[27*16] x f32>, %y: !loop.buffer<[h*w*16] x f32>)
    attributes {symbols = ["h", "w"], parallel = 0 : i64, arguments_written = array<i64: 2>} {
  loop.contraction [h, w, 16, 3, 3, 3] batch 0 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d3 - 1, h - d0 - d3, d1 + d4 - 1, w - d1 - d4] else %zero {
      %1 = loop.load %x[d5*h*w + (d0 + d3 - 1)*w + d1 + d4 - 1] : !loop.buffer<[3*h*w] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[27*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*w + d1)*16 + d2] : !loop.buffer<[h*w*16] x f32>
  }
}
