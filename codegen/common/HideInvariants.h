//===- HideInvariants.h - opaque bases of innermost loops -------*- C++ -*-===//
#ifndef PTC_CODEGEN_COMMON_HIDEINVARIANTS_H
#define PTC_CODEGEN_COMMON_HIDEINVARIANTS_H

#include "llvm/IR/PassManager.h"

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace ptc::codegen {

/// Adds, for x86, the pass that makes what innermost loops take from outside opaque. Nothing but code generation may
/// follow: passes over IR would look through a freeze or take it out.
void addHiding(llvm::FunctionPassManager &passes, const llvm::TargetMachine &machine);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_HIDEINVARIANTS_H
