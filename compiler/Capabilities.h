// What ptc can compile, as tables for people.
#ifndef PTC_COMPILER_CAPABILITIES_H
#define PTC_COMPILER_CAPABILITIES_H

#include "llvm/ADT/StringRef.h"
#include <vector>

namespace ptc {

struct SupportedOperator {
  llvm::StringRef domain; // empty: ai.onnx
  llvm::StringRef name;
  int64_t oldest; // version of the operator
};

/// By domain and name, each operator once.
std::vector<SupportedOperator> supportedOperators();

} // namespace ptc

#endif // PTC_COMPILER_CAPABILITIES_H
