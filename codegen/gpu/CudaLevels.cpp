//===- CudaLevels.cpp - the GPU architectures -----------------------------===//
#include "codegen/gpu/CudaLevels.h"
#include "runtime/include/ptc/descriptor.h"

using namespace ptc;

// Ampere is the floor: templates rely on asynchronous copies. A device takes the last that it runs.
static constexpr llvm::StringRef architectures[] = {"ptx",    "sm_80",  "sm_86",   "sm_87",  "sm_89",  "sm_90",
                                                    "sm_90a", "sm_100", "sm_100a", "sm_103", "sm_120", "sm_121"};
static constexpr llvm::StringRef floorOfText = "sm_80";

llvm::ArrayRef<llvm::StringRef> gpu::getArchitectures() { return architectures; }

llvm::StringRef gpu::getArchitecture(llvm::StringRef level) { return isText(level) ? floorOfText : level; }

uint64_t gpu::getFeatures(llvm::StringRef level) {
  llvm::StringRef name = getArchitecture(level);
  name.consume_front("sm_");
  uint64_t exact = name.consume_back("a") ? PTC_RT_CUDA_EXACT : 0, capability = 0;
  bool failed = name.getAsInteger(10, capability);
  assert(!failed && "architectures are numbers");
  (void)failed;
  return capability | exact;
}

llvm::StringRef gpu::getLevelFor(uint64_t capability) {
  llvm::StringRef best = architectures[0];
  for (llvm::StringRef level : getArchitectures().drop_front()) {
    uint64_t needed = getFeatures(level) & PTC_RT_CUDA_CAPABILITY;
    bool isExact = getFeatures(level) & PTC_RT_CUDA_EXACT;
    if (capability == needed || (!isExact && capability / 10 == needed / 10 && capability > needed))
      best = level;
  }
  return best;
}

bool gpu::startsEarly(llvm::StringRef level) { return (getFeatures(level) & PTC_RT_CUDA_CAPABILITY) >= 90; }

int64_t gpu::getResidentThreads(llvm::StringRef level) {
  uint64_t capability = getFeatures(level) & PTC_RT_CUDA_CAPABILITY;
  bool isOfDataCentre = capability == 80 || (capability >= 90 && capability < 110);
  return isOfDataCentre && !isText(level) ? 2048 : 1536;
}

object::TargetLevel gpu::getTargetLevel(llvm::StringRef level) {
  llvm::StringRef architecture = getArchitecture(level);
  return {.triple = "nvptx64-nvidia-cuda",
          .cpu = architecture.str(),
          .tuneCpu = architecture.str(),
          .features = "",
          .vectorBits = 0};
}
