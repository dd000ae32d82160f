// Sums of columns in two halves, whose rows lie two halves apart: no column has an element of another one, so they are
// no windows. All vectors of a half are added up at a time.
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=asm | FileCheck %s
// RUN: ptc-kernel %s --check | FileCheck %s --check-prefix=RIGHT

// CHECK-LABEL: halves:
// CHECK:         vaddps -224(%[[ROW:r[a-z0-9]+]]), %ymm
// CHECK-COUNT-7: vaddps {{[-0-9]*}}(%[[ROW]]), %ymm
// CHECK-NOT:     vaddps
// CHECK:         jl
// RIGHT:         ok halves
loop.kernel @halves(%x: !loop.buffer<[768*128] x f32>, %y: !loop.buffer<[128] x f32>)
    attributes {symbols = [], parallel = 2 : i64, arguments_written = array<i64: 1>, test.tolerance = 1.0e-5} {
  loop.reduction [2, 64, 768] reduced 1 {
    %0 = loop.load %x[64*d0 + d1 + 128*d2] : !loop.buffer<[768*128] x f32>
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %y[64*d0 + d1] : !loop.buffer<[128] x f32>
  }
}
