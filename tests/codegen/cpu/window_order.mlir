// Which loop is inside: the channels of a tile of outputs, or the tiles of a vector of channels.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=OK
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s
// OK-NOT: FAIL

// Channels inside: what follows each other in memory is read in turn.
// OK:          ok pool
// CHECK-LABEL: define {{.*}} @pool(
// CHECK:       icmp slt i64 {{.*}}, 64
// CHECK:       icmp slt i64 {{.*}}, 40
// CHECK:       ret i32
loop.kernel @pool(%x: !loop.buffer<[9*81*64] x f32>, %y: !loop.buffer<[4*40*64] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 1>} {
  loop.reduction [4, 40, 64, 3, 3] reduced 2 {
    %0 = loop.load %x[((2*d0 + d3)*81 + 2*d1 + d4)*64 + d2] : !loop.buffer<[9*81*64] x f32>
    %1 = loop.reduce max %0 : f32
    loop.store %1, %y[(d0*40 + d1)*64 + d2] : !loop.buffer<[4*40*64] x f32>
  }
}

// A window across channels has a mask for each vector of them, which serves all tiles; those in the middle have none.
// OK:          ok pool_across
// CHECK-LABEL: define {{.*}} @pool_across(
// CHECK:       icmp slt i64 {{.*}}, 40
// CHECK:       icmp slt i64 {{.*}}, 56
// CHECK:       ret i32
loop.kernel @pool_across(%x: !loop.buffer<[12*120*64] x f32>, %y: !loop.buffer<[4*40*64] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 1>} {
  loop.reduction [4, 40, 64, 3, 3] reduced 2 {
    %zero = arith.constant 0xFF800000 : f32
    %0 = loop.masked [d2 + d4 - 1, 64 - d2 - d4] else %zero {
      %2 = loop.load %x[((3*d0 + d3)*120 + 3*d1)*64 + d2 + d4 - 1] : !loop.buffer<[12*120*64] x f32>
      loop.yield %2 : f32
    } : f32
    %1 = loop.reduce max %0 : f32
    loop.store %1, %y[(d0*40 + d1)*64 + d2] : !loop.buffer<[4*40*64] x f32>
  }
}
