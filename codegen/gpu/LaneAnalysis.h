//===- LaneAnalysis.h - which points a thread may take together --*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_LANEANALYSIS_H
#define PTC_CODEGEN_GPU_LANEANALYSIS_H

#include "ir/loop/Loop.h"
#include "llvm/ADT/DenseSet.h"

namespace ptc::gpu {

/// How the accesses of a body move along one dim of its node.
class LaneAnalysis {
public:
  LaneAnalysis(mlir::Operation *node, int64_t dim);

  /// The element moves by one with the dim.
  bool isContiguous(Expr index, mlir::ValueRange operands) const;
  bool isUniform(Expr index, mlir::ValueRange operands) const;
  /// Contiguous, and the first of `lanes` elements lies at a multiple of `lanes` wherever the dim does.
  bool isVector(Expr index, mlir::ValueRange operands, int64_t lanes) const;

  /// Some access outside of conditions is contiguous.
  bool anyContiguous() const { return contiguous > 0; }
  /// Adjacent points that a thread loads and stores with one access of at most 16 bytes each; 1 where that does not
  /// suit every access.
  int64_t chooseLanes() const;

private:
  void visit(mlir::Operation *op, bool isConditional);

  std::string dim;
  SymbolRanges ranges;
  llvm::DenseSet<mlir::Value> varying;
  struct Access {
    Expr index;
    mlir::ValueRange operands;
    int64_t bytes;
  };
  llvm::SmallVector<Access> accesses; // that vary and are not conditional
  int64_t contiguous = 0;
  bool hasOthers = false; // accesses that vary, but not one by one or under a condition
};

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_LANEANALYSIS_H
