// A model whose inner values are looked at while it runs.
#ifndef PTC_CLI_QUANTIZE_OBSERVEDMODEL_H
#define PTC_CLI_QUANTIZE_OBSERVEDMODEL_H

#include "cli/CompileSession.h"
#include "cli/ModelLibrary.h"

namespace ptc {

/// Sees a value of float32 of the user's graph in one run.
using ValueObserver = std::function<void(llvm::StringRef value, llvm::ArrayRef<float> elements)>;

/// A library compiled from a model for this purpose, in a folder of the caller's. Not thread-safe.
class ObservedModel {
public:
  /// `values`: the graph's values to look at. Figures do not depend on the machine: the library has one CPU level.
  static llvm::Expected<ObservedModel> compile(Session &session, CompileOptions options, llvm::StringRef model,
                                               llvm::StringRef folder, llvm::ArrayRef<std::string> values);

  const ptc_function &getInterface() const { return library.table().functions[0]; }
  /// Runs once; float32 inputs are shown too.
  llvm::Expected<std::vector<Tensor>> run(std::vector<Tensor> &inputs, const ValueObserver &observer);

private:
  ObservedModel(ModelLibrary library, ModelInstance instance, std::unique_ptr<const ValueObserver *> observer)
      : library(library), instance(std::move(instance)), observer(std::move(observer)) {}
  ModelLibrary library;
  ModelInstance instance;
  std::unique_ptr<const ValueObserver *>
      observer; // of the run that is going on; the instance's callback has its address
};

bool isFloat32(const Tensor &tensor);
/// The elements of a float32 tensor.
llvm::ArrayRef<float> floatsOf(const Tensor &tensor);

} // namespace ptc

#endif // PTC_CLI_QUANTIZE_OBSERVEDMODEL_H
