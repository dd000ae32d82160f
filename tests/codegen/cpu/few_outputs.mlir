// Convolutions with few output channels are sums with lanes along the input's channels, in tiles of as many neighbouring
// outputs as lanes; vectors of outputs whose windows meet no border ask nothing about it.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=RESULT
// RUN: ptc-kernel %s | FileCheck %s --check-prefix=PLAN
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=V3
// RESULT-NOT: FAIL

// A tile's eight sums of eight lanes become one vector of outputs.
// PLAN-LABEL: @one_output
// PLAN-SAME: node_vectors = array<i64: 4>, shared_vector = -1 : i64, tile_block = 0 : i64, tiled = 1 : i64
// PLAN-SAME: iterations = #prim.expr<9>
// V3-LABEL: define {{.*}}@one_output(
// V3: shufflevector <8 x float> {{.*}} <i32 0, i32 1, i32 2, i32 3, i32 8, i32 9, i32 10, i32 11>
// V3: store <8 x float>
// RESULT: ok one_output
loop.kernel @one_output(%x: !loop.buffer<[9*40*8] x f32>, %w: !loop.buffer<[25*8] x f32>, %y: !loop.buffer<[9*40] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [9, 40, 5, 5, 8] reduced 3 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d2 - 2, 10 - d0 - d2, d1 + d3 - 2, 41 - d1 - d3] else %zero {
      %1 = loop.load %x[(d0 + d2 - 2)*320 + (d1 + d3 - 2)*8 + d4] : !loop.buffer<[9*40*8] x f32>
      loop.yield %1 : f32
    } : f32
    %2 = loop.load %w[d2*40 + d3*8 + d4] : !loop.buffer<[25*8] x f32>
    %3 = arith.mulf %0, %2 : f32
    %4 = loop.reduce sum %3 : f32
    %bias = arith.constant 0.5 : f32
    %5 = arith.addf %4, %bias : f32
    %6 = math.tanh %5 : f32
    loop.store %6, %y[d0*40 + d1] : !loop.buffer<[9*40] x f32>
  }
}

// Four outputs of twelve channels, whose vectors have four lanes; a width that no tile divides.
// RESULT: ok four_outputs
loop.kernel @four_outputs(%x: !loop.buffer<[7*37*12] x f32>, %w: !loop.buffer<[4*9*12] x f32>, %y: !loop.buffer<[4*4*19] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [4, 19, 4, 3, 3, 12] reduced 3 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [2*d0 + d3 - 1, 7 - 2*d0 - d3, 2*d1 + d4 - 1, 37 - 2*d1 - d4] else %zero {
      %1 = loop.load %x[(2*d0 + d3 - 1)*444 + (2*d1 + d4 - 1)*12 + d5] : !loop.buffer<[7*37*12] x f32>
      loop.yield %1 : f32
    } : f32
    %2 = loop.load %w[d2*108 + d3*36 + d4*12 + d5] : !loop.buffer<[4*9*12] x f32>
    %3 = arith.mulf %0, %2 : f32
    %4 = loop.reduce sum %3 : f32
    loop.store %4, %y[d2*76 + d0*19 + d1] : !loop.buffer<[4*4*19] x f32>
  }
}

// A width that is not known, in blocks; what is outside counts, so that nothing may be left out.
// PLAN-LABEL: @any_width
// PLAN-SAME: tile_block = 64 : i64, tiled = 0 : i64
// RESULT: ok any_width
loop.kernel @any_width(%x: !loop.buffer<[16*n] x f32>, %w: !loop.buffer<[48] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5,
                test.symbols = [{n = 1}, {n = 2}, {n = 9}, {n = 150}]} {
  loop.reduction [n, 3, 16] reduced 2 {
    %one = arith.constant 1.0 : f32
    %0 = loop.masked [d0 + d1 - 1, n - d0 - d1] else %one {
      %1 = loop.load %x[(d0 + d1 - 1)*16 + d2] : !loop.buffer<[16*n] x f32>
      loop.yield %1 : f32
    } : f32
    %2 = loop.load %w[d1*16 + d2] : !loop.buffer<[48] x f32>
    %3 = arith.mulf %0, %2 : f32
    %4 = loop.reduce sum %3 : f32
    loop.store %4, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// The greatest of rows, several of which share a step; nothing stands beside them.
// PLAN-LABEL: @row_maxima
// PLAN-SAME: node_vectors = array<i64: 1>, shared_vector = -1 : i64, tile_block = 64 : i64, tiled = 0 : i64
// RESULT: ok row_maxima
loop.kernel @row_maxima(%x: !loop.buffer<[100*24] x f32>, %y: !loop.buffer<[100] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1>, test.nan} {
  loop.reduction [100, 24] reduced 1 {
    %0 = loop.load %x[d0*24 + d1] : !loop.buffer<[100*24] x f32>
    %1 = loop.reduce max %0 : f32
    loop.store %1, %y[d0] : !loop.buffer<[100] x f32>
  }
}

// A window along the lanes: only the first vector and the last ask about the border.
// V3-LABEL: define {{.*}}@along_lanes(
// V3: masked.load
// V3: load <8 x float>, ptr {{.*}}, align 4
// V3: masked.load
// V3: ret i32
// RESULT: ok along_lanes
loop.kernel @along_lanes(%x: !loop.buffer<[9*192] x f32>, %y: !loop.buffer<[9*192] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 1>, test.tolerance = 1.0e-5} {
  loop.reduction [9, 192, 5] reduced 1 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d1 + d2 - 2, 193 - d1 - d2] else %zero {
      %1 = loop.load %x[d0*192 + d1 + d2 - 2] : !loop.buffer<[9*192] x f32>
      loop.yield %1 : f32
    } : f32
    %2 = loop.reduce sum %0 : f32
    loop.store %2, %y[d0*192 + d1] : !loop.buffer<[9*192] x f32>
  }
}

// The same where the image is as short as a vector, and with a window that is summed in loops.
// RESULT: ok short_lines
loop.kernel @short_lines(%x: !loop.buffer<[34*3*10] x f32>, %w: !loop.buffer<[34*9] x f32>, %y: !loop.buffer<[3*10] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [3, 10, 3, 3, 34] reduced 3 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d2 - 1, 3 - d0 - d2, d1 + d3 - 1, 10 - d1 - d3] else %zero {
      %1 = loop.load %x[d4*30 + (d0 + d2 - 1)*10 + d1 + d3 - 1] : !loop.buffer<[34*3*10] x f32>
      loop.yield %1 : f32
    } : f32
    %2 = loop.load %w[d4*9 + d2*3 + d3] : !loop.buffer<[34*9] x f32>
    %3 = arith.mulf %0, %2 : f32
    %4 = loop.reduce sum %3 : f32
    loop.store %4, %y[d0*10 + d1] : !loop.buffer<[3*10] x f32>
  }
}

// RESULT: ok long_lines
loop.kernel @long_lines(%x: !loop.buffer<[34*3*88] x f32>, %w: !loop.buffer<[34*9] x f32>, %y: !loop.buffer<[3*88] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>, test.tolerance = 1.0e-5} {
  loop.reduction [3, 88, 3, 3, 34] reduced 3 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 + d2 - 1, 3 - d0 - d2, d1 + d3 - 1, 88 - d1 - d3] else %zero {
      %1 = loop.load %x[d4*264 + (d0 + d2 - 1)*88 + d1 + d3 - 1] : !loop.buffer<[34*3*88] x f32>
      loop.yield %1 : f32
    } : f32
    %2 = loop.load %w[d4*9 + d2*3 + d3] : !loop.buffer<[34*9] x f32>
    %3 = arith.mulf %0, %2 : f32
    %4 = loop.reduce sum %3 : f32
    loop.store %4, %y[d0*88 + d1] : !loop.buffer<[3*88] x f32>
  }
}
