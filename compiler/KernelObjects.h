// Machine code of all kernels for all CPU levels, made in parallel.
#ifndef PTC_COMPILER_KERNELOBJECTS_H
#define PTC_COMPILER_KERNELOBJECTS_H

#include "codegen/cpu/CpuLevels.h"
#include "codegen/object/EmitObject.h"
#include "ir/loop/Loop.h"

namespace llvm {
class ThreadPoolInterface;
} // namespace llvm

namespace ptc {

/// What LLVM is told about a CPU level.
object::TargetLevel targetLevelOf(const cpu::CpuLevel &level);

struct KernelObject {
  std::string kernel; // symbol of the loop.kernel
  std::string level;
  llvm::SmallVector<char, 0> object;
  std::string llvmText, assembly; // where they were asked for
  uint64_t codeBytes = 0;         // of executable sections
};

struct KernelRequest {
  llvm::ArrayRef<loop::KernelOp> kernels;
  llvm::ArrayRef<const cpu::CpuLevel *> levels;
  bool wantsText = false;
  std::function<void(size_t done, size_t total)> progress;
};

/// Kernel by kernel, in the order of the request, each for all levels: the order does not depend on the pool. A crash
/// while one kernel is compiled becomes an error that names it. `failed` gets the index of the kernel that an error is
/// about.
llvm::Expected<std::vector<KernelObject>> compileKernels(const KernelRequest &request, llvm::ThreadPoolInterface &pool,
                                                         size_t &failed);

/// Bytes of executable sections.
uint64_t codeBytesOf(llvm::ArrayRef<char> object);

} // namespace ptc

#endif // PTC_COMPILER_KERNELOBJECTS_H
