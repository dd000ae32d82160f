//===- CudaTarget.h - NVIDIA GPUs as a target -------------------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_CUDATARGET_H
#define PTC_CODEGEN_GPU_CUDATARGET_H

#include "codegen/Target.h"

namespace ptc::gpu {

/// Kernels as PTX text, or as cubins where ptxas is found.
const codegen::Target &getCudaTarget();

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_CUDATARGET_H
