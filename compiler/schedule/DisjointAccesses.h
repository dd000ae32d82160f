//===- DisjointAccesses.h - nodes that use parts of a buffer ----*- C++ -*-===//
#ifndef PTC_COMPILER_SCHEDULE_DISJOINTACCESSES_H
#define PTC_COMPILER_SCHEDULE_DISJOINTACCESSES_H

#include "compiler/schedule/Footprint.h"

namespace ptc::loop {

/// Tells whether one of two nodes writes elements of a buffer that the other one uses. Invariant: no node changes while
/// this is asked.
class DisjointAccesses {
public:
  explicit DisjointAccesses(const SymbolRanges &symbols) : symbols(symbols) {}

  /// Whether no element of the buffer that one of the nodes writes is accessed by the other, for certain.
  bool areDisjoint(mlir::Operation *a, mlir::Operation *b, mlir::Value buffer);

private:
  Footprint &getFootprint(mlir::Operation *node, mlir::Value buffer);

  const SymbolRanges &symbols;
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::Value>, std::unique_ptr<Footprint>> footprints;
};

} // namespace ptc::loop

#endif // PTC_COMPILER_SCHEDULE_DISJOINTACCESSES_H
