#include "cli/quantize/ObservedModel.h"
#include "cli/Taps.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace ptc {

ArrayRef<float> floatsOf(const Tensor &tensor) {
  return {reinterpret_cast<const float *>(tensor.bytes.data()), tensor.bytes.size() / sizeof(float)};
}

bool isFloat32(const Tensor &tensor) { return tensor.dtype == ptc_dtype{PTC_FLOAT, 32, 1}; }

Expected<ObservedModel> ObservedModel::compile(Session &session, CompileOptions options, StringRef model,
                                               StringRef folder, ArrayRef<std::string> values) {
  SmallString<128> path(folder);
  sys::path::append(path, "model.so");
  options.model = model.str();
  options.output = path.str().str();
  options.emit = {"so"};
  options.cpu = {"x86-64-v3"}; // sums depend on the width of vectors, and what they decide is to be the same everywhere
  options.taps.assign(values.begin(), values.end());
  CompileHooks hooks = hooksOf(session, "quantize");
  if (Error error = ptc::compile(options, hooks))
    return std::move(error);
  Expected<ModelLibrary> library = ModelLibrary::open(session, options.output);
  if (!library)
    return library.takeError();
  auto observer = std::make_unique<const ValueObserver *>(nullptr);
  InstanceOptions instanceOptions;
  instanceOptions.tap = [current = observer.get()](const ptc_tap &tap) {
    if (!*current || !(tap.tensor->dtype == ptc_dtype{PTC_FLOAT, 32, 1}))
      return;
    TappedValue value = copyTap(tap);
    (**current)(value.output, floatsOf(value.value));
  };
  Expected<ModelInstance> instance = ModelInstance::create(*library, instanceOptions);
  if (!instance)
    return instance.takeError();
  return ObservedModel(*library, std::move(*instance), std::move(observer));
}

Expected<std::vector<Tensor>> ObservedModel::run(std::vector<Tensor> &inputs, const ValueObserver &observed) {
  Expected<std::vector<Tensor>> outputs = instance.makeOutputs(0, inputs);
  if (!outputs)
    return outputs.takeError();
  for (auto [i, input] : enumerate(inputs))
    if (isFloat32(input))
      observed(getInterface().inputs[i].name, floatsOf(input));
  *observer = &observed;
  Error error = instance.run(0, inputs, *outputs);
  *observer = nullptr;
  if (error)
    return std::move(error);
  return outputs;
}

} // namespace ptc
