// A model's inputs and outputs in a device's memory: where a program has them that computes there before and behind.
#ifndef PTC_CLI_DEVICEARGUMENTS_H
#define PTC_CLI_DEVICEARGUMENTS_H

#include "cli/ModelLibrary.h"

namespace ptc {

class DeviceArguments {
public:
  /// Whether a function's arguments are numbers, whose sizes are known before a run.
  static bool canHold(const ptc_function &function);
  /// Copies of these inputs, room for these outputs, and a stream.
  static llvm::Expected<std::unique_ptr<DeviceArguments>>
  create(int ordinal, const ptc_function &function, std::vector<Tensor> &inputs, std::vector<Tensor> &outputs);
  ~DeviceArguments();

  /// Puts a run behind those before; it may still be under way when this returns.
  llvm::Error run(ModelInstance &instance, unsigned function);
  /// Until all of them have ended.
  llvm::Error wait();

private:
  class Driver;
  explicit DeviceArguments(std::unique_ptr<Driver> driver);
  /// The tensor in the device's memory; the driver's error.
  int place(Tensor &tensor, ptc_tensor &placed);
  std::unique_ptr<Driver> driver;
  std::vector<ptc_tensor> inputs, outputs;
  std::vector<uint64_t> blocks;
  void *stream = nullptr;
};

} // namespace ptc

#endif // PTC_CLI_DEVICEARGUMENTS_H
