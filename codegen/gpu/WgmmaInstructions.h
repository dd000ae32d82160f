//===- WgmmaInstructions.h - wgmma, TMA and their barriers ------*- C++ -*-===//
//
// Addresses of shared memory are i32.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_GPU_WGMMAINSTRUCTIONS_H
#define PTC_CODEGEN_GPU_WGMMAINSTRUCTIONS_H

#include "codegen/gpu/GpuEmitter.h"
#include "codegen/gpu/WgmmaPlan.h"

namespace ptc::gpu {

/// A barrier that `arrivals` and the bytes of copies that were announced complete, phase after phase.
void createBarrierInit(GpuEmitter &e, mlir::Value barrier, int64_t arrivals);
/// Barriers that were set up are seen by copies.
void createBarrierInitFence(GpuEmitter &e);
/// Waits until the phase of this parity is complete; that before the first has parity 1.
void createBarrierWait(GpuEmitter &e, mlir::Value barrier, mlir::Value parity);
/// Arrives, and announces bytes.
void createBarrierExpect(GpuEmitter &e, mlir::Value barrier, int64_t bytes);
/// Arrives where `condition` holds.
void createBarrierArrive(GpuEmitter &e, mlir::Value barrier, mlir::Value condition);

/// A map that is soon used.
void createMapPrefetch(GpuEmitter &e, mlir::Value map);
/// Begins to copy the box at `coordinates` (i32, innermost first) to shared memory; `barrier` counts its bytes.
void createBoxCopy(GpuEmitter &e, mlir::Value target, mlir::Value map, mlir::ValueRange coordinates,
                   mlir::Value barrier);
/// Begins to copy pixels from `coordinates` (channel, then pixel and image, i32, innermost first) on, of each what lies
/// `within` its window.
void createPixelCopy(GpuEmitter &e, mlir::Value target, mlir::Value map, mlir::ValueRange coordinates,
                     mlir::ValueRange within, mlir::Value barrier);

/// The registers a thread of this warpgroup may use from here on.
void createRegisterLimit(GpuEmitter &e, int64_t count, bool isMore);

/// A matrix in shared memory, rows of 128 bytes that are swizzled; `chunks` bytes apart along the
/// free dim where rows run along that.
mlir::Value createMatrixDescriptor(GpuEmitter &e, mlir::Value address, int64_t chunks);
/// What may be done to sums behind this is not done before it; `operands` in registers pass through.
llvm::SmallVector<mlir::Value> createProductFence(GpuEmitter &e, mlir::ValueRange operands = {});
/// sums + lhs * rhs, 64 x n results, 16 (bytes: 32) deep; asynchronous. Bytes lie along k.
llvm::SmallVector<mlir::Value> createProduct(GpuEmitter &e, const WgmmaTile &tile, mlir::Value lhs, mlir::Value rhs,
                                             bool lhsAlongK, bool rhsAlongK, mlir::ValueRange sums);
/// The same of f32, 8 deep, of which the tensor cores take 11 bits; lhs is in four registers, and both lie along k.
/// Without sums it makes them.
llvm::SmallVector<mlir::Value> createSplitProduct(GpuEmitter &e, const WgmmaTile &tile, mlir::ValueRange lhs,
                                                  mlir::Value rhs, mlir::ValueRange sums);
void createProductCommit(GpuEmitter &e);
/// Waits until no more than `pending` groups of products are under way.
void createProductWait(GpuEmitter &e, int64_t pending);
/// Waits until no more than `pending` groups are under way, of products whose sums are `values`; i32 behind them pass
/// through: what is computed of them comes later.
llvm::SmallVector<mlir::Value> createProductEnd(GpuEmitter &e, mlir::ValueRange values, int64_t pending = 0);

/// What this thread wrote to shared memory is seen by products.
void createSharedFence(GpuEmitter &e);
/// All threads of the warp come here before one goes on.
void createWarpBarrier(GpuEmitter &e);
/// Whether `flag` (i32) is not 0 in one of the warpgroup's threads, in all of them; writes before are seen behind.
/// `group` (i32) is not 0.
mlir::Value createGroupBarrierOr(GpuEmitter &e, mlir::Value group, mlir::Value flag);
/// All threads of the warpgroups that multiply come here before one goes on.
void createGroupsBarrier(GpuEmitter &e, int64_t groups);
/// All threads of the cluster's blocks that have not ended; writes to shared memory before are seen behind.
void createClusterBarrier(GpuEmitter &e);
/// Four sums, f32 or i32, to shared memory.
void createSharedStore(GpuEmitter &e, mlir::Value address, mlir::ValueRange values);
/// Four sums at the same place in the shared memory of the cluster's block `rank` (i32).
llvm::SmallVector<mlir::Value> createPeerLoad(GpuEmitter &e, mlir::Type type, mlir::Value address, mlir::Value rank);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_WGMMAINSTRUCTIONS_H
