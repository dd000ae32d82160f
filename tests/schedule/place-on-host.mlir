// RUN: ptc-opt %s --ptc-place-on-host | FileCheck %s
// RUN: ptc-opt %s --ptc-place-on-host=remarks=true 2>&1 >%t | FileCheck %s --check-prefix=REMARK

// A kernel whose launches have both places becomes two; one that nobody launches on the device is the host's alone.
// CHECK:     loop.kernel @copy(
// CHECK-NOT:   on_host
// CHECK:     loop.kernel @copy_host(
// CHECK-SAME:  on_host = "strings and sequences lie there"
// CHECK-NOT: loop.kernel @little(
// CHECK:     loop.kernel @little_host(
// CHECK-SAME:  on_host = "its operands or results are there, and it is small"
loop.kernel @copy(%a: !loop.buffer<[16384] x i64, <[0]>>, %b: !loop.buffer<[16384] x i64, <[0]>>)
    attributes {arguments_written = array<i64: 1>, bytes_read = #prim.expr<131072>, bytes_written = #prim.expr<131072>,
                flops = #prim.expr<0>, parallel = 1 : i64, symbols = []} {
  loop.pointwise [16384] {
    %0 = loop.load %a [d0] : <[16384] x i64, <[0]>>
    loop.store %0, %b [d0] : <[16384] x i64, <[0]>>
  }
}
loop.kernel @little(%a: !loop.buffer<[1] x i64, <[0]>>, %b: !loop.buffer<[1] x i64, <[0]>>)
    attributes {arguments_written = array<i64: 1>, bytes_read = #prim.expr<8>, bytes_written = #prim.expr<8>,
                flops = #prim.expr<0>, parallel = 1 : i64, symbols = []} {
  loop.pointwise [1] {
    %0 = loop.load %a [d0] : <[1] x i64, <[0]>>
    loop.store %0, %b [d0] : <[1] x i64, <[0]>>
  }
}
loop.kernel @half(%a: !loop.buffer<[16384] x i64, <[0]>>, %b: !loop.buffer<[16384] x i64, <[0]>>)
    attributes {arguments_written = array<i64: 1>, on_host = "the device has no code of it", parallel = 1 : i64, symbols = []} {
  loop.pointwise [8192] {
    %0 = loop.load %a [d0] : <[16384] x i64, <[0]>>
    loop.store %0, %b [2 * d0] : <[16384] x i64, <[0]>>
  }
}

// What a call reads of the device is fetched, what it writes for it brought back. Another finds the mirror as it is,
// until the device writes again. Buffers between calls lie on the host, and so does a small launch among them.
// REMARK: remark: runs on the host: its operands or results are there, and it is small
// REMARK: remark: runs on the host: it is a function of the runtime
// CHECK-LABEL: loop.program @calls
// CHECK-SAME:    (%[[X:.*]]: !loop{{.*}} | %[[Y:.*]]: !loop
// CHECK:         loop.launch @copy(%[[X]], %[[A:.*]]) symbols
// CHECK-NEXT:    loop.transfer %[[A]] to_host
// CHECK-NEXT:    loop.call "string_rank" read(%[[A]]) written(%[[N:.*]]) numbers
// CHECK-NEXT:    loop.call "string_rank" read(%[[A]]) written(%[[N]]) numbers
// CHECK-NEXT:    loop.launch @little_host(%[[N]], %[[M:.*]]) symbols
// CHECK-NEXT:    loop.launch @copy(%[[X]], %[[A]]) symbols
// CHECK-NEXT:    loop.transfer %[[A]] to_host
// CHECK-NEXT:    loop.call "string_equal" read(%[[A]], %[[M]]) written(%[[B:.*]]) numbers
// CHECK-NEXT:    loop.transfer %[[B]] to_device
// CHECK-NEXT:    loop.launch @copy(%[[B]], %[[Y]]) symbols
loop.program @calls(%x: !loop.buffer<[16384] x i64, <[0]>> | %y: !loop.buffer<[16384] x i64, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [i64], output_names = ["y"],
                output_types = [i64], symbol_sources = {}, symbols = {}} {
  %a = loop.buffer : <[16384] x i64, <[0]>>
  %b = loop.buffer : <[16384] x i64, <[0]>>
  %n = loop.buffer : <[1] x i64, <[0]>>
  %m = loop.buffer : <[1] x i64, <[0]>>
  loop.launch @copy(%x, %a) symbols [] : !loop.buffer<[16384] x i64, <[0]>>, !loop.buffer<[16384] x i64, <[0]>>
  loop.call "string_rank" read(%a) written(%n) numbers [1] : (!loop.buffer<[16384] x i64, <[0]>>) (!loop.buffer<[1] x i64, <[0]>>)
  loop.call "string_rank" read(%a) written(%n) numbers [1] : (!loop.buffer<[16384] x i64, <[0]>>) (!loop.buffer<[1] x i64, <[0]>>)
  loop.launch @little(%n, %m) symbols [] : !loop.buffer<[1] x i64, <[0]>>, !loop.buffer<[1] x i64, <[0]>>
  loop.launch @copy(%x, %a) symbols [] : !loop.buffer<[16384] x i64, <[0]>>, !loop.buffer<[16384] x i64, <[0]>>
  loop.call "string_equal" read(%a, %m) written(%b) numbers [1] : (!loop.buffer<[16384] x i64, <[0]>>, !loop.buffer<[1] x i64, <[0]>>) (!loop.buffer<[16384] x i64, <[0]>>)
  loop.launch @copy(%b, %y) symbols [] : !loop.buffer<[16384] x i64, <[0]>>, !loop.buffer<[16384] x i64, <[0]>>
}

// What a launch on the host writes in part is fetched before; nothing is known of mirrors in the next round of a loop.
// CHECK-LABEL: loop.program @rounds
// CHECK-SAME:    (%[[X:.*]]: !loop{{.*}} | %[[Y:.*]]: !loop
// CHECK:         loop.launch @copy(%[[X]], %[[A:.*]]) symbols
// CHECK-NEXT:    loop.repeat
// CHECK-NEXT:      loop.transfer %[[A]] to_host
// CHECK-NEXT:      loop.transfer %[[Y]] to_host
// CHECK-NEXT:      loop.launch @half(%[[A]], %[[Y]]) symbols
// CHECK-NEXT:      loop.transfer %[[Y]] to_device
// CHECK:         loop.launch @copy(%[[Y]], %[[A]]) symbols
loop.program @rounds(%x: !loop.buffer<[16384] x i64, <[0]>> | %y: !loop.buffer<[16384] x i64, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [i64], output_names = ["y"],
                output_types = [i64], symbol_sources = {}, symbols = {}} {
  %a = loop.buffer : <[16384] x i64, <[0]>>
  loop.launch @copy(%x, %a) symbols [] : !loop.buffer<[16384] x i64, <[0]>>, !loop.buffer<[16384] x i64, <[0]>>
  loop.repeat "i" below 3 {
    loop.launch @half(%a, %y) symbols [] : !loop.buffer<[16384] x i64, <[0]>>, !loop.buffer<[16384] x i64, <[0]>>
  }
  loop.launch @copy(%y, %a) symbols [] : !loop.buffer<[16384] x i64, <[0]>>, !loop.buffer<[16384] x i64, <[0]>>
}

// Strings that the model is given lie on the host, whatever the size.
// CHECK-LABEL: loop.program @strings
// CHECK-NEXT:    loop.launch @copy_host(
// CHECK-NEXT:  }
loop.program @strings(%x: !loop.buffer<[16384] x i64, <[0]>> | %y: !loop.buffer<[16384] x i64, <[0]>>)
    attributes {aliases = array<i64>, guards = [], input_names = ["x"], input_types = [!prim.string], output_names = ["y"],
                output_types = [!prim.string], symbol_sources = {}, symbols = {}} {
  loop.launch @copy(%x, %y) symbols [] : !loop.buffer<[16384] x i64, <[0]>>, !loop.buffer<[16384] x i64, <[0]>>
}
