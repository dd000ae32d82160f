#include "compiler/Options.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include <type_traits>

namespace ptc {

/// "--cpu" of "-c,--cpu".
static std::string longFlag(llvm::StringRef flags) {
  llvm::StringRef last = flags.rsplit(',').second;
  return (last.empty() ? flags : last).str();
}

static void append(std::vector<std::string> &flags, const std::string &flag, const option::Flag &value) {
  if (value)
    flags.push_back(flag);
}
static void append(std::vector<std::string> &flags, const std::string &flag, const option::Text &value) {
  flags.push_back(flag + "=" + value);
}
static void append(std::vector<std::string> &flags, const std::string &flag, const option::Number &value) {
  flags.push_back(flag + "=" + std::to_string(value));
}
static void append(std::vector<std::string> &flags, const std::string &flag, const option::List &value) {
  flags.push_back(flag + "=" + llvm::join(value, ","));
}
static void append(std::vector<std::string> &flags, const std::string &flag, const option::Repeated &values) {
  for (const std::string &value : values)
    flags.push_back(flag + "=" + value);
}

/// One text per option, to compare with the defaults'.
static std::vector<std::vector<std::string>> flagsOf(const CompileOptions &options) {
  std::vector<std::vector<std::string>> result;
  visitOptions(options, [&](option::Role role, auto, const auto &field, llvm::StringRef flags, auto, auto) {
    result.emplace_back();
    if (role == option::Role::Code)
      append(result.back(), longFlag(flags), field);
  });
  return result;
}

std::vector<std::string> canonicalFlags(const CompileOptions &options) {
  auto given = flagsOf(options), defaults = flagsOf(CompileOptions());
  std::vector<std::string> result;
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i] != defaults[i])
      result.insert(result.end(), given[i].begin(), given[i].end());
  return result;
}

std::string stemOf(llvm::StringRef path) { return llvm::sys::path::stem(path).str(); }

} // namespace ptc
