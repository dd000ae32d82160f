// ptc check: can this model be compiled? All that is in the way, at once; nothing is generated.
#include "cli/CompileSession.h"
#include "cli/Verb.h"

namespace ptc {

static llvm::Error check(Session &session, const CompileOptions &options) {
  CompileHooks hooks = hooksOf(session, "check");
  Compilation compilation(options, hooks);
  if (llvm::Error error = compilation.runTo(Phase::PlanMemory))
    return error;
  if (llvm::Error error = compilation.checkKernels())
    return error;
  session.say(options.model + ": can be compiled");
  return llvm::Error::success();
}

Action declareCheck(CLI::App &app) {
  auto options = std::make_shared<CompileOptions>();
  addModelOption(app, *options);
  addCompileOptions(app, *options, {"Target", "Optimise", "Shapes", "Running"});
  return [options](Session &session) { return check(session, *options); };
}

} // namespace ptc
