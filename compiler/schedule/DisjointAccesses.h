//===- DisjointAccesses.h - nodes that use parts of a buffer ----*- C++ -*-===//
#ifndef PTC_COMPILER_SCHEDULE_DISJOINTACCESSES_H
#define PTC_COMPILER_SCHEDULE_DISJOINTACCESSES_H

#include "compiler/schedule/NodeDims.h"
#include "llvm/ADT/DenseMap.h"

namespace ptc::loop {

/// Tells whether one of two nodes writes elements of a buffer that the other one uses. Invariant: no node changes while
/// this is asked.
class DisjointAccesses {
public:
  explicit DisjointAccesses(const SymbolRanges &symbols) : symbols(symbols) {}

  /// Whether no element of the buffer that one of the nodes writes is accessed by the other, for certain.
  bool areDisjoint(mlir::Operation *a, mlir::Operation *b, mlir::Value buffer);

private:
  struct Range {
    int64_t min, max; // of none: min > max
  };
  /// Between which values a node's addresses in a buffer lie, modulo a stride.
  struct Residues {
    Range read, written;
  };
  using Key = std::pair<std::pair<mlir::Operation *, mlir::Value>, int64_t>;
  Residues getResidues(mlir::Operation *node, mlir::Value buffer, int64_t stride);
  /// The numbers that are tried.
  llvm::ArrayRef<int64_t> getStrides(mlir::Operation *node, mlir::Value buffer);

  const SymbolRanges &symbols;
  llvm::DenseMap<Key, Residues> residues;
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::Value>, llvm::SmallVector<int64_t>> strides;
};

} // namespace ptc::loop

#endif // PTC_COMPILER_SCHEDULE_DISJOINTACCESSES_H
