// Alternatives are timed where they will run: in the whole model, behind the kernels that come before them, with what
// is in the caches then. One library has an alternative in each of many kernels at once, since what one kernel is made
// of hardly changes another's time; so a search takes as many compiles as the kernel with the most alternatives has.
//
// Each library runs in turns with the one as planned, in one process, and every pair of runs gives each kernel a ratio:
// clock and neighbours change from second to second and are the same for both. What was best in the search is measured
// once more before it is kept: the smallest of many noisy numbers is too small.
//
// On a device a launch's time is that between two events around it. A run with events is no run as in use, where
// launches are a graph and begin before those in front have ended: whole runs are timed on copies without a profile,
// many one behind the other, so that neither the first launch's way nor the wait for the last counts. Inputs and
// outputs stay in the device's memory: copies of them from and to the host may take longer than the model.
#include "cli/tune/KernelTuner.h"
#include "cli/Profile.h"
#include "cli/TemporaryFolder.h"
#include "cli/gate/TimeTier.h"
#include "compiler/CustomOps.h"
#include "compiler/Machine.h"
#include "compiler/artifact/Outputs.h"
#include "runtime/include/ptc/descriptor.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/TargetParser/Host.h"
#include <chrono>
#include <cmath>

using namespace llvm;

namespace ptc {

namespace {
constexpr double leastShare = 0.004;    // of a run: kernels that take less are left as they are
constexpr double searchShare = 0.65;    // of the budget; the rest is for measuring what was found once more
constexpr double leastMeasuring = 0.25; // seconds a library, if its runs are short
constexpr double mostMeasuring = 2;
constexpr double leastGain = 0.003; // that the interval has to show
constexpr unsigned warmUps = 2, fewestPairs = 6, mostPairs = 1000;
constexpr unsigned copies = 2;      // of each library, before numbers are kept
constexpr double leastBurst = 3e-3; // seconds of runs one behind the other
constexpr unsigned mostRuns = 200;  // of them

double elapsed() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// A library that tells what each kernel took, or only what a run takes, where telling more makes it slower.
struct TimedLibrary {
  std::unique_ptr<Profile> profile; // at an address that stays; null: unobserved
  TimedModel model;
};

struct KernelRatio {
  gate::Interval ratio; // with the numbers / as planned
  double plannedSeconds = 0, seconds = 0;
};

struct Comparison {
  StringMap<KernelRatio> kernels;
  gate::Interval whole;
};

/// What was tried for a kernel, and what came of it.
struct Trial {
  TunedNumbers numbers;
  gate::Interval ratio;
};

/// For each kernel the numbers that it is compiled with; others are as planned.
using Numbers = StringMap<TunedNumbers>;

class KernelTuner {
public:
  KernelTuner(Session &session, StringRef verb, const TunerOptions &options, const TemporaryFolder &folder,
              const TargetInfo &info, StringRef processor)
      : session(session), options(options), folder(folder), info(info), hooks(hooksOf(session, verb)),
        silent(nulls(), {}, ""), start(elapsed()) {
    header.processor = processor;
    hooks.progress = [this](StringRef, size_t done, size_t total) {
      if (!planned) // the search has its own
        this->session.progress.show("tuning: compiling", done, total);
    };
    compileOptions = options.compile;
    compileOptions.mode = info.runsOnDevice ? "reduce-overhead" : "default";
    compileOptions.tuneFile.clear();
    compileOptions.emit = {"so"};
    makePathsAbsolute(compileOptions.customOps); // a library looks for theirs from where it lies
    compileOptions.depfile = false;
    compileOptions.depfilePath.clear();
    compileOptions.depfileTarget.clear();
  }
  Expected<TunerResult> run();

private:
  double left() const { return start + options.seconds - elapsed(); }
  /// Seconds in which compareAnew compiles and loads what it measures.
  double anewLoading() const { return compileSeconds + 2 * copies * loadSeconds; }
  /// Seconds that compareAnew takes with the fewest pairs.
  double leastAnew() const {
    return anewLoading() + std::max(leastMeasuring, 2 * copies * (warmUps + fewestPairs) * runSeconds);
  }
  double measuringIn(double seconds) const {
    return std::clamp(seconds - anewLoading(), leastMeasuring, 2 * mostMeasuring);
  }
  Error compileAs(const Numbers &numbers, StringRef library, Diagnostics &diagnostics);
  Error compileQuietly(const Numbers &numbers, StringRef library);
  Expected<TimedLibrary> load(StringRef library, bool isObserved = true);
  Error openPlanned();
  void dropLibraries();
  Expected<Comparison> compareWith(const Numbers &numbers, double seconds);
  Expected<Comparison> compareAnew(const Numbers &numbers, double seconds, bool timesWhole = false);
  Error search(TunerResult &result);
  Error confirm(TunerResult &result);
  Error confirmTogether(TunerResult &result);
  void keepLargestGains(size_t count);
  Tuning makeTuning() const;

  Session &session;
  const TunerOptions &options;
  const TemporaryFolder &folder;
  const TargetInfo &info;
  CompileHooks hooks;
  Diagnostics silent; // what a compile says it says once
  CompileOptions compileOptions;
  double start;
  Tuning header; // without kernels
  const std::string plannedLibrary = folder.file("planned.so"), otherLibrary = folder.file("other.so");
  std::optional<TimedLibrary> planned;
  StringMap<double> plannedSeconds;
  StringMap<std::vector<TunedNumbers>> alternatives;
  StringMap<std::vector<Trial>> trials;
  size_t rounds = 0; // of the search
  Numbers chosen;
  StringMap<KernelRatio> times;               // of what was chosen
  double compileSeconds = 0, loadSeconds = 0; // of a library
  double runSeconds = 0;                      // of all kernels, as planned
};
} // namespace

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

Error KernelTuner::compileAs(const Numbers &numbers, StringRef library, Diagnostics &diagnostics) {
  CompileOptions how = compileOptions;
  how.output = library;
  if (!numbers.empty()) {
    Tuning tuning = header;
    for (const auto &kernel : alternatives)
      tuning.kernels.push_back({.kernel = kernel.getKey().str(), .numbers = numbers.lookup(kernel.getKey())});
    how.tuneFile = folder.file("tune.json");
    if (Error error = writeFile(how.tuneFile, writeTuning(tuning)))
      return error;
  }
  CompileHooks quiet{diagnostics,   hooks.progress,      hooks.log,     hooks.version,
                     hooks.command, hooks.argumentFiles, hooks.targets, hooks.changePasses};
  return compile(how, quiet);
}

Error KernelTuner::compileQuietly(const Numbers &numbers, StringRef library) {
  if (Error error = compileAs(numbers, library, silent))
    return exitError(exitInternal, "a library with other sizes could not be compiled: " + toString(std::move(error)));
  return Error::success();
}

Expected<TimedLibrary> KernelTuner::load(StringRef library, bool isObserved) {
  auto profile = isObserved ? std::make_unique<Profile>(size_t(1) << 16) : nullptr;
  TimedModelOptions how{.instance = {.threads = options.threads, .profile = profile ? profile->get() : nullptr},
                        .inputs = options.inputs};
  how.staysOnDevice = info.runsOnDevice;
  Expected<TimedModel> model = prepareCopy(session, library, how);
  if (!model)
    return model.takeError();
  return TimedLibrary{std::move(profile), std::move(*model)};
}

/// The one level that the library has code for.
static void setLevel(CompileOptions &options, const TargetInfo &info, StringRef level) {
  visitOptions(options, [&](option::Role, StringRef, auto &field, StringRef flags, StringRef, StringRef) {
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, option::List>)
      if (flags == info.levelFlag)
        field = {level.str()};
  });
}

/// That a device does not run the library has to do with its levels, mostly; not that it has no memory.
static Error adviseLevel(Error error, const TargetInfo &info) {
  return handleErrors(std::move(error), [&](const ExitError &refused) {
    std::string help = refused.help;
    if (help.empty() && info.runsOnDevice && refused.code == exitTarget)
      help = info.levelFlag.str() + " names the architecture of the device that is here; `ptc doctor` shows it";
    return exitError(refused.code, refused.message, help);
  });
}

/// The library as planned, at the one level that this machine runs it at.
Error KernelTuner::openPlanned() {
  if (Error error = compileAs({}, plannedLibrary, hooks.diagnostics))
    return error;
  Expected<ModelLibrary> library = ModelLibrary::open(session, plannedLibrary);
  if (!library)
    return adviseMachine(library.takeError(), "kernels are timed", "tune", info.levelFlag);
  Expected<ModelInstance> instance = ModelInstance::create(*library, {.threads = options.threads});
  if (!instance)
    return adviseLevel(instance.takeError(), info);
  const ptc_model_table &table = instance->table();
  header.compiler = "ptc " + hooks.version;
  header.model = sys::path::filename(compileOptions.model).str();
  header.level = table.cpu_level(instance->getModel());
  header.threads = table.threads(instance->getModel());
  setLevel(compileOptions, info, header.level);
  double begin = elapsed();
  if (Error error = compileQuietly({}, plannedLibrary))
    return error;
  compileSeconds = elapsed() - begin;
  Expected<TimedLibrary> loaded = load(plannedLibrary);
  if (!loaded)
    return loaded.takeError();
  loadSeconds = elapsed() - begin - compileSeconds;
  planned.emplace(std::move(*loaded));
  return Error::success();
}

/// Alternatives that this machine cannot time, since what computes them is not here.
void KernelTuner::dropLibraries() {
  const std::pair<std::string, std::vector<const char *>> libraries[] = {{"cublaslt", {PTC_RT_CUBLASLT_FILES}},
                                                                         {"cudnn", {PTC_RT_CUDNN_FILES}}};
  for (const auto &[library, names] : libraries) {
    auto asks = [name = library](const TunedNumbers &numbers) { return numbers.count(name) != 0; };
    bool isAsked = any_of(alternatives, [&](const auto &kernel) { return any_of(kernel.getValue(), asks); });
    if (!isAsked || hasSharedLibrary(names))
      continue;
    for (auto &kernel : alternatives)
      llvm::erase_if(kernel.getValue(), asks);
  }
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

static Expected<double> runOf(TimedLibrary &library, unsigned runs, StringMap<double> &kernels) {
  if (!library.profile)
    return library.model.wallTime(runs);
  library.profile->truncate(0);
  Expected<double> seconds = library.model.wallTime();
  if (!seconds)
    return seconds.takeError();
  for (const KernelTime &time : timeKernels(library.profile->getSpans()))
    kernels[time.kernel] = time.seconds;
  return seconds;
}

static double median(std::vector<double> &values) {
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

static Expected<Comparison> compare(TimedLibrary &planned, TimedLibrary &other, double seconds) {
  struct Samples {
    std::vector<double> ratios, planned, other;
  };
  StringMap<Samples> kernels;
  std::vector<double> whole;
  unsigned runs = 1; // of each in a pair
  double end = elapsed() + seconds;
  for (unsigned pair = 0; pair < warmUps + mostPairs && (pair < warmUps + fewestPairs || elapsed() < end); ++pair) {
    StringMap<double> times[2];
    double run[2];
    for (unsigned turn = 0; turn < 2; ++turn) {
      bool isOther = (turn + pair) % 2;
      Expected<double> measured = runOf(isOther ? other : planned, runs, times[isOther]);
      if (!measured)
        return measured.takeError();
      run[isOther] = *measured;
    }
    if (pair < warmUps) {
      runs = unsigned(std::clamp(std::ceil(leastBurst / run[0]), 1.0, double(mostRuns)));
      continue;
    }
    whole.push_back(run[1] / run[0]);
    for (const auto &kernel : times[0]) {
      double seconds = times[1].lookup(kernel.getKey());
      if (!seconds || !kernel.getValue())
        continue;
      Samples &samples = kernels[kernel.getKey()];
      samples.ratios.push_back(seconds / kernel.getValue());
      samples.planned.push_back(kernel.getValue());
      samples.other.push_back(seconds);
    }
  }
  Comparison result{.kernels = {}, .whole = gate::medianWithInterval(std::move(whole), gate::reach95)};
  for (auto &kernel : kernels) {
    Samples &samples = kernel.getValue();
    result.kernels[kernel.getKey()] = {gate::medianWithInterval(samples.ratios, gate::reach95), median(samples.planned),
                                       median(samples.other)};
  }
  return result;
}

Expected<Comparison> KernelTuner::compareWith(const Numbers &numbers, double seconds) {
  if (Error error = compileQuietly(numbers, otherLibrary))
    return error;
  Expected<TimedLibrary> other = load(otherLibrary);
  return other ? compare(*planned, *other, seconds) : other.takeError();
}

/// On two pairs of copies: where a copy happens to lie in memory makes it faster or slower by a few per cent, as long
/// as it is there. What counts is the larger ratio.
Expected<Comparison> KernelTuner::compareAnew(const Numbers &numbers, double seconds, bool timesWhole) {
  if (Error error = compileQuietly(numbers, otherLibrary))
    return error;
  std::optional<Comparison> worst;
  std::vector<TimedLibrary> loaded; // kept: the second pair must not lie where the first does
  for (unsigned copy = 0; copy < copies; ++copy) {
    for (const std::string &library : {plannedLibrary, otherLibrary}) {
      Expected<TimedLibrary> timed = load(library, /*isObserved=*/!timesWhole || !info.runsOnDevice);
      if (!timed)
        return timed.takeError();
      loaded.push_back(std::move(*timed));
    }
    Expected<Comparison> measured = compare(loaded[2 * copy], loaded[2 * copy + 1], seconds / copies);
    if (!measured)
      return measured.takeError();
    if (!worst) {
      worst = std::move(*measured);
      continue;
    }
    if (measured->whole.median > worst->whole.median)
      worst->whole = measured->whole;
    for (const auto &kernel : measured->kernels)
      if (KernelRatio &known = worst->kernels[kernel.getKey()];
          kernel.getValue().ratio.median > known.ratio.median || !known.seconds)
        known = kernel.getValue();
  }
  return std::move(*worst);
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

Error KernelTuner::search(TunerResult &result) {
  std::vector<StringRef> counted;
  for (const auto &kernel : alternatives)
    if (plannedSeconds.lookup(kernel.getKey()) >= leastShare * runSeconds) {
      counted.push_back(kernel.getKey());
      rounds = std::max(rounds, kernel.getValue().size());
      result.alternatives += kernel.getValue().size();
    }
  constexpr int comparisons = 3; // by compareAnew, that follow
  double end = start + std::min(searchShare * options.seconds, options.seconds - comparisons * leastAnew());
  double longest = 0;
  for (size_t round = 0; round < rounds; ++round) {
    double begin = elapsed();
    if (round > 0 && begin + longest > end)
      break;
    session.progress.show("tuning", round, rounds + 2);
    Numbers numbers;
    for (StringRef kernel : counted)
      if (round < alternatives[kernel].size())
        numbers[kernel] = alternatives[kernel][round];
    double measuring = (end - begin) / double(rounds - round) - compileSeconds - loadSeconds;
    Expected<Comparison> times = compareWith(numbers, std::clamp(measuring, leastMeasuring, mostMeasuring));
    if (!times)
      return times.takeError();
    result.tried += numbers.size();
    for (const auto &kernel : numbers)
      if (auto found = times->kernels.find(kernel.getKey()); found != times->kernels.end()) {
        const gate::Interval &ratio = found->getValue().ratio;
        session.log(formatv("{0}:{1}: {2:f3} of the time, between {3:f3} and {4:f3}", kernel.getKey(),
                            formatNumbers(kernel.getValue()), ratio.median, ratio.low, ratio.high)
                        .str());
        trials[kernel.getKey()].push_back({kernel.getValue(), ratio});
      }
    longest = std::max(longest, elapsed() - begin);
  }
  return Error::success();
}

/// The best of a kernel's trials, and the best for each kind of numbers together if there is more than one kind.
static std::pair<TunedNumbers, TunedNumbers> chooseBest(ArrayRef<Trial> trials) {
  std::map<std::string, const Trial *> kinds; // by the first of the names
  const Trial *best = nullptr;
  for (const Trial &trial : trials) {
    if (trial.ratio.high >= 1)
      continue;
    const Trial *&kind = kinds[trial.numbers.begin()->first];
    for (const Trial **champion : {&kind, &best})
      if (!*champion || trial.ratio.median < (*champion)->ratio.median)
        *champion = &trial;
  }
  if (!best)
    return {};
  TunedNumbers together;
  for (const auto &[name, trial] : kinds)
    together.insert(trial->numbers.begin(), trial->numbers.end());
  return {best->numbers, together};
}

/// Measures the winners of the search anew, and what those of each kernel come to together.
Error KernelTuner::confirm(TunerResult &result) {
  Numbers single, together;
  for (const auto &kernel : trials)
    if (auto [best, all] = chooseBest(kernel.getValue()); !best.empty()) {
      single[kernel.getKey()] = best;
      if (all != best)
        together[kernel.getKey()] = all;
    }
  session.progress.show("tuning: measuring what is kept", rounds + 1, rounds + 2);
  double seconds = left() / (together.empty() ? 3 : 4); // a part is for what is measured last, and one for its halves
  for (const Numbers &numbers : {single, together}) {
    if (numbers.empty())
      continue;
    Expected<Comparison> comparison = compareAnew(numbers, measuringIn(seconds));
    if (!comparison)
      return comparison.takeError();
    for (const auto &kernel : numbers) {
      KernelRatio measured = comparison->kernels.lookup(kernel.getKey());
      auto known = times.find(kernel.getKey());
      if (measured.ratio.high >= 1 - leastGain ||
          (known != times.end() && known->getValue().ratio.median <= measured.ratio.median))
        continue;
      chosen[kernel.getKey()] = kernel.getValue();
      times[kernel.getKey()] = measured;
    }
  }
  return confirmTogether(result);
}

/// What kernels gain alone they may lose together, and on a device, where launches overlap in use, they may not gain it
/// at all. Until a run bears it out, the half that gains least is left out.
Error KernelTuner::confirmTogether(TunerResult &result) {
  while (!chosen.empty()) {
    Expected<Comparison> comparison = compareAnew(chosen, measuringIn(left() / 2), /*timesWhole=*/true);
    if (!comparison)
      return comparison.takeError();
    result.ratio = comparison->whole;
    session.log(formatv("{0} kernels together: {1:f3} of the time, between {2:f3} and {3:f3}", chosen.size(),
                        result.ratio.median, result.ratio.low, result.ratio.high)
                    .str());
    if (result.ratio.high < 1)
      return Error::success();
    keepLargestGains(left() > leastAnew() ? chosen.size() / 2 : 0);
  }
  result.ratio = {};
  return Error::success();
}

void KernelTuner::keepLargestGains(size_t count) {
  std::vector<std::pair<double, StringRef>> gains;
  for (const auto &kernel : chosen) {
    KernelRatio measured = times.lookup(kernel.getKey());
    gains.emplace_back(measured.seconds - measured.plannedSeconds, kernel.getKey());
  }
  llvm::sort(gains);
  for (const auto &[gain, kernel] : ArrayRef(gains).drop_front(count))
    chosen.erase(kernel);
}

/// All kernels, with what was chosen for them.
Tuning KernelTuner::makeTuning() const {
  Tuning tuning = header;
  std::vector<StringRef> names;
  for (const auto &kernel : alternatives)
    names.push_back(kernel.getKey());
  llvm::sort(names);
  for (StringRef name : names) {
    double asPlanned = plannedSeconds.lookup(name);
    TunedKernel kernel{name.str(), chosen.lookup(name), asPlanned, asPlanned};
    if (!kernel.numbers.empty()) {
      KernelRatio measured = times.lookup(name);
      kernel.plannedSeconds = measured.plannedSeconds;
      kernel.seconds = measured.seconds;
    }
    tuning.kernels.push_back(std::move(kernel));
  }
  return tuning;
}

Expected<TunerResult> KernelTuner::run() {
  if (Error error = openPlanned())
    return error;
  {
    CompileHooks quiet{silent, hooks.progress, hooks.log, hooks.version, hooks.command, {}, hooks.targets};
    Compilation compilation(compileOptions, quiet);
    auto listed = listAlternatives(compilation, header.level);
    if (!listed)
      return listed.takeError();
    alternatives = std::move(*listed);
    dropLibraries();
  }
  Expected<Comparison> same = compare(*planned, *planned, leastMeasuring);
  if (!same)
    return same.takeError();
  for (const auto &kernel : same->kernels) {
    plannedSeconds[kernel.getKey()] = kernel.getValue().plannedSeconds;
    runSeconds += kernel.getValue().plannedSeconds;
  }
  TunerResult result;
  if (Error error = search(result))
    return error;
  if (Error error = confirm(result))
    return error;
  session.progress.clear();
  result.tuning = makeTuning();
  return result;
}

/// What the kernels will be timed on. That there is no device is told before anything is compiled.
static Expected<std::string> nameProcessor(const codegen::Target &target, StringRef model) {
  if (!target.getInfo().runsOnDevice)
    return sys::getHostCPUName().str();
  if (std::error_code failed = sys::fs::access(model, sys::fs::AccessMode::Exist)) // nor is it the device's fault then
    return exitError(exitFile, "cannot read '" + model + "': " + failed.message());
  Expected<std::string> device = nameCudaDevice();
  if (device)
    return device;
  StringRef name = target.getInfo().name;
  return exitError(exitNoDevice,
                   "kernels of --target=" + name +
                       " are timed on a device, and there is none here: " + toString(device.takeError()),
                   "`ptc tune " + model + " --target=" + name +
                       "` on a machine with one; a compile with its file, --tune-file=FILE, needs none");
}

Expected<TunerResult> tuneKernels(Session &session, StringRef verb, const TunerOptions &options, StringRef output) {
  if (sys::fs::equivalent(output, options.compile.model))
    return exitError(exitUsage, "'" + output + "' is the model itself", "-o names the tuning file");
  artifact::Outputs outputs;
  std::string staged;
  if (output != "-") { // first: that the file cannot be written is not told after a minute
    Expected<std::string> path = outputs.stage(output);
    if (!path)
      return path.takeError();
    staged = std::move(*path);
  }
  if (Error error = requireOneTarget(options.compile, "tuning"))
    return error;
  const codegen::Target *target = codegen::findTarget(session.parts.targets, options.compile.target);
  if (!target)
    return exitError(exitUsage, "unknown target '" + options.compile.target + "'",
                     "--target=" + codegen::targetNames(session.parts.targets));
  Expected<std::string> processor = nameProcessor(*target, options.compile.model);
  if (!processor)
    return processor.takeError();
  Expected<TemporaryFolder> folder = TemporaryFolder::create("ptc-tune");
  if (!folder)
    return folder.takeError();
  Expected<TunerResult> result = KernelTuner(session, verb, options, *folder, target->getInfo(), *processor).run();
  if (!result)
    return result;
  std::string text = writeTuning(result->tuning);
  if (output == "-") {
    session.out << text;
    return result;
  }
  if (Error error = writeFile(staged, text))
    return outputs.explain(std::move(error));
  if (Error error = outputs.commit())
    return error;
  return result;
}

std::string formatNumbers(const TunedNumbers &numbers) {
  std::string text;
  for (const auto &[name, number] : numbers)
    text += (" " + name + "=" + Twine(number)).str();
  return text;
}

std::string describe(const TunerResult &result) {
  size_t chosen =
      llvm::count_if(result.tuning.kernels, [](const TunedKernel &kernel) { return !kernel.numbers.empty(); });
  std::string tried = formatv("{0} of {1} alternatives measured", result.tried, result.alternatives).str();
  if (!chosen)
    return tried + ", none faster than what is planned";
  return formatv("{0}; {1} of {2} kernels get other sizes: a run takes {3:f3} of the time, between {4:f3} and {5:f3} "
                 "(95 %)",
                 tried, chosen, result.tuning.kernels.size(), result.ratio.median, result.ratio.low, result.ratio.high)
      .str();
}

} // namespace ptc
