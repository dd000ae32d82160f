// What a user asks of a compile, as one plain value that is passed down. The rows are in Options.def.
#ifndef PTC_COMPILER_OPTIONS_H
#define PTC_COMPILER_OPTIONS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace ptc {

namespace option {
using Flag = bool;
using Text = std::string;
using Number = unsigned;
using List = std::vector<std::string>;
/// A list whose values come one a flag, commas included.
struct Repeated : std::vector<std::string> {
  using std::vector<std::string>::vector;
};
enum class Role : uint8_t { Code, Files, Look };
} // namespace option

struct CompileOptions {
  using List = option::List;
  std::string model; // the ONNX file
#define OPTION(role, group, Type, field, init, flags, value, help) option::Type field = init;
#include "compiler/Options.def"
#undef OPTION
};

/// Calls visit(role, group, field, flags, value, help) for each row, the field by reference.
template <typename Options, typename Visitor> void visitOptions(Options &options, Visitor &&visit) {
#define OPTION(role, group, Type, field, init, flags, value, help)                                                     \
  visit(option::Role::role, llvm::StringRef(group), options.field, llvm::StringRef(flags), llvm::StringRef(value),     \
        llvm::StringRef(help));
#include "compiler/Options.def"
#undef OPTION
}

/// The options that influence the artefact and differ from their defaults, as flags in the table's order.
std::vector<std::string> canonicalFlags(const CompileOptions &options);

/// "resnet50" for "out/resnet50.so" or "models/resnet50.onnx".
std::string stemOf(llvm::StringRef path);

} // namespace ptc

#endif // PTC_COMPILER_OPTIONS_H
