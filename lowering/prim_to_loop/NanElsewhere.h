//===- NanElsewhere.h - what is known of a row beside its extreme -*- C++ -*-===//
#ifndef PTC_LOWERING_PRIM_TO_LOOP_NANELSEWHERE_H
#define PTC_LOWERING_PRIM_TO_LOOP_NANELSEWHERE_H

#include "ir/prim/Prim.h"

namespace ptc::loop {

/// Whether all that a maximum or minimum of floats enters is NaN wherever the extreme would be, even if it is not.
bool isNanElsewhere(prim::ReduceOp extreme);

/// Whether the op is exp(x - max x), a power of nothing above 0. The maximum is that of x over some axes.
bool isPowerOfDistance(mlir::Operation *op);

/// Whether the op is such a power by the sum of those along the same axes, 1 at least.
bool isSoftmaxQuotient(mlir::Operation *op);

} // namespace ptc::loop

#endif // PTC_LOWERING_PRIM_TO_LOOP_NANELSEWHERE_H
