// A node whose domain is a size that the program learns runs behind the bind, the bind behind the launch that writes the
// value, and what is checked of the size before it is used.
// RUN: ptc-opt %s --ptc-linearize-accesses --ptc-normalize-nodes --ptc-fuse-nodes --ptc-outline-kernels --ptc-order-launches | FileCheck %s

// CHECK: loop.program @p
// CHECK: loop.launch @{{.*}} symbols [n]
// CHECK-NEXT: loop.bind "u0"
// CHECK-NEXT: loop.guard
// CHECK-NEXT: loop.launch @{{.*}} symbols [u0]
loop.program @p(%x: !loop.buffer<[n] x f32, <[0]>> | %y: !loop.buffer<[u0] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y"],
                output_types = [f32], symbol_sources = {},
                symbols = {n = #prim.symbol<1, 64, divisor = 1, hint = 4>, u0 = #prim.symbol<0, 64, divisor = 1, hint = 4>}} {
  %count = loop.buffer : <[1] x i64, <[0]>>
  %zero = loop.buffer : <[n] x f32, <[0]>>
  loop.reduction [n] reduced 1 {
    %0 = loop.load %x [d0] : <[n] x f32, <[0]>>
    %1 = arith.fptosi %0 : f32 to i64
    %2 = loop.reduce sum %1 : i64
    loop.store %2, %count [0] : <[1] x i64, <[0]>>
  }
  loop.bind "u0" = %count : !loop.buffer<[1] x i64, <[0]>> at_most n
  loop.guard lt(u0, n)
  loop.pointwise [u0] {
    %0 = loop.load %x [d0] : <[n] x f32, <[0]>>
    %1 = arith.negf %0 : f32
    loop.store %1, %y [d0] : <[u0] x f32, <[0]>>
  }
}

// So does one that writes a part of a buffer of such a size.
// CHECK: loop.program @part
// CHECK: loop.bind "u0"
// CHECK-NEXT: loop.launch {{.*}}%[[PART:[0-9]+]]) symbols [n]
// CHECK-NEXT: loop.launch @{{.*}}(%[[PART]]
loop.program @part(%x: !loop.buffer<[n] x f32, <[0]>>, %m: !loop.buffer<[1] x i64, <[0]>> | %y: !loop.buffer<[n] x f32, <[0]>>, %z: !loop.buffer<[1] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x", "m"], input_types = [f32, si64], output_names = ["y", "z"],
                output_types = [f32, f32], symbol_sources = {},
                symbols = {n = #prim.symbol<1, 64, divisor = 1, hint = 4>, u0 = #prim.symbol<0, 64, divisor = 1, hint = 4>}} {
  loop.pointwise [n] {
    %0 = loop.load %x [d0] : <[n] x f32, <[0]>>
    %1 = math.exp %0 : f32
    loop.store %1, %y [d0] : <[n] x f32, <[0]>>
  }
  loop.bind "u0" = %m : !loop.buffer<[1] x i64, <[0]>>
  %whole = loop.buffer : <[u0 + n] x f32, <[0]>>
  %begin = loop.part %whole from 0 : <[u0 + n] x f32, <[0]>> -> <[n] x f32, <[0]>>
  loop.pointwise [n] {
    %0 = loop.load %y [d0] : <[n] x f32, <[0]>>
    %1 = arith.negf %0 : f32
    loop.store %1, %begin [d0] : <[n] x f32, <[0]>>
  }
  loop.reduction [n] reduced 1 {
    %0 = loop.load %begin [n - d0 - 1] : <[n] x f32, <[0]>>
    %1 = loop.reduce sum %0 : f32
    loop.store %1, %z [0] : <[1] x f32, <[0]>>
  }
}
