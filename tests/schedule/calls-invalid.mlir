// RUN: ptc-opt %s -split-input-file -verify-diagnostics

// A function of the runtime runs on the calling thread: it is a step of a program.
loop.kernel @k(%x: !loop.buffer<[4] x f32, <[0]>>, %y: !loop.buffer<[4] x f32, <[0]>>) attributes {arguments_written = array<i64: 1>, parallel = 1 : i64, symbols = []} {
  // expected-error @below {{is inside a kernel, whose iterations run on any thread}}
  loop.call "string_equal" read(%x) written(%y) numbers [] : (!loop.buffer<[4] x f32, <[0]>>) (!loop.buffer<[4] x f32, <[0]>>)
}
