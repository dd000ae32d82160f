// RUN: ptc-opt %s --ptc-tabulate-bytes --split-input-file | FileCheck %s

// An activation with all that is quantised inside of it depends on one byte: one table of bytes.
// CHECK-LABEL: @silu
// CHECK-NEXT: %[[TABLE:.*]] = prim.constant dense{{.*}} : tensor<256xui8>
// CHECK-NEXT: %[[AT:.*]] = prim.convert %arg0 : tensor<64x64xui8> -> tensor<64x64xsi32>
// CHECK-NEXT: %[[Y:.*]] = prim.gather %[[TABLE]], %[[AT]], 0
// CHECK-NEXT: return %[[Y]]
func.func @silu(%q: tensor<64x64xui8>) -> tensor<64x64xui8> {
  %scale = prim.constant dense<0.0625> : tensor<f32>
  %s = prim.broadcast %scale, [] : tensor<f32> -> tensor<64x64xf32>
  %0 = prim.convert %q : tensor<64x64xui8> -> tensor<64x64xf32>
  %1 = prim.mul %0, %s : tensor<64x64xf32>
  %2 = prim.sigmoid %1 : tensor<64x64xf32>
  %3 = prim.div %2, %s : tensor<64x64xf32>
  %4 = prim.convert %3 : tensor<64x64xf32> -> tensor<64x64xui8>
  %5 = prim.convert %4 : tensor<64x64xui8> -> tensor<64x64xf32>
  %6 = prim.mul %1, %5 : tensor<64x64xf32>
  %7 = prim.convert %6 : tensor<64x64xf32> -> tensor<64x64xui8>
  return %7 : tensor<64x64xui8>
}

// -----

// Bits are the index, of negative numbers, too: -1 is number 255.
// CHECK-LABEL: @signed
// CHECK-NEXT: prim.constant dense<"0x0000803F{{.*}}> : tensor<256xf32>
// CHECK-NEXT: %[[BITS:.*]] = prim.bitcast %arg0 : tensor<4096xsi8> -> tensor<4096xui8>
// CHECK-NEXT: %[[AT:.*]] = prim.convert %[[BITS]]
// CHECK-NEXT: prim.gather %{{.*}}, %[[AT]], 0
func.func @signed(%q: tensor<4096xsi8>) -> tensor<4096xf32> {
  %0 = prim.convert %q : tensor<4096xsi8> -> tensor<4096xf32>
  %1 = prim.exp %0 : tensor<4096xf32>
  return %1 : tensor<4096xf32>
}

// -----

// Bytes that are stored anyway are taken apart by whoever reads them.
// CHECK-LABEL: @stored
// CHECK: %[[Y:.*]] = prim.gather %{{.*}} : (tensor<256xui8>, tensor<4096xsi32>) -> tensor<4096xui8>
// CHECK-NEXT: %[[REAL:.*]] = prim.convert %[[Y]] : tensor<4096xui8> -> tensor<4096xf32>
// CHECK-NEXT: return %[[Y]], %[[REAL]]
func.func @stored(%q: tensor<4096xui8>) -> (tensor<4096xui8>, tensor<4096xf32>) {
  %0 = prim.convert %q : tensor<4096xui8> -> tensor<4096xf32>
  %1 = prim.tanh %0 : tensor<4096xf32>
  %2 = prim.convert %1 : tensor<4096xf32> -> tensor<4096xui8>
  %3 = prim.convert %2 : tensor<4096xui8> -> tensor<4096xf32>
  return %2, %3 : tensor<4096xui8>, tensor<4096xf32>
}

// -----

// Steps on both sides of a reshape are of the reshaped bytes.
// CHECK-LABEL: @reshaped
// CHECK: %[[Q:.*]] = prim.reshape %arg0 : tensor<64x64xui8> -> tensor<4096xui8>
// CHECK: %[[AT:.*]] = prim.convert %[[Q]]
// CHECK: %[[Y:.*]] = prim.gather %{{.*}}, %[[AT]], 0
// CHECK-NEXT: return %[[Y]]
func.func @reshaped(%q: tensor<64x64xui8>) -> tensor<4096xui8> {
  %0 = prim.convert %q : tensor<64x64xui8> -> tensor<64x64xf32>
  %1 = prim.erf %0 : tensor<64x64xf32>
  %2 = prim.reshape %1 : tensor<64x64xf32> -> tensor<4096xf32>
  %3 = prim.convert %2 : tensor<4096xf32> -> tensor<4096xui8>
  return %3 : tensor<4096xui8>
}

// -----

// Products read bytes, which they widen themselves.
// CHECK-LABEL: @product
// CHECK: %[[Y:.*]] = prim.gather %{{.*}} : (tensor<256xui8>, tensor<64x64xsi32>) -> tensor<64x64xui8>
// CHECK: %[[WIDE:.*]] = prim.convert %[[Y]] : tensor<64x64xui8> -> tensor<64x64xsi32>
// CHECK: prim.matmul %[[WIDE]], %arg1
func.func @product(%q: tensor<64x64xui8>, %w: tensor<64x64xsi32>) -> tensor<64x64xsi32> {
  %0 = prim.convert %q : tensor<64x64xui8> -> tensor<64x64xf32>
  %1 = prim.tanh %0 : tensor<64x64xf32>
  %2 = prim.convert %1 : tensor<64x64xf32> -> tensor<64x64xui8>
  %3 = prim.convert %2 : tensor<64x64xui8> -> tensor<64x64xsi32>
  %4 = prim.matmul %3, %w : (tensor<64x64xsi32>, tensor<64x64xsi32>) -> tensor<64x64xsi32>
  return %4 : tensor<64x64xsi32>
}

// -----

// Not of two bytes, nor what is no elementary function, nor of few elements.
// CHECK-LABEL: @others
// CHECK-NOT: prim.gather
func.func @others(%q: tensor<4096xui8>, %p: tensor<4096xui8>, %few: tensor<64xui8>) -> (tensor<4096xf32>, tensor<4096xf32>, tensor<64xf32>) {
  %0 = prim.convert %q : tensor<4096xui8> -> tensor<4096xf32>
  %1 = prim.convert %p : tensor<4096xui8> -> tensor<4096xf32>
  %2 = prim.add %0, %1 : tensor<4096xf32>
  %3 = prim.exp %2 : tensor<4096xf32>
  %4 = prim.mul %0, %0 : tensor<4096xf32>
  %5 = prim.convert %few : tensor<64xui8> -> tensor<64xf32>
  %6 = prim.exp %5 : tensor<64xf32>
  return %3, %4, %6 : tensor<4096xf32>, tensor<4096xf32>, tensor<64xf32>
}
