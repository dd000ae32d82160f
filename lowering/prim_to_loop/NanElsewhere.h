//===- NanElsewhere.h - extremes whose NaN nobody needs ---------*- C++ -*-===//
#ifndef PTC_LOWERING_PRIM_TO_LOOP_NANELSEWHERE_H
#define PTC_LOWERING_PRIM_TO_LOOP_NANELSEWHERE_H

#include "ir/prim/Prim.h"

namespace ptc::loop {

/// Whether all that a maximum or minimum of floats enters is NaN wherever the extreme would be, even if it is not.
bool isNanElsewhere(prim::ReduceOp extreme);

} // namespace ptc::loop

#endif // PTC_LOWERING_PRIM_TO_LOOP_NANELSEWHERE_H
