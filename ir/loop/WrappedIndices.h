//===- WrappedIndices.h - indices that may count from the end ---*- C++ -*-===//
#ifndef PTC_IR_LOOP_WRAPPEDINDICES_H
#define PTC_IR_LOOP_WRAPPEDINDICES_H

#include "ir/loop/Loop.h"

namespace ptc::loop {

/// On a `loop.check_index`: an index i with -extent <= i < 0 is that of i + extent. Others must not be negative: what
/// was normalised before is not wrapped a second time.
inline constexpr llvm::StringLiteral wrapsAttr = "loop.wraps";

inline bool wraps(CheckIndexOp check) { return check->hasAttr(wrapsAttr); }

} // namespace ptc::loop

#endif // PTC_IR_LOOP_WRAPPEDINDICES_H
