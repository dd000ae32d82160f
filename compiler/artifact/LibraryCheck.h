// Whether a file is a shared library that ptc has written, as it has written it, before any of its code runs.
#ifndef PTC_COMPILER_ARTIFACT_LIBRARYCHECK_H
#define PTC_COMPILER_ARTIFACT_LIBRARYCHECK_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace ptc::artifact {

enum class LibraryState {
  Whole,         // the bytes are those of its build id
  Changed,       // well-formed, but not what the linker wrote (strip and patchelf do that, and broken disks)
  Foreign,       // a shared library without a build id of ours
  OtherProcessor // a shared library that does not load here; not looked into
};

/// Reads everything but the weights. An error, a clause about the file, where it cannot be loaded: it is cut off or no
/// ELF file.
llvm::Expected<LibraryState> checkLibrary(llvm::StringRef path);

} // namespace ptc::artifact

#endif // PTC_COMPILER_ARTIFACT_LIBRARYCHECK_H
