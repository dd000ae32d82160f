// A window that lies along the lanes asks at the border alone which of them see it, and in 32-bit numbers: no vector of
// 64-bit numbers. Where most vectors lie inside, rows that share nothing but these masks are no tile.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=OK
// RUN: ptc-kernel %s | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=CODE
// OK-NOT: FAIL

// OK:          ok long_rows
// CHECK-LABEL: loop.kernel @long_rows
// CHECK-NOT:   tiled
// CHECK:       loop.reduction
// CODE-LABEL:  define {{.*}}long_rows
// CODE-NOT:    <8 x i64>
// CODE:        masked.load
// CODE-NOT:    <8 x i64>
// CODE:        load <8 x float>
// CODE-NOT:    <8 x i64>
// CODE:        ret i32
loop.kernel @long_rows(%x: !loop.buffer<[24*403] x f32>, %w: !loop.buffer<[24*9] x f32>, %y: !loop.buffer<[24*403] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>} {
  loop.reduction [24, 403, 9] reduced 1 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d1 + d2 - 4, -d1 - d2 + 406] else %zero {
      %4 = loop.load %x[d0*403 + d1 + d2 - 4] : !loop.buffer<[24*403] x f32>
      loop.yield %4 : f32
    } : f32
    %1 = loop.load %w[d0*9 + d2] : !loop.buffer<[24*9] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[d0*403 + d1] : !loop.buffer<[24*403] x f32>
  }
}

// Every vector of a short row meets a border: its masks serve a tile of rows.
// OK:          ok short_rows
// CHECK-LABEL: loop.kernel @short_rows
// CHECK-SAME:  tiled = 0 : i64
loop.kernel @short_rows(%x: !loop.buffer<[24*20] x f32>, %w: !loop.buffer<[24*9] x f32>, %y: !loop.buffer<[24*20] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 2>} {
  loop.reduction [24, 20, 9] reduced 1 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [d1 + d2 - 4, -d1 - d2 + 23] else %zero {
      %4 = loop.load %x[d0*20 + d1 + d2 - 4] : !loop.buffer<[24*20] x f32>
      loop.yield %4 : f32
    } : f32
    %1 = loop.load %w[d0*9 + d2] : !loop.buffer<[24*9] x f32>
    %2 = arith.mulf %0, %1 : f32
    %3 = loop.reduce sum %2 : f32
    loop.store %3, %y[d0*20 + d1] : !loop.buffer<[24*20] x f32>
  }
}

// Of a size that a run tells, which 32 bits need not hold; steps of two, and lanes against the order of the image.
// OK:          ok free_sizes
loop.kernel @free_sizes(%x: !loop.buffer<[24*n] x f32>, %y: !loop.buffer<[24*n] x f32>)
    attributes {symbols = ["n"], parallel = 2 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 1}, {n = 37}, {n = 203}]} {
  loop.reduction [24, n, 5] reduced 1 {
    %zero = arith.constant 0.0 : f32
    %0 = loop.masked [2*d1 - d2 - 3, n - 1 - 2*d1 + d2] else %zero {
      %4 = loop.load %x[d0*n + 2*d1 - d2 - 3] : !loop.buffer<[24*n] x f32>
      loop.yield %4 : f32
    } : f32
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %y[d0*n + d1] : !loop.buffer<[24*n] x f32>
  }
}
