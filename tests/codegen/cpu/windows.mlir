// Windowed reductions over channels-last images run in tiles of outputs: every cut of a row into constant tiles, interior
// tiles and single outputs gives what the interpreter gives.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=RESULT
// RUN: ptc-kernel %s | FileCheck %s --check-prefix=PLAN
// RESULT-NOT: FAIL

// Rows are iterations; columns run in tiles.
// PLAN-LABEL: @depthwise3
// PLAN-SAME: config = {block = 20 : i64, node_vectors = array<i64: -1>, shared_vector = 2 : i64, tile_block = 0 : i64, tiled = 1 : i64}
// PLAN-SAME: iterations = #prim.expr<9>
// RESULT: ok depthwise3
loop.kernel @depthwise3(%x: !loop.buffer<[9*37*20] x f32>, %w: !loop.buffer<[9*20] x f32>, %y: !loop.buffer<[9*37*20] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [9, 37, 20, 3, 3] reduced 2 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d3 - 1, 9 - d0 - d3, d1 + d4 - 1, 37 - d1 - d4] else %zero {
      %a = loop.load %x[(d0 + d3 - 1)*740 + (d1 + d4 - 1)*20 + d2] : !loop.buffer<[9*37*20] x f32>
      loop.yield %a : f32
    } : f32
    %1 = loop.load %w[d3*60 + d4*20 + d2] : !loop.buffer<[9*20] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    %six = arith.constant 6.0 : f32
    %4 = arith.minimumf %3, %six : f32
    loop.store %4, %y[d0*740 + d1*20 + d2] : !loop.buffer<[9*37*20] x f32>
  }
}

// Every output meets a border.
// RESULT: ok depthwise5
loop.kernel @depthwise5(%x: !loop.buffer<[7*7*16] x f32>, %w: !loop.buffer<[25*16] x f32>, %y: !loop.buffer<[7*7*16] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [7, 7, 16, 5, 5] reduced 2 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d3 - 2, 8 - d0 - d3, d1 + d4 - 2, 8 - d1 - d4] else %zero {
      %a = loop.load %x[(d0 + d3 - 2)*112 + (d1 + d4 - 2)*16 + d2] : !loop.buffer<[7*7*16] x f32>
      loop.yield %a : f32
    } : f32
    %1 = loop.load %w[d3*80 + d4*16 + d2] : !loop.buffer<[25*16] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[d0*112 + d1*16 + d2] : !loop.buffer<[7*7*16] x f32>
  }
}

// Width unknown: single outputs at the borders.
// RESULT: ok strided
loop.kernel @strided(%x: !loop.buffer<[480*n] x f32>, %w: !loop.buffer<[9*24] x f32>, %y: !loop.buffer<[120*n] x f32>)
    attributes {symbols = ["n"], parallel = 2 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5,
                test.symbols = [{n = 1}, {n = 2}, {n = 3}, {n = 41}]} {
  loop.reduction [5, n, 24, 3, 3] reduced 2 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0*2 + d3 - 1, 10 - d0*2 - d3, d1*2 + d4 - 1, 2*n - d1*2 - d4] else %zero {
      %a = loop.load %x[(d0*2 + d3 - 1)*48*n + (d1*2 + d4 - 1)*24 + d2] : !loop.buffer<[480*n] x f32>
      loop.yield %a : f32
    } : f32
    %1 = loop.load %w[d3*72 + d4*24 + d2] : !loop.buffer<[9*24] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[d0*24*n + d1*24 + d2] : !loop.buffer<[120*n] x f32>
  }
}

// A row alone is cut into blocks. Dilated, longer on one side.
// PLAN-LABEL: @one_row
// PLAN-SAME: tile_block = 64 : i64, tiled = 0 : i64
// PLAN-SAME: iterations = #prim.expr<5>
// RESULT: ok one_row
loop.kernel @one_row(%x: !loop.buffer<[300*8] x f32>, %w: !loop.buffer<[9*8] x f32>, %y: !loop.buffer<[300*8] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [300, 8, 9] reduced 1 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + 3*d2 - 20, 319 - d0 - 3*d2] else %zero {
      %a = loop.load %x[(d0 + 3*d2 - 20)*8 + d1] : !loop.buffer<[300*8] x f32>
      loop.yield %a : f32
    } : f32
    %1 = loop.load %w[d2*8 + d1] : !loop.buffer<[9*8] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[d0*8 + d1] : !loop.buffer<[300*8] x f32>
  }
}

// The greatest of a window shows NaN; elements outside are left out.
// RESULT: ok max_pool
loop.kernel @max_pool(%x: !loop.buffer<[13*21*40] x f32>, %y: !loop.buffer<[7*11*40] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 1>, test.nan} {
  loop.reduction [7, 11, 40, 3, 3] reduced 2 {
    %low = arith.constant 0xFF800000 : f32
    %0 = loop.masked [d0*2 + d3 - 1, 13 - d0*2 - d3, d1*2 + d4 - 1, 21 - d1*2 - d4] else %low {
      %a = loop.load %x[(d0*2 + d3 - 1)*840 + (d1*2 + d4 - 1)*40 + d2] : !loop.buffer<[13*21*40] x f32>
      loop.yield %a : f32
    } : f32
    %1 = loop.reduce max %0 : f32
    loop.store %1, %y[d0*440 + d1*40 + d2] : !loop.buffer<[7*11*40] x f32>
  }
}

// What stands for elements outside counts: nothing may be left out.
// RESULT: ok padded_with_one
loop.kernel @padded_with_one(%x: !loop.buffer<[6*18*16] x f32>, %y: !loop.buffer<[6*18*16] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 1>, test.tolerance = 1.0e-5} {
  loop.reduction [6, 18, 16, 3, 3] reduced 2 {
    %one = arith.constant 1.0 : f32
    %0 = loop.masked [d0 + d3 - 1, 6 - d0 - d3, d1 + d4 - 1, 18 - d1 - d4] else %one {
      %a = loop.load %x[(d0 + d3 - 1)*288 + (d1 + d4 - 1)*16 + d2] : !loop.buffer<[6*18*16] x f32>
      loop.yield %a : f32
    } : f32
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %y[d0*288 + d1*16 + d2] : !loop.buffer<[6*18*16] x f32>
  }
}

// Lanes along the columns, tiles over channels: the input moves with the window, the weights with the tile.
// RESULT: ok channels_first
loop.kernel @channels_first(%x: !loop.buffer<[88] x f32>, %w: !loop.buffer<[16] x f32>, %y: !loop.buffer<[64] x f32>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [2, 4, 8, 4] reduced 1 {
    %0 = loop.load %x[d0*44 + d1*11 + d2 + d3] : !loop.buffer<[88] x f32>
    %1 = loop.load %w[d1*4 + d3] : !loop.buffer<[16] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[d0*32 + d1*8 + d2] : !loop.buffer<[64] x f32>
  }
}
