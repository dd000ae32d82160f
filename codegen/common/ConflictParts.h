//===- ConflictParts.h - what of a greedy choice's test is computed when -*- C++ -*-===//
#ifndef PTC_CODEGEN_COMMON_CONFLICTPARTS_H
#define PTC_CODEGEN_COMMON_CONFLICTPARTS_H

#include "ir/loop/Loop.h"
#include "llvm/ADT/DenseMap.h"

namespace ptc::codegen {

/// A conflict region (a conjunction) by what its ops depend on: the candidate, the chosen point, or both of them.
struct ConflictParts {
  explicit ConflictParts(loop::GreedyOp op);

  llvm::SmallVector<mlir::Operation *> own;   // once for a candidate
  llvm::SmallVector<mlir::Operation *> other; // once for a chosen point
  llvm::SmallVector<mlir::Operation *> early; // for each pair of them
  llvm::SmallVector<mlir::Operation *> late;  // for pairs that all early conditions hold for
  llvm::SmallVector<mlir::Value> ownConditions, otherConditions, earlyConditions, lateConditions;
  llvm::SmallVector<mlir::Value> remembered; // of a chosen point, read for each pair

  /// Bytes that hold the `remembered` values of `count` points, and where those of the i-th value start. Whole vectors
  /// of any level can be read.
  Expr getOffset(size_t i, Expr count) const;
  Expr getBytes(Expr count) const { return getOffset(remembered.size(), count); }
};

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_CONFLICTPARTS_H
