//===- CpuContraction.h - how the CPU computes a loop.contraction -*- C++ -*-===//
//
// What planning and code generation share: the form of a contraction (how each operand is read, how its loops are cut),
// a function of the op alone. Nothing here depends on the CPU level, so that all levels share iterations and scratch.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUCONTRACTION_H
#define PTC_CODEGEN_CPU_CPUCONTRACTION_H

#include "codegen/cpu/RegisterTile.h"

namespace ptc::cpu {

/// How the rows of A reach the register tile.
enum class LhsForm {
  InPlace,       // affine in k, unit stride in the innermost k loop
  Redirected,    // as InPlace, but where a condition on the row and the outer k loops fails a run of constants is read
  Panels,        // a packed weight (roles swapped: the weight's columns are the rows)
  PackedRows,    // evaluated into scratch, [row][k]
  PackedColumns, // evaluated into scratch, [k][row]
};

/// How B becomes unit panels.
enum class RhsForm {
  Panels,       // packed weight
  PackedAlongN, // evaluated into scratch with vectors along n
  PackedAlongK, // evaluated with vectors along k and transposed
};

/// A loop over one k dim (-1: all of them as one), outermost first; the innermost one runs over groups. Strides in
/// elements of A and in rows of B.
struct KLoop {
  int64_t dim;
  Expr extent, aStride, bStride;
};

struct ContractionForm {
  loop::ContractionOp op;
  llvm::SmallVector<Expr> domain;
  int64_t batchDims = 0, mDims = 0, nDims = 0, kDims = 0;
  Expr batch, m, n, k; // products of the extents
  mlir::Type accumulator;
  /// Above 1: both operands are 8-bit integers or bf16, of which an instruction multiplies and adds up so many at once.
  int64_t group = 1;
  mlir::Type lhsElement; // of A in memory

  LhsForm lhs = LhsForm::InPlace;
  RhsForm rhs = RhsForm::Panels;
  loop::LoadOp lhsLoad;     // InPlace, Redirected
  loop::MaskedOp lhsMask;   // Redirected
  mlir::TypedAttr lhsOther; // Redirected: what is read where the mask fails
  loop::PanelsOp lhsPanels, rhsPanels;
  mlir::Value rhsBuffer;                        // of rhsPanels
  int64_t lhsVectorDim = -1, rhsVectorDim = -1; // of packing
  llvm::SmallVector<KLoop> kLoops;

  // Blocks: tasks are batch x mBlocks x nBlocks; kLoops[0] runs in kBlocks pieces of kBlock.
  Expr mBlocks, nBlocks, kBlocks, kBlock;
  bool mFastest = false;
  Expr rowsMost, panelsMost; // of one task, at any level
  // Scratch, in bytes from its start (null: not needed).
  Expr lhsAt, rhsAt, lineAt, sumsAt, fillAt, scratch;
  Expr lhsPitch, sumsPitch, rhsRows; // elements of a row; rows of a packed panel
  Expr iterations, grain;

  bool isSplitK() const { return !kBlocks.isConstant(1); }
  int64_t firstM() const { return batchDims; }
  int64_t firstN() const { return batchDims + mDims; }
  int64_t firstK() const { return batchDims + mDims + nDims; }
  int64_t accumulatorBytes() const { return loop::getElementBytes(accumulator); }
  int64_t lhsBytes() const { return loop::getElementBytes(lhsElement); }
};

/// Merges dims that all regions use as one, drops dims of extent 1, and swaps the roles of lhs and rhs where the result
/// is contiguous along m but not along n. Rewrites the op in place; its meaning stays.
void canonicalizeContraction(loop::ContractionOp op);

/// True if the register tile does not pay: few columns or rows and no packed weight.
bool isNarrowContraction(loop::ContractionOp op);

/// The same computation as a loop.reduction over the k dims; replaces the op, which must not read panels.
loop::ReductionOp replaceByReduction(loop::ContractionOp op);

ContractionForm analyzeContraction(loop::ContractionOp op);
/// The part of the analysis that says what the dims are and how operands are read.
ContractionForm describeContraction(loop::ContractionOp op);
/// The part of the analysis that cuts the work into blocks and lays out the scratch memory.
void planBlocks(ContractionForm &form);

/// All expressions in attributes of the ops inside the region.
void walkExprs(mlir::Region &region, llvm::function_ref<void(Expr)> visit);
/// `sum + outer*stride*inner + inner*stride` -> can the dims outer, inner be one in every expression of the region?
bool mergesIn(mlir::Region &region, int64_t outer, Expr innerExtent);
/// coefficient of a dim if it is free of other dims; null if the expression is not affine in it.
Expr strideOf(Expr index, int64_t dim);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUCONTRACTION_H
