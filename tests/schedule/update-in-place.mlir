// RUN: ptc-opt %s --ptc-update-in-place | FileCheck %s

loop.kernel @copy(%a: !loop.buffer<[256] x f32, <[0]>>, %b: !loop.buffer<[256] x f32, <[0]>>)
    attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = []} {
  loop.pointwise [256] {
    %0 = loop.load %a [d0] : <[256] x f32, <[0]>>
    loop.store %0, %b [d0] : <[256] x f32, <[0]>>
  }
}
loop.kernel @double(%a: !loop.buffer<[256] x f32, <[0]>>, %b: !loop.buffer<[256] x f32, <[0]>>)
    attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = []} {
  loop.pointwise [256] {
    %0 = loop.load %a [d0] : <[256] x f32, <[0]>>
    %1 = arith.addf %0, %0 : f32
    loop.store %1, %b [d0] : <[256] x f32, <[0]>>
  }
}
loop.kernel @turn(%a: !loop.buffer<[256] x f32, <[0]>>, %b: !loop.buffer<[256] x f32, <[0]>>)
    attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = []} {
  loop.pointwise [256] {
    %0 = loop.load %a [255 - d0] : <[256] x f32, <[0]>>
    loop.store %0, %b [d0] : <[256] x f32, <[0]>>
  }
}
loop.kernel @place(%a: !loop.buffer<[1] x f32, <[0]>>, %b: !loop.buffer<[256] x f32, <[0]>>)
    attributes {arguments_written = array<i64: 1>, parallel = 0 : i64, symbols = []} {
  loop.scatter [1] independent 0 {
    %0 = loop.load %a [d0] : <[1] x f32, <[0]>>
    loop.store %0, %b [d0 + 7] : <[256] x f32, <[0]>>
  }
}

// CHECK-LABEL: loop.program @update
// CHECK-SAME:    (%[[S:.*]]: !loop{{.*}} | %[[T:.*]]: !loop
// CHECK-DAG:     %[[FROM:.*]] = loop.flatten %[[S]]
// CHECK-DAG:     %[[TO:.*]] = loop.flatten %[[T]]
// CHECK-NOT:     loop.buffer
// CHECK:         loop.launch @double(%[[FROM]], %[[TO]])
// CHECK-NOT:     loop.launch
loop.program @update(%s: !loop.buffer<[16, 16] x f32, <[0, 1]>> | %t: !loop.buffer<[16, 16] x f32, <[0, 1]>>)
    attributes {aliases = array<i64: 0, 0>, guards = [], input_names = ["s"], input_types = [f32], output_names = ["t"],
                output_types = [f32], symbol_sources = {}, symbols = {}} {
  %from = loop.flatten %s : <[16, 16] x f32, <[0, 1]>> -> <[256] x f32, <[0]>>
  %a = loop.buffer : <[256] x f32, <[0]>>
  %to = loop.flatten %t : <[16, 16] x f32, <[0, 1]>> -> <[256] x f32, <[0]>>
  loop.launch @double(%from, %a) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @copy(%a, %to) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
}

// Of a cache the elements that change are all that is touched.
// CHECK-LABEL: loop.program @cache
// CHECK-SAME:    (%{{.*}}: !loop{{.*}}, %[[N:.*]]: !loop{{.*}} | %[[T:.*]]: !loop.buffer{{.*}}, %[[Y:.*]]: !loop
// CHECK:         %[[TO:.*]] = loop.flatten %[[T]]
// CHECK:         loop.launch @place(%[[N]], %[[TO]])
// CHECK-NEXT:    loop.launch @double(%[[TO]], %[[Y]])
// CHECK-NOT:     loop.launch
loop.program @cache(%s: !loop.buffer<[16, 16] x f32, <[0, 1]>>, %n: !loop.buffer<[1] x f32, <[0]>> | %t: !loop.buffer<[16, 16] x f32, <[0, 1]>>, %y: !loop.buffer<[256] x f32, <[0]>>)
    attributes {aliases = array<i64: 0, 0>, guards = [], input_names = ["s", "n"], input_types = [f32, f32], output_names = ["t", "y"],
                output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  %from = loop.flatten %s : <[16, 16] x f32, <[0, 1]>> -> <[256] x f32, <[0]>>
  %a = loop.buffer : <[256] x f32, <[0]>>
  %to = loop.flatten %t : <[16, 16] x f32, <[0, 1]>> -> <[256] x f32, <[0]>>
  loop.launch @copy(%from, %a) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @place(%n, %a) symbols [] : !loop.buffer<[1] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @double(%a, %y) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @copy(%a, %to) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
}

// The argument is read later, or in another order than it would be written.
// CHECK-LABEL: loop.program @read_later
// CHECK-COUNT-3: loop.launch
loop.program @read_later(%s: !loop.buffer<[16, 16] x f32, <[0, 1]>> | %t: !loop.buffer<[16, 16] x f32, <[0, 1]>>, %y: !loop.buffer<[256] x f32, <[0]>>)
    attributes {aliases = array<i64: 0, 0>, guards = [], input_names = ["s"], input_types = [f32], output_names = ["t", "y"],
                output_types = [f32, f32], symbol_sources = {}, symbols = {}} {
  %from = loop.flatten %s : <[16, 16] x f32, <[0, 1]>> -> <[256] x f32, <[0]>>
  %a = loop.buffer : <[256] x f32, <[0]>>
  %to = loop.flatten %t : <[16, 16] x f32, <[0, 1]>> -> <[256] x f32, <[0]>>
  loop.launch @double(%from, %a) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @double(%from, %y) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @copy(%a, %to) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
}

// CHECK-LABEL: loop.program @turned
// CHECK-COUNT-2: loop.launch
loop.program @turned(%s: !loop.buffer<[16, 16] x f32, <[0, 1]>> | %t: !loop.buffer<[16, 16] x f32, <[0, 1]>>)
    attributes {aliases = array<i64: 0, 0>, guards = [], input_names = ["s"], input_types = [f32], output_names = ["t"],
                output_types = [f32], symbol_sources = {}, symbols = {}} {
  %from = loop.flatten %s : <[16, 16] x f32, <[0, 1]>> -> <[256] x f32, <[0]>>
  %a = loop.buffer : <[256] x f32, <[0]>>
  %to = loop.flatten %t : <[16, 16] x f32, <[0, 1]>> -> <[256] x f32, <[0]>>
  loop.launch @turn(%from, %a) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
  loop.launch @copy(%a, %to) symbols [] : !loop.buffer<[256] x f32, <[0]>>, !loop.buffer<[256] x f32, <[0]>>
}
