//===- MergeNodes.h - what all merging of bodies asks and does --*- C++ -*-===//
#ifndef PTC_COMPILER_SCHEDULE_MERGENODES_H
#define PTC_COMPILER_SCHEDULE_MERGENODES_H

#include "compiler/schedule/Scheduler.h"
#include "mlir/IR/IRMapping.h"
#include <optional>

namespace ptc::loop {

/// A body into which much has been merged stops being a good loop.
constexpr unsigned maxBodyOps = 400;

/// The first index of a load or store; of linear accesses the only one.
Expr getAddress(mlir::Operation *access);
bool isIndirect(mlir::Operation *access);

struct Digit {
  unsigned dim;
  Expr step;
  int64_t size; // of the step, at the hints
};

/// `position` as a mixed-radix number of the dims, its first digit first; `rest` is what depends on none of them.
/// Nothing if it is no such number: then points may share a position.
std::optional<llvm::SmallVector<Digit>> getDigits(Expr position, llvm::ArrayRef<Expr> domain,
                                                  const SymbolRanges &ranges, const SymbolValues &hints, Expr &rest);

/// The dims of `domain` as functions of an address written in other dims; nothing if `position` is no mixed-radix
/// number of the dims or it never is that address. `ranges` are those of the dims that `address` is written in.
std::optional<llvm::SmallVector<Expr>> locate(Expr position, llvm::ArrayRef<Expr> domain, Expr address,
                                              const SymbolRanges &ranges, const SymbolValues &hints);
/// The same without divisions; nothing where some remain.
std::optional<llvm::SmallVector<Expr>> invert(Expr position, llvm::ArrayRef<Expr> domain, Expr address,
                                              const SymbolRanges &ranges, const SymbolValues &hints);
/// Divisions of dims: those of sizes alone are numbers to a loop.
unsigned countDivisions(Expr expr);

/// A node's dims split where another node's, by whose digits it reads what that one writes, begin: 12 rows of 12 are
/// (144), of which every eighth element of 96 is read.
DimSplit splitAtDigits(mlir::Operation *node, Expr read, llvm::ArrayRef<Digit> digits);

/// The only store to `buffer` inside a node.
StoreOp getOnlyStore(mlir::Operation *node, mlir::Value buffer);
llvm::SmallVector<LoadOp> getLoads(mlir::Operation *node, mlir::Value buffer);

/// Product of the extents a store runs over: kept dims of a reduction, b, m, n dims of a
/// contraction...
Expr getStoredCount(mlir::Operation *node, StoreOp store);

/// Clones an op of a node's body, its dims replaced, at the builder's position.
void cloneWithDims(mlir::OpBuilder &b, mlir::Operation &op, mlir::IRMapping &mapping, llvm::ArrayRef<Expr> dims,
                   const SymbolRanges &ranges);
mlir::Location fuseLocations(mlir::Operation *a, mlir::Operation *b);
unsigned countBodyOps(mlir::Operation *node);
/// Whether it is pointwise and its points may run in any order.
bool isPlainPointwise(mlir::Operation *node);
/// Whether it computes little and no function: what may have a copy at each of several places.
bool isCheap(mlir::Operation *node);

} // namespace ptc::loop

#endif // PTC_COMPILER_SCHEDULE_MERGENODES_H
