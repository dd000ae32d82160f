// Outputs whose windows have nothing in common follow each other, so that the image is read in turn: what lies in
// another line is not what neighbours share. Windows that overlap are tiles.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=OK
// RUN: ptc-kernel %s | FileCheck %s
// OK-NOT: FAIL

// OK:          ok pool
// CHECK-LABEL: loop.kernel @pool
// CHECK-NOT:   tiled
// CHECK:       loop.reduction
loop.kernel @pool(%x: !loop.buffer<[12*120*64] x f32>, %y: !loop.buffer<[6*60*64] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 1>} {
  loop.reduction [6, 60, 64, 2, 2] reduced 2 {
    %0 = loop.load %x[((2*d0 + d3)*120 + 2*d1 + d4)*64 + d2] : !loop.buffer<[12*120*64] x f32>
    %1 = loop.reduce max %0 : f32
    loop.store %1, %y[(d0*60 + d1)*64 + d2] : !loop.buffer<[6*60*64] x f32>
  }
}

// OK:          ok overlapping
// CHECK-LABEL: loop.kernel @overlapping
// CHECK-SAME:  tiled = 1 : i64
loop.kernel @overlapping(%x: !loop.buffer<[13*121*64] x f32>, %y: !loop.buffer<[6*60*64] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 1>} {
  loop.reduction [6, 60, 64, 3, 3] reduced 2 {
    %0 = loop.load %x[((2*d0 + d3)*121 + 2*d1 + d4)*64 + d2] : !loop.buffer<[13*121*64] x f32>
    %1 = loop.reduce max %0 : f32
    loop.store %1, %y[(d0*60 + d1)*64 + d2] : !loop.buffer<[6*60*64] x f32>
  }
}

// Weights are shared even so.
// OK:          ok weighted
// CHECK-LABEL: loop.kernel @weighted
// CHECK-SAME:  tiled = 1 : i64
loop.kernel @weighted(%x: !loop.buffer<[12*120*64] x f32>, %w: !loop.buffer<[2*2*64] x f32>, %y: !loop.buffer<[6*60*64] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 2>} {
  loop.reduction [6, 60, 64, 2, 2] reduced 2 {
    %0 = loop.load %x[((2*d0 + d3)*120 + 2*d1 + d4)*64 + d2] : !loop.buffer<[12*120*64] x f32>
    %1 = loop.load %w[(d3*2 + d4)*64 + d2] : !loop.buffer<[2*2*64] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[(d0*60 + d1)*64 + d2] : !loop.buffer<[6*60*64] x f32>
  }
}
