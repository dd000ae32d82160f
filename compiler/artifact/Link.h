// The last stage: objects, the runtime and the weights become one file.
#ifndef PTC_COMPILER_ARTIFACT_LINK_H
#define PTC_COMPILER_ARTIFACT_LINK_H

#include "compiler/artifact/Outputs.h"
#include "compiler/artifact/Weights.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/TargetParser/Triple.h"

namespace ptc::artifact {

/// The name under which runtimeObject() has the runtime of a triple's processor, if ptc was built with it.
llvm::StringRef runtimeTriple(const llvm::Triple &triple);

/// A relocatable ELF object in memory.
struct ObjectRef {
  std::string name; // for messages of the linker
  llvm::StringRef bytes;
};

struct LinkInputs {
  llvm::Triple triple;
  std::string name;                  // prefix of the model's C names; in a static library only these names stay visible
  std::vector<ObjectRef> objects;    // the host code and the kernels, in the order in which they are to lie
  std::vector<std::string> exported; // names of a shared library, "ptc_model_v1" among them
  llvm::ArrayRef<WeightBlob> weights;
  const WeightLayout *layout = nullptr;
  bool embedWeights = true;  // into the file; otherwise beside it: see writeWeightsFile
  Digest weightsDigest = {}; // of that other file
  bool keepsSymbols = false; // local symbols and debug info stay in a shared library
  unsigned jobs = 1;
};

/// What was written, for the manifest.
struct LinkResult {
  Digest weightsDigest = {};
  uint64_t fileBytes = 0;
  uint64_t codeBytes = 0; // executable sections
  std::string buildId;    // hexadecimal
};

/// The object with its symbol `from` under the name `to`.
llvm::Expected<llvm::SmallVector<char, 0>> renameSymbol(llvm::StringRef object, llvm::StringRef from,
                                                        llvm::StringRef to);

/// Stages `path` as a shared library. Its soname is the file name of `path`.
llvm::Expected<LinkResult> linkSharedLibrary(Outputs &outputs, llvm::StringRef path, const LinkInputs &inputs);

/// Stages `path` as one relocatable object in which everything but the public names is local.
llvm::Expected<LinkResult> linkObject(Outputs &outputs, llvm::StringRef path, const LinkInputs &inputs);

/// Stages `path` as a static library with that object as its only member.
llvm::Expected<LinkResult> linkStaticLibrary(Outputs &outputs, llvm::StringRef path, const LinkInputs &inputs);

} // namespace ptc::artifact

#endif
