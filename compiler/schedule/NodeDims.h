//===- NodeDims.h - rewriting the dims of nodes -----------------*- C++ -*-===//
//
// A node's dims may be renamed, reordered, split and merged as long as every
// expression of its body follows. All such changes go through `rewriteDims`.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_COMPILER_SCHEDULE_NODEDIMS_H
#define PTC_COMPILER_SCHEDULE_NODEDIMS_H

#include "ir/loop/Loop.h"

namespace ptc::loop {

/// `d3` -> 3.
std::optional<unsigned> getDimNumber(llvm::StringRef symbol);
inline bool isDimSymbol(llvm::StringRef symbol) { return getDimNumber(symbol).has_value(); }

/// The number by which the expression divides the dim itself; 0: there is none.
int64_t findDivisor(Expr expr, llvm::StringRef dim);

/// The name of an indirect access's operand (Expr::operand).
inline bool isOperandSymbol(llvm::StringRef symbol) { return symbol.starts_with("v$"); }

/// The node that a body op belongs to.
mlir::Operation *getEnclosingNode(mlir::Operation *op);

/// Ranges of the shape symbols and of the node's dims (or of those of `domain`, which it could have).
SymbolRanges getNodeRanges(mlir::Operation *node, const SymbolRanges &symbols);
SymbolRanges getNodeRanges(mlir::Operation *node, llvm::ArrayRef<Expr> domain, const SymbolRanges &symbols);

/// The expression with `dims[i]` for dim i.
Expr substituteDims(Expr expr, llvm::ArrayRef<Expr> dims);

/// Gives the node a new domain; `oldDims[i]` is old dim i in terms of the new dims.
void rewriteDims(mlir::Operation *node, llvm::ArrayRef<Expr> domain, llvm::ArrayRef<Expr> oldDims,
                 const SymbolRanges &symbols);

/// Puts those dims, which are of one kind with those before them, in front of the others.
void bringForward(mlir::Operation *node, llvm::ArrayRef<unsigned> first, const SymbolRanges &symbols);

/// The kinds of dims of a node: dims of one kind may be reordered and merged.
/// Kept dims of reductions come before reduced ones; contractions have batch, m, n, k.
llvm::SmallVector<unsigned> getDimKinds(mlir::Operation *node);
/// Updates the attributes that count dims after dims of `kinds` have been removed or added.
void setDimKinds(mlir::Operation *node, llvm::ArrayRef<unsigned> kinds);

/// True if dims of the node may run in any order.
bool isReorderable(mlir::Operation *node);

/// Dims that are not reduced, and may be shared with other nodes of a kernel.
unsigned getKeptCount(mlir::Operation *node);
/// The same of all nodes: the batch dims of templates, too, run independently.
unsigned getIndependentCount(mlir::Operation *node);

/// All expressions of the node but those of its domain.
void forEachExpr(mlir::Operation *node, llvm::function_ref<void(Expr)> visit);

/// A node's dims as they would be.
struct DimSplit {
  llvm::SmallVector<Expr> domain, oldDims; // oldDims: as for rewriteDims
  llvm::SmallVector<unsigned> kinds;
};

/// Each dim as its only part.
llvm::SmallVector<llvm::SmallVector<Expr>> getUnsplit(mlir::Operation *node);
/// Dim i as the digits `parts[i]`, those that count most first.
DimSplit splitDims(mlir::Operation *node, llvm::ArrayRef<llvm::SmallVector<Expr>> parts);
/// Gives the node these dims, if more than it has.
void applySplit(mlir::Operation *node, const DimSplit &split, const SymbolRanges &symbols);

/// How the first dims of a node become exactly `outer`, by splitting dims of its own; none if that is impossible.
std::optional<DimSplit> findPrefixSplit(mlir::Operation *node, llvm::ArrayRef<Expr> outer, const SymbolRanges &symbols);
/// Splits them so; false, with nothing changed, if that is impossible.
bool splitPrefix(mlir::Operation *node, llvm::ArrayRef<Expr> outer, const SymbolRanges &symbols);

/// The coarsest dims into which both `outer` and the first of `dims` can be split: (3136) and (56, 56, 96) have
/// (56, 56); none if the extents do not divide each other.
std::optional<llvm::SmallVector<Expr>> refineDims(llvm::ArrayRef<Expr> outer, llvm::ArrayRef<Expr> dims,
                                                  const SymbolRanges &symbols);

/// a / b if the division is exact for polynomials (b a single term).
Expr exactQuotient(Expr a, Expr b, const SymbolRanges &ranges);

} // namespace ptc::loop

#endif // PTC_COMPILER_SCHEDULE_NODEDIMS_H
