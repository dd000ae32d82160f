// ptc compile: an ONNX model becomes a library.
#include "cli/CompileSession.h"
#include "cli/Verb.h"
#include "cli/tune/KernelTuner.h"
#include "compiler/OutputPlan.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace ptc {

/// --mode=max-autotune: what is fastest here is found out first, unless the tuning file has it already.
static llvm::Error tuneBefore(Session &session, CompileOptions &options) {
  if (!options.tuneFile.empty() && llvm::sys::fs::exists(options.tuneFile))
    return llvm::Error::success();
  if (llvm::Error error = requireOneTarget(options, "--mode=max-autotune without a --tune-file"))
    return error;
  const codegen::Target *target = codegen::findTarget(session.parts.targets, options.target);
  if (!target)
    return llvm::Error::success(); // is the compile's to tell
  llvm::Expected<OutputPlan> plan = planOutputs(options, target->getInfo().outputs);
  if (!plan)
    return plan.takeError();
  TunerOptions tuner;
  tuner.compile = options;
  if (options.tuneFile.empty())
    options.tuneFile = options.output == "-" ? (llvm::sys::path::stem(options.model) + ".tune.json").str()
                                             : plan->beside(".tune.json");
  llvm::Expected<TunerResult> result = tuneKernels(session, "compile", tuner, options.tuneFile);
  if (!result)
    return result.takeError();
  session.say(options.tuneFile + ": " + describe(*result));
  return llvm::Error::success();
}

Action declareCompile(CLI::App &app) {
  auto options = std::make_shared<CompileOptions>();
  addModelOption(app, *options);
  addCompileOptions(app, *options);
  return [options](Session &session) {
    session.diagnostics.showRemarks(options->remarks);
    if (options->mode == "max-autotune")
      if (llvm::Error error = tuneBefore(session, *options))
        return error;
    CompileHooks hooks = hooksOf(session, "compile");
    return compile(*options, hooks);
  };
}

} // namespace ptc
