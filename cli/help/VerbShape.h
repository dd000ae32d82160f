// What verbs and flags look like from outside: what completion scripts and manual pages are written from. Everything
// comes from the parsers that read the command line, and values from the compiler's own tables.
#ifndef PTC_CLI_HELP_VERBSHAPE_H
#define PTC_CLI_HELP_VERBSHAPE_H

#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace ptc {

/// What can stand as a value.
struct ValueShape {
  enum class Kind : uint8_t { Free, Words, Files, Folders } kind = Kind::Free;
  std::vector<std::string> words;    // of Words
  std::vector<std::string> suffixes; // of Files: ".onnx"; none: any
  bool isList = false;               // several, with commas between them
};

struct FlagShape {
  std::vector<std::string> names; // "-o", "--output"; none: an argument without a name
  std::string valueName, help, group;
  bool takesValue = false, isRequired = false;
  ValueShape values;
};

struct VerbShape {
  std::string name, summary, examples; // "compile"; "gate record" for a part of a verb
  std::vector<FlagShape> flags;        // in the order of --help
  std::vector<VerbShape> parts;

  /// Arguments without a name, or the flags.
  std::vector<const FlagShape *> select(bool named) const;
};

/// Every verb, in the order of the table.
std::vector<VerbShape> describeVerbs();

} // namespace ptc

#endif // PTC_CLI_HELP_VERBSHAPE_H
