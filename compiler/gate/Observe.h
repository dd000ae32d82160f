// A model as it compiles now, in the words of a baseline.
#ifndef PTC_COMPILER_GATE_OBSERVE_H
#define PTC_COMPILER_GATE_OBSERVE_H

#include "compiler/Pipeline.h"
#include "compiler/gate/Baseline.h"

namespace ptc::gate {

struct ObserveRequest {
  CompileOptions options;    // model and flags; outputs are chosen here
  std::string folder;        // for what is written, existing
  bool wantsLibrary = false; // whoever runs it
  bool twice = true;         // also whether a second compile, with another number of threads, writes the same bytes
};

struct Observed {
  Baseline baseline;             // without tolerances, waivers and numerics; the model's name alone
  std::string library;           // in the folder, if wanted and the target has libraries
  std::vector<Finding> unstable; // what the second compile wrote otherwise
};

/// Compiles with remarks on, so that refusals are known. Diagnostics other than remarks go to the hooks.
llvm::Expected<Observed> observe(const ObserveRequest &request, const CompileHooks &hooks);

/// The digest that a manifest has of a model file.
llvm::Expected<std::string> digestOfModel(llvm::StringRef path);

} // namespace ptc::gate

#endif // PTC_COMPILER_GATE_OBSERVE_H
