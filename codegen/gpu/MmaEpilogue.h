//===- MmaEpilogue.h - from sums of warps to results ------------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_MMAEPILOGUE_H
#define PTC_CODEGEN_GPU_MMAEPILOGUE_H

#include "codegen/gpu/MmaOperand.h"

namespace ptc::gpu {

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
  void repair();
  void emitGroup(mlir::Value firstChunk, int64_t count);
  int64_t chooseLanes() const;
  EmissionPoint pointAt(mlir::Value row, mlir::Value column, int64_t lanes);

  MmaBlock &block;
  GpuEmitter &e;
  const MmaTile &tile;
  const MmaOperand &lhs, &rhs;
  mlir::Value shared;
};

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_MMAEPILOGUE_H
