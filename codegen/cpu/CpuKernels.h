//===- CpuKernels.h - from a loop.kernel to an LLVM module ------*- C++ -*-===//
//
// The CPU's two entry points. `planKernel` decides, once and for all levels, how a kernel's work is cut into
// iterations; `generateKernel` makes the code of one level.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUKERNELS_H
#define PTC_CODEGEN_CPU_CPUKERNELS_H

#include "codegen/Target.h"
#include "codegen/cpu/CpuLevels.h"
#include "codegen/object/EmitObject.h"
#include "ir/loop/Loop.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace ptc::cpu {

/// What codegen/object is told about the level.
object::TargetLevel getTargetLevel(const CpuLevel &level);

/// Loads every dialect that generateKernel creates ops of. Call it before kernels are generated in parallel.
void loadKernelDialects(mlir::MLIRContext &context);

/// Decides the kernel's iteration space and sets its attributes `iterations`, `grain`, `scratch` (bytes a thread) and
/// `config`. Does not depend on the CPU level: all levels of a library share launches.
mlir::LogicalResult planKernel(loop::KernelOp kernel);

/// One function `int32_t SYMBOL(void *const *buffers, const int64_t *symbols, int64_t begin, int64_t end,
/// void *scratch)` that runs the iterations [begin, end) of a planned kernel. It returns 0, or 1 if a checked index
/// was out of range. `buffers` are the kernel's arguments in order, `symbols` its symbols in order; `scratch` is
/// 64-byte aligned and holds the planned number of bytes. The module carries triple and data layout and is optimised.
/// Safe to call from several threads on kernels of one MLIRContext.
llvm::Expected<std::unique_ptr<llvm::Module>> generateKernel(loop::KernelOp kernel, llvm::StringRef symbolName,
                                                             const CpuLevel &level, llvm::LLVMContext &context,
                                                             const codegen::CodeOptions &options = {});

/// The same with a machine of the level and of the options' `optLevel`.
llvm::Expected<std::unique_ptr<llvm::Module>> generateKernel(loop::KernelOp kernel, llvm::StringRef symbolName,
                                                             const CpuLevel &level, llvm::LLVMContext &context,
                                                             llvm::TargetMachine &machine,
                                                             const codegen::CodeOptions &options);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUKERNELS_H
