#include "cli/RunThreads.h"
#include "compiler/DiagnosticRendering.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace ptc {

void describeRunThreads(CLI::App &app) {
  app.get_option("--threads")
      ->description("N: threads of the run (default: all); pool, openmp or none: what a model is compiled with; both "
                    "with a comma: openmp,2")
      ->type_name("N|KIND");
}

Error takeRunThreads(CompileOptions &compile, unsigned &threads) {
  SmallVector<StringRef> kinds;
  for (StringRef part : split(compile.threads, ','))
    if (part.getAsInteger(10, threads))
      kinds.push_back(part);
  std::string kind = kinds.empty() ? CompileOptions().threads : join(kinds, ",");
  compile.threads = kind;
  if (kind == "none" && threads > 1)
    return exitError(exitUsage,
                     "--threads=none," + Twine(threads) +
                         ": a library of --threads=none runs on the caller's thread alone",
                     "leave one of the two out");
  return Error::success();
}

} // namespace ptc
