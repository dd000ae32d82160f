// A file that is mapped for writing, its room on the disk reserved beforehand.
#ifndef PTC_COMPILER_ARTIFACT_MAPPEDFILE_H
#define PTC_COMPILER_ARTIFACT_MAPPEDFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace ptc::artifact {

/// Shared and writable: dirty pages belong to the file, not to this process's memory. Reserving the room first turns a
/// full disk into an error here instead of a bus error at some later store.
class MappedFile {
public:
  /// Extends the existing file `path` with zeros to `bytes` and maps all of it.
  static llvm::Expected<MappedFile> extend(llvm::StringRef path, uint64_t bytes);

  MappedFile(MappedFile &&other);
  MappedFile &operator=(MappedFile &&) = delete;
  ~MappedFile();

  llvm::MutableArrayRef<char> bytes() { return {base, size}; }

private:
  MappedFile(char *base, size_t size) : base(base), size(size) {}
  char *base;
  size_t size;
};

/// Calls body(i) for i in [0, count) on up to `jobs` threads; returns the error of the lowest i that failed.
llvm::Error parallelFor(unsigned jobs, size_t count, llvm::function_ref<llvm::Error(size_t)> body);

} // namespace ptc::artifact

#endif
