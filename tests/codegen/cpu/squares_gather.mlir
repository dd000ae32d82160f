// Pixels that are gathered with their channels side by side and written channels first: the body runs along the channels,
// for as many pixels as a vector has lanes, and the results are turned.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=OK
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s
// OK-NOT: FAIL

// Neither gathers nor stores of single elements; eight pixels by eight channels.
// OK:             ok pixels
// CHECK-LABEL:    define {{.*}} @pixels
// CHECK-NOT:      masked.gather
// CHECK-COUNT-8:  load <8 x float>
// CHECK:          shufflevector <8 x float>
// CHECK-COUNT-8:  store <8 x float>
// CHECK-NOT:      masked.gather
// CHECK:          ret i32
loop.kernel @pixels(%x: !loop.buffer<[70*64] x f32>, %i: !loop.buffer<[96] x i32>, %w: !loop.buffer<[96] x f32>, %y: !loop.buffer<[64*96] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 3>, test.ranges = [[0, 0], [0, 69], [0, 0]]} {
  loop.pointwise [64, 96] {
    %0 = loop.load %i[d1] : !loop.buffer<[96] x i32>
    %1 = arith.extsi %0 : i32 to i64
    %2 = loop.check_index %1 in 70
    %3 = loop.load %x[d0 + 64*v$0](%2) : !loop.buffer<[70*64] x f32>
    %4 = loop.load %w[d1] : !loop.buffer<[96] x f32>
    %5 = arith.mulf %3, %4 : f32
    loop.store %5, %y[96*d0 + d1] : !loop.buffer<[64*96] x f32>
  }
}

// Sizes that the run knows, none and less than a square among them; two results; values of each channel; wrong indices.
// OK:             ok open
loop.kernel @open(%x: !loop.buffer<[30*c] x f32>, %i: !loop.buffer<[n] x i64>, %b: !loop.buffer<[c] x f32>, %y: !loop.buffer<[c*n] x f32>, %z: !loop.buffer<[c*n + 7] x f32>)
    attributes {symbols = ["n", "c"], parallel = 2 : i64, arguments_written = array<i64: 3, 4>, test.ranges = [[0, 0], [0, 29], [0, 0]],
                test.symbols = [{n = 0, c = 5}, {n = 5, c = 0}, {n = 1, c = 40}, {n = 50, c = 3}, {n = 133, c = 70}, {n = 16, c = 16}]} {
  loop.pointwise [c, n] {
    %0 = loop.load %i[d1] : !loop.buffer<[n] x i64>
    %1 = loop.check_index %0 in 30
    %2 = loop.load %x[d0 + c*v$0](%1) : !loop.buffer<[30*c] x f32>
    %3 = loop.load %b[d0] : !loop.buffer<[c] x f32>
    %4 = arith.addf %2, %3 : f32
    loop.store %4, %y[n*d0 + d1] : !loop.buffer<[c*n] x f32>
    %5 = arith.mulf %2, %3 : f32
    loop.store %5, %z[n*d0 + d1 + 7] : !loop.buffer<[c*n + 7] x f32>
  }
}

// Of 16 bits and of 64, with a dim between; four channels are a square of four.
// OK:             ok halves
// OK:             ok wide
loop.kernel @halves(%x: !loop.buffer<[2*50*24] x f16>, %i: !loop.buffer<[2*37] x i32>, %y: !loop.buffer<[2*24*37] x f16>)
    attributes {symbols = [], parallel = 3 : i64, arguments_written = array<i64: 2>, test.ranges = [[0, 0], [0, 49]]} {
  loop.pointwise [2, 24, 37] {
    %0 = loop.load %i[37*d0 + d2] : !loop.buffer<[2*37] x i32>
    %1 = arith.extsi %0 : i32 to i64
    %2 = loop.check_index %1 in 50
    %3 = loop.load %x[1200*d0 + d1 + 24*v$0](%2) : !loop.buffer<[2*50*24] x f16>
    loop.store %3, %y[888*d0 + 37*d1 + d2] : !loop.buffer<[2*24*37] x f16>
  }
}

loop.kernel @wide(%x: !loop.buffer<[50*4] x f64>, %i: !loop.buffer<[41] x i64>, %y: !loop.buffer<[4*41] x f64>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>, test.ranges = [[0, 0], [0, 49]]} {
  loop.pointwise [4, 41] {
    %0 = loop.load %i[d1] : !loop.buffer<[41] x i64>
    %1 = loop.check_index %0 in 50
    %2 = loop.load %x[d0 + 4*v$0](%1) : !loop.buffer<[50*4] x f64>
    loop.store %2, %y[41*d0 + d1] : !loop.buffer<[4*41] x f64>
  }
}
