// What ptc can compile, as tables for people.
#ifndef PTC_COMPILER_CAPABILITIES_H
#define PTC_COMPILER_CAPABILITIES_H

#include "lowering/onnx/Operators.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace ptc {

/// The element types whose operators a target leaves to the host, of those that models have: names as ONNX writes them.
std::vector<std::string> elementTypesOnHost(llvm::StringRef target);

struct SupportedLevel {
  std::string name, triple;     // "x86-64-v3", "x86_64-unknown-linux-gnu"
  bool isLinked;                // this ptc has the runtime that a library for it needs
  std::optional<bool> runsHere; // nothing: this machine's processors of the kind are not known to ptc
};

struct SupportedTarget {
  llvm::StringRef name;                    // --target=NAME
  llvm::StringRef levelFlag;               // the option that names levels
  std::vector<SupportedLevel> levels;      // of one processor family from low to high
  llvm::ArrayRef<llvm::StringRef> outputs; // kinds of --emit besides mlir:STAGE
};

/// The default first.
std::vector<SupportedTarget> supportedTargets();
/// The stages that --emit=mlir:STAGE prints, in their order.
std::vector<llvm::StringRef> printableStages();

} // namespace ptc

#endif // PTC_COMPILER_CAPABILITIES_H
