// Values inside a model, as the observer of a run sees them (ptc_options::tap).
#ifndef PTC_CLI_TAPS_H
#define PTC_CLI_TAPS_H

#include "cli/tensor/TensorFiles.h"

namespace ptc {

/// A tapped value, copied out of the model's memory.
struct TappedValue {
  std::string node, op, output, kernel, nodes;
  uint32_t launch, number;
  Tensor value; // dense; elements below 8 bits one a byte
};

/// A dense copy of what the observer is shown.
TappedValue copyTap(const ptc_tap &tap);

/// Writes each value to FOLDER/NAME.npy, its name in the model with what files cannot be called replaced; the second
/// of a name gets a number. The folder is made if need be.
llvm::Error writeTaps(llvm::StringRef folder, llvm::ArrayRef<TappedValue> taps);

} // namespace ptc

#endif // PTC_CLI_TAPS_H
