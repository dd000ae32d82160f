//===- PartialSums.h - sums taken in parts ----------------------*- C++ -*-===//
//
// What SumInStages.cpp and SumOfParts.cpp do to a reduction: nodes with its body sum up parts of it, and its results
// are computed of those.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_COMPILER_SCHEDULE_PARTIALSUMS_H
#define PTC_COMPILER_SCHEDULE_PARTIALSUMS_H

#include "ir/loop/Loop.h"

namespace ptc::loop {

/// Whether a reduction may be taken in parts: all that it reduces and stores stands in its body itself, and it asks for
/// no positions.
bool canSumParts(ReductionOp sum);

/// Erases the ops that are known only once all has been summed up, but for the reductions.
void dropResults(ReductionOp sum);
/// Erases what is stored of single elements.
void dropElements(ReductionOp sum);
/// Erases what neither stores nor reductions need, as the two above do.
void eraseUnused(ReductionOp sum);

/// The same body without a reduction left in it, at each point of the domain.
PointwiseOp replaceByPointwise(ReductionOp sum);

/// Stores each of the node's reductions, the kept dims in their order, in a buffer of its own, which it returns.
llvm::SmallVector<mlir::Value> storePartials(ReductionOp sum);
/// The position of the kept dims in such a buffer.
Expr getPartialPosition(llvm::ArrayRef<Expr> keptDomain, mlir::MLIRContext *context);

} // namespace ptc::loop

#endif // PTC_COMPILER_SCHEDULE_PARTIALSUMS_H
