#include "cli/DeviceArguments.h"
#include "compiler/CudaDriver.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace ptc {

/// The driver, and the device's primary context, which is the model's as well.
class DeviceArguments::Driver {
public:
  explicit Driver(int ordinal) : library(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)), cuda(library) {
    void *retained = nullptr;
    isOpen = library && cuda.isWhole() && cuda.init(0) == 0 && cuda.get(&device, ordinal) == 0 &&
             cuda.retain(&retained, device) == 0;
    context = isOpen ? retained : nullptr;
  }
  Driver(const Driver &) = delete;
  Driver &operator=(const Driver &) = delete;
  ~Driver() {
    if (isOpen)
      cuda.release(device);
    if (library)
      dlclose(library);
  }

  /// Calls `work` while the context is the thread's; the first error.
  int use(function_ref<int(const CudaDriver &)> work) const {
    constexpr int notInitialized = 3;
    int error = isOpen ? cuda.push(context) : notInitialized;
    if (error != 0)
      return error;
    error = work(cuda);
    void *popped = nullptr;
    int left = cuda.pop(&popped);
    return error != 0 ? error : left;
  }

private:
  void *library;
  CudaDriver cuda;
  int device = 0;
  void *context = nullptr;
  bool isOpen = false;
};

static Error explain(int error, StringRef what) {
  if (error == 0)
    return Error::success();
  return exitError(exitTarget, "the CUDA driver failed to " + what + ": error " + Twine(error));
}

DeviceArguments::DeviceArguments(std::unique_ptr<Driver> driver) : driver(std::move(driver)) {}

DeviceArguments::~DeviceArguments() {
  driver->use([&](const CudaDriver &cuda) {
    if (stream) {
      cuda.wait(stream);
      cuda.streamDestroy(stream);
    }
    for (uint64_t block : blocks)
      cuda.free(block);
    return 0;
  });
}

bool DeviceArguments::canHold(const ptc_function &function) {
  auto isHeld = [](const ptc_value &value) {
    return value.dtype.code != PTC_STRING && value.dtype.code != PTC_SEQUENCE && !isFound(value);
  };
  return all_of(ArrayRef(function.inputs, function.input_count), isHeld) &&
         all_of(ArrayRef(function.outputs, function.output_count), isHeld);
}

int DeviceArguments::place(Tensor &tensor, ptc_tensor &placed) {
  uint64_t block = 0;
  int error = driver->use([&](const CudaDriver &cuda) {
    int code = cuda.allocate(&block, std::max<size_t>(tensor.bytes.size(), 1));
    if (code != 0)
      return code;
    blocks.push_back(block);
    return tensor.bytes.empty() ? 0 : cuda.copyIn(block, tensor.bytes.data(), tensor.bytes.size(), stream);
  });
  placed = tensor.view();
  placed.data = reinterpret_cast<void *>(block);
  placed.device = {PTC_CUDA, placed.device.id};
  return error;
}

Expected<std::unique_ptr<DeviceArguments>> DeviceArguments::create(int ordinal, const ptc_function &function,
                                                                   std::vector<Tensor> &inputs,
                                                                   std::vector<Tensor> &outputs) {
  std::unique_ptr<DeviceArguments> made(new DeviceArguments(std::make_unique<Driver>(ordinal)));
  constexpr unsigned nonBlocking = 1;
  int error = made->driver->use([&](const CudaDriver &cuda) { return cuda.streamCreate(&made->stream, nonBlocking); });
  made->inputs.resize(inputs.size());
  made->outputs.resize(outputs.size());
  for (size_t i = 0; i < inputs.size() && error == 0; ++i)
    error = made->place(inputs[i], made->inputs[i]);
  for (size_t i = 0; i < outputs.size() && error == 0; ++i) {
    if (function.outputs[i].alias < 0) {
      error = made->place(outputs[i], made->outputs[i]);
      continue;
    }
    made->outputs[i] = outputs[i].view(); // the input's memory
    made->outputs[i].data = nullptr;
  }
  if (Error failed = explain(error, "take a model's inputs and outputs"))
    return std::move(failed);
  for (auto *tensors : {&made->inputs, &made->outputs})
    for (ptc_tensor &tensor : *tensors)
      tensor.device.id = ordinal;
  if (Error failed = made->wait())
    return std::move(failed);
  return made;
}

Error DeviceArguments::run(ModelInstance &instance, unsigned function) {
  return instance.run(function, inputs.data(), outputs.data(), stream);
}

Error DeviceArguments::wait() {
  return explain(driver->use([&](const CudaDriver &cuda) { return cuda.wait(stream); }), "run the model");
}

} // namespace ptc
