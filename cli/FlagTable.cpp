#include "cli/FlagTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace ptc {

/// A `|` ends a cell even inside of backticks.
static std::string escapeCell(StringRef text) {
  std::string result;
  for (char c : text)
    result += c == '|' ? "\\|" : std::string(1, c);
  return result;
}

/// "`-o`, `--output FILE`"; for what has no name its value alone.
static std::string spellingOf(const CLI::Option &option) {
  std::string value = escapeCell(option.get_type_name());
  if (option.get_positional() && option.get_lnames().empty())
    return "`" + value + "`";
  std::vector<std::string> names;
  for (const std::string &name : option.get_snames())
    names.push_back("`-" + name + (option.get_lnames().empty() && !value.empty() ? " " + value : "") + "`");
  for (const std::string &name : option.get_lnames())
    names.push_back("`--" + name + (value.empty() ? "" : " " + value) + "`");
  return join(names, ", ");
}

static void printGroups(raw_ostream &os, const CLI::App &app) {
  std::vector<std::string> groups;
  for (const CLI::Option *option : app.get_options())
    if (const std::string &group = option->get_group(); !group.empty() && !is_contained(groups, group))
      groups.push_back(group);
  bool isFirst = true;
  for (const std::string &group : groups) {
    bool isOwn = StringRef(group).equals_insensitive("options");
    os << (isFirst ? "" : "\n") << "| " << (isOwn ? "flag" : group) << " | |\n|---|---|\n";
    isFirst = false;
    auto row = [&](const CLI::Option &option) {
      os << "| " << spellingOf(option) << " | " << escapeCell(option.get_description()) << " |\n";
    };
    for (bool positional : {true, false})
      for (const CLI::Option *option : app.get_options())
        if (option->get_group() == group && option != app.get_help_ptr() &&
            (option->get_positional() && option->get_lnames().empty()) == positional)
          row(*option);
  }
}

void printFlagTable(raw_ostream &os, const CLI::App &app) {
  for (const CLI::App *verb : app.get_subcommands([](const CLI::App *) { return true; })) {
    os << "**" << app.get_name() << ' ' << verb->get_name() << "**: " << verb->get_description() << "\n\n";
    printGroups(os, *verb);
    os << '\n';
  }
  printGroups(os, app);
}

} // namespace ptc
