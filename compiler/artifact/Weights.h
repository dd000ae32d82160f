// Weights on their way into the artefact: placed before code generation (code holds their offsets), made at link,
// straight into the mapped output file.
#ifndef PTC_COMPILER_ARTIFACT_WEIGHTS_H
#define PTC_COMPILER_ARTIFACT_WEIGHTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <functional>
#include <string>
#include <vector>

namespace ptc::artifact {

/// One stored weight. `fill` writes all `bytes` of it and is called once, from any thread; blobs may be filled at the
/// same time. Memory it is given is zero before.
struct WeightBlob {
  std::string name;
  uint64_t bytes = 0;
  uint64_t align = 64; // a power of two, at most 4096
  std::string key;     // identity of the content (source digest and recipe): equal keys are stored once; empty: unique
  std::function<llvm::Error(llvm::MutableArrayRef<char>)> fill;
};

/// Where each blob lies: blob i at offsets[i], written by the blob writer[i] (i itself,
/// or an earlier one with the same key).
struct WeightLayout {
  std::vector<uint64_t> offsets;
  std::vector<size_t> writer;
  uint64_t bytes = 0;
};

/// In the given order, without gaps but for alignment.
WeightLayout layOutWeights(llvm::ArrayRef<WeightBlob> blobs);

using Digest = std::array<uint8_t, 32>;

/// BLAKE3 over the BLAKE3 digests of consecutive 1 MiB blocks: many threads can compute it, and it depends on the bytes
/// alone.
Digest digestOf(llvm::ArrayRef<char> bytes, unsigned jobs);

/// Fills `target` (layout.bytes, all zero) and returns its digest.
llvm::Expected<Digest> fillWeights(llvm::ArrayRef<WeightBlob> blobs, const WeightLayout &layout,
                                   llvm::MutableArrayRef<char> target, unsigned jobs);

/// Writes a weights file (runtime/include/ptc/descriptor.h has its format) to `path`, which exists; returns its digest.
llvm::Expected<Digest> writeWeightsFile(llvm::StringRef path, llvm::ArrayRef<WeightBlob> blobs,
                                        const WeightLayout &layout, unsigned jobs);

} // namespace ptc::artifact

#endif
