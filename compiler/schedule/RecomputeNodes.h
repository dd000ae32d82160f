//===- RecomputeNodes.h - cheap values computed by their readers *- C++ -*-===//
#ifndef PTC_COMPILER_SCHEDULE_RECOMPUTENODES_H
#define PTC_COMPILER_SCHEDULE_RECOMPUTENODES_H

#include "ir/loop/Loop.h"

namespace ptc::loop {

/// Computes what a cheap pointwise node writes to `buffer` where it is read, and drops node and buffer: memory sees one
/// value less, written and read. The node reads one other value of as many elements, in no order of its own, and else
/// little. Returns false, with nothing changed, where the node is not of that kind or a reader would do more than read
/// each element once. For programs in which nothing is written over yet (UpdateInPlace comes later).
bool recomputeInReaders(mlir::Value buffer, const SymbolRanges &symbols, const SymbolValues &hints);

/// Whether a pointwise node computes the value of what a sum has summed up, and readers would not compute it again
/// (exponentials behind a maximum): it should run in the loop of that sum, where what both read is in cache.
bool runsBesideSum(mlir::Value buffer, const SymbolValues &hints);

} // namespace ptc::loop

#endif // PTC_COMPILER_SCHEDULE_RECOMPUTENODES_H
