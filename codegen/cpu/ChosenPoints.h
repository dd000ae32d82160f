//===- ChosenPoints.h - points in the order of what they choose -*- C++ -*-===//
#ifndef PTC_CODEGEN_CPU_CHOSENPOINTS_H
#define PTC_CODEGEN_CPU_CHOSENPOINTS_H

#include "codegen/cpu/CpuEmitter.h"

namespace ptc::cpu {

/// Of a product whose points choose the matrix that they read rows of.
struct ChosenPoints {
  int64_t dim;               // of the points
  loop::CheckIndexOp choice; // computed of loads that no other dim moves
  int64_t matrices;          // to choose from

  mlir::Value getChoice() const { return loop::CheckIndexOp(choice).getResult(); }
  /// The memory of their order.
  Expr getBytes(llvm::ArrayRef<Expr> domain) const;
};

/// Nothing where the reduction is no such product, or its points follow each other in its outermost loop: each then
/// reads all of its matrix before the next one.
std::optional<ChosenPoints> findChosenPoints(loop::ReductionOp product);

/// Puts the points' numbers in the order of their choices into memory.
void emitOrder(KernelEmitter &e, const ChosenPoints &points, llvm::ArrayRef<Expr> domain, mlir::Value memory);
/// Whether the dim before the points counts blocks of these rows, so that the next one lies behind this one.
bool hasNextBlock(loop::ReductionOp product, const ChosenPoints &points);
/// At a step of the sums of a tile of so many rows, `at` being the first: fetches a share of the same rows of the
/// matrix's next block. Neighbours in the order, of which this point has that place, have different shares.
void fetchNextBlock(KernelEmitter &e, loop::ReductionOp product, const ChosenPoints &points, EmissionPoint at,
                    int64_t rows, mlir::Value matrix, mlir::Value place);
/// The number of the point at that place.
mlir::Value loadInOrder(KernelEmitter &e, mlir::Value memory, mlir::Value place);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CHOSENPOINTS_H
