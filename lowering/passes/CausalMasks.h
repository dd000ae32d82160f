//===- CausalMasks.h - masks that are triangles -----------------*- C++ -*-===//
#ifndef PTC_LOWERING_PASSES_CAUSALMASKS_H
#define PTC_LOWERING_PASSES_CAUSALMASKS_H

#include "ir/prim/Prim.h"

namespace ptc::prim {

/// A mask that hides the columns behind the row, column > row, and nothing else, the same for all matrices of its last
/// two dims. Of booleans true shows (hides, if inverted); numbers are 0 or hide.
bool isCausalMask(mlir::Value mask, bool isInverted);

} // namespace ptc::prim

#endif // PTC_LOWERING_PASSES_CAUSALMASKS_H
