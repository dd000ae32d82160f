//===- LaneConditions.h - which lanes a condition holds for -----*- C++ -*-===//
#ifndef PTC_CODEGEN_COMMON_LANECONDITIONS_H
#define PTC_CODEGEN_COMMON_LANECONDITIONS_H

#include "codegen/common/KernelEmitter.h"

namespace ptc::codegen {

/// Where `condition >= 0` (i1): a scalar if all lanes of the point agree, else a vector.
mlir::Value emitCondition(KernelEmitter &e, Expr condition, const EmissionPoint &point, mlir::ValueRange operands);

/// A comparison of an index with `other`, a number that is the same in all lanes of the point (i64), as one of 32-bit
/// lanes; `predicate` has the index on its left. Null if it is of another kind.
mlir::Value emitIndexComparison(KernelEmitter &e, mlir::arith::CmpIPredicate predicate, Expr index, mlir::Value other,
                                const EmissionPoint &point);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_LANECONDITIONS_H
