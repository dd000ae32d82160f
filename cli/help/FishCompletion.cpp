// fish: one `complete` a flag, with the condition that its verb has been typed.
#include "cli/help/Completion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace ptc {

static std::string quoted(StringRef text) {
  std::string result = "'";
  for (char c : text)
    result += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return result + "'";
}

static std::string candidates(const ValueShape &values) {
  switch (values.kind) {
  case ValueShape::Kind::Free:
    return " -x";
  case ValueShape::Kind::Words:
    if (values.isList)
      return " -x -a " + quoted("(__fish_append , " + join(values.words, " ") + ")");
    return " -x -a " + quoted(join(values.words, " "));
  case ValueShape::Kind::Files: {
    if (values.suffixes.empty())
      return " -r -F";
    auto calls =
        map_range(values.suffixes, [](StringRef suffix) { return "(__fish_complete_suffix " + suffix.str() + ")"; });
    return " -k -x -a " + quoted(join(calls, " "));
  }
  case ValueShape::Kind::Folders:
    return " -x -a " + quoted("(__fish_complete_directories)");
  }
  llvm_unreachable("all kinds of values have candidates");
}

static std::string condition(const VerbShape &verb) {
  std::vector<std::string> seen;
  for (StringRef word : split(verb.name, ' '))
    seen.push_back("__fish_seen_subcommand_from " + word.str());
  for (const VerbShape &part : verb.parts)
    seen.push_back("not __fish_seen_subcommand_from " + StringRef(part.name).rsplit(' ').second.str());
  return quoted(join(seen, "; and "));
}

static void printVerb(raw_ostream &os, const VerbShape &verb) {
  std::string head = "complete -c ptc -n " + condition(verb);
  for (const FlagShape &flag : verb.flags) {
    os << head;
    for (StringRef name : flag.names)
      os << (name.starts_with("--") ? " -l " + name.drop_front(2) : " -s " + name.drop_front(1));
    if (flag.names.empty() || flag.takesValue)
      os << candidates(flag.values);
    if (!flag.names.empty())
      os << " -d " << quoted(flag.help);
    os << '\n';
  }
  for (const VerbShape &part : verb.parts)
    os << head << " -a " << StringRef(part.name).rsplit(' ').second << " -d " << quoted(part.summary) << '\n';
  for (const VerbShape &part : verb.parts)
    printVerb(os, part);
}

void printFishCompletion(raw_ostream &os, ArrayRef<VerbShape> verbs) {
  os << "# fish completion for ptc, printed by `ptc completion fish`\ncomplete -c ptc -f\n";
  for (const VerbShape &verb : verbs)
    os << "complete -c ptc -n __fish_use_subcommand -a " << verb.name << " -d " << quoted(verb.summary) << '\n';
  for (const VerbShape &verb : verbs)
    printVerb(os, verb);
}

} // namespace ptc
