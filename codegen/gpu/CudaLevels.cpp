//===- CudaLevels.cpp - the GPU architectures -----------------------------===//
#include "codegen/gpu/CudaLevels.h"

using namespace ptc;

// Ampere is the floor: templates to come rely on asynchronous copies.
static constexpr llvm::StringRef architectures[] = {"sm_80",  "sm_86",   "sm_87",  "sm_89",  "sm_90", "sm_90a",
                                                    "sm_100", "sm_100a", "sm_103", "sm_120", "sm_121"};

llvm::ArrayRef<llvm::StringRef> gpu::getArchitectures() { return architectures; }

object::TargetLevel gpu::getTargetLevel(llvm::StringRef architecture) {
  return {.triple = "nvptx64-nvidia-cuda",
          .cpu = architecture.str(),
          .tuneCpu = architecture.str(),
          .features = "",
          .vectorBits = 0};
}
