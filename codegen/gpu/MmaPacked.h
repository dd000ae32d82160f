//===- MmaPacked.h - packed weights on tensor cores -------------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_MMAPACKED_H
#define PTC_CODEGEN_GPU_MMAPACKED_H

#include "codegen/gpu/MmaOperand.h"
#include "codegen/gpu/PackedRhs.h"

namespace ptc::gpu {

/// The rhs of numbers of few bits that tensor cores of the kind multiply in this way, or nothing.
std::optional<PackedRhs> matchMmaPacked(loop::ContractionOp op, MmaKind kind);

/// Rhs of numbers of 2, 4 or 8 bits: its tiles are copied to shared memory as they are, [column][k], and warps convert
/// what they multiply. The opening comment of MmaPacked.cpp says which k a thread has.
class MmaPackedRhs {
public:
  /// `rhs` knows the tile's columns; `offset`: bytes within a stage.
  MmaPackedRhs(MmaBlock &block, const MmaOperand &rhs, int64_t offset);

  /// Begins to copy the tile of a step of k to a stage.
  void copy(mlir::Value step, mlir::Value stage) const;
  /// What the thread's numbers of a step need besides their bits, scales mostly. These loads wait for nobody: the step
  /// before it asks for them.
  llvm::SmallVector<mlir::Value> request(mlir::Value step) const;
  /// sums + lhs * rhs of a step whose tiles lie in `stage`.
  llvm::SmallVector<mlir::Value> multiply(const MmaOperand &lhs, mlir::Value step, mlir::Value stage,
                                          mlir::ValueRange requested, llvm::SmallVector<mlir::Value> sums) const;

private:
  using Values = llvm::SmallVector<mlir::Value>;
  codegen::BodyEmitter bodyAt(mlir::Value column, mlir::Value step, mlir::Value k) const;
  mlir::Value columnOf(int64_t group) const; // of the tile: the thread's of eight
  Values readStrip(mlir::Value stage, int64_t group) const;
  mlir::Value convertPair(const Values &strip, int64_t number, const codegen::BodyEmitter &body) const;
  MmaFragments convert(llvm::ArrayRef<Values> strips, mlir::Value step, int64_t part, mlir::ValueRange requested) const;
  bool isWhole() const { return block.isWholeK; }
  int64_t groups() const { return block.tile.warpN() / 8; }
  int64_t stripNumbers() const { return block.tile.k() / 4; }
  size_t requestedOfGroup() const { return shared.size() + (isScaledLate ? 2 : 0); }

  MmaBlock &block;
  GpuEmitter &e;
  const MmaOperand &columns;
  PackedRhs rhs;
  int64_t offset, together; // bytes of a copy
  bool isScaledLate;        // sums are multiplied by the factor, not numbers
  bool isPaired;            // all arithmetic is in f16
  Values shared;            // of the region: what numbers need
  mlir::Value inFour;       // the thread's number among four
};

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_MMAPACKED_H
