//===- ShareOffsets.h - sums of sizes become one symbol ---------*- C++ -*-===//
#ifndef PTC_COMPILER_SCHEDULE_SHAREOFFSETS_H
#define PTC_COMPILER_SCHEDULE_SHAREOFFSETS_H

#include "ir/loop/Loop.h"
#include "llvm/ADT/MapVector.h"

namespace ptc::loop {

/// Sums that a kernel is given as symbols of their own: their names, and what the host computes.
using SharedOffsets = llvm::SmallVector<std::pair<std::string, Expr>, 2>;

/// Replaces such sums inside a group of nodes with linear accesses.
SharedOffsets shareOffsets(mlir::Operation *group, const SymbolRanges &symbols);
/// A size in terms of them.
Expr useShared(Expr size, const SharedOffsets &shared);

} // namespace ptc::loop

#endif // PTC_COMPILER_SCHEDULE_SHAREOFFSETS_H
