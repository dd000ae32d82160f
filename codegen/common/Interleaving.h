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

/// Whether the integer is known to be a multiple of the power of two: by how it is computed, and where its loop
/// starts and how it steps.
bool isMultipleOf(mlir::Value value, int64_t power);

/// a[0], b[0], ... of a power of two of vectors of one type.
mlir::Value createInterleaved(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<mlir::Value> vectors);

/// Lanes `first`, `first` + step, ... of the vector.
mlir::Value createEachNth(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value vector, int64_t first,
                          int64_t step);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_INTERLEAVING_H
