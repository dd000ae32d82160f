// A program for each kernel of --save-temps that times it alone.
#ifndef PTC_COMPILER_KERNELBENCHMARK_H
#define PTC_COMPILER_KERNELBENCHMARK_H

#include "codegen/host/HostModule.h"

namespace ptc {

/// C text that times `kernel` as `launch` runs it with the program's symbols at these values. Built with the kernel's
/// assembly, `cc -O2 bench.c LEVEL.s -o bench -lpthread`, it needs nothing else.
std::string writeKernelBenchmark(loop::KernelOp kernel, loop::LaunchOp launch, const SymbolValues &hints,
                                 llvm::ArrayRef<host::Level> levels);

} // namespace ptc

#endif // PTC_COMPILER_KERNELBENCHMARK_H
