//===- Targets.h - the table of targets -------------------------*- C++ -*-===//
#ifndef PTC_CODEGEN_TARGETS_H
#define PTC_CODEGEN_TARGETS_H

#include "codegen/Target.h"

namespace ptc::codegen {

using TargetTable = llvm::ArrayRef<const Target *>;

/// The targets of ptc, the default first. Programs may use a table of their own.
TargetTable getTargets();
/// The target of this name, or null.
const Target *findTarget(TargetTable targets, llvm::StringRef name);
/// The targets that a list names ("cpu,cuda"), in its order; null for a name that there is not.
llvm::SmallVector<const Target *, 1> findTargets(TargetTable targets, llvm::StringRef names);
/// "cpu, cuda"
std::string targetNames(TargetTable targets);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_TARGETS_H
