// A signal may come while any lock is held, that of malloc included; so its handler finds folders in memory that was
// there before, and goes through them by system calls alone.
#include "cli/TemporaryFolder.h"
#include "compiler/DiagnosticRendering.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <atomic>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace llvm;

namespace ptc {

namespace {
/// What a signal removes. A slot is taken by one thread at a time; `isSet` says that its path is whole.
struct Slot {
  std::atomic<bool> isTaken = false, isSet = false;
  char path[256] = {};
};
} // namespace

static Slot slots[8];

Expected<TemporaryFolder> TemporaryFolder::create(StringRef prefix) {
  TemporaryFolder folder;
  if (std::error_code failed = sys::fs::createUniqueDirectory(prefix, folder.name))
    return exitError(exitFile, "cannot make the temporary folder '" + folder.name + "': " + failed.message(),
                     "the environment's TMPDIR names the folder that it lies in");
  for (auto [index, slot] : enumerate(slots)) {
    if (folder.name.size() >= sizeof slot.path || slot.isTaken.exchange(true))
      continue;
    std::memcpy(slot.path, folder.name.data(), folder.name.size());
    slot.path[folder.name.size()] = 0;
    slot.isSet = true;
    folder.slot = static_cast<int>(index);
    break;
  }
  return folder;
}

TemporaryFolder::~TemporaryFolder() {
  if (name.empty())
    return;
  sys::fs::remove_directories(name);
  if (slot >= 0) {
    slots[slot].isSet = false;
    slots[slot].isTaken = false;
  }
}

std::string TemporaryFolder::file(const Twine &file) const {
  SmallString<128> path(name);
  sys::path::append(path, file);
  return path.str().str();
}

static void removeFolder(int parent, const char *name) {
  int folder = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0)
    return;
  alignas(dirent64) char buffer[4096];
  while (true) {
    long bytes = ::syscall(SYS_getdents64, folder, buffer, sizeof buffer);
    if (bytes <= 0)
      break;
    for (long at = 0; at < bytes;) {
      auto *entry = reinterpret_cast<dirent64 *>(buffer + at);
      at += entry->d_reclen;
      bool isItself = !std::strcmp(entry->d_name, ".") || !std::strcmp(entry->d_name, "..");
      if (!isItself && ::unlinkat(folder, entry->d_name, 0) != 0)
        removeFolder(folder, entry->d_name);
    }
  }
  ::close(folder);
  ::unlinkat(parent, name, AT_REMOVEDIR);
}

void TemporaryFolder::removeAll() {
  for (Slot &slot : slots)
    if (slot.isSet)
      removeFolder(AT_FDCWD, slot.path);
}

} // namespace ptc
