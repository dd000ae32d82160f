#include "cli/help/VerbShape.h"
#include "cli/VerbTable.h"
#include "compiler/Capabilities.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace ptc {

/// The words between braces, which stand behind the value's name: "RULE:{contract,strict}".
static std::vector<std::string> wordsOf(StringRef valueName) {
  std::vector<std::string> words;
  size_t open = valueName.find(":{"), close = valueName.find('}');
  if (open == StringRef::npos || close == StringRef::npos || close < open)
    return words;
  for (StringRef word : split(valueName.slice(open + 2, close), ','))
    words.push_back(word.str());
  return words;
}

/// Words that the compiler's tables hold, for the flags of a compile that take them.
static std::vector<std::string> tableWords(StringRef flag) {
  std::vector<std::string> words;
  auto add = [&](StringRef word) {
    if (!is_contained(words, word))
      words.push_back(word.str());
  };
  for (const SupportedTarget &target : supportedTargets()) {
    if (flag == "--target")
      add(target.name);
    if (flag == "--emit")
      for (StringRef output : target.outputs)
        add(output);
    if (flag == target.levelFlag)
      for (const SupportedLevel &level : target.levels)
        add(level.name);
  }
  if (flag == "--emit")
    for (StringRef stage : printableStages())
      words.push_back("mlir:" + stage.str());
  if (flag == "--cpu" || flag == "--gpu")
    words.push_back("native");
  return words;
}

/// ".onnx" and ".so" of "MODEL.onnx|.so".
static std::vector<std::string> suffixesOf(StringRef valueName) {
  std::vector<std::string> suffixes;
  for (StringRef part : split(valueName, '|'))
    if (size_t dot = part.find('.'); dot != StringRef::npos && dot + 1 < part.size() && isLower(part[dot + 1]))
      suffixes.push_back(part.substr(dot).take_while([](char c) { return c == '.' || isAlnum(c); }).str());
  return suffixes;
}

static ValueShape valuesOf(const CLI::Option &option, StringRef name, StringRef valueName) {
  ValueShape values;
  values.isList = option.get_delimiter() == ',';
  values.words = wordsOf(valueName);
  if (values.words.empty())
    values.words = tableWords(name);
  if (!values.words.empty()) {
    values.kind = ValueShape::Kind::Words;
    return values;
  }
  values.suffixes = suffixesOf(valueName);
  if (!values.suffixes.empty() || valueName == "FILE" || valueName == "WHAT")
    values.kind = ValueShape::Kind::Files;
  else if (valueName == "DIR")
    values.kind = ValueShape::Kind::Folders;
  return values;
}

static FlagShape describe(const CLI::Option &option) {
  FlagShape flag{
      .names = {}, .valueName = option.get_type_name(), .help = option.get_description(), .group = option.get_group()};
  for (const std::string &name : option.get_snames())
    flag.names.push_back("-" + name);
  for (const std::string &name : option.get_lnames())
    flag.names.push_back("--" + name);
  flag.takesValue = option.get_items_expected_max() > 0;
  flag.isRequired = option.get_required();
  flag.values = valuesOf(option, flag.names.empty() ? "" : flag.names.back(), flag.valueName);
  flag.valueName = StringRef(flag.valueName).split(":{").first.str();
  return flag;
}

static VerbShape describe(const CLI::App &app, std::string name) {
  VerbShape verb{.name = std::move(name), .summary = app.get_description()};
  for (const CLI::Option *option : app.get_options())
    if (!option->get_group().empty())
      verb.flags.push_back(describe(*option));
  for (const CLI::App *part : app.get_subcommands([](const CLI::App *) { return true; }))
    verb.parts.push_back(describe(*part, verb.name + " " + part->get_name()));
  return verb;
}

std::vector<const FlagShape *> VerbShape::select(bool named) const {
  std::vector<const FlagShape *> selected;
  for (const FlagShape &flag : flags)
    if (flag.names.empty() != named)
      selected.push_back(&flag);
  return selected;
}

std::vector<VerbShape> describeVerbs() {
  std::vector<VerbShape> verbs;
  for (const VerbRow &row : getVerbs()) {
    CommonOptions common;
    DeclaredVerb declared = declareVerb(row, common);
    verbs.push_back(describe(*declared.app, row.name.str()));
    verbs.back().examples = row.examples.str();
  }
  return verbs;
}

} // namespace ptc
