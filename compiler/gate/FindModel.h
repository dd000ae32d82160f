// Where the model of a baseline lies on this machine: a baseline holds a name and a digest, never a path of somebody's.
#ifndef PTC_COMPILER_GATE_FINDMODEL_H
#define PTC_COMPILER_GATE_FINDMODEL_H

#include "compiler/gate/Baseline.h"

namespace ptc::gate {

struct ModelPlaces {
  std::string model;  // --model: this file; empty: look for it
  std::string folder; // --models: somewhere below; empty: none
};

/// The file: as given; beside the baseline under the recorded name; or below the folder, by name and digest. An
/// ExitError that says where was looked, and what to give.
llvm::Expected<std::string> findModel(const Baseline &baseline, llvm::StringRef baselinePath,
                                      const ModelPlaces &places);

/// An ExitError if the file is not the model that was recorded: a stale baseline, and how to mend it.
llvm::Error checkModel(const Baseline &baseline, llvm::StringRef baselinePath, llvm::StringRef model);

/// What a baseline calls its model: relative to the baseline's folder if it lies below that, else the name alone.
std::string recordedName(llvm::StringRef model, llvm::StringRef baselinePath);

/// The baselines that paths name: files, and all *.json files of folders, sorted.
llvm::Expected<std::vector<std::string>> listBaselines(llvm::ArrayRef<std::string> paths);

} // namespace ptc::gate

#endif // PTC_COMPILER_GATE_FINDMODEL_H
