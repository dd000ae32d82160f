// What accesses become at each level.
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s --check-prefixes=ALL,V4
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefixes=ALL,V3
// RUN: ptc-kernel %s --level=x86-64-v2 --emit=llvm | FileCheck %s --check-prefixes=ALL,V2

// ALL-LABEL: define {{.*}}i32 @add(ptr {{.*}}, ptr {{.*}}, i64 {{.*}}, i64 {{.*}}, ptr
// V4: load <16 x float>, ptr {{.*}}, align 4
// V4: fadd contract <16 x float>
// V4: call <16 x float> @llvm.masked.load.v16f32
// V3: load <8 x float>, ptr {{.*}}, align 4
// V3: call <8 x float> @llvm.masked.load.v8f32
// V2: load <4 x float>, ptr {{.*}}, align 4
// V2-NOT: llvm.masked
// ALL: ret i32 0
loop.kernel @add(%a: !loop.buffer<[n] x f32>, %b: !loop.buffer<[n] x f32>, %y: !loop.buffer<[n] x f32>)
    attributes {symbols = ["n"], parallel = 1 : i64, arguments_written = array<i64: 2>} {
  loop.pointwise [n] {
    %0 = loop.load %a[d0] : !loop.buffer<[n] x f32>
    %1 = loop.load %b[d0] : !loop.buffer<[n] x f32>
    %2 = arith.addf %0, %1 : f32
    loop.store %2, %y[d0] : !loop.buffer<[n] x f32>
  }
}

// A row value is loaded once and broadcast; no tail where lanes divide the extent.
// ALL-LABEL: define {{.*}}@scale_rows(
// ALL: load float, ptr
// ALL: shufflevector {{.*}} zeroinitializer
// ALL-NOT: llvm.masked
// ALL: ret i32
loop.kernel @scale_rows(%x: !loop.buffer<[m*64] x f32>, %s: !loop.buffer<[m] x f32>, %y: !loop.buffer<[m*64] x f32>)
    attributes {symbols = ["m"], parallel = 2 : i64, arguments_written = array<i64: 2>} {
  loop.pointwise [m, 64] {
    %0 = loop.load %x[d0*64 + d1] : !loop.buffer<[m*64] x f32>
    %1 = loop.load %s[d0] : !loop.buffer<[m] x f32>
    %2 = arith.mulf %0, %1 : f32
    loop.store %2, %y[d0*64 + d1] : !loop.buffer<[m*64] x f32>
  }
}

// What a whole row shares is read, checked and computed once for the vectors of a step.
// ALL-LABEL: define {{.*}}@checked_rows(
// V3-COUNT-1: load i64, ptr
// V3-NOT: load i64, ptr
// V3-COUNT-4: load <8 x float>, ptr
// V3-NOT: load i64, ptr
// ALL: ret i32
loop.kernel @checked_rows(%x: !loop.buffer<[960] x f32>, %i: !loop.buffer<[m] x i64>, %y: !loop.buffer<[m*32] x f32>)
    attributes {symbols = ["m"], parallel = 1 : i64, arguments_written = array<i64: 2>} {
  loop.pointwise [m, 32] {
    %0 = loop.load %i[d0] : !loop.buffer<[m] x i64>
    %1 = loop.check_index %0 in 30
    %2 = loop.load %x[v$0*32 + d1](%1) : !loop.buffer<[960] x f32>
    loop.store %2, %y[d0*32 + d1] : !loop.buffer<[m*32] x f32>
  }
}

// Product and sum may be one rounding where the processor has it.
// ALL-LABEL: define {{.*}}@dot_rows(
// ALL: fmul contract
// ALL: fadd contract
loop.kernel @dot_rows(%x: !loop.buffer<[m*64] x f32>, %y: !loop.buffer<[m] x f32>)
    attributes {symbols = ["m"], parallel = 1 : i64, arguments_written = array<i64: 1>} {
  loop.reduction [m, 64] reduced 1 {
    %0 = loop.load %x[d0*64 + d1] : !loop.buffer<[m*64] x f32>
    %1 = arith.mulf %0, %0 : f32
    %2 = loop.reduce sum %1 : f32
    loop.store %2, %y[d0] : !loop.buffer<[m] x f32>
  }
}

// Memory that is read for the last time may be the memory that is written: all loads of a body come first.
// ALL-LABEL: define {{.*}}@in_place(
// ALL: load <
// ALL: load <
// ALL: store <
// ALL: store <
// ALL: ret i32
loop.kernel @in_place(%a: !loop.buffer<[64] x f32>, %b: !loop.buffer<[64] x f32>, %y: !loop.buffer<[64] x f32>, %z: !loop.buffer<[64] x f32>)
    attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 2, 3>} {
  loop.pointwise [64] {
    %0 = loop.load %a[d0] : !loop.buffer<[64] x f32>
    loop.store %0, %y[d0] : !loop.buffer<[64] x f32>
    %1 = loop.load %b[d0] : !loop.buffer<[64] x f32>
    %2 = arith.addf %0, %1 : f32
    loop.store %2, %z[d0] : !loop.buffer<[64] x f32>
  }
}
