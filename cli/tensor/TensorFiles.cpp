#include "cli/tensor/TensorFiles.h"
#include "compiler/DiagnosticRendering.h"
#include "compiler/artifact/Outputs.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace ptc {

Expected<std::string> readFile(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(path, false, false);
  if (!buffer)
    return exitError(exitFile, "cannot read '" + path + "': " + buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

Error writeFile(StringRef path, StringRef contents) {
  artifact::Outputs outputs;
  if (Error error = outputs.write(path, contents))
    return error;
  return outputs.commit();
}

Expected<NamedTensors> readTensors(StringRef path) {
  Expected<std::string> bytes = readFile(path);
  return bytes ? parseNpz(*bytes, path) : bytes.takeError();
}

static Expected<Tensor> readFromNpz(StringRef path, StringRef name) {
  Expected<NamedTensors> tensors = readTensors(path);
  if (!tensors)
    return tensors.takeError();
  if (name.empty() && tensors->size() == 1)
    return std::move(tensors->front().second);
  std::string names;
  for (auto &[stem, tensor] : *tensors) {
    if (stem == name)
      return std::move(tensor);
    names += (names.empty() ? "" : ", ") + stem;
  }
  return exitError(exitUsage, "'" + path + "' holds " + names + (name.empty() ? "" : "; not " + name),
                   "name one array: " + path + ":NAME");
}

Expected<Tensor> readTensor(StringRef path) {
  size_t split = path.rfind(".npz:");
  if (split != StringRef::npos)
    return readFromNpz(path.take_front(split + 4), path.drop_front(split + 5));
  StringRef suffix = sys::path::extension(path);
  if (suffix == ".npz")
    return readFromNpz(path, "");
  Expected<std::string> bytes = readFile(path);
  if (!bytes)
    return bytes.takeError();
  if (suffix == ".pb")
    return parseTensorProto(*bytes, path);
  return parseNpy(*bytes, path);
}

Expected<Tensor> readValue(StringRef path, const ptc_value &value) {
  if (value.dtype.code != PTC_SEQUENCE)
    return readTensor(path);
  Expected<std::string> bytes = readFile(path);
  if (!bytes)
    return bytes.takeError();
  return value.role == PTC_OPTIONAL ? parseOptionalProto(*bytes, path) : parseSequenceProto(*bytes, path);
}

Error writeTensor(StringRef path, StringRef name, const Tensor &tensor) {
  if (tensor.dtype.code == PTC_SEQUENCE)
    return exitError(exitUsage, "'" + name + "' is a sequence, which '" + path + "' cannot hold",
                     "programs get it through ptc_sequence, and Python as a list");
  if (sys::path::extension(path) == ".npz")
    return writeFile(path, formatNpz({{name.str(), tensor}}));
  return writeFile(path, formatNpy(tensor));
}

} // namespace ptc
