#include "cli/VerbTable.h"

namespace ptc {

static constexpr VerbRow verbs[] = {
#define VERB(Name, name, summary, examples) {name, summary, examples, declare##Name},
#include "cli/Verbs.def"
#undef VERB
};

llvm::ArrayRef<VerbRow> getVerbs() { return verbs; }

static void addCommonOptions(CLI::App &app, CommonOptions &common) {
  app.add_flag("-v,--verbose", common.verbose, "say what is being done")->group("Messages");
  app.add_flag("-q,--quiet", common.quiet, "print errors alone")->group("Messages");
  app.add_option("--color", common.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN")
      ->group("Messages");
  app.add_option("--diag", common.diagnostics, "form of errors and warnings: text, json or sarif")
      ->check(CLI::IsMember({"text", "json", "sarif"}))
      ->type_name("FORM")
      ->group("Messages");
}

DeclaredVerb declareVerb(const VerbRow &verb, CommonOptions &common) {
  auto app = std::make_unique<CLI::App>(verb.summary.str(), "ptc " + verb.name.str());
  app->get_formatter()->column_width(32);
  app->footer("\nExamples:\n" + verb.examples.str());
  Action action = verb.declare(*app);
  addCommonOptions(*app, common);
  return {std::move(app), std::move(action)};
}

} // namespace ptc
