//===- ScratchLayout.h - what templates put into scratch --------*- C++ -*-===//
//
// How many elements of a cut dim a task holds at most, and where its copies of operands and its sums lie in the
// thread's scratch block.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_SCRATCHLAYOUT_H
#define PTC_CODEGEN_CPU_SCRATCHLAYOUT_H

#include "ir/expr/Expr.h"

namespace ptc::cpu {

inline constexpr int64_t lineBytes = 64;
/// Of operands that are read again and again: half of a 768 KiB to 1 MiB second-level cache, a little less.
inline constexpr int64_t blockBytes = 384 << 10;

inline Expr roundUp(Expr value, int64_t unit) { return value.ceilDiv(unit) * unit; }

/// Elements of the largest of so many parts of `whole`, whose ends lie at most `slack` elements off even ones.
inline Expr mostOfPart(Expr whole, Expr parts, int64_t slack) {
  Expr most = whole.ceilDiv(parts) + slack;
  bool isKnown = whole.isConstant() && most.isConstant();
  return isKnown ? Expr::constant(whole.getContext(), std::min(whole.getValue(), most.getValue())) : most;
}

/// Hands out parts of the scratch block.
struct ScratchLayout {
  Expr end;
  Expr add(Expr elements, int64_t bytes) {
    Expr at = end;
    end = end + roundUp(elements * bytes + lineBytes, lineBytes); // vectors may run a little over the end of a row
    return at;
  }
};

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_SCRATCHLAYOUT_H
