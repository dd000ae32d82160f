// Two kinds of small ELF files that the linker is given, written directly: the link-time stand-in of a shared library
// (names and symbol versions, no code), and the object that reserves room for the weights.
#ifndef PTC_COMPILER_ARTIFACT_ELFFILES_H
#define PTC_COMPILER_ARTIFACT_ELFFILES_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/TargetParser/Triple.h"
#include <string>
#include <vector>

namespace ptc::artifact {

struct VersionedSymbol {
  llvm::StringRef name;
  llvm::StringRef version;
};

/// A shared library that defines `symbols` and nothing else; linking against it gives the NEEDED entry `soname` and
/// references to exactly these versions.
llvm::SmallVector<char, 0> writeStubLibrary(const llvm::Triple &triple, llvm::StringRef soname,
                                            llvm::ArrayRef<VersionedSymbol> symbols);

/// Names in the object that reserves room for weights.
constexpr llvm::StringLiteral weightsSection = ".ptc.weights";
constexpr llvm::StringLiteral digestSection = ".ptc.weights_digest";
constexpr llvm::StringLiteral weightsSymbol = "ptc_weights";
constexpr llvm::StringLiteral digestSymbol = "ptc_weights_digest";
constexpr unsigned digestBytes = 32;
/// At the end of .note.gnu.build-id.
constexpr unsigned buildIdBytes = 20;

/// An object with hidden symbols `ptc_weights` (at the start of a read-only, page-aligned section of `bytes` bytes that
/// has no contents yet; left out when `bytes` is 0) and `ptc_weights_digest` (32 zero bytes in a section of its own).
llvm::SmallVector<char, 0> writeWeightsObject(const llvm::Triple &triple, uint64_t bytes);

} // namespace ptc::artifact

#endif
