// A library made ready to be timed: one model, one context, inputs and outputs.
#ifndef PTC_CLI_TIMEDMODEL_H
#define PTC_CLI_TIMEDMODEL_H

#include "cli/DeviceArguments.h"
#include "cli/InputSpecs.h"

namespace ptc {

struct TimedModelOptions {
  InstanceOptions instance;
  std::string function;            // empty: the first
  std::vector<std::string> inputs; // specs; random:0 for inputs without one
  SymbolDims dims;
  bool staysOnDevice =
      false; // of a model that runs on one: so do inputs and outputs, where they can (DeviceArguments.h)
};

/// What the function's symbols are in runs that are made so.
llvm::Expected<SymbolDims> dimsOf(const ModelLibrary &library, const TimedModelOptions &options);

class TimedModel {
public:
  /// Creates the model and runs its warm-up.
  static llvm::Expected<TimedModel> prepare(const ModelLibrary &library, const TimedModelOptions &options);

  /// Seconds that a run takes on the wall clock, of so many one behind the other. Where inputs and outputs stay on a
  /// device, only the last is waited for.
  llvm::Expected<double> wallTime(unsigned runs = 1);
  /// Seconds of processor time that `runs` runs take of the calling thread: all of their time if the model has one
  /// thread, and free of the times when the thread had no core.
  llvm::Expected<double> threadTime(unsigned runs);

  const ModelInstance &getInstance() const { return instance; }
  const ptc_function &getInterface() const { return instance.table().functions[function]; }
  /// What the function's symbols are in its runs.
  const SymbolDims &getDims() const { return dims; }

private:
  TimedModel(ModelInstance instance, unsigned function, std::vector<Tensor> inputs, std::vector<Tensor> outputs,
             SymbolDims dims)
      : instance(std::move(instance)), function(function), inputs(std::move(inputs)), outputs(std::move(outputs)),
        dims(std::move(dims)) {}
  ModelInstance instance;
  unsigned function;
  std::vector<Tensor> inputs, outputs;
  SymbolDims dims;
  std::unique_ptr<DeviceArguments> onDevice;
};

} // namespace ptc

#endif // PTC_CLI_TIMEDMODEL_H
