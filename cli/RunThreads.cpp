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
  std::optional<unsigned> number;
  for (StringRef part : split(compile.threads, ',')) {
    unsigned count;
    bool isNumber = !part.getAsInteger(10, count);
    if (!isNumber && !part.empty() && isDigit(part.back()))
      return exitError(exitUsage, "--threads=" + compile.threads + " is no number of threads",
                       "--threads=N, pool, openmp or none");
    if (isNumber && number)
      return exitError(exitUsage, "--threads=" + compile.threads + " has two numbers", "a run has one");
    if (isNumber)
      number = count;
    else
      kinds.push_back(part);
  }
  threads = number.value_or(threads);
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
