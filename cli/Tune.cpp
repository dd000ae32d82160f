// ptc tune: sizes of tiles and blocks that are faster on this machine than those that ptc estimates to be best.
#include "cli/InputSpecs.h"
#include "cli/RunThreads.h"
#include "cli/Verb.h"
#include "cli/tune/KernelTuner.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace ptc {

namespace {
struct TuneOptions {
  TunerOptions tuner;
  std::string output, budget = "60s";
};
} // namespace

/// "90", "90s", "10m", "1h"
static std::optional<double> parseSeconds(StringRef text) {
  double factor = text.consume_back("h") ? 3600 : text.consume_back("m") ? 60 : (text.consume_back("s"), 1);
  double number = 0;
  if (text.getAsDouble(number) || !(number >= 0 && number * factor <= 24 * 3600))
    return std::nullopt;
  return number * factor;
}

static void printKernels(raw_ostream &os, const Tuning &tuning) {
  std::vector<TunedKernel> kernels;
  size_t width = 6;
  for (const TunedKernel &kernel : tuning.kernels)
    if (!kernel.numbers.empty()) {
      kernels.push_back(kernel);
      width = std::max(width, kernel.kernel.size());
    }
  if (kernels.empty())
    return;
  llvm::stable_sort(kernels, [](const TunedKernel &a, const TunedKernel &b) {
    return a.plannedSeconds - a.seconds > b.plannedSeconds - b.seconds;
  });
  os << left_justify("kernel", width) << "  planned us      tuned us  with\n";
  for (const TunedKernel &kernel : kernels) {
    os << left_justify(kernel.kernel, width)
       << format("  %10.1f    %10.1f ", kernel.plannedSeconds * 1e6, kernel.seconds * 1e6);
    os << formatNumbers(kernel.numbers) << '\n';
  }
}

static Error tune(Session &session, TuneOptions options) {
  if (Error error = takeRunThreads(options.tuner.compile, options.tuner.threads))
    return error;
  std::optional<double> seconds = parseSeconds(options.budget);
  if (!seconds || *seconds <= 0)
    return exitError(exitUsage, "--budget=" + options.budget + " is no time that tuning could take",
                     "a number of seconds, or as 90s, 10m, 1h");
  options.tuner.seconds = *seconds;
  if (options.output.empty())
    options.output = stemOf(options.tuner.compile.model) + ".tune.json";
  Expected<TunerResult> result = tuneKernels(session, "tune", options.tuner, options.output);
  if (!result)
    return result.takeError();
  if (options.output == "-" || session.common.quiet)
    return Error::success();
  printKernels(session.out, result->tuning);
  session.out << options.output << ": " << describe(*result) << '\n';
  return Error::success();
}

Action declareTune(CLI::App &app) {
  auto options = std::make_shared<TuneOptions>();
  CompileOptions &compile = options->tuner.compile;
  addModelOption(app, compile);
  app.add_option("-o,--output", options->output,
                 "the tuning file (default: MODEL.tune.json; '-': standard output, which has nothing else then)")
      ->type_name("FILE");
  app.add_option("--budget", options->budget, "how long it may take: 90, 90s, 10m (default: 60s)")->type_name("TIME");
  app.add_option("-i,--input", options->tuner.inputs, inputSpecHelp.str() + " (default: random:0)")
      ->allow_extra_args(false)
      ->type_name("SPEC");
  addCompileOptions(app, compile, {"Target", "Optimise", "Shapes", "Operators", "Running"});
  describeRunThreads(app);
  for (const char *flag : {"--mode", "--tune-file"}) // it makes what these are about
    app.remove_option(app.get_option(flag));
  return [options](Session &session) { return tune(session, *options); };
}

} // namespace ptc
