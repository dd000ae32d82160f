#include "compiler/SaveTemps.h"
#include "compiler/artifact/Outputs.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace ptc {

static Error writeAll(raw_fd_ostream &os, StringRef path, StringRef text) {
  os << text;
  os.close();
  std::error_code failed = os.error();
  os.clear_error();
  return failed ? artifact::cannotWrite(path, failed) : Error::success();
}

Error saveText(StringRef folder, const Twine &name, StringRef text) {
  SmallString<128> path(folder);
  sys::path::append(path, name);
  if (std::error_code failed = sys::fs::create_directories(sys::path::parent_path(path)))
    return artifact::cannotWrite(path, failed);
  std::error_code failed;
  raw_fd_ostream os(path, failed);
  if (failed)
    return artifact::cannotWrite(path, failed);
  return writeAll(os, path, text);
}

Expected<std::string> writeReproducer(const CompileOptions &options, StringRef command, Phase phase, StringRef text) {
  int descriptor;
  SmallString<128> path;
  std::string prefix = "ptc-" + stemOf(options.model) + "-before-" + getRow(phase).name.str();
  if (std::error_code failed = sys::fs::createTemporaryFile(prefix, "mlir", descriptor, path))
    return artifact::cannotWrite(prefix, failed);
  raw_fd_ostream os(descriptor, /*shouldClose=*/true);
  os << "// " << command << "\n// failed in stage " << getRow(phase).name << "; this is the module before it\n";
  if (Error error = writeAll(os, path, text))
    return std::move(error);
  return path.str().str();
}

} // namespace ptc
