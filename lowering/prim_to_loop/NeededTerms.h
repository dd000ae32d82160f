//===- NeededTerms.h - terms that causal masks leave of products -*- C++ -*-===//
#ifndef PTC_LOWERING_PRIM_TO_LOOP_NEEDEDTERMS_H
#define PTC_LOWERING_PRIM_TO_LOOP_NEEDEDTERMS_H

#include "ir/prim/Prim.h"

namespace ptc::loop {

/// Over the dims of the product as a contraction (those of the batch, row, column, term): expressions that are negative
/// at terms that are zero by construction or enter sums that nobody reads.
llvm::SmallVector<Expr> findNeededTerms(prim::MatmulOp product);

} // namespace ptc::loop

#endif // PTC_LOWERING_PRIM_TO_LOOP_NEEDEDTERMS_H
