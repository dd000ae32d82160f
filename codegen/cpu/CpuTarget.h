//===- CpuTarget.h - the CPU as a target ------------------------*- C++ -*-===//
#ifndef PTC_CODEGEN_CPU_CPUTARGET_H
#define PTC_CODEGEN_CPU_CPUTARGET_H

#include "codegen/Target.h"

namespace ptc::cpu {

/// Kernels as objects that a library holds once per level.
const codegen::Target &getCpuTarget();

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUTARGET_H
