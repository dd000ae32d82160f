// Pointwise nodes that read one value and do not depend on each other are one kernel, for each row of the value.
// RUN: ptc-opt %s --ptc-normalize-nodes --ptc-fuse-nodes=remarks=true 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t

// The rotations of 8 heads of queries and 2 of keys, which lie in rows of 640; keys are a result, whose rows lie in another
// order. Rows of 64 are two halves: no address is divided.
// CHECK-LABEL: loop.program @rotations
// CHECK:         loop.fused parallel 1 {
// CHECK-NEXT:      loop.pointwise [16, 2, 2, 32] {
// CHECK-NEXT:        loop.load %arg0 [640*d0 + 64*d1 - 32*d2 + d3 + 544]
// CHECK-NEXT:        loop.store %{{.*}}, %arg1 [64*d0 + 1024*d1 + 32*d2 + d3]
// CHECK:           loop.pointwise [16, 8, 2, 32] {
// CHECK-NEXT:        loop.load %arg0 [640*d0 + 64*d1 - 32*d2 + d3 + 32]
// CHECK-NEXT:        loop.store %{{.*}}, %arg2 [512*d0 + 64*d1 + 32*d2 + d3]
// CHECK-NOT:     loop.fused
loop.program @rotations(%x: !loop.buffer<[10240] x f32, <[0]>> | %k: !loop.buffer<[2048] x f32, <[0]>>, %q: !loop.buffer<[8192] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32],
                output_names = ["k", "q"], output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  loop.pointwise [2, 16, 64] {
    %0 = loop.load %x [640*d1 + 64*d0 + d2 - 64*floordiv(d2, 32) + 544] : <[10240] x f32, <[0]>>
    loop.store %0, %k [1024*d0 + 64*d1 + d2] : <[2048] x f32, <[0]>>
  }
  loop.pointwise [16, 8, 64] {
    %0 = loop.load %x [640*d0 + 64*d1 + d2 - 64*floordiv(d2, 32) + 32] : <[10240] x f32, <[0]>>
    loop.store %0, %q [512*d0 + 64*d1 + d2] : <[8192] x f32, <[0]>>
  }
}

// One reads columns where the other reads rows.
// REMARK: remark: not beside the kernel before it: they walk what both read in different orders
// CHECK-LABEL: loop.program @columns
// CHECK-COUNT-2: loop.fused
loop.program @columns(%x: !loop.buffer<[262144] x f32, <[0]>> | %y: !loop.buffer<[262144] x f32, <[0]>>, %z: !loop.buffer<[262144] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32],
                output_names = ["y", "z"], output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  loop.pointwise [512, 512] {
    %0 = loop.load %x [512*d0 + d1] : <[262144] x f32, <[0]>>
    %1 = math.tanh %0 : f32
    loop.store %1, %y [512*d0 + d1] : <[262144] x f32, <[0]>>
  }
  loop.pointwise [256, 1024] {
    %0 = loop.load %x [d0 + 256*d1] : <[262144] x f32, <[0]>>
    %1 = math.exp %0 : f32
    loop.store %1, %z [1024*d0 + d1] : <[262144] x f32, <[0]>>
  }
}

// Of nine nodes that could, eight are one kernel: its code is theirs together.
// CHECK-LABEL: loop.program @many
// CHECK-COUNT-2: loop.fused
// CHECK-NOT:     loop.fused
loop.program @many(%x: !loop.buffer<[128] x f32, <[0]>> | %y0: !loop.buffer<[64] x f32, <[0]>>, %y1: !loop.buffer<[65] x f32, <[0]>>, %y2: !loop.buffer<[66] x f32, <[0]>>, %y3: !loop.buffer<[67] x f32, <[0]>>, %y4: !loop.buffer<[68] x f32, <[0]>>, %y5: !loop.buffer<[69] x f32, <[0]>>, %y6: !loop.buffer<[70] x f32, <[0]>>, %y7: !loop.buffer<[71] x f32, <[0]>>, %y8: !loop.buffer<[72] x f32, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32],
                output_names = ["y0", "y1", "y2", "y3", "y4", "y5", "y6", "y7", "y8"], output_types = [f32, f32, f32, f32, f32, f32, f32, f32, f32], symbol_sources = {}, symbols = {}} {
  loop.pointwise [64] {
    %0 = loop.load %x [d0] : <[128] x f32, <[0]>>
    %1 = math.exp %0 : f32
    loop.store %1, %y0 [d0] : <[64] x f32, <[0]>>
  }
  loop.pointwise [65] {
    %0 = loop.load %x [d0] : <[128] x f32, <[0]>>
    %1 = math.exp %0 : f32
    loop.store %1, %y1 [d0] : <[65] x f32, <[0]>>
  }
  loop.pointwise [66] {
    %0 = loop.load %x [d0] : <[128] x f32, <[0]>>
    %1 = math.exp %0 : f32
    loop.store %1, %y2 [d0] : <[66] x f32, <[0]>>
  }
  loop.pointwise [67] {
    %0 = loop.load %x [d0] : <[128] x f32, <[0]>>
    %1 = math.exp %0 : f32
    loop.store %1, %y3 [d0] : <[67] x f32, <[0]>>
  }
  loop.pointwise [68] {
    %0 = loop.load %x [d0] : <[128] x f32, <[0]>>
    %1 = math.exp %0 : f32
    loop.store %1, %y4 [d0] : <[68] x f32, <[0]>>
  }
  loop.pointwise [69] {
    %0 = loop.load %x [d0] : <[128] x f32, <[0]>>
    %1 = math.exp %0 : f32
    loop.store %1, %y5 [d0] : <[69] x f32, <[0]>>
  }
  loop.pointwise [70] {
    %0 = loop.load %x [d0] : <[128] x f32, <[0]>>
    %1 = math.exp %0 : f32
    loop.store %1, %y6 [d0] : <[70] x f32, <[0]>>
  }
  loop.pointwise [71] {
    %0 = loop.load %x [d0] : <[128] x f32, <[0]>>
    %1 = math.exp %0 : f32
    loop.store %1, %y7 [d0] : <[71] x f32, <[0]>>
  }
  loop.pointwise [72] {
    %0 = loop.load %x [d0] : <[128] x f32, <[0]>>
    %1 = math.exp %0 : f32
    loop.store %1, %y8 [d0] : <[72] x f32, <[0]>>
  }
}
