#include "cli/TimedModel.h"
#include <chrono>
#include <ctime>

using namespace llvm;

namespace ptc {

static Expected<std::vector<Tensor>> makeTimedInputs(const ptc_function &function, const TimedModelOptions &options) {
  std::vector<std::string> specs = {"random:0"}; // first, so that a spec of the user's wins
  append_range(specs, options.inputs);
  return makeInputs(function, specs, options.dims);
}

Expected<SymbolDims> dimsOf(const ModelLibrary &library, const TimedModelOptions &options) {
  Expected<unsigned> number = library.findFunction(options.function);
  if (!number)
    return number.takeError();
  const ptc_function &function = library.table().functions[*number];
  Expected<std::vector<Tensor>> inputs = makeTimedInputs(function, options);
  if (!inputs)
    return inputs.takeError();
  return symbolsOf(function, *inputs, options.dims);
}

Expected<TimedModel> TimedModel::prepare(const ModelLibrary &library, const TimedModelOptions &options) {
  Expected<unsigned> function = library.findFunction(options.function);
  if (!function)
    return function.takeError();
  const ptc_function &interface = library.table().functions[*function];
  Expected<std::vector<Tensor>> inputs = makeTimedInputs(interface, options);
  if (!inputs)
    return inputs.takeError();
  Expected<ModelInstance> instance = ModelInstance::create(library, options.instance);
  if (!instance)
    return instance.takeError();
  Expected<std::vector<Tensor>> outputs = instance->makeOutputs(*function, *inputs);
  if (!outputs)
    return outputs.takeError();
  if (Error error = instance->warmUp(*function, *inputs))
    return std::move(error);
  SymbolDims dims = symbolsOf(interface, *inputs, options.dims);
  TimedModel model(std::move(*instance), *function, std::move(*inputs), std::move(*outputs), std::move(dims));
  std::optional<int> device = model.instance.getDevice();
  if (!options.staysOnDevice || !device || !DeviceArguments::canHold(model.getInterface()))
    return model;
  auto onDevice = DeviceArguments::create(*device, model.getInterface(), model.inputs, model.outputs);
  if (!onDevice)
    return onDevice.takeError();
  model.onDevice = std::move(*onDevice);
  return model;
}

Expected<double> TimedModel::wallTime(unsigned runs) {
  using Clock = std::chrono::steady_clock;
  auto start = Clock::now();
  for (unsigned run = 0; run < runs; ++run)
    if (Error error = onDevice ? onDevice->run(instance, function) : instance.run(function, inputs, outputs))
      return std::move(error);
  if (onDevice)
    if (Error error = onDevice->wait())
      return std::move(error);
  return std::chrono::duration<double>(Clock::now() - start).count() / runs;
}

static double now(clockid_t clock) {
  timespec time;
  ::clock_gettime(clock, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

Expected<double> TimedModel::threadTime(unsigned runs) {
  double start = now(CLOCK_THREAD_CPUTIME_ID);
  for (unsigned run = 0; run < runs; ++run)
    if (Error error = instance.run(function, inputs, outputs))
      return std::move(error);
  return now(CLOCK_THREAD_CPUTIME_ID) - start;
}

} // namespace ptc
