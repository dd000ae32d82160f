//===- Tuned.h - choices that were found by measuring -----------*- C++ -*-===//
//
// A target's planner chooses sizes of blocks and tiles by an estimate. `ptc tune` measures others; what was faster is
// set on a loop.kernel as a dictionary of numbers before it is planned, and stands in the place of the planner's own
// choice. Which names there are is the target's matter; a name that is missing, and a kernel without the attribute, is
// left to the planner.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_LOOP_TUNED_H
#define PTC_IR_LOOP_TUNED_H

#include "ir/loop/Loop.h"

namespace ptc::loop {

/// The dictionary on a loop.kernel.
inline constexpr llvm::StringLiteral tunedAttr = "loop.tuned";
/// In it: the level that the numbers were measured at, which what depends on a level asks for.
inline constexpr llvm::StringLiteral tunedLevelAttr = "level";

/// A number that was found by measuring for the kernel that `op` is or stands in.
std::optional<int64_t> getTuned(mlir::Operation *op, llvm::StringRef name);
/// One that counts at this level alone.
std::optional<int64_t> getTuned(mlir::Operation *op, llvm::StringRef name, llvm::StringRef level);

} // namespace ptc::loop

#endif // PTC_IR_LOOP_TUNED_H
