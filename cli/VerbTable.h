// The verbs of ptc as a table, and a verb with all of its flags declared.
#ifndef PTC_CLI_VERBTABLE_H
#define PTC_CLI_VERBTABLE_H

#include "cli/Verb.h"

namespace ptc {

struct VerbRow {
  llvm::StringLiteral name, summary, examples;
  Action (*declare)(CLI::App &);
};

/// In the order of Verbs.def.
llvm::ArrayRef<VerbRow> getVerbs();

struct DeclaredVerb {
  std::unique_ptr<CLI::App> app;
  Action action;
};

/// The verb with its own flags and those that all verbs have, which are written to `common`.
DeclaredVerb declareVerb(const VerbRow &verb, CommonOptions &common);

} // namespace ptc

#endif // PTC_CLI_VERBTABLE_H
