// A small library made by the last two stages: a program in loop text, kernels in LLVM text. y = x * w + 1 over
// [batch, 4]; a flag selects a second kernel that negates y in place; `past` is updated by adding 1 (an alias pair).
#ifndef PTC_TESTS_UNIT_ARTIFACTFIXTURE_H
#define PTC_TESTS_UNIT_ARTIFACTFIXTURE_H

#include "codegen/host/HostModule.h"
#include "compiler/artifact/Link.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace ptc::test {

enum class Output { SharedLibrary, StaticLibrary, Object };

struct Artifact {
  std::string folder; // removed with this object
  std::string path;
  host::ModelInterface interface;
  artifact::LinkResult result;
  Artifact() = default;
  Artifact(Artifact &&) = default;
  ~Artifact();
};

struct ArtifactOptions {
  Output output = Output::SharedLibrary;
  host::Threading threading = host::Threading::Pool;
  bool weightsFile = false;
  uint64_t padding = 0; // bytes of further weights
  unsigned jobs = 1;
  unsigned negations = 0; // of y at the end of the program, one launch each
  bool failFill = false;
  std::string last = {}, locations = {}; // ops at the end of the program, and what their locations are
};

/// Throws nothing; fails the running test on an error, unless `error` is given and receives it.
Artifact build(const ArtifactOptions &options, std::string *error = nullptr);

} // namespace ptc::test

#endif
