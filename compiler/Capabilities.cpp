#include "compiler/Capabilities.h"
#include "codegen/Targets.h"
#include "compiler/Phases.h"
#include "compiler/artifact/Link.h"
#include "compiler/artifact/RuntimeObject.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/TargetParser/Triple.h"
#include <algorithm>

namespace ptc {

std::vector<std::string> elementTypesOnHost(llvm::StringRef target) {
  const codegen::Target *found = codegen::findTarget(codegen::getTargets(), target);
  bool isDevice = found && found->getInfo().runsOnDevice; // whose kernels cannot look into the host's memory
  return isDevice ? std::vector<std::string>{"string"} : std::vector<std::string>();
}

static SupportedTarget describe(const codegen::Target &target) {
  const TargetInfo &info = target.getInfo();
  SupportedTarget row{.name = info.name, .levelFlag = info.levelFlag, .levels = {}, .outputs = info.outputs};
  for (llvm::StringRef name : info.levels) {
    llvm::Expected<codegen::Level> level = target.describeLevel(name);
    if (!level) {
      llvm::consumeError(level.takeError());
      continue;
    }
    llvm::Triple triple(level->triple);
    bool isLinked = llvm::is_contained(info.outputs, "so") && artifact::runtimeObject(artifact::runtimeTriple(triple));
    std::optional<bool> runsHere;
    if (!info.runsOnDevice && (isLinked || target.findHostLevel()))
      runsHere = target.runsHere(name);
    row.levels.push_back({level->name, level->triple, isLinked, runsHere});
  }
  return row;
}

std::vector<SupportedTarget> supportedTargets() {
  std::vector<SupportedTarget> rows;
  for (const codegen::Target *target : codegen::getTargets())
    rows.push_back(describe(*target));
  return rows;
}

std::vector<llvm::StringRef> printableStages() {
  std::vector<llvm::StringRef> stages;
  for (const PhaseRow &row : getPhases())
    if (findMlirPhase(row.name))
      stages.push_back(row.name);
  return stages;
}

} // namespace ptc
