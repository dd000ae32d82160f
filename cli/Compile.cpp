// ptc compile: an ONNX model becomes a library.
#include "cli/CompileSession.h"
#include "cli/Verb.h"

namespace ptc {

Action declareCompile(CLI::App &app) {
  auto options = std::make_shared<CompileOptions>();
  addModelOption(app, *options);
  addCompileOptions(app, *options);
  return [options](Session &session) {
    session.diagnostics.showRemarks(options->remarks);
    CompileHooks hooks = hooksOf(session, "compile");
    return compile(*options, hooks);
  };
}

} // namespace ptc
