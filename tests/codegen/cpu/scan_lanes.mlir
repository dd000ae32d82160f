// A line alone of integers is summed with neighbours in lanes: a vector's own sums, then what stood before. Of floats,
// whose sums have an order, and of what is no run in memory, one element follows the other.
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=OK
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s
// OK-NOT: FAIL

// OK:          ok places
// CHECK-LABEL: define {{.*}}places
// CHECK:       shufflevector <8 x i32>
// CHECK:       ret i32
loop.kernel @places(%x: !loop.buffer<[n] x i1>, %y: !loop.buffer<[n] x i32>)
    attributes {symbols = ["n"], parallel = 0 : i64, arguments_written = array<i64: 1>,
                test.symbols = [{n = 1}, {n = 8}, {n = 203}]} {
  loop.scan [n] {
    %0 = loop.load %x[d0] : !loop.buffer<[n] x i1>
    %1 = arith.extui %0 : i1 to i32
    %2 = loop.running sum %1 exclusive : i32
    loop.store %2, %y[d0] : !loop.buffer<[n] x i32>
  }
}

// Two sums at once, of 64 and 16 bits, which wrap; the last one is kept, too.
// OK:          ok two
// CHECK-LABEL: define {{.*}}two
// CHECK:       shufflevector <8 x i64>
// CHECK:       ret i32
loop.kernel @two(%x: !loop.buffer<[3*77] x i64>, %s: !loop.buffer<[3*77] x i16>, %y: !loop.buffer<[3*77] x i64>,
    %z: !loop.buffer<[3*77] x i16>, %e: !loop.buffer<[3] x i64>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 2, 3, 4>} {
  loop.scan [3, 77] {
    %0 = loop.load %x[77*d0 + d1] : !loop.buffer<[3*77] x i64>
    %1 = loop.running sum %0 : i64
    %2 = loop.load %s[77*d0 + d1] : !loop.buffer<[3*77] x i16>
    %3 = arith.trunci %1 : i64 to i16
    %4 = arith.muli %2, %3 : i16
    %5 = loop.running sum %4 exclusive : i16
    loop.store %1, %y[77*d0 + d1] : !loop.buffer<[3*77] x i64>
    loop.store %5, %z[77*d0 + d1] : !loop.buffer<[3*77] x i16>
    loop.store %1, %e[d0] : !loop.buffer<[3] x i64>
  }
}

// OK:          ok floats
// CHECK-LABEL: define {{.*}}floats
// CHECK-NOT:   shufflevector
// CHECK:       ret i32
loop.kernel @floats(%x: !loop.buffer<[203] x f32>, %y: !loop.buffer<[203] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 1>, test.tolerance = 1.0e-5} {
  loop.scan [203] {
    %0 = loop.load %x[d0] : !loop.buffer<[203] x f32>
    %1 = loop.running sum %0 : f32
    loop.store %1, %y[d0] : !loop.buffer<[203] x f32>
  }
}

// OK:          ok backwards
// CHECK-LABEL: define {{.*}}backwards
// CHECK-NOT:   shufflevector
// CHECK:       ret i32
loop.kernel @backwards(%x: !loop.buffer<[203] x i32>, %y: !loop.buffer<[203] x i32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 1>} {
  loop.scan [203] reverse {
    %0 = loop.load %x[d0] : !loop.buffer<[203] x i32>
    %1 = loop.running sum %0 : i32
    loop.store %1, %y[d0] : !loop.buffer<[203] x i32>
  }
}
