#include "compiler/artifact/Lld.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace ptc::artifact {

static Error systemError(const Twine &what) {
  std::error_code reason(errno, std::generic_category());
  return createStringError(reason, what + ": " + reason.message());
}

Expected<MemoryFile> MemoryFile::create(StringRef bytes) {
  int descriptor = memfd_create("ptc-link", MFD_CLOEXEC);
  if (descriptor < 0)
    return systemError("cannot make a file in memory");
  MemoryFile file(descriptor);
  while (!bytes.empty()) {
    ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return systemError("cannot fill a file in memory");
    bytes = bytes.drop_front(written);
  }
  return file;
}

MemoryFile::MemoryFile(MemoryFile &&other) : descriptor(other.descriptor) { other.descriptor = -1; }

MemoryFile::~MemoryFile() {
  if (descriptor >= 0)
    close(descriptor);
}

std::string MemoryFile::path() const { return "/proc/self/fd/" + std::to_string(descriptor); }

Error runLld(const std::vector<std::string> &arguments) {
  static std::mutex oneAtATime;
  std::lock_guard<std::mutex> lock(oneAtATime);
  SmallVector<const char *> argv = {"ld.lld"};
  for (const std::string &argument : arguments)
    argv.push_back(argument.c_str());
  std::string messages;
  raw_string_ostream stream(messages);
  lld::Result result = lld::lldMain(argv, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode == 0)
    return Error::success();
  return createStringError(inconvertibleErrorCode(), "link failed: " + StringRef(messages).rtrim());
}

} // namespace ptc::artifact
