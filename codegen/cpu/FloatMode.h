//===- FloatMode.h - Kernels in which denormal numbers count as 0 -*- C++ -*-===//
//
// Intel's processors take more than a hundred cycles for an instruction that meets a denormal number or makes one. A
// product reads each of its operands many times: masked scores of attention, or values that fade from layer to layer,
// then cost several times what all others do.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_FLOATMODE_H
#define PTC_CODEGEN_CPU_FLOATMODE_H

#include "codegen/cpu/CpuLevels.h"
#include "ir/loop/Loop.h"

namespace ptc::cpu {

/// Whether denormal numbers may count as 0 in the kernel: it adds up products or sums, where they vanish beside others,
/// and no function in it tells them from 0 (a logarithm, a root, a quotient by one, a comparison with 0).
bool mayFlushDenormals(loop::KernelOp kernel);

/// What the calling thread does with denormal numbers from here on; `word` is room for an i32. Sums and products that
/// the compiler moves across are computed in either mode.
void setFlushDenormals(mlir::OpBuilder &builder, mlir::Location loc, const CpuLevel &level, mlir::Value word,
                       bool flush);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_FLOATMODE_H
