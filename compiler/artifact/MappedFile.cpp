#include "compiler/artifact/MappedFile.h"
#include "compiler/artifact/Outputs.h"

#include <atomic>
#include <fcntl.h>
#include <mutex>
#include <optional>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace llvm;

namespace ptc::artifact {

static int reserve(int file, uint64_t bytes) {
  int failed = bytes == 0 ? 0 : posix_fallocate(file, 0, bytes);
  // Some file systems cannot reserve; extending is what is left.
  if (failed == EOPNOTSUPP || failed == EINVAL)
    return ftruncate(file, bytes) == 0 ? 0 : errno;
  return failed;
}

Expected<MappedFile> MappedFile::extend(StringRef path, uint64_t bytes) {
  int file = open(path.str().c_str(), O_RDWR | O_CLOEXEC);
  int failed = file < 0 ? errno : reserve(file, bytes);
  void *base = nullptr;
  if (!failed && bytes > 0) {
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    failed = base == MAP_FAILED ? errno : 0;
    // As huge pages the bytes stay in the system's cache for those who map the file next (Link.cpp).
    if (!failed)
      (void)madvise(base, bytes, MADV_HUGEPAGE);
  }
  if (file >= 0)
    close(file);
  if (failed)
    return cannotWrite(path, std::error_code(failed, std::generic_category()));
  return MappedFile(static_cast<char *>(base), bytes);
}

MappedFile::MappedFile(MappedFile &&other) : base(other.base), size(other.size) {
  other.base = nullptr;
  other.size = 0;
}

MappedFile::~MappedFile() {
  if (base)
    munmap(base, size);
}

Error parallelFor(unsigned jobs, size_t count, function_ref<Error(size_t)> body) {
  std::atomic<size_t> next{0};
  std::mutex guard;
  std::optional<std::pair<size_t, Error>> failure;
  auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < count;) {
      Error error = body(i);
      if (!error)
        continue;
      std::lock_guard<std::mutex> lock(guard);
      next = count;
      if (failure && failure->first < i) {
        consumeError(std::move(error));
        continue;
      }
      if (failure)
        consumeError(std::move(failure->second));
      failure.emplace(i, std::move(error));
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < jobs && i < count; ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  return failure ? std::move(failure->second) : Error::success();
}

} // namespace ptc::artifact
