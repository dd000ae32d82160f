// The weights of a program as what the linker writes: one blob per stored form.
#ifndef PTC_COMPILER_STOREDWEIGHTS_H
#define PTC_COMPILER_STOREDWEIGHTS_H

#include "codegen/host/Interface.h"
#include "compiler/artifact/Weights.h"
#include "ir/eval/ReferenceEval.h"
#include "ir/loop/Loop.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"
#include <mutex>

namespace ptc {

/// The files that weights come from, mapped, each once.
class WeightFiles : public eval::WeightSource {
public:
  explicit WeightFiles(llvm::StringRef modelPath) : modelPath(modelPath) {}
  /// The bytes of a reference, valid as long as this object. Thread-safe.
  llvm::Expected<llvm::ArrayRef<char>> getBytes(prim::WeightRefAttr ref) override;

private:
  llvm::Expected<llvm::StringRef> open(llvm::StringRef name);

  std::string modelPath;
  std::mutex mutex; // guards what follows
  llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>> files;
};

/// All weights that a module's programs use, in order of first use. Equal references with equal recipes share a blob.
/// Constants of some size, what was computed of weights at compile time, lie among them: they load and are shared
/// between processes as weights are. None does in a library that waits for its weights.
class StoredWeights {
public:
  static llvm::Expected<StoredWeights> collect(mlir::ModuleOp module, WeightFiles &files, bool withConstants);

  llvm::ArrayRef<artifact::WeightBlob> getBlobs() const { return blobs; }
  const artifact::WeightLayout &getLayout() const { return layout; }
  /// Where a weight, or a constant that lies among them, was placed.
  std::optional<uint64_t> offsetOf(mlir::Operation *op) const {
    auto index = indices.find(op);
    return index == indices.end() ? std::nullopt : std::optional(layout.offsets[index->second]);
  }
  /// Those that a caller may replace, with all forms in which they are stored.
  std::vector<host::Weight> replaceable() const { return shown; }

private:
  void place(mlir::Operation *op, artifact::WeightBlob blob);
  void describe(mlir::ModuleOp module);

  std::vector<artifact::WeightBlob> blobs;
  artifact::WeightLayout layout;
  llvm::DenseMap<mlir::Operation *, size_t> indices;
  llvm::StringMap<size_t> known; // blobs by their keys
  std::vector<host::Weight> shown;
};

/// Writes a weight's stored form: target[e0, e1, ...] = source[offset + sum e_i * strides_i], zeros past the panels'
/// limit. An error if the recipe would read outside the source.
llvm::Error applyRecipe(loop::RecipeAttr recipe, unsigned elementBytes, llvm::ArrayRef<char> source,
                        llvm::MutableArrayRef<char> target);

} // namespace ptc

#endif // PTC_COMPILER_STOREDWEIGHTS_H
