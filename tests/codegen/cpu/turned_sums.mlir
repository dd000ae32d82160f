// A convolution whose result has channels first: sums of whole pixels wait, squares of them are turned, and the epilogue
// sees vectors of neighbouring pixels (unit tests have their results).
// RUN: ptc-kernel %s --level=x86-64-v4 --emit=llvm | FileCheck %s
// RUN: ptc-kernel %s --level=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=V3

// The bias is one number for a vector of pixels, which what is added has side by side. Of the last pixels and of the last
// channels there are not so many: stores under a mask, and three in place of 16.
// CHECK-LABEL:    define {{.*}}@turned(
// CHECK:          shufflevector <16 x float> {{.*}} <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17,
// CHECK:          %[[BIAS:.*]] = load float
// CHECK:          insertelement <16 x float> poison, float %[[BIAS]]
// CHECK-COUNT-16: store <16 x float>
// CHECK-COUNT-16: call void @llvm.masked.store.v16f32
// CHECK-COUNT-3:  store <16 x float>
// CHECK-NOT:      store <16 x float>
// CHECK-COUNT-3:  call void @llvm.masked.store.v16f32
// CHECK-NOT:      call void @llvm.masked.store
// CHECK:          ret i32
// V3-LABEL: define {{.*}}@turned(
// V3:       shufflevector <8 x float> {{.*}} <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 8, i32 9, i32 10, i32 11>
// V3:       ret i32
loop.kernel @turned(%x: !loop.buffer<[19*23*3] x f32>, %w: !loop.buffer<[27*3*16] x f32>, %b: !loop.buffer<[35] x f32>, %z: !loop.buffer<[35*99] x f32>, %y: !loop.buffer<[35*99] x f32>)
    attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 4>} {
  loop.contraction [9, 11, 35, 3, 3, 3] batch 0 m 2 n 1 k 3 lhs {
    %0 = loop.load %x[((2*d0 + d3)*23 + 2*d1 + d4)*3 + d5] : !loop.buffer<[19*23*3] x f32>
    loop.yield %0 : f32
  } rhs {
    %0 = loop.panels %w : !loop.buffer<[27*3*16] x f32> -> f32
    loop.yield %0 : f32
  } epilogue {
  ^bb0(%acc: f32):
    %0 = loop.load %b[d2] : !loop.buffer<[35] x f32>
    %1 = loop.load %z[d2*99 + d0*11 + d1] : !loop.buffer<[35*99] x f32>
    %2 = arith.addf %acc, %0 : f32
    %3 = arith.addf %2, %1 : f32
    loop.store %3, %y[d2*99 + d0*11 + d1] : !loop.buffer<[35*99] x f32>
  }
}
