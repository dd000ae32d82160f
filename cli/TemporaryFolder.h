// A folder for files that nobody is to see.
#ifndef PTC_CLI_TEMPORARYFOLDER_H
#define PTC_CLI_TEMPORARYFOLDER_H

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"

namespace ptc {

/// Gone with all that is in it when the object is, or when a signal ends the process.
class TemporaryFolder {
public:
  /// In the system's place for such; its name begins with `prefix`. An ExitError where it cannot be made.
  static llvm::Expected<TemporaryFolder> create(llvm::StringRef prefix);
  TemporaryFolder(TemporaryFolder &&other) : name(other.name), slot(other.slot) { other.name.clear(); }
  TemporaryFolder &operator=(TemporaryFolder &&) = delete;
  ~TemporaryFolder();

  llvm::StringRef path() const { return name; }
  /// The path of a file in it.
  std::string file(const llvm::Twine &file) const;

  /// For signal handlers: removes those that there are.
  static void removeAll();

private:
  TemporaryFolder() = default;
  llvm::SmallString<128> name;
  int slot = -1; // among those that a signal removes
};

} // namespace ptc

#endif // PTC_CLI_TEMPORARYFOLDER_H
