//===- MmaEpilogue.h - from sums of warps to results ------------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_MMAEPILOGUE_H
#define PTC_CODEGEN_GPU_MMAEPILOGUE_H

#include "codegen/gpu/MmaOperand.h"

namespace ptc::gpu {

/// From sums in registers to memory: a contraction's epilogue, a few results a thread at a time.
class MmaResults {
public:
  /// `batch`: the dims of the batch.
  MmaResults(GpuEmitter &e, loop::ContractionOp op, const ContractionDims &dims, EmissionPoint batch);

  /// Results from row `m` and column `n` on, along n: as many as there are sums, all in memory or none.
  struct Chunk {
    mlir::Value m, n;
    llvm::SmallVector<mlir::Value> sums;
  };
  /// Neighbouring columns that a thread takes: 16 bytes of the widest result.
  int64_t chooseLanes() const;
  /// Reads of all chunks, then writes of all.
  void emit(llvm::ArrayRef<Chunk> chunks) const;
  /// Of a block whose warps have all left sums of the whole tile in f32, [warp][row][column] in shared memory from
  /// `memory` on, the tile's columns beginning at `firstColumn`: added up in the order of warps.
  struct WarpSums {
    mlir::Value memory, firstColumn, thread;
    int64_t threads, rows, columns;
  };
  void emitWarpSums(const WarpSums &all) const;
  /// `lanes` sums from row m and column n on, as a sum of f32 products.
  llvm::SmallVector<mlir::Value> sumAgain(mlir::Value m, mlir::Value n, int64_t lanes) const;
  /// Sums that are no numbers, again in f32.
  void repair(llvm::MutableArrayRef<Chunk> chunks) const;

private:
  EmissionPoint pointAt(mlir::Value m, mlir::Value n, int64_t lanes) const;

  GpuEmitter &e;
  loop::ContractionOp op;
  const ContractionDims &dims;
  EmissionPoint batch;
  llvm::SmallVector<mlir::Value> rowSizes, columnSizes; // extents
  mlir::Value rows, columns;                            // their products
};

class MmaEpilogue {
public:
  /// `shared`: memory for the tile's sums.
  MmaEpilogue(MmaBlock &block, const MmaOperand &lhs, const MmaOperand &rhs, mlir::Value shared)
      : block(block), e(block.e), tile(block.tile), lhs(lhs), rhs(rhs), shared(shared) {}
  /// The thread's sums, as the tensor cores leave them.
  void emit(mlir::ValueRange sums);

private:
  mlir::Value sumAddress(mlir::Value row, mlir::Value column, int64_t more = 0);
  mlir::Value spread(mlir::ValueRange sums);
  void repair(const MmaResults &results);
  void emitGroup(const MmaResults &results, mlir::Value firstChunk, int64_t count);

  MmaBlock &block;
  GpuEmitter &e;
  const MmaTile &tile;
  const MmaOperand &lhs, &rhs;
  mlir::Value shared;
};

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_MMAEPILOGUE_H
