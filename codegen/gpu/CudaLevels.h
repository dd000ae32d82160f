//===- CudaLevels.h - the GPU architectures -----------------------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_CUDALEVELS_H
#define PTC_CODEGEN_GPU_CUDALEVELS_H

#include "codegen/object/EmitObject.h"
#include "llvm/ADT/ArrayRef.h"

namespace ptc::gpu {

/// Names as the user writes them: "sm_80", "sm_90a". PTX of one runs on every newer one, but that of a name with a
/// letter on that architecture alone. The first, "ptx", is text for the oldest of them, whatever the machine has.
llvm::ArrayRef<llvm::StringRef> getArchitectures();
inline bool isText(llvm::StringRef level) { return level == "ptx"; }
/// "sm_80" of a level.
llvm::StringRef getArchitecture(llvm::StringRef level);
/// The architecture multiplies with warpgroups (wgmma) and copies boxes of tensors (TMA).
inline bool hasWarpgroups(llvm::StringRef level) { return level == "sm_90a"; }
/// Its kernels may begin before the launch in front of them has ended: they wait for it themselves (the runtime asks
/// the capability, cuda.h).
bool startsEarly(llvm::StringRef level);
/// Threads that a multiprocessor holds; of a text, on any device that runs it.
int64_t getResidentThreads(llvm::StringRef level);
/// PTC_RT_CUDA_... bits.
uint64_t getFeatures(llvm::StringRef level);
/// The best level for a device of this compute capability (90: 9.0), whose machine code it runs; "ptx" if there is
/// none.
llvm::StringRef getLevelFor(uint64_t capability);

/// What codegen/object is told about the architecture. The PTX version is the oldest that knows it.
object::TargetLevel getTargetLevel(llvm::StringRef level);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_CUDALEVELS_H
