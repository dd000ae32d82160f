//===- Unrounded.h - narrow floats that may be wide meanwhile ---*- C++ -*-===//
#ifndef PTC_LOWERING_DECOMP_UNROUNDED_H
#define PTC_LOWERING_DECOMP_UNROUNDED_H

#include "lowering/decomp/NodeContext.h"

namespace ptc::decomp {

/// Whether x is of floats below 32 bits.
bool isNarrow(NodeContext &n, Value x);

/// x converted between a narrow float and f32, which it may be all the time.
Value unrounded(NodeContext &n, Value x, Type to);

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_UNROUNDED_H
