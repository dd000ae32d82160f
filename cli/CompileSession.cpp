#include "cli/CompileSession.h"
#include "llvm/ADT/StringExtras.h"

namespace ptc {

CompileHooks hooksOf(Session &session, llvm::StringRef verb) {
  return {.diagnostics = session.diagnostics,
          .progress = [&session](llvm::StringRef what, size_t done,
                                 size_t total) { session.progress.show(what, done, total); },
          .log = [&session](const llvm::Twine &line) { session.log(line); },
          .version = PTC_VERSION,
          .command = ("ptc " + verb + " " + llvm::join(session.arguments, " ")).str(),
          .argumentFiles = session.argumentFiles,
          .targets = session.parts.targets,
          .changePasses = session.parts.changePasses};
}

} // namespace ptc
