// ptc gate: a regression gate on generated kernels.
//
//   record MODEL.onnx -o x.json     compiles and writes down what came out
//   check  x.json ...               compiles again and compares; exit code 1 on any difference
//   update x.json ...               compiles again and writes the baselines anew
//   diff   a.json b.json            what lies between two, in Markdown
//
// A baseline holds the flags to compile with; flags given to check must say the same. Improvements fail a check too
// (--allow-improvements: they do not), because a gain that nobody records can be lost again unnoticed.
#include "cli/CompileSession.h"
#include "cli/TemporaryFolder.h"
#include "cli/Verb.h"
#include "cli/gate/LibraryTiers.h"
#include "cli/tensor/TensorFiles.h"
#include "compiler/artifact/Outputs.h"
#include "compiler/gate/FindModel.h"
#include "compiler/gate/Observe.h"
#include "compiler/gate/Report.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <chrono>
#include <ctime>

using namespace llvm;

namespace ptc {

namespace {
struct GateOptions {
  CompileOptions compile;
  std::vector<std::string> baselines;
  gate::ModelPlaces places;
  std::string output, format = "text";
  bool allowImprovements = false, once = false;
  LibraryTiers tiers;
};
} // namespace

static std::string today() {
  std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[sizeof("YYYY-MM-DD")];
  return std::strftime(text, sizeof text, "%Y-%m-%d", &parts) ? text : "";
}

//===----------------------------------------------------------------------===//
// One model
//===----------------------------------------------------------------------===//

/// The flags of a baseline as options. They are ptc's own words, but a person may have edited them.
static Expected<CompileOptions> parseFlags(ArrayRef<std::string> flags, StringRef path) {
  CompileOptions options;
  CLI::App app;
  addCompileOptions(app, options);
  std::vector<std::string> arguments(flags.rbegin(), flags.rend());
  std::string wrong;
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError &error) {
    wrong = error.what();
  }
  if (!wrong.empty())
    return exitError(exitUsage, "'" + path + "': its 'flags' are not flags of this ptc: " + wrong,
                     "record it anew: ptc gate record MODEL.onnx -o " + path);
  return options;
}

static bool hasCompileFlags(const CompileOptions &options) { return !canonicalFlags(options).empty(); }

/// The options to compile a baseline's model with. Flags of the command line must be those that were recorded.
static Expected<CompileOptions> optionsOf(const gate::Baseline &baseline, StringRef path, const GateOptions &asked,
                                          bool mayChange) {
  Expected<CompileOptions> options = parseFlags(baseline.flags, path);
  if (!options)
    return options;
  if (hasCompileFlags(asked.compile)) {
    if (!mayChange && canonicalFlags(asked.compile) != canonicalFlags(*options)) {
      std::string recorded = join(baseline.flags, " "), given = join(canonicalFlags(asked.compile), " ");
      return exitError(exitDifference,
                       "'" + path + "' is stale: it was recorded with " +
                           (recorded.empty() ? "no flags" : "the flags " + recorded) + ", and the check is with " +
                           given,
                       "if the flags are meant: ptc gate update " + path + " " + given +
                           "; without flags a check uses those of the baseline");
    }
    options = asked.compile;
  }
  options->jobs = asked.compile.jobs;
  return options;
}

/// `recorded` is null where a baseline is made.
static Expected<gate::Observed> observe(Session &session, const GateOptions &asked, CompileOptions options,
                                        const gate::Baseline *recorded, StringRef folder, StringRef prefix) {
  CompileHooks hooks = hooksOf(session, "gate");
  if (!prefix.empty())
    hooks.progress = [&session, prefix](StringRef what, size_t done, size_t total) {
      session.progress.show((prefix + ": " + what).str(), done, total);
    };
  gate::ObserveRequest request{.options = std::move(options),
                               .folder = folder.str(),
                               .wantsLibrary = asked.tiers.runsLibrary(recorded),
                               .twice = !asked.once};
  Expected<gate::Observed> observed = gate::observe(request, hooks);
  if (observed && recorded) { // what is not measured is taken to be as it was
    observed->baseline.inputs = recorded->inputs;
    observed->baseline.numerics = recorded->numerics;
  }
  if (observed && observed->library.empty() && !asked.tiers.against.empty())
    return exitError(exitUsage, "--against: the gate runs no library of the target '" + request.options.target + "'",
                     "leave --against out for this baseline");
  if (!observed || observed->library.empty())
    return observed;
  if (Error error = measureLibrary(session, asked.tiers, request.options, recorded, *observed))
    return std::move(error);
  return observed;
}

static Expected<std::string> readBaselineFile(StringRef path) {
  if (path.ends_with(".onnx"))
    return exitError(exitUsage, "'" + path + "' is a model, where a baseline is meant",
                     "ptc gate record " + path + " makes " + stemOf(path) + ".gate.json");
  Expected<std::string> text = readFile(path);
  if (text)
    return text;
  return exitError(exitFile, toString(text.takeError()), "ptc gate record MODEL.onnx -o " + path + " makes it");
}

static Expected<gate::Baseline> readBaseline(StringRef path) {
  Expected<std::string> text = readBaselineFile(path);
  if (!text)
    return text.takeError();
  return gate::parseBaseline(*text, path);
}

static Error writeAtOnce(StringRef path, StringRef text) {
  artifact::Outputs outputs;
  if (Error error = outputs.write(path, text))
    return error;
  return outputs.commit(path);
}

/// A recorded model, compiled again.
static Expected<gate::Observed> repeat(Session &session, const GateOptions &asked, const gate::Baseline &baseline,
                                       StringRef path, StringRef prefix, bool mayChange) {
  Expected<TemporaryFolder> scratch = TemporaryFolder::create("ptc-gate");
  if (!scratch)
    return scratch.takeError();
  Expected<std::string> model = gate::findModel(baseline, path, asked.places);
  if (!model)
    return model.takeError();
  if (!mayChange)
    if (Error error = gate::checkModel(baseline, path, *model))
      return std::move(error);
  Expected<CompileOptions> options = optionsOf(baseline, path, asked, mayChange);
  if (!options)
    return options.takeError();
  options->model = *model;
  return observe(session, asked, std::move(*options), &baseline, scratch->path(), prefix);
}

//===----------------------------------------------------------------------===//
// Check
//===----------------------------------------------------------------------===//

/// Takes the error apart, so that other baselines are still checked. Returns its exit code.
static int explain(Session &session, Error error, gate::CheckResult &result) {
  int code = exitFile;
  handleAllErrors(
      std::move(error),
      [&](const ExitError &exit) {
        std::tie(code, result.problem, result.help) = std::tie(exit.code, exit.message, exit.help);
      },
      [&](const ReportedError &) {
        code = session.diagnostics.exitCode();
        result.problem = "its model does not compile";
        result.help = "the diagnostics above say why; ptc check MODEL.onnx lists all";
      },
      [&](const ErrorInfoBase &other) { result.problem = other.message(); });
  return code;
}

static int checkOne(Session &session, const GateOptions &options, const std::string &path, StringRef prefix,
                    gate::CheckResult &result) {
  auto start = std::chrono::steady_clock::now();
  result.baseline = path;
  auto timed = make_scope_exit(
      [&] { result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); });
  Expected<std::string> text = readBaselineFile(path);
  if (!text)
    return explain(session, text.takeError(), result);
  SmallVector<StringRef> lines;
  StringRef(*text).split(lines, '\n');
  for (StringRef line : lines)
    result.lines.push_back(line.str());
  Expected<gate::Baseline> baseline = gate::parseBaseline(*text, path);
  if (!baseline)
    return explain(session, baseline.takeError(), result);
  result.model = baseline->model;
  Expected<gate::Observed> observed = repeat(session, options, *baseline, path, prefix, /*mayChange=*/false);
  if (!observed)
    return explain(session, observed.takeError(), result);
  result.findings = gate::compare(*baseline, observed->baseline, today(), std::move(observed->unstable));
  return result.verdict().passes(options.allowImprovements) ? exitOk : exitDifference;
}

static Error writeReport(Session &session, const GateOptions &options, ArrayRef<gate::CheckResult> results,
                         const gate::ReportStyle &style) {
  if (options.output.empty() || options.output == "-") {
    gate::writeReport(session.out, options.format, results, style);
    return Error::success();
  }
  std::string text;
  raw_string_ostream os(text);
  gate::writeReport(os, options.format, results, style);
  if (Error error = writeAtOnce(options.output, text))
    return error;
  if (options.format != "text" && !session.common.quiet) // people read along
    gate::writeReport(session.out, "text", results, style);
  return Error::success();
}

static Expected<std::vector<std::string>> listBaselines(const GateOptions &options) {
  Expected<std::vector<std::string>> baselines = gate::listBaselines(options.baselines);
  if (baselines && !options.places.model.empty() && baselines->size() > 1)
    return exitError(exitUsage, "--model is for one baseline, and there are " + Twine(baselines->size()),
                     "--models=DIR, a folder with all models");
  return baselines;
}

static std::string updateCommandFor(ArrayRef<std::string> baselines, const GateOptions &options) {
  std::string command = "ptc gate update " + join(baselines, " ");
  if (!options.places.folder.empty())
    command += " --models=" + options.places.folder;
  if (!options.places.model.empty())
    command += " --model=" + options.places.model;
  return command;
}

static Error check(Session &session, GateOptions options) {
  options.tiers.namesNodes = true;
  Expected<std::vector<std::string>> baselines = listBaselines(options);
  if (!baselines)
    return baselines.takeError();
  std::vector<gate::CheckResult> results(baselines->size());
  std::vector<std::string> differing;
  int worst = exitOk;
  for (auto [number, path] : llvm::enumerate(*baselines)) {
    std::string prefix = (Twine(number + 1) + "/" + Twine(baselines->size()) + " " + stemOf(path)).str();
    int code = checkOne(session, options, path, prefix, results[number]);
    worst = std::max(worst, code);
    if (code == exitDifference && any_of(results[number].findings, gate::isOfRecord))
      differing.push_back(path);
  }
  session.progress.clear();
  gate::ReportStyle style{.allowImprovements = options.allowImprovements, .version = PTC_VERSION};
  if (!differing.empty())
    style.updateCommand = updateCommandFor(differing, options);
  if (Error error = writeReport(session, options, results, style))
    return error;
  if (worst == exitOk)
    return Error::success();
  auto failed = count_if(results, [&](const gate::CheckResult &result) { return !gate::passes(result, style); });
  return exitError(worst, Twine(failed) + " of " + Twine(results.size()) + " baseline(s) failed the gate",
                   differing.empty() ? "" : "to keep what has changed: " + style.updateCommand);
}

//===----------------------------------------------------------------------===//
// Record, update, diff
//===----------------------------------------------------------------------===//

static Error reportUnstable(ArrayRef<gate::Finding> findings) {
  if (findings.empty())
    return Error::success();
  return exitError(exitInternal, gate::describeSubject(findings.front()) + ": " + gate::describe(findings.front()),
                   "nothing was written; please report this");
}

static Error record(Session &session, GateOptions options) {
  std::string path = options.output.empty() ? stemOf(options.compile.model) + ".gate.json" : options.output;
  if (StringRef(path).ends_with(".onnx"))
    return exitError(exitUsage, "-o " + path + ": a baseline is JSON", "-o " + stemOf(path) + ".json");
  Expected<TemporaryFolder> scratch = TemporaryFolder::create("ptc-gate");
  if (!scratch)
    return scratch.takeError();
  Expected<gate::Observed> observed = observe(session, options, options.compile, nullptr, scratch->path(), "");
  if (!observed)
    return observed.takeError();
  if (Error error = reportUnstable(observed->unstable))
    return error;
  observed->baseline.model = gate::recordedName(options.compile.model, path);
  return writeAtOnce(path, gate::writeBaseline(observed->baseline));
}

/// What people have written into a baseline stays.
static void keepDecisions(const gate::Baseline &before, gate::Baseline &after) {
  after.model = before.model;
  after.tolerances = before.tolerances;
  after.waivers = before.waivers;
  gate::keepTolerances(before.numerics, after.numerics);
}

static Error update(Session &session, const GateOptions &options) {
  Expected<std::vector<std::string>> baselines = listBaselines(options);
  if (!baselines)
    return baselines.takeError();
  for (auto [number, path] : llvm::enumerate(*baselines)) {
    Expected<gate::Baseline> baseline = readBaseline(path);
    if (!baseline)
      return baseline.takeError();
    std::string prefix = (Twine(number + 1) + "/" + Twine(baselines->size()) + " " + stemOf(path)).str();
    Expected<gate::Observed> observed = repeat(session, options, *baseline, path, prefix, /*mayChange=*/true);
    if (!observed)
      return observed.takeError();
    if (Error error = reportUnstable(observed->unstable))
      return error;
    keepDecisions(*baseline, observed->baseline);
    std::string text = gate::writeBaseline(observed->baseline);
    bool isSame = text == gate::writeBaseline(*baseline);
    if (!isSame)
      if (Error error = writeAtOnce(path, text))
        return error;
    session.progress.clear();
    session.say(path + (isSame ? ": as it was" : ": updated"));
  }
  return Error::success();
}

static Error diff(Session &session, const GateOptions &options) {
  if (options.baselines.size() != 2)
    return exitError(exitUsage, "diff takes two baselines", "ptc gate diff before.json after.json");
  Expected<gate::Baseline> before = readBaseline(options.baselines[0]);
  if (!before)
    return before.takeError();
  Expected<gate::Baseline> after = readBaseline(options.baselines[1]);
  if (!after)
    return after.takeError();
  std::string text;
  raw_string_ostream os(text);
  gate::writeMarkdown(os, *before, *after, gate::compare(*before, *after, today()));
  if (!options.output.empty() && options.output != "-")
    return writeAtOnce(options.output, text);
  session.out << text;
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

static void addCompileFlags(CLI::App &app, GateOptions &options) {
  addCompileOptions(app, options.compile, {"Target", "Optimise", "Shapes", "Operators", "Running"});
}

static void addBaselines(CLI::App &app, GateOptions &options) {
  app.add_option("baselines", options.baselines, "baselines, or folders of them")
      ->required()
      ->type_name("BASELINE.json");
}

static void addPlaces(CLI::App &app, GateOptions &options) {
  app.add_option("--model", options.places.model, "the model of the one baseline (default: found beside it)")
      ->type_name("MODEL.onnx");
  app.add_option("--models", options.places.folder, "a folder below which models are found, by name and digest")
      ->type_name("DIR");
  app.add_flag("--once", options.once, "do not compile twice to see whether the same bytes come out");
}

static void addNumerics(CLI::App &app, GateOptions &options) {
  app.add_flag("--no-numerics", options.tiers.skipsNumerics, "run nothing: the static facts alone");
}

static void addTimes(CLI::App &app, GateOptions &options) {
  app.add_option("--against", options.tiers.against,
                 "compare times too, in turns with this library, or with that of the model's name in a folder")
      ->type_name("OTHER.so|DIR");
  app.add_option("--time-tolerance", options.tiers.tolerance, "slower by so much is no regression (default: 5)")
      ->check(CLI::Range(0.0, 1000.0))
      ->type_name("PERCENT");
}

static void addInputs(CLI::App &app, GateOptions &options, const std::string &otherwise) {
  app.add_option("--seed", options.tiers.seeds,
                 "of the random inputs that results are measured on (default: " + otherwise + ")")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N,...");
  app.add_option("-i,--input", options.tiers.inputs,
                 "inputs that random numbers do not suit: x=ones, x=zeros, x=random:SEED")
      ->allow_extra_args(false)
      ->type_name("SPEC");
}

static void declareCheck(CLI::App &app, GateOptions &options) {
  addBaselines(app, options);
  addPlaces(app, options);
  addNumerics(app, options);
  addTimes(app, options);
  std::vector<std::string> formats;
  for (StringRef format : gate::getFormats())
    formats.push_back(format.str());
  app.add_option("--format", options.format, "form of the report: " + join(formats, ", ") + " (default: text)")
      ->check(CLI::IsMember(formats))
      ->type_name("FORM");
  app.add_option("-o,--output", options.output, "where the report goes (default: standard output)")->type_name("FILE");
  app.add_flag("--allow-improvements", options.allowImprovements, "improvements alone do not fail the check");
  addCompileFlags(app, options);
}

Action declareGate(CLI::App &app) {
  auto options = std::make_shared<GateOptions>();
  auto chosen = std::make_shared<Error (*)(Session &, const GateOptions &)>();
  app.require_subcommand(1);
  auto add = [&](const char *name, const char *summary, Error (*run)(Session &, const GateOptions &)) -> CLI::App & {
    CLI::App *verb = app.add_subcommand(name, summary);
    verb->fallthrough();
    verb->get_formatter()->column_width(32);
    verb->callback([chosen, run] { *chosen = run; });
    return *verb;
  };
  CLI::App &recording = add("record", "write down what a model compiles to",
                            [](Session &session, const GateOptions &o) { return record(session, o); });
  addModelOption(recording, options->compile);
  recording.add_option("-o,--output", options->output, "the baseline (default: MODEL.gate.json)")->type_name("FILE");
  recording.add_flag("--once", options->once, "do not compile twice to see whether the same bytes come out");
  addNumerics(recording, *options);
  addInputs(recording, *options, "0");
  addCompileFlags(recording, *options);

  declareCheck(add("check", "compile again and compare with baselines",
                   [](Session &session, const GateOptions &o) { return check(session, o); }),
               *options);

  CLI::App &updating = add("update", "compile again and write the baselines anew, waivers and tolerances kept", update);
  addBaselines(updating, *options);
  addPlaces(updating, *options);
  addNumerics(updating, *options);
  addInputs(updating, *options, "as recorded");
  addCompileFlags(updating, *options);

  CLI::App &diffing = add("diff", "what lies between two baselines, as Markdown", diff);
  diffing.add_option("baselines", options->baselines, "before and after")->required()->type_name("A.json B.json");
  diffing.add_option("-o,--output", options->output, "where it goes (default: standard output)")->type_name("FILE");
  return [options, chosen](Session &session) { return (*chosen)(session, *options); };
}

} // namespace ptc
