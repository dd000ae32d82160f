//===- GpuInstructions.h - instructions of tensor-core kernels --*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_GPUINSTRUCTIONS_H
#define PTC_CODEGEN_GPU_GPUINSTRUCTIONS_H

#include "codegen/gpu/GpuEmitter.h"
#include "codegen/gpu/MmaPlan.h"

namespace ptc::gpu {

/// Four 8x8 matrices of 16-bit elements, whose rows of 16 bytes lie where lanes 0-7, 8-15, ... say; a lane gets 4 bytes
/// of row lane/4 of each, or of column lane/4 (transposed).
llvm::SmallVector<mlir::Value> createLoadMatrices(GpuEmitter &e, mlir::Value address, bool isTransposed);
/// sums + a * b, 16x8 results, 16 (SplitF32: 8, of tf32; bytes: 32) deep. Fragments are i32.
llvm::SmallVector<mlir::Value> createMma(GpuEmitter &e, MmaKind kind, mlir::ValueRange a, mlir::ValueRange b,
                                         mlir::ValueRange sums);

/// a + b, of sums of either type.
mlir::Value createSum(GpuEmitter &e, mlir::Value a, mlir::Value b);

/// 2^x of an f32, as the hardware has it: within two units of the last place; 0 for what is smaller than normal
/// numbers.
mlir::Value createPowerOfTwo(GpuEmitter &e, mlir::Value x);
/// Two f32, rounded to 16 bits, as one i32; `first` is its lower half.
mlir::Value createPair(GpuEmitter &e, MmaKind kind, mlir::Value first, mlir::Value second);

/// Four bytes of the eight that `low` and `high` are: the digits of `choice` say which, the lowest first.
mlir::Value createBytes(GpuEmitter &e, mlir::Value low, mlir::Value high, int64_t choice);

/// Copies 16 or 4 bytes from global to shared memory; zeros where `exists` (null: always) does not hold.
void createCopyAsync(GpuEmitter &e, mlir::Value target, mlir::Value source, int64_t bytes, mlir::Value exists);
/// Ends a group of copies.
void createCopyCommit(GpuEmitter &e);
/// Waits until no more than `pending` groups of this thread are under way.
void createCopyWait(GpuEmitter &e, int64_t pending);

/// A barrier of the block; whether `flag` holds in any of its threads.
mlir::Value createBarrierOr(GpuEmitter &e, mlir::Value flag);
/// What this thread wrote is seen by whoever sees what it writes next, on the whole device.
void createDeviceFence(GpuEmitter &e);
/// Adds to a counter of the device; its value before (i32).
mlir::Value createCount(GpuEmitter &e, mlir::Value counter);
/// Blocks that share work meet: whether this one is the last of `count` (i64) to arrive at counter `number`, which is 0
/// again then. What the others wrote before is seen behind it. All threads of the block come here.
mlir::Value createLastArrival(GpuEmitter &e, mlir::Value number, mlir::Value count);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_GPUINSTRUCTIONS_H
