// Code of all kernels for all levels of a target, made in parallel.
#ifndef PTC_COMPILER_KERNELOBJECTS_H
#define PTC_COMPILER_KERNELOBJECTS_H

#include "codegen/Target.h"

namespace llvm {
class ThreadPoolInterface;
} // namespace llvm

namespace ptc {

/// Shorter spans are left out of a time trace, in microseconds.
constexpr unsigned timeTraceGranularity = 100;

struct KernelRequest {
  const codegen::Target &target;
  llvm::ArrayRef<loop::KernelOp> kernels; // planned
  llvm::ArrayRef<codegen::Level> levels;  // from low to high
  codegen::CodeOptions options;
  llvm::ArrayRef<std::string> entries = {}; // each kernel's, in the place of that of the options; empty: none has one
  bool isTraced = false;                    // the caller has begun a time trace
  std::function<void(size_t done, size_t total)> progress;
};

/// Kernel by kernel, in the order of the request, each for all levels: the order does not depend on the pool. Code that
/// is a lower level's, too, is made for that one alone. A crash while one kernel is compiled becomes an error that
/// names it. `failed` gets the index of the kernel that an error is about.
llvm::Expected<std::vector<codegen::KernelCode>> compileKernels(const KernelRequest &request,
                                                                llvm::ThreadPoolInterface &pool, size_t &failed);

} // namespace ptc

#endif // PTC_COMPILER_KERNELOBJECTS_H
