//===- ShareScalars.h - kernels that differ in scalars alone ----*- C++ -*-===//
#ifndef PTC_COMPILER_SCHEDULE_SHARESCALARS_H
#define PTC_COMPILER_SCHEDULE_SHARESCALARS_H

#include "mlir/IR/BuiltinOps.h"

namespace ptc::loop {

/// Makes kernels that differ in scalar constants alone one, whose launches say them.
void shareScalars(mlir::ModuleOp module);

} // namespace ptc::loop

#endif // PTC_COMPILER_SCHEDULE_SHARESCALARS_H
