//===- LaneConditions.h - which lanes a condition holds for -----*- C++ -*-===//
#ifndef PTC_CODEGEN_COMMON_LANECONDITIONS_H
#define PTC_CODEGEN_COMMON_LANECONDITIONS_H

#include "codegen/common/KernelEmitter.h"

namespace ptc::codegen {

/// Where `condition >= 0` (i1): a scalar if all lanes of the point agree, else a vector.
mlir::Value emitCondition(KernelEmitter &e, Expr condition, const EmissionPoint &point, mlir::ValueRange operands);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_LANECONDITIONS_H
