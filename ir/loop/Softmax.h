//===- Softmax.h - what is known of a softmax's values ----------*- C++ -*-===//
#ifndef PTC_IR_LOOP_SOFTMAX_H
#define PTC_IR_LOOP_SOFTMAX_H

#include "llvm/ADT/StringRef.h"

namespace ptc::loop {

/// On a math.exp of x - max x over rows of x: its operand is not above 0, or a NaN in the row takes the place of
/// whatever it enters.
inline constexpr llvm::StringLiteral notPositiveAttr = "loop.not_positive";

/// On an arith.divf of such an exponential by the sum of those of its row, which is 1 at least, or NaN.
inline constexpr llvm::StringLiteral ofSoftmaxAttr = "loop.of_softmax";

} // namespace ptc::loop

#endif // PTC_IR_LOOP_SOFTMAX_H
