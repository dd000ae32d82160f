// A verb of the command line: a function that declares its flags and returns what to do once they are parsed.
#ifndef PTC_CLI_VERB_H
#define PTC_CLI_VERB_H

#include "cli/Session.h"
#include "compiler/Options.h"
#include <CLI/CLI.hpp>
#include <functional>

namespace ptc {

struct InstanceOptions;

/// Runs a verb whose flags have been parsed. Failures are diagnostics in the session, or an error.
using Action = std::function<llvm::Error(Session &)>;

#define VERB(Name, name, summary, examples) Action declare##Name(CLI::App &app);
#include "cli/Verbs.def"
#undef VERB

/// The flags of all rows of Options.def whose group is in `groups` (empty: all rows).
void addCompileOptions(CLI::App &app, CompileOptions &options, std::vector<llvm::StringRef> groups = {});
/// The flags of Options.def that stand on the command line, by their long names; --jobs is always allowed.
std::vector<std::string> compileFlagsGiven(const CLI::App &app);
/// Such a flag, where the subject is a library.
llvm::Error compiledAlready(llvm::StringRef flag, llvm::StringRef library);
/// The positional MODEL.onnx.
CLI::Option *addModelOption(CLI::App &app, CompileOptions &options);
/// --device, of verbs that run a library.
void addDeviceOption(CLI::App &app, InstanceOptions &options);
/// --device, --cpu, --weights and --custom-op-dir, of verbs that run a given library.
void addInstanceOptions(CLI::App &app, InstanceOptions &options);

} // namespace ptc

#endif // PTC_CLI_VERB_H
