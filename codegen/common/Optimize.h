//===- Optimize.h - LLVM's passes over one kernel ---------------*- C++ -*-===//
#ifndef PTC_CODEGEN_COMMON_OPTIMIZE_H
#define PTC_CODEGEN_COMMON_OPTIMIZE_H

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace ptc::codegen {

/// Optimises a module of one kernel that was vectorised by construction. optLevel: 0 takes stack slots away and folds,
/// 1 also moves invariant code, 2 and above do all that is here.
void optimizeKernel(llvm::Module &module, llvm::TargetMachine &machine, unsigned optLevel = 2);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_OPTIMIZE_H
