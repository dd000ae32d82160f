#include "compiler/artifact/Outputs.h"
#include "compiler/DiagnosticRendering.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace ptc::artifact {

/// What a user can do about it; empty where the reason says it all.
static std::string remedyOf(StringRef path, std::error_code reason) {
  StringRef folder = sys::path::parent_path(path);
  bool isMissing = reason == std::errc::no_such_file_or_directory && !folder.empty();
  if (isMissing && !sys::fs::exists(folder))
    return ("the folder '" + folder + "' has to be there: mkdir -p " + folder).str();
  if (isMissing || reason == std::errc::permission_denied || reason == std::errc::read_only_file_system ||
      reason == std::errc::operation_not_permitted)
    return "choose a folder that you may write to";
  if (reason == std::errc::no_space_on_device)
    return "free some space there, or choose another disk; what was there before is as it was";
  return "";
}

Error cannotWrite(StringRef path, std::error_code reason) {
  return exitError(exitFile, "cannot write '" + path + "': " + reason.message(), remedyOf(path, reason));
}

static void discard(StringRef temporary) {
  sys::fs::remove(temporary);
  sys::DontRemoveFileOnSignal(temporary);
}

Outputs::~Outputs() {
  for (const Staged &file : staged)
    discard(file.temporary);
}

/// A new file of its own, which a signal removes: it is noted before it is there.
static std::error_code createTemporary(const Twine &model, SmallVectorImpl<char> &path) {
  for (unsigned attempt = 0;; ++attempt) {
    sys::fs::createUniquePath(model, path, /*MakeAbsolute=*/false);
    StringRef name(path.data(), path.size());
    sys::RemoveFileOnSignal(name);
    int descriptor;
    std::error_code failed = sys::fs::openFileForWrite(name, descriptor, sys::fs::CD_CreateNew);
    if (!failed)
      return sys::Process::SafelyCloseFileDescriptor(descriptor);
    sys::DontRemoveFileOnSignal(name);
    if (failed != std::errc::file_exists || attempt == 100)
      return failed;
  }
}

Expected<std::string> Outputs::stage(StringRef path) {
  sys::fs::file_status status;
  std::error_code error = sys::fs::status(path, status);
  if (!error && status.type() == sys::fs::file_type::directory_file)
    return cannotWrite(path, std::make_error_code(std::errc::is_a_directory));
  // A special file has no folder of its own to write in; a link is followed, so that its target changes.
  SmallString<128> folder, target(path);
  bool special = !error && status.type() != sys::fs::file_type::regular_file;
  if (special)
    sys::path::system_temp_directory(true, folder);
  else if (!error && !sys::fs::real_path(path, target))
    folder = sys::path::parent_path(target);
  else
    folder = sys::path::parent_path(path);
  if (folder.empty())
    folder = ".";

  SmallString<128> model(folder), temporary;
  sys::path::append(model, "." + sys::path::filename(path) + ".%%%%%%%%");
  if (std::error_code failed = createTemporary(model, temporary))
    return cannotWrite(path, failed);
  staged.push_back({temporary.str().str(), target.str().str(), path.str()});
  return staged.back().temporary;
}

Error Outputs::write(StringRef path, StringRef contents) {
  Expected<std::string> temporary = stage(path);
  if (!temporary)
    return temporary.takeError();
  std::error_code error;
  raw_fd_ostream stream(*temporary, error);
  if (error)
    return cannotWrite(path, error);
  stream << contents;
  stream.close();
  error = stream.error();
  stream.clear_error();
  return error ? cannotWrite(path, error) : Error::success();
}

Error Outputs::explain(Error error) const {
  auto rename = [&](std::string text) {
    for (const Staged &file : staged)
      for (size_t at; (at = text.find(file.temporary)) != std::string::npos;)
        text.replace(at, file.temporary.size(), file.given);
    return text;
  };
  return handleErrors(
      std::move(error), [&](const ExitError &told) { return exitError(told.code, rename(told.message), told.help); },
      [&](const ErrorInfoBase &other) -> Error {
        std::string text = rename(other.message());
        std::error_code code = other.convertToErrorCode();
        if (code == inconvertibleErrorCode() && text != other.message())
          code = std::make_error_code(std::errc::io_error);
        return createStringError(code, text);
      });
}

/// By blocks that the page cache holds; neither file is read into memory.
static bool sameBytes(StringRef a, StringRef b) {
  uint64_t sizeA, sizeB;
  if (sys::fs::file_size(a, sizeA) || sys::fs::file_size(b, sizeB) || sizeA != sizeB)
    return false;
  auto left = MemoryBuffer::getFile(a, false, false), right = MemoryBuffer::getFile(b, false, false);
  return left && right && (*left)->getBuffer() == (*right)->getBuffer();
}

namespace {
/// What commit() has done to one path.
struct Published {
  StringRef path;
  SmallString<128> old; // another name of the file that was there; empty: there was none
};
} // namespace

/// A second name for the file at `path`; empty where the file system has none to give.
static SmallString<128> keepOld(StringRef path) {
  SmallString<128> model(sys::path::parent_path(path)), name;
  sys::path::append(model, "." + sys::path::filename(path) + ".%%%%%%%%");
  sys::fs::createUniquePath(model, name, /*MakeAbsolute=*/false);
  sys::RemoveFileOnSignal(name);
  if (!sys::fs::create_hard_link(path, name))
    return name;
  sys::DontRemoveFileOnSignal(name);
  return {};
}

static std::error_code publish(StringRef temporary, StringRef path, std::vector<Published> &done) {
  sys::fs::file_status status;
  bool exists = !sys::fs::status(path, status);
  if (exists && status.type() != sys::fs::file_type::regular_file)
    return sys::fs::copy_file(temporary, path);
  if (exists && sameBytes(temporary, path))
    return {};
  SmallString<128> old = exists ? keepOld(path) : SmallString<128>();
  if (std::error_code failed = sys::fs::rename(temporary, path)) {
    if (!old.empty())
      discard(old);
    return failed;
  }
  if (!exists || !old.empty()) // otherwise there is no way back
    done.push_back({path, old});
  return {};
}

static void takeBack(ArrayRef<Published> done) {
  for (const Published &file : llvm::reverse(done)) {
    if (file.old.empty())
      sys::fs::remove(file.path);
    else
      sys::fs::rename(file.old, file.path);
  }
}

Error Outputs::commit(StringRef main) {
  std::vector<Staged> files;
  std::swap(files, staged);
  std::stable_partition(files.begin(), files.end(), [&](const Staged &file) { return file.given != main; });
  std::vector<Published> done;
  Error result = Error::success();
  for (const Staged &file : files) {
    if (!result)
      if (std::error_code failed = publish(file.temporary, file.final, done))
        result = cannotWrite(file.given, failed);
    discard(file.temporary);
  }
  if (result)
    takeBack(done);
  for (const Published &file : done)
    if (!file.old.empty())
      discard(file.old);
  return result;
}

} // namespace ptc::artifact
