// bash: one function that knows all verbs, and needs bash alone, not the package bash-completion.
//
// Readline cuts the line into words at COMP_WORDBREAKS, which '=' and ':' belong to, so `--emit=mlir:lo` arrives as
// five words. The function takes the text up to the next blank instead, completes that, and gives back of each
// candidate what stands behind the last such character. In a list the last element is completed and the others stay
// before it.
#include "cli/help/Completion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace ptc {

static constexpr StringLiteral opening = R"sh(# bash completion for ptc, printed by `ptc completion bash`
_ptc_words() { # CANDIDATE...: those that begin with what stands there, a list's earlier elements before them
  local earlier=
  [[ $list && $value == *,* ]] && earlier=${value%,*},
  local word
  for word in "$@"; do
    [[ $earlier$word == "$value"* ]] && COMPREPLY+=("$head$earlier$word")
  done
}
_ptc_files() { # SUFFIX...: folders, and files that end so; any file without one
  compopt -o filenames 2> /dev/null
  local path suffix
  while IFS= read -r path; do
    if [[ -d $path || $# == 0 ]]; then
      COMPREPLY+=("$head$path")
    else
      for suffix in "$@"; do
        [[ $path == *"$suffix" ]] && COMPREPLY+=("$head$path")
      done
    fi
  done < <(compgen -f -- "$value")
}
_ptc_folders() {
  compopt -o filenames 2> /dev/null
  local path
  while IFS= read -r path; do COMPREPLY+=("$head$path"); done < <(compgen -d -- "$value")
}
_ptc() {
  local line=${COMP_LINE:0:COMP_POINT} token before verb= flag= head= value list= word
  token=${line##*[[:space:]]}
  value=$token
  COMPREPLY=()
  local -a words
  read -ra words <<< "${line%"$token"}"
  before=${words[-1]}
  for word in "${words[@]:1}"; do
    [[ $word == -* ]] || { verb+=${verb:+ }$word; _ptc_has_parts "$verb" || break; }
  done
  if [[ $token == --*=* ]]; then
    flag=${token%%=*} value=${token#*=} head=$flag=
  elif [[ $before == -* && $before != *=* ]]; then
    flag=$before
  fi
)sh";

static constexpr StringLiteral closing = R"sh(
  local kept= mark
  for mark in = :; do
    [[ $COMP_WORDBREAKS == *$mark* && $token == *$mark* ]] || continue
    [[ ${token%"${token##*"$mark"}"} == "$kept"* ]] && kept=${token%"${token##*"$mark"}"}
  done
  COMPREPLY=("${COMPREPLY[@]#"$kept"}")
  [[ ${#COMPREPLY[@]} == 1 && (${COMPREPLY[0]} == *= || $list) ]] && compopt -o nospace 2> /dev/null
  return 0
}
complete -F _ptc ptc
)sh";

static std::string quoted(StringRef word) {
  std::string text = "'";
  for (char c : word)
    text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

static std::string call(const ValueShape &values) {
  switch (values.kind) {
  case ValueShape::Kind::Free:
    return ":";
  case ValueShape::Kind::Words:
    return (values.isList ? "list=1; _ptc_words " : "_ptc_words ") + join(map_range(values.words, quoted), " ");
  case ValueShape::Kind::Files:
    return "_ptc_files " + join(map_range(values.suffixes, quoted), " ");
  case ValueShape::Kind::Folders:
    return "_ptc_folders";
  }
  llvm_unreachable("all kinds of values have a call");
}

/// The values of the flag before the cursor, or the flags, or an argument.
static void printVerb(raw_ostream &os, const VerbShape &verb) {
  os << "  " << quoted(verb.name) << ")\n    case $flag in\n";
  std::vector<std::string> flags;
  for (const FlagShape *flag : verb.select(/*named=*/true)) {
    if (flag->takesValue)
      os << "    " << join(flag->names, "|") << ") " << call(flag->values) << ";;\n";
    for (const std::string &name : flag->names)
      flags.push_back(quoted(name + (flag->takesValue && StringRef(name).starts_with("--") ? "=" : "")));
  }
  os << "    *) head= value=$token\n      if [[ $token == -* ]]; then _ptc_words " << join(flags, " ") << "; else\n";
  std::vector<const FlagShape *> arguments = verb.select(/*named=*/false);
  std::vector<std::string> parts;
  for (const VerbShape &part : verb.parts)
    parts.push_back(quoted(StringRef(part.name).rsplit(' ').second));
  if (!parts.empty())
    os << "        _ptc_words " << join(parts, " ") << "\n";
  else
    os << "        " << (arguments.empty() ? ":" : call(arguments.front()->values)) << "\n";
  os << "      fi;;\n    esac;;\n";
  for (const VerbShape &part : verb.parts)
    printVerb(os, part);
}

void printBashCompletion(raw_ostream &os, ArrayRef<VerbShape> verbs) {
  std::vector<std::string> names, withParts{"''"};
  for (const VerbShape &verb : verbs) {
    names.push_back(quoted(verb.name));
    if (!verb.parts.empty())
      withParts.push_back(quoted(verb.name));
  }
  os << opening << "  case $verb in\n";
  for (const VerbShape &verb : verbs)
    printVerb(os, verb);
  os << "  '') _ptc_words " << join(names, " ") << " --help --version --mk --cmake --include;;\n  esac" << closing;
  os << "_ptc_has_parts() { case $1 in " << join(withParts, "|") << ") return 0;; esac; return 1; }\n";
}

} // namespace ptc
