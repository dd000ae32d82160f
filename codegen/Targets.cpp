//===- Targets.cpp - the table of targets ---------------------------------===//
#include "codegen/Targets.h"
#include "codegen/cpu/CpuTarget.h"
#include "codegen/gpu/CudaTarget.h"
#include "llvm/ADT/StringExtras.h"

using namespace ptc;
using namespace ptc::codegen;

TargetTable codegen::getTargets() {
  static const Target *const targets[] = {&cpu::getCpuTarget(), &gpu::getCudaTarget()};
  return targets;
}

const Target *codegen::findTarget(TargetTable targets, llvm::StringRef name) {
  for (const Target *target : targets)
    if (target->getInfo().name == name)
      return target;
  return nullptr;
}

llvm::SmallVector<const Target *, 1> codegen::findTargets(TargetTable targets, llvm::StringRef names) {
  llvm::SmallVector<const Target *, 1> found;
  for (llvm::StringRef name : llvm::split(names, ','))
    found.push_back(findTarget(targets, name));
  return found;
}

std::string codegen::targetNames(TargetTable targets) {
  return llvm::join(llvm::map_range(targets, [](const Target *target) { return target->getInfo().name; }), ", ");
}

std::string Target::joinAssembly(llvm::ArrayRef<KernelCode> codes) const {
  std::string text;
  for (const KernelCode &code : codes)
    if (code.sharedWith.empty())
      text += "### " + code.kernel + " for " + code.level + "\n" + code.assembly;
  return text;
}
