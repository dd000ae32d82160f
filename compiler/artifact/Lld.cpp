#include "compiler/artifact/Lld.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <thread>
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
    return systemError("cannot link: no file in memory can be made");
  MemoryFile file(descriptor);
  while (!bytes.empty()) {
    ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return systemError("cannot link: the objects do not fit into a file in memory");
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

/// The reading end of a pipe that is emptied by a thread of its own until the writing end is closed.
class PipeReader {
public:
  ~PipeReader() { finish(); }

  bool start() {
    if (pipe2(ends, O_CLOEXEC) != 0)
      return false;
    reader = std::thread([this] {
      char block[1 << 16];
      for (ssize_t count; (count = read(ends[0], block, sizeof(block))) != 0;)
        if (count > 0)
          bytes.append(block, block + count);
        else if (errno != EINTR)
          return;
    });
    return true;
  }

  std::string path() const { return "/proc/self/fd/" + std::to_string(ends[1]); }

  SmallVector<char, 0> finish() {
    if (reader.joinable()) {
      close(ends[1]);
      reader.join();
      close(ends[0]);
    }
    return std::move(bytes);
  }

private:
  int ends[2] = {-1, -1};
  std::thread reader;
  SmallVector<char, 0> bytes;
};

Expected<SmallVector<char, 0>> runLld(std::vector<std::string> arguments) {
  static std::mutex oneAtATime;
  std::lock_guard<std::mutex> lock(oneAtATime);
  PipeReader output;
  if (!output.start())
    return systemError("cannot make a pipe");
  arguments.insert(arguments.end(), {"--threads=1", "-o", output.path()});
  SmallVector<const char *> argv = {"ld.lld"};
  for (const std::string &argument : arguments)
    argv.push_back(argument.c_str());
  std::string messages;
  raw_string_ostream stream(messages);
  lld::Result result = lld::lldMain(argv, stream, stream, {{lld::Gnu, &lld::elf::link}});
  SmallVector<char, 0> image = output.finish();
  if (result.retCode == 0)
    return image;
  return createStringError(inconvertibleErrorCode(), "link failed: " + StringRef(messages).rtrim());
}

} // namespace ptc::artifact
