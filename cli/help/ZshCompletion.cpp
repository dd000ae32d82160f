// zsh: _arguments does the work; each flag is one of its specifications, `(-o --output)-o+[help]:FILE:_files`.
#include "cli/help/Completion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace ptc {

/// Inside single quotes; brackets and colons would end a part of a specification.
static std::string escape(StringRef text, StringRef special) {
  std::string result;
  for (char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (special.contains(c))
      result += '\\';
    result += c;
  }
  return result;
}

static std::string action(const ValueShape &values) {
  switch (values.kind) {
  case ValueShape::Kind::Free:
    return " ";
  case ValueShape::Kind::Words: {
    auto words = map_range(values.words, [](StringRef word) { return escape(word, ": ()\\"); });
    return values.isList ? "_sequence compadd - " + join(words, " ") : "(" + join(words, " ") + ")";
  }
  case ValueShape::Kind::Files: {
    if (values.suffixes.empty())
      return "_files";
    auto suffixes = map_range(values.suffixes, [](StringRef suffix) { return suffix.drop_front().str(); });
    return "_files -g \"*.(" + join(suffixes, "|") + ")\"";
  }
  case ValueShape::Kind::Folders:
    return "_files -/";
  }
  llvm_unreachable("all kinds of values have an action");
}

static void printSpecifications(raw_ostream &os, const FlagShape &flag) {
  std::string value =
      ":" + escape(flag.valueName.empty() ? "value" : flag.valueName, ":\\") + ":" + action(flag.values);
  if (flag.names.empty()) {
    os << " \\\n      '*" << value << "'";
    return;
  }
  for (const std::string &name : flag.names) {
    os << " \\\n      '*" << name
       << (!flag.takesValue                    ? ""
           : StringRef(name).starts_with("--") ? "="
                                               : "+")
       << '[' << escape(flag.help, "[]:\\") << ']' << (flag.takesValue ? value : "") << "'";
  }
}

static void printVerb(raw_ostream &os, const VerbShape &verb) {
  os << "    '" << verb.name << "') _arguments -s";
  for (const FlagShape &flag : verb.flags)
    printSpecifications(os, flag);
  if (!verb.parts.empty()) {
    auto names = map_range(verb.parts, [](const VerbShape &part) { return StringRef(part.name).rsplit(' ').second; });
    os << " \\\n      ':part:(" << join(names, " ") << ")'";
  }
  os << ";;\n";
  for (const VerbShape &part : verb.parts)
    printVerb(os, part);
}

void printZshCompletion(raw_ostream &os, ArrayRef<VerbShape> verbs) {
  os << "#compdef ptc\n# zsh completion for ptc, printed by `ptc completion zsh`\n_ptc() {\n  local -a verbs=(";
  for (const VerbShape &verb : verbs)
    os << "\n    '" << verb.name << ':' << escape(verb.summary, ":\\") << "'";
  os << ")\n  if (( CURRENT == 2 )); then\n    _describe verb verbs\n    return\n  fi\n  local verb=$words[2]\n";
  for (const VerbShape &verb : verbs) {
    if (verb.parts.empty())
      continue;
    auto names = map_range(verb.parts, [](const VerbShape &part) { return StringRef(part.name).rsplit(' ').second; });
    os << "  if [[ $verb == " << verb.name << " && $CURRENT -gt 3 && $words[3] == (" << join(names, "|")
       << ") ]]; then\n    verb+=\" $words[3]\"; shift words; (( CURRENT-- ))\n  fi\n";
  }
  os << "  shift words; (( CURRENT-- ))\n  case $verb in\n";
  for (const VerbShape &verb : verbs)
    printVerb(os, verb);
  os << "  esac\n}\n# Autoloaded, this file is the function's body; read by source, it defines it.\n"
     << "if [[ $funcstack[1] == _ptc ]]; then _ptc \"$@\"; else compdef _ptc ptc; fi\n";
}

} // namespace ptc
