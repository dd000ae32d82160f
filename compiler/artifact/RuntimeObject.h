// The runtime as bytes inside ptc: what the linker puts into every artefact, and the headers written beside it.
// The definitions are generated at build time from runtime/.
#ifndef PTC_COMPILER_ARTIFACT_RUNTIMEOBJECT_H
#define PTC_COMPILER_ARTIFACT_RUNTIMEOBJECT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace ptc::artifact {

/// The relocatable ELF object of runtime/src for a triple ("x86_64-linux-gnu"), 16-byte aligned, or nothing when
/// ptc was built without that processor. The bytes live as long as the program.
std::optional<llvm::StringRef> runtimeObject(llvm::StringRef triple);

/// The text of runtime/include/ptc/NAME ("abi.h"), followed by a zero byte that is not part of it.
std::optional<llvm::StringRef> runtimeHeader(llvm::StringRef name);

} // namespace ptc::artifact

#endif
