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

/// The files that weights come from, mapped, each once, and what was computed of weights when the model was compiled.
class WeightFiles : public eval::WeightSource {
public:
  explicit WeightFiles(llvm::StringRef modelPath) : modelPath(modelPath) {}
  /// The bytes of a reference, valid as long as this object. Thread-safe.
  llvm::Expected<llvm::ArrayRef<char>> getBytes(prim::WeightRefAttr ref) override;
  /// A copy of the bytes, in memory, stands in for a file whose name is their hash.
  prim::WeightRefAttr keep(mlir::MLIRContext *context, llvm::ArrayRef<char> bytes) override;

private:
  llvm::Expected<llvm::StringRef> open(llvm::StringRef name);

  std::string modelPath;
  std::mutex mutex; // guards what follows
  llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>> files;
};

/// All weights that the programs of a library use, of one module for each target, in order of first use; those of two
/// targets between those of one. Equal references with equal recipes share a blob.
/// Constants of some size, what was computed of weights at compile time, lie among them: they load and are shared
/// between processes as weights are. None does in a library that waits for its weights.
class StoredWeights {
public:
  static llvm::Expected<StoredWeights> collect(llvm::ArrayRef<mlir::ModuleOp> modules, WeightFiles &files,
                                               bool withConstants);

  llvm::ArrayRef<artifact::WeightBlob> getBlobs() const { return blobs; }
  const artifact::WeightLayout &getLayout() const { return layout; }
  /// Where a weight, or a constant that lies among them, was placed.
  std::optional<uint64_t> offsetOf(mlir::Operation *op) const {
    auto index = indices.find(op);
    return index == indices.end() ? std::nullopt : std::optional(layout.offsets[index->second]);
  }
  /// Those that a caller may replace, whatever the target, with all forms in which a module's programs read them.
  std::vector<host::Weight> replaceable(size_t module) const { return shown[module]; }
  /// Between which offsets everything lies that a module's programs read. A copy of that part alone is aligned, too.
  std::pair<uint64_t, uint64_t> rangeOf(size_t module) const { return ranges[module]; }

private:
  void place(size_t module, mlir::Operation *op, artifact::WeightBlob blob);
  llvm::Error collectFrom(size_t number, mlir::ModuleOp module, WeightFiles &files, bool withConstants);
  void layOut(size_t modules);
  std::vector<host::Weight> describe(mlir::ModuleOp module) const;
  void describeAll(llvm::ArrayRef<mlir::ModuleOp> modules);

  std::vector<artifact::WeightBlob> blobs;
  artifact::WeightLayout layout;
  llvm::DenseMap<mlir::Operation *, size_t> indices;
  llvm::StringMap<size_t> known; // blobs by their keys
  /// Of each blob, the first and the last module that uses it.
  std::vector<std::pair<size_t, size_t>> users;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  std::vector<std::vector<host::Weight>> shown; // by module
};

/// Writes a weight's stored form: target[e0, e1, ...] = source[offset + sum e_i * strides_i], zeros past the panels'
/// limit. An error if the recipe would read outside the source.
llvm::Error applyRecipe(loop::RecipeAttr recipe, unsigned elementBytes, llvm::ArrayRef<char> source,
                        llvm::MutableArrayRef<char> target);

} // namespace ptc

#endif // PTC_COMPILER_STOREDWEIGHTS_H
