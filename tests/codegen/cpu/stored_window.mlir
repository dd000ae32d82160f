// The sum of a padded row leaves out what lies outside; where the padded row is stored besides, none of it is left out.
// RUN: ptc-kernel %s --check | FileCheck %s
// CHECK: ok padded
loop.kernel @padded(%x: !loop.buffer<[432] x f32>, %y: !loop.buffer<[1140] x f32>, %sum: !loop.buffer<[114] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 1, 2>} {
  loop.reduction [6, 19, 10] reduced 1 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d0 - 1, 4 - d0, d1 - 1, d2 - 2, 7 - d2] else %zero {
      %1 = loop.load %x[108*d0 + d1 + 18*d2 - 145] : !loop.buffer<[432] x f32>
      loop.yield %1 : f32
    } : f32
    loop.store %0, %y[190*d0 + d1 + 19*d2] : !loop.buffer<[1140] x f32>
    %2 = loop.reduce sum %0 : f32
    loop.store %2, %sum[19*d0 + d1] : !loop.buffer<[114] x f32>
  }
}
