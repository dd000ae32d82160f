//===- WeightOperands.h - what no launch writes -----------------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_WEIGHTOPERANDS_H
#define PTC_CODEGEN_GPU_WEIGHTOPERANDS_H

#include "ir/loop/Loop.h"

namespace ptc::gpu {

/// All launches of the kernel give a weight or a constant for the argument. No launch writes those, so that the kernel
/// may read it before launches in front have ended.
bool isWeight(loop::KernelOp kernel, unsigned argument);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_WEIGHTOPERANDS_H
