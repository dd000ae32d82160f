// Rows of Options.def as flags.
#include "cli/Verb.h"
#include "llvm/ADT/STLExtras.h"

namespace ptc {

static CLI::Option *addRow(CLI::App &app, const std::string &flags, const std::string &help, option::Flag &field) {
  return app.add_flag(flags, field, help);
}
static CLI::Option *addRow(CLI::App &app, const std::string &flags, const std::string &help, option::Text &field) {
  return app.add_option(flags, field, help);
}
static CLI::Option *addRow(CLI::App &app, const std::string &flags, const std::string &help, option::Number &field) {
  return app.add_option(flags, field, help);
}
static CLI::Option *addRow(CLI::App &app, const std::string &flags, const std::string &help, option::List &field) {
  return app.add_option(flags, field, help)->delimiter(',')->allow_extra_args(false);
}
static CLI::Option *addRow(CLI::App &app, const std::string &flags, const std::string &help, option::Repeated &field) {
  std::vector<std::string> &values = field;
  return app.add_option(flags, values, help)->allow_extra_args(false);
}

/// "RULE:{contract,strict}" for an option that takes certain words alone, else the name of its value.
static std::string valueName(llvm::StringRef flags, llvm::StringRef value) {
#define OPTION_VALUES(name, words)                                                                                     \
  if (flags.ends_with(name))                                                                                           \
    return (value + ":{" words "}").str();
#include "compiler/OptionValues.def"
#undef OPTION_VALUES
  return value.str();
}

void addCompileOptions(CLI::App &app, CompileOptions &options, std::vector<llvm::StringRef> groups) {
  visitOptions(options, [&](option::Role, llvm::StringRef group, auto &field, llvm::StringRef flags,
                            llvm::StringRef value, llvm::StringRef help) {
    if (!groups.empty() && !llvm::is_contained(groups, group))
      return;
    CLI::Option *option = addRow(app, flags.str(), help.str(), field);
    option->group(group.str());
    if (!value.empty())
      option->type_name(valueName(flags, value));
  });
}

std::vector<std::string> compileFlagsGiven(const CLI::App &app) {
  const CompileOptions none;
  std::vector<std::string> given;
  visitOptions(none, [&](option::Role, llvm::StringRef group, auto &, llvm::StringRef flags, auto &&...) {
    std::string name = flags.substr(flags.find("--")).str();
    const CLI::Option *option = app.get_option_no_throw(name); // in another group: the verb's own flag of this name
    if (option && option->count() && group == option->get_group() && name != "--jobs")
      given.push_back(name);
  });
  return given;
}

llvm::Error compiledAlready(llvm::StringRef flag, llvm::StringRef library) {
  return exitError(exitUsage, flag + " is about compiling; '" + library + "' is compiled already",
                   "give the ONNX model instead of the library, or leave " + flag + " out");
}

CLI::Option *addModelOption(CLI::App &app, CompileOptions &options) {
  return app.add_option("model", options.model, "the ONNX file")->required()->type_name("MODEL.onnx");
}

} // namespace ptc
