// model.json: what a library is made of, for people, gates and build systems.
#ifndef PTC_COMPILER_ARTIFACT_MANIFEST_H
#define PTC_COMPILER_ARTIFACT_MANIFEST_H

#include "codegen/host/Interface.h"

#include "llvm/Support/JSON.h"

namespace ptc::artifact {

/// A size that may depend on symbols: its expression, and its value at the hint.
struct Amount {
  std::string text;
  int64_t atHint = 0;
};

struct KernelEntry {
  std::string name, kind;         // "pointwise", "reduction", "contraction", ...
  std::vector<std::string> nodes; // fused nodes of the first launch, as the user named them
  unsigned launches = 0;
  Amount flops, bytesRead, bytesWritten;
  int64_t weightBytesRead = 0;                             // of bytesRead, at the hint
  std::vector<std::pair<std::string, uint64_t>> codeBytes; // per CPU level
};

struct MemoryEntry {
  std::string function;
  Amount peak, lowerBound; // bytes of the arena; the largest live set
};

struct WeightsEntry {
  std::string place; // "embedded", "file", "absent"
  std::string file;  // when place is "file"
  uint64_t bytes = 0;
  std::string digest; // hexadecimal
};

struct Manifest {
  host::ModelInterface interface;
  std::string modelDigest;        // of the source file
  std::vector<std::string> flags; // that influence the artefact, in canonical order
  std::string target;             // "cpu"
  std::vector<std::string> levels;
  std::vector<KernelEntry> kernels;
  std::vector<MemoryEntry> memory;
  WeightsEntry weights;
  std::string buildId;
  uint64_t fileBytes = 0, codeBytes = 0;
};

/// Canonical: keys in alphabetical order, two spaces a level, integers only, one trailing newline.
std::string writeManifest(const Manifest &manifest);

/// Makefile syntax: `outputs` depend on `inputs`; every input is also a target without prerequisites, so that a removed
/// file does not stop make.
std::string writeDepfile(llvm::ArrayRef<std::string> outputs, llvm::ArrayRef<std::string> inputs);

} // namespace ptc::artifact

#endif
