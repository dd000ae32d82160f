// Which node of a model a library computes wrong.
#ifndef PTC_CLI_PERNODE_H
#define PTC_CLI_PERNODE_H

#include "cli/Comparison.h"
#include "cli/ModelLibrary.h"
#include "compiler/Options.h"

namespace ptc {

struct PerNodeRequest {
  const CompileOptions &model; // whose graph says what is expected
  const ModelLibrary &library; // compiled with taps
  const InstanceOptions &instance;
  std::vector<Tensor> inputs;
  Tolerance tolerance;
  /// Also says which kernels the taps have changed: the library was compiled with the options of `model` and all taps.
  bool isOwnLibrary = false;
};

/// Runs the library once and reports the first node whose value is out of tolerance given the values it was computed
/// from, and how many later ones are. Exit code 1 if there is one.
llvm::Error verifyPerNode(Session &session, PerNodeRequest request);

} // namespace ptc

#endif // PTC_CLI_PERNODE_H
