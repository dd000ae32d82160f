//===- ContractionDims.h - the dims of a contraction, by class --*- C++ -*-===//
#ifndef PTC_IR_LOOP_CONTRACTIONDIMS_H
#define PTC_IR_LOOP_CONTRACTIONDIMS_H

#include "ir/loop/Loop.h"
#include <numeric>

namespace ptc::loop {

/// The counts of dims by class, as they are kept on the op.
struct DimCounts {
  int64_t counts[4]; // batch, m, n, k
  explicit DimCounts(ContractionOp op)
      : counts{int64_t(op.getBatch()), int64_t(op.getM()), int64_t(op.getN()), int64_t(op.getK())} {}
  void set(ContractionOp op) const {
    op.setBatch(counts[0]);
    op.setM(counts[1]);
    op.setN(counts[2]);
    op.setK(counts[3]);
  }
  int64_t first(int group) const { return std::accumulate(counts, counts + group, int64_t(0)); }
};

/// Columns of a packed weight that lie side by side (PanelsOp).
inline constexpr int64_t panelWidth = 16;

/// All expressions in attributes of the ops inside the region.
void walkExprs(mlir::Region &region, llvm::function_ref<void(Expr)> visit);
/// Whether one of the op's, or of an op inside of it, uses the dim.
bool usesDim(mlir::Operation *root, llvm::StringRef dim);
/// Coefficient of a dim if it is free of other dims; null if the expression is not affine in it.
Expr strideOf(Expr index, int64_t dim);
/// `sum + outer*stride*inner + inner*stride` -> can the dims outer, outer + 1 be one in every expression of the region?
bool mergesIn(mlir::Region &region, int64_t outer, Expr innerExtent);
/// The same for all regions of a contraction.
bool mergesIn(ContractionOp op, int64_t outer);

/// The expressions that are negative at terms that may be left out.
llvm::SmallVector<Expr> getNeeded(ContractionOp op);

/// Merges neighbouring dims of a class that all regions use as one, and drops dims of extent 1.
void mergeDims(ContractionOp op);

/// Whether the op has so few rows or columns that a register tile does not pay, if no weight is packed for it.
bool isNarrow(ContractionOp op);

/// Terms that are multiplied side by side: processors add up the products of four bytes in one instruction, unsigned
/// ones of the lhs by signed ones of the rhs, and of two bf16.
int64_t getGroup(ContractionOp op);

/// A dim of extent c * `inner` as two dims, the second one of extent `inner`. Expressions are simplified.
void splitDim(ContractionOp op, int64_t dim, int64_t inner);

/// Whether the op is a convolution whose sums of many terms are faster for whole pixels, of so many columns that
/// vectors of them are full, than for whole rows of one column.
bool writesWholePixels(ContractionOp op);

/// Whether such a convolution's result lies the other way around, the rows of each column side by side, and its
/// epilogue reads and writes along them alone: sums of whole pixels are turned for it, square by square.
bool turnsPixels(ContractionOp op);

/// The same computation as a loop.reduction over the k dims; replaces the op, which must not read panels.
ReductionOp replaceByReduction(ContractionOp op);

} // namespace ptc::loop

#endif // PTC_IR_LOOP_CONTRACTIONDIMS_H
