// An installed ptc has its files in PREFIX/share. A program that was copied alone carries them as text, and lays them
// out as a small prefix of their own below the user's cache: share/ with the files, bin/ptc as a link to the program,
// so that they find it as they do in an installed prefix. The folder's name is a digest of the texts and of the
// program's path: other versions and other copies have other folders, and whoever finds a file there finds it whole,
// because Outputs gives files their names when they are complete.
#include "cli/integration/IntegrationFiles.h"
#include "compiler/DiagnosticRendering.h"
#include "compiler/artifact/Outputs.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace ptc {

namespace {
struct IntegrationText {
  StringLiteral path, text;
};
} // namespace

static constexpr IntegrationText texts[] = {
#include "cli/integration/IntegrationTexts.inc"
};

static std::string below(StringRef folder, StringRef path) {
  SmallString<128> result(folder);
  sys::path::append(result, path);
  return result.str().str();
}

static std::string digestOf(StringRef program) {
  BLAKE3 hash;
  hash.update(program);
  for (const IntegrationText &text : texts) {
    hash.update(text.path);
    hash.update(text.text);
  }
  return toHex(hash.final<8>(), /*LowerCase=*/true);
}

/// A file that is there is whole, and the folder's name says that it is the right one.
static bool isWritten(StringRef prefix) {
  return sys::fs::exists(below(prefix, "bin/ptc")) &&
         all_of(texts, [&](const IntegrationText &text) { return sys::fs::exists(below(prefix, text.path)); });
}

static Error writeTexts(StringRef prefix, StringRef program) {
  std::string link = below(prefix, "bin/ptc");
  if (std::error_code failed = sys::fs::create_directories(below(prefix, "bin")))
    return artifact::cannotWrite(prefix, failed);
  std::error_code failed = sys::fs::create_link(program, link);
  if (failed && failed != std::errc::file_exists)
    return artifact::cannotWrite(link, failed);
  artifact::Outputs outputs;
  for (const IntegrationText &text : texts) {
    std::string path = below(prefix, text.path);
    if (std::error_code failed = sys::fs::create_directories(sys::path::parent_path(path)))
      return artifact::cannotWrite(path, failed);
    if (Error error = outputs.write(path, text.text))
      return error;
  }
  return outputs.commit();
}

Expected<std::string> findIntegration(StringRef path, StringRef program) {
  void *anchor = reinterpret_cast<void *>(&findIntegration); // for systems without /proc
  std::string file = sys::fs::getMainExecutable(program.str().c_str(), anchor);
  SmallString<128> prefix(sys::path::parent_path(sys::path::parent_path(file)));
  std::string installed = below(prefix, path);
  if (sys::fs::exists(installed))
    return installed;
  SmallString<128> cache;
  if (!sys::path::cache_directory(cache))
    return exitError(exitFile, "there is no folder for the build files of a ptc that is not installed",
                     "set HOME or XDG_CACHE_HOME, or install ptc with its share folder");
  sys::path::append(cache, "ptc", digestOf(file));
  if (!isWritten(cache))
    if (Error error = writeTexts(cache, file))
      return std::move(error);
  return below(cache, path);
}

} // namespace ptc
