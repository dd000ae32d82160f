// ptc targets: what code can be made for, from the compiler's own table, and what of it this machine runs.
#include "cli/Verb.h"
#include "compiler/Capabilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace ptc {

static StringRef word(std::optional<bool> answer) { return !answer ? "-" : *answer ? "yes" : "no"; }

static void printTargets(raw_ostream &os, ArrayRef<SupportedTarget> targets) {
  os << left_justify("target", 8) << left_justify("level", 22) << left_justify("libraries", 11) << "runs here\n";
  for (const SupportedTarget &target : targets)
    for (const SupportedLevel &level : target.levels)
      os << left_justify(target.name, 8) << left_justify(level.name, 22) << left_justify(word(level.isLinked), 11)
         << word(level.runsHere) << '\n';
  for (const SupportedTarget &target : targets)
    os << "--target=" << target.name << ": " << target.levelFlag
       << " names levels, --emit=" << join(target.outputs, ", ") << ", mlir:STAGE\n";
}

static json::Value describe(const SupportedTarget &target) {
  json::Array levels;
  for (const SupportedLevel &level : target.levels)
    levels.push_back(json::Object{{"name", level.name},
                                  {"triple", level.triple},
                                  {"libraries", level.isLinked},
                                  {"runs_here", level.runsHere ? json::Value(*level.runsHere) : json::Value(nullptr)}});
  return json::Object{{"name", target.name},
                      {"level_flag", target.levelFlag},
                      {"levels", std::move(levels)},
                      {"outputs", json::Array(target.outputs)}};
}

Action declareTargets(CLI::App &app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "print JSON");
  return [json](Session &session) {
    std::vector<SupportedTarget> targets = supportedTargets();
    if (*json)
      session.out << formatv("{0:2}\n",
                             json::Value(json::Object{{"targets", json::Array(map_range(targets, describe))}}));
    else
      printTargets(session.out, targets);
    return Error::success();
  };
}

} // namespace ptc
