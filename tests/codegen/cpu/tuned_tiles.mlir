// Tiles of the size that tuning asks for, with all that follows from a tile's size.
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s

// 7 outputs of a line share pixels: by 3 columns of the window.
// CHECK-LABEL:    define {{.*}}@shared_pixels(
// CHECK-COUNT-21: call <16 x float> @llvm.fma
// CHECK-NOT:      @llvm.fma
// CHECK:          ret i32
loop.kernel @shared_pixels(%x: !loop.buffer<[5*28*32] x f32>, %w: !loop.buffer<[2*9*16*16] x f32>, %y: !loop.buffer<[5*28*32] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>,
                loop.tuned = {level = "x86-64-v4", tile_rows = 7, tile_panels = 1}} {
  loop.contraction [2, 5, 28, 16, 3, 3, 16] batch 1 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d1 + d4 - 1, 5 - d1 - d4, d2 + d5 - 1, 28 - d2 - d5] else %zero {
      %1 = loop.load %x[((d1 + d4 - 1)*28 + d2 + d5 - 1)*32 + d0*16 + d6] : !loop.buffer<[5*28*32] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[2*9*16*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d1*28 + d2)*32 + d0*16 + d3] : !loop.buffer<[5*28*32] x f32>
  }
}

// 10 rows do not divide the line: each has pixels of its own.
// CHECK-LABEL:    define {{.*}}@own_pixels(
// CHECK-COUNT-10: call <16 x float> @llvm.fma
// CHECK-NOT:      @llvm.fma
// CHECK:          ret i32
loop.kernel @own_pixels(%x: !loop.buffer<[5*28*16] x f32>, %w: !loop.buffer<[9*16*16] x f32>, %y: !loop.buffer<[5*28*16] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>,
                loop.tuned = {level = "x86-64-v4", tile_rows = 10, tile_panels = 1}} {
  loop.contraction [5, 28, 16, 3, 3, 16] batch 0 m 2 n 1 k 3 lhs {
    %zero = arith.constant 1.0 : f32
    %0 = loop.masked [d0 + d3 - 1, 5 - d0 - d3, d1 + d4 - 1, 28 - d1 - d4] else %zero {
      %1 = loop.load %x[((d0 + d3 - 1)*28 + d1 + d4 - 1)*16 + d5] : !loop.buffer<[5*28*16] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[9*16*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %y[(d0*28 + d1)*16 + d2] : !loop.buffer<[5*28*16] x f32>
  }
}

// Lines of 28 rows are cut where a dilated window begins or ceases to see the image, at 12 and 16: tiles of 5 rows at
// most have 4 then, by 2 vectors of columns. What no row sees is left out.
// CHECK-LABEL:   define {{.*}}@lines(
// CHECK:         select i1 {{.*}}, i64 0, i64 64
// CHECK-COUNT-8: call <16 x float> @llvm.fma
// CHECK-NOT:     @llvm.fma
// CHECK:         ret i32
loop.kernel @lines(%x: !loop.buffer<[28*28*64] x f32>, %w: !loop.buffer<[9*64*64] x f32>, %y: !loop.buffer<[28*28*64] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>,
                loop.tuned = {level = "x86-64-v4", tile_rows = 5, tile_panels = 2}} {
  loop.contraction [28, 28, 64, 3, 3, 64] batch 0 m 2 n 1 k 3 lhs {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + 12*d3 - 12, 39 - d0 - 12*d3, d1 + 12*d4 - 12, 39 - d1 - 12*d4] else %zero {
      %1 = loop.load %x[((d0 + 12*d3 - 12)*28 + d1 + 12*d4 - 12)*64 + d5] : !loop.buffer<[28*28*64] x f32>
      loop.yield %1 : f32
    } : f32
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[9*64*64] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    %positive = math.absf %acc : f32
    loop.store %positive, %y[(d0*28 + d1)*64 + d2] : !loop.buffer<[28*28*64] x f32>
  }
}
