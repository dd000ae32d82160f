//===- Interleaving.h - indices that read several runs in turns -*- C++ -*-===//
//
// A channel shuffle that has become an index reads element d/k of run d mod k: floordiv(d, 2) + 58*mod(d, 2). Lanes
// along d, of which the first stands at a multiple of k, are k short vectors, one of each run, merged lane by lane: a
// few loads and shuffles in the place of a gather. What is repeated (floordiv(d, 24)) or starts anew (mod(d, 56)) at
// multiples of the lanes alone is one element or one vector.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_COMMON_INTERLEAVING_H
#define PTC_CODEGEN_COMMON_INTERLEAVING_H

#include "ir/expr/Expr.h"
#include "mlir/IR/Builders.h"

namespace ptc::codegen {

/// The least k (2 or 4) for which the index is q plus something that r alone decides where dim `dim` is k*q + r; null:
/// there is none.
std::optional<int64_t> findInterleaving(Expr index, int64_t dim);

/// How the index moves along lanes of dim `dim` whose first stands at a multiple of `lanes`: one by one (1) or not at
/// all (0); null: neither. mod(d0, 56) and floordiv(d0, 24) do so for 8 lanes.
std::optional<int64_t> findStepInBlocks(Expr index, int64_t dim, int64_t lanes);

/// The index in each of `lanes` lanes of dim `dim`, of which the first stands at a multiple of `lanes`, less that in
/// the first; null where they are no constants. A channel's group of 4 begins at 4*floordiv(d0, 4): 0 0 0 0 4 4 4 4.
std::optional<llvm::SmallVector<int64_t>> findLaneOffsets(Expr index, int64_t dim, int64_t lanes);

/// Of the node's dims that are constant and that no condition in it asks for: at each of their places loads read what
/// is there.
SymbolRanges getWholeRanges(mlir::Operation *node);

/// Lanes of several groups of elements, of which each reads one, the same of each group: 4*floordiv(d0, 4) + d1.
struct GroupedLanes {
  int64_t term;                     // the dim that says which
  int64_t together;                 // elements that all lanes read at all of its places: one vector, from place 0 on
  llvm::SmallVector<int64_t> first; // where in it each lane has place 0
  int64_t places;                   // elements of a group

  /// Whether the lanes before a multiple of `places` read elements before it: whoever masks the others off masks those.
  bool keepsPlaces() const;
};
/// Those along dim `dim` whose first stands at a multiple of `lanes`; null: they are no such lanes, or have
/// more elements than `lanes`.
std::optional<GroupedLanes> findGroupedLanes(Expr index, int64_t dim, int64_t lanes, const SymbolRanges &ranges);

/// Whether the integer is known to be a multiple of the power of two: by how it is computed, and where its loop
/// starts and how it steps.
bool isMultipleOf(mlir::Value value, int64_t power);

/// The elements of `vector` in these places.
mlir::Value createSpread(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value vector,
                         llvm::ArrayRef<int32_t> places);

/// a[0], b[0], ... of a power of two of vectors of one type.
mlir::Value createInterleaved(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<mlir::Value> vectors);

/// Lanes `first`, `first` + step, ... of the vector.
mlir::Value createEachNth(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value vector, int64_t first,
                          int64_t step);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_INTERLEAVING_H
