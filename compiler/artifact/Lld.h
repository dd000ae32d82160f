// lld inside the process.
#ifndef PTC_COMPILER_ARTIFACT_LLD_H
#define PTC_COMPILER_ARTIFACT_LLD_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace ptc::artifact {

/// Bytes as a file that the linker can open by name: memory of the kernel's, gone with this object.
class MemoryFile {
public:
  static llvm::Expected<MemoryFile> create(llvm::StringRef bytes);
  MemoryFile(MemoryFile &&other);
  MemoryFile &operator=(MemoryFile &&) = delete;
  ~MemoryFile();
  std::string path() const;

private:
  explicit MemoryFile(int descriptor) : descriptor(descriptor) {}
  int descriptor;
};

/// Runs `ld.lld arguments` and returns what it links. lld keeps its state in globals: one link at a time, the others
/// wait.
///
/// The output is a pipe: given the name of a file, lld writes through a mapping, which on a full disk ends in a signal.
llvm::Expected<llvm::SmallVector<char, 0>> runLld(std::vector<std::string> arguments);

} // namespace ptc::artifact

#endif
