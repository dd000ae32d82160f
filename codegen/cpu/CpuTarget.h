//===- CpuTarget.h - the CPU as a target ------------------------*- C++ -*-===//
#ifndef PTC_CODEGEN_CPU_CPUTARGET_H
#define PTC_CODEGEN_CPU_CPUTARGET_H

#include "codegen/Target.h"

namespace ptc::cpu {

/// Kernels as objects, which a library holds for each level whose code differs.
const codegen::Target &getCpuTarget();

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUTARGET_H
