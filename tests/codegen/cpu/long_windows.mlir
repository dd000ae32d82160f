// Depthwise windows of more than 128 elements run in tiles, too: the line along which neighbours overlap is unrolled,
// and each line is a sum of its own. Tiles at a border are constant, however far windows reach over it.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=RESULT
// RUN: ptc-kernel %s | FileCheck %s --check-prefix=PLAN
// RESULT-NOT: FAIL

// PLAN-LABEL: @channels_last
// PLAN-SAME: shared_vector = 2 : i64, tile_block = 0 : i64, tiled = 1 : i64
// RESULT: ok channels_last
loop.kernel @channels_last(%x: !loop.buffer<[20*30*24] x f32>, %w: !loop.buffer<[17*17*24] x f32>, %y: !loop.buffer<[20*30*24] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [20, 30, 24, 17, 17] reduced 2 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d3 - 8, 27 - d0 - d3, d1 + d4 - 8, 37 - d1 - d4] else %zero {
      %1 = loop.load %x[(d0 + d3 - 8)*720 + (d1 + d4 - 8)*24 + d2] : !loop.buffer<[20*30*24] x f32>
      loop.yield %1 : f32
    } : f32
    %2 = loop.load %w[d3*408 + d4*24 + d2] : !loop.buffer<[17*17*24] x f32>
    %3 = arith.mulf %0, %2 : f32
    %4 = loop.reduce sum %3 : f32
    loop.store %4, %y[d0*720 + d1*24 + d2] : !loop.buffer<[20*30*24] x f32>
  }
}

// Lines of the window are longer than the image's: what lies one line further overlaps, not what is 14 places further.
// PLAN-LABEL: @channels_first
// PLAN-SAME: shared_vector = 2 : i64, tile_block = 0 : i64, tiled = 1 : i64
// RESULT: ok channels_first
loop.kernel @channels_first(%x: !loop.buffer<[5*14*14] x f32>, %w: !loop.buffer<[5*27*27] x f32>, %y: !loop.buffer<[5*14*14] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [5, 14, 14, 27, 27] reduced 2 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d1 + d3 - 13, 26 - d1 - d3, d2 + d4 - 13, 26 - d2 - d4] else %zero {
      %1 = loop.load %x[d0*196 + (d1 + d3 - 13)*14 + d2 + d4 - 13] : !loop.buffer<[5*14*14] x f32>
      loop.yield %1 : f32
    } : f32
    %2 = loop.load %w[d0*729 + d3*27 + d4] : !loop.buffer<[5*27*27] x f32>
    %3 = arith.mulf %0, %2 : f32
    %4 = loop.reduce sum %3 : f32
    loop.store %4, %y[d0*196 + d1*14 + d2] : !loop.buffer<[5*14*14] x f32>
  }
}
