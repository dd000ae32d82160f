//===- Rounds.h - how often a run comes by an op ----------------*- C++ -*-===//
#ifndef PTC_IR_LOOP_ROUNDS_H
#define PTC_IR_LOOP_ROUNDS_H

#include "ir/loop/Loop.h"

namespace ptc::loop {

/// The product of the rounds of all loops around the op, with these values of symbols, as if no condition ended one
/// before. A loop whose rounds a run finds counts as one, and so does a branch, taken or not.
int64_t countRounds(mlir::Operation *op, const SymbolValues &values);

} // namespace ptc::loop

#endif // PTC_IR_LOOP_ROUNDS_H
