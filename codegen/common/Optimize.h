//===- Optimize.h - LLVM's passes over one kernel ---------------*- C++ -*-===//
#ifndef PTC_CODEGEN_COMMON_OPTIMIZE_H
#define PTC_CODEGEN_COMMON_OPTIMIZE_H

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace ptc::codegen {

/// Optimises a module of one kernel that was vectorised by construction.
void optimizeKernel(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_OPTIMIZE_H
