// The files of one compile, which appear together at its end or not at all.
#ifndef PTC_COMPILER_ARTIFACT_OUTPUTS_H
#define PTC_COMPILER_ARTIFACT_OUTPUTS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace ptc::artifact {

/// Each output is written under a temporary name in its own folder and gets its real name in commit(), by rename. An
/// Outputs that is destroyed, or a process that is interrupted, before commit leaves what was there before. An output
/// whose bytes have not changed is left untouched, time stamp included. A commit that fails in its middle takes back
/// what it has done, as far as the file system has hard links, which keep the old files until the last rename.
class Outputs {
public:
  Outputs() = default;
  Outputs(const Outputs &) = delete;
  Outputs &operator=(const Outputs &) = delete;
  ~Outputs();

  /// The temporary name under which the caller writes what will be `path`. `path` may be an existing special file
  /// (/dev/null); it is then written in place.
  llvm::Expected<std::string> stage(llvm::StringRef path);

  /// stage() and write.
  llvm::Error write(llvm::StringRef path, llvm::StringRef contents);

  /// The error with final names in the place of temporary ones. Errors of programs that were given a temporary name and
  /// name it in their message are errors of that file.
  llvm::Error explain(llvm::Error error) const;

  /// Gives all outputs their names, `main` last: whoever sees it new sees the others new. After an error all old files
  /// are back, new ones are gone, and the remaining ones are discarded.
  llvm::Error commit(llvm::StringRef main = "");

private:
  struct Staged {
    std::string temporary, final;
    std::string given; // as the caller named it; `final` has links resolved
  };
  std::vector<Staged> staged;
};

/// "cannot write 'PATH': REASON" as an error of the outside world.
llvm::Error cannotWrite(llvm::StringRef path, std::error_code reason);

} // namespace ptc::artifact

#endif
