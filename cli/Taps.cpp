#include "cli/Taps.h"
#include "compiler/DiagnosticRendering.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cstring>

using namespace llvm;

namespace ptc {

/// Row-major, by an index that counts up.
static void copyStrided(const ptc_tensor &from, size_t elementBytes, Tensor &to) {
  const char *base = static_cast<const char *>(from.data) + from.byte_offset;
  SmallVector<int64_t> index(from.rank, 0);
  for (char *out = to.bytes.data(), *end = out + to.bytes.size(); out != end; out += elementBytes) {
    int64_t position = 0;
    for (int32_t i = 0; i < from.rank; ++i)
      position += index[i] * from.strides[i];
    std::memcpy(out, base + position * int64_t(elementBytes), elementBytes);
    for (int32_t axis = from.rank - 1; axis >= 0 && ++index[axis] == from.shape[axis]; --axis)
      index[axis] = 0;
  }
}

TappedValue copyTap(const ptc_tap &tap) {
  const ptc_tensor &tensor = *tap.tensor;
  TappedValue result{tap.node,  tap.op,     tap.output, tap.kernel,
                     tap.nodes, tap.launch, tap.number, Tensor::zeros(tensor.dtype, {})};
  result.value = Tensor::zeros(tensor.dtype, {tensor.shape, tensor.shape + tensor.rank});
  copyStrided(tensor, tensor.dtype.bits / 8, result.value);
  return result;
}

Error writeTaps(StringRef folder, ArrayRef<TappedValue> taps) {
  if (std::error_code failed = sys::fs::create_directories(folder))
    return exitError(exitFile, "cannot make the folder '" + folder + "': " + failed.message());
  StringSet<> written;
  for (const TappedValue &tap : taps) {
    std::string name = tap.output;
    for (char &c : name)
      if (!isAlnum(c) && !StringRef("-_.").contains(c))
        c = '_';
    std::string own = name;
    for (unsigned count = 1; !written.insert(own).second; ++count)
      own = name + "." + std::to_string(count);
    SmallString<128> path(folder);
    sys::path::append(path, own + ".npy");
    if (Error error = writeTensor(path, tap.output, tap.value))
      return error;
  }
  return Error::success();
}

} // namespace ptc
