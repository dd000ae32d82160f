// A target that wants aligned addresses gets those of parts that begin at them; elements of other parts are reached
// from the whole's address.
// RUN: ptc-opt %s --ptc-linearize-accesses=pointer-alignment=16 | FileCheck %s
// RUN: ptc-opt %s --ptc-linearize-accesses | FileCheck %s --check-prefix=ANY

// CHECK-LABEL: loop.program @rows
// CHECK:         %[[ODD:.*]] = loop.flatten {{.*}} -> <[21*n] x f32, <[0]>>
// CHECK:         %[[EVEN:.*]] = loop.flatten {{.*}} -> <[20*n] x f32, <[0]>>
// CHECK:         loop.repeat "r"
// CHECK-NOT:       loop.part %[[ODD]]
// CHECK:           %[[ROW:.*]] = loop.part %[[EVEN]] from 20*r
// CHECK:           loop.store {{.*}}, %[[ODD]] [d0 + 21*r]
// CHECK:           loop.load %[[ODD]] [d0 + 21*r]
// CHECK:           loop.store {{.*}}, %[[ROW]] [d0]
// ANY-LABEL:   loop.program @rows
// ANY-COUNT-2:   loop.part
loop.program @rows(%x: !loop.buffer<[21] x f32, <[0]>> | %y: !loop.buffer<[n, 21] x f32, <[0, 1]>>, %z: !loop.buffer<[n, 20] x f32, <[0, 1]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y", "z"],
                output_types = [f32, f32], symbol_sources = {}, symbols = {n = #prim.symbol<0, 100, divisor = 1, hint = 4>}} {
  loop.repeat "r" below n {
    %odd = loop.part %y from 21*r : <[n, 21] x f32, <[0, 1]>> -> <[21] x f32, <[0]>>
    %even = loop.part %z from 20*r : <[n, 20] x f32, <[0, 1]>> -> <[20] x f32, <[0]>>
    loop.pointwise [21] {
      %0 = loop.load %x [d0] : <[21] x f32, <[0]>>
      %1 = math.exp %0 : f32
      loop.store %1, %odd [d0] : <[21] x f32, <[0]>>
    }
    loop.pointwise [20] {
      %0 = loop.load %odd [d0] : <[21] x f32, <[0]>>
      %1 = math.tanh %0 : f32
      loop.store %1, %even [d0] : <[20] x f32, <[0]>>
    }
  }
}

// A part of a part begins where both do.
// CHECK-LABEL: loop.program @rows_of_rows
// CHECK:         %[[WHOLE:.*]] = loop.flatten {{.*}} -> <[21*n] x f32, <[0]>>
// CHECK-NOT:     loop.part
// CHECK:         loop.store {{.*}}, %[[WHOLE]] [d0 + 4*q + 21*r]
loop.program @rows_of_rows(%x: !loop.buffer<[4] x f32, <[0]>> | %y: !loop.buffer<[n, 21] x f32, <[0, 1]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [f32], output_names = ["y"],
                output_types = [f32], symbol_sources = {}, symbols = {n = #prim.symbol<0, 100, divisor = 1, hint = 4>}} {
  loop.repeat "r" below n {
    %row = loop.part %y from 21*r : <[n, 21] x f32, <[0, 1]>> -> <[21] x f32, <[0]>>
    loop.repeat "q" below 5 {
      %piece = loop.part %row from 4*q : <[21] x f32, <[0]>> -> <[4] x f32, <[0]>>
      loop.pointwise [4] {
        %0 = loop.load %x [d0] : <[4] x f32, <[0]>>
        loop.store %0, %piece [d0] : <[4] x f32, <[0]>>
      }
    }
  }
}
