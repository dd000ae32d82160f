// ptc bench: how long a run takes.
//
// One row per set of dims and number of threads. A sample is one call of run on warm memory; samples are taken for
// --min-time seconds, and percentiles are told, not means, as the distribution has a long tail on shared machines.
//
// --ab OTHER.so compares two libraries. Clock speed and neighbours drift over seconds, so times from different seconds
// say little; the two therefore alternate within one process (ABBA: neither is always first), each pair gives one
// ratio A/B, and the median of the ratios is told with an interval that encloses the true one with 95 % probability
// (compiler/gate/PairedTimes.h). With --tolerance there is a verdict instead of figures, made as the gate makes it:
// measured until it is clear, and repeated.
//
// --per-kernel and --profile time launches in runs of their own, after a row's: readings of the clock would be part of
// the row's times. With --per-kernel they take turns with readings of memory: kernels that wait for it are held against
// the bandwidth of the same moments.
#include "cli/Profile.h"
#include "cli/TimedModel.h"
#include "cli/Verb.h"
#include "cli/gate/TimeTier.h"
#include "compiler/gate/PairedTimes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include <chrono>
#include <cmath>

using namespace llvm;

namespace ptc {

namespace {
using Clock = std::chrono::steady_clock;

struct BenchOptions {
  std::string library, other, function, profile;
  InstanceOptions instance;
  std::vector<std::string> inputs, dims;
  std::vector<unsigned> threads;
  std::vector<double> percentiles = {50, 90, 99};
  double minTime = 1;
  double tolerance = -1; // percent; negative: figures are wanted, no verdict
  bool json = false, perKernel = false;
};

/// A library's runs. Another library may have other levels, and other threads where it has none.
struct Runs {
  unsigned threads = 0;
  std::string level;
  std::vector<double> times; // sorted seconds
};

struct Row {
  std::string dims; // of all symbols, named or not
  Runs subject, other;
  std::optional<gate::Interval> ratio; // subject / other
  std::vector<KernelTime> kernels;
  MachinePeaks peaks; // of as many threads, if kernels were timed
};
} // namespace

/// The nearest-rank percentile of sorted values.
static double percentile(ArrayRef<double> sorted, double percent) {
  size_t rank = static_cast<size_t>(std::ceil(percent / 100 * sorted.size()));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

static TimedModelOptions modelOptions(const BenchOptions &options, const SymbolDims &dims, unsigned threads) {
  TimedModelOptions how{options.instance, options.function, options.inputs, dims};
  how.instance.threads = threads;
  return how;
}

/// Whether both have a value of this name, of as many dims, with the same sizes where both know them.
static bool areAlike(const ptc_value &one, const ptc_value &other) {
  if (StringRef(one.name) != other.name || one.rank != other.rank)
    return false;
  auto agree = [](const auto &dims) {
    const auto &[dim, otherDim] = dims;
    return dim.extent < 0 || otherDim.extent < 0 || dim.extent == otherDim.extent;
  };
  unsigned rank = one.rank > 0 ? one.rank : 0;
  return llvm::all_of(llvm::zip_equal(ArrayRef(one.dims, rank), ArrayRef(other.dims, rank)), agree);
}

/// Times say little beside each other where libraries take other inputs: they are of different models.
static Error warnIfOtherInputs(Session &session, const ModelLibrary &library, const ModelLibrary &other,
                               StringRef function) {
  std::vector<const ptc_value *> inputs[2];
  const ModelLibrary *libraries[] = {&library, &other};
  for (auto [i, each] : llvm::enumerate(libraries)) {
    Expected<unsigned> number = each->findFunction(function);
    if (!number)
      return number.takeError();
    const ptc_function &entry = each->table().functions[*number];
    for (const ptc_value &input : ArrayRef(entry.inputs, entry.input_count))
      inputs[i].push_back(&input);
    llvm::sort(inputs[i], [](auto *a, auto *b) { return StringRef(a->name) < b->name; });
  }
  if (llvm::equal(inputs[0], inputs[1], [](auto *a, auto *b) { return areAlike(*a, *b); }))
    return Error::success();
  DiagnosticRecord record{.severity = DiagnosticRecord::Severity::Warning, .subject = other.path().str()};
  record.message = "its inputs are not those of '" + library.path().str() + "': these are times of different models";
  session.diagnostics.report(std::move(record));
  return Error::success();
}

static Runs runsOf(const ModelLibrary &library, const TimedModel &prepared) {
  const ptc_model *model = prepared.getInstance().getModel();
  return {.threads = library.table().threads(model), .level = library.table().cpu_level(model)};
}

static Error measure(TimedModel &subject, TimedModel *other, double minTime, Row &row) {
  std::vector<double> ratios;
  auto end = Clock::now() + std::chrono::duration<double>(minTime);
  constexpr size_t warmUps = 3, fewest = 10;
  for (size_t i = 0; i < warmUps + fewest || Clock::now() < end; ++i) {
    bool otherFirst = other && i % 2;
    double time[2] = {0, 0};
    for (unsigned turn = 0; turn < (other ? 2u : 1u); ++turn) {
      bool isOther = (turn == 1) != otherFirst;
      Expected<double> seconds = (isOther ? *other : subject).wallTime();
      if (!seconds)
        return seconds.takeError();
      time[isOther] = *seconds;
    }
    if (i < warmUps)
      continue;
    row.subject.times.push_back(time[0]);
    if (!other)
      continue;
    row.other.times.push_back(time[1]);
    ratios.push_back(time[0] / time[1]);
  }
  llvm::sort(row.subject.times);
  llvm::sort(row.other.times);
  if (other)
    row.ratio = gate::medianWithInterval(std::move(ratios), gate::reach95);
  return Error::success();
}

/// What the row's kernels are held against; empty, with a word about it, where that cannot be measured.
static MachinePeaks peaksOf(Session &session, const ModelInstance &instance, unsigned threads) {
  std::optional<int> device = instance.getDevice();
  if (!device)
    return measurePeaks(threads);
  Expected<MachinePeaks> peaks = measureDevicePeaks(*device);
  if (peaks)
    return std::move(*peaks);
  session.say("no shares of the device's peaks: " + toString(peaks.takeError()));
  return {};
}

namespace {
struct ProfiledTurns {
  size_t lastRun = 0;                    // where the spans of the last run that is whole begin
  std::optional<double> memoryBandwidth; // bytes a second, the median of the readings
};
} // namespace

/// Spans of runs on the same inputs for about so many seconds. With `memory`, turns of runs alternate with readings of
/// it; of such a turn the first run is not kept, since it finds other caches than a run leaves.
static Expected<ProfiledTurns> profileTurns(TimedModel &subject, Profile &profile, double seconds,
                                            MemoryReading *memory) {
  ProfiledTurns turns;
  std::vector<double> bandwidths;
  auto end = Clock::now() + std::chrono::duration<double>(seconds);
  constexpr unsigned fewest = 5;
  for (unsigned turn = 0; (turn < fewest || Clock::now() < end) && !profile.countLost(); ++turn) {
    if (memory) {
      bandwidths.push_back(memory->measure());
      size_t kept = profile.getSpans().size();
      if (Expected<double> warmUp = subject.wallTime(); !warmUp)
        return warmUp.takeError();
      profile.truncate(kept);
    }
    auto turnEnd = Clock::now() + std::chrono::milliseconds(memory ? 20 : 0);
    do {
      size_t before = profile.getSpans().size();
      if (Expected<double> time = subject.wallTime(); !time)
        return time.takeError();
      if (profile.countLost()) // of a run that is not whole nothing is told, unless it is the first
        break;
      turns.lastRun = before;
    } while (Clock::now() < turnEnd);
  }
  llvm::sort(bandwidths);
  if (memory)
    turns.memoryBandwidth = percentile(bandwidths, 50);
  return turns;
}

/// --per-kernel, --profile: the launches of some runs. The trace keeps the last run.
static Error profileRow(Session &session, const ModelLibrary &library, const BenchOptions &options,
                        const SymbolDims &dims, Row &row, std::vector<ProfiledRuns> &traces) {
  Profile profile;
  TimedModelOptions how = modelOptions(options, dims, row.subject.threads);
  how.instance.profile = profile.get();
  Expected<TimedModel> subject = TimedModel::prepare(library, how);
  if (!subject)
    return subject.takeError();
  std::optional<MemoryReading> memory;
  if (options.perKernel) {
    row.peaks = peaksOf(session, subject->getInstance(), row.subject.threads);
    if (!subject->getInstance().getDevice())
      memory.emplace(row.subject.threads);
  }
  Expected<ProfiledTurns> turns = profileTurns(*subject, profile, options.minTime / 4, memory ? &*memory : nullptr);
  memory.reset();
  if (!turns)
    return turns.takeError();
  ArrayRef<ptc_span> spans = profile.getSpans();
  traces.push_back({(library.path() + " " + row.dims + " threads=" + Twine(row.subject.threads)).str(),
                    spans.drop_front(turns->lastRun)});
  if (!options.perKernel)
    return Error::success();
  row.kernels = timeKernels(spans);
  row.peaks.merge(
      peaksOf(session, subject->getInstance(), row.subject.threads)); // the machine may have been busier before
  if (turns->memoryBandwidth && !row.peaks.bandwidths.empty())
    row.peaks.bandwidths.back().bytesPerSecond = *turns->memoryBandwidth;
  if (Error error = addRates(row.kernels, library.path(), subject->getDims(), row.peaks))
    session.say("no GFLOP/s and GB/s: " + toString(std::move(error)));
  return Error::success();
}

/// "batch=1,8" and "seq=16,64": all combinations.
static Expected<std::vector<SymbolDims>> combinations(ArrayRef<std::string> specs) {
  std::vector<SymbolDims> all(1);
  for (StringRef spec : specs) {
    auto [name, text] = spec.split('=');
    std::vector<SymbolDims> next;
    SmallVector<StringRef> values;
    text.split(values, ','); // of an empty text one value, which is then found to be none
    for (StringRef value : values) {
      Expected<SymbolDims> dim = parseDims({(name + "=" + value).str()});
      if (!dim)
        return dim.takeError();
      for (SymbolDims dims : all) {
        dims[name] = dim->lookup(name);
        next.push_back(std::move(dims));
      }
    }
    all = std::move(next);
  }
  return all;
}

/// "50", "99.9"
static std::string formatPercent(double percent) {
  std::string text = formatv("{0:f2}", percent).str();
  return StringRef(text).rtrim('0').rtrim('.').str();
}

static json::Object toJson(const Runs &runs, ArrayRef<double> percentiles) {
  json::Object object{{"threads", runs.threads},
                      {"cpu_level", runs.level},
                      {"min_us", runs.times.front() * 1e6},
                      {"samples", static_cast<int64_t>(runs.times.size())}};
  for (double p : percentiles)
    object["p" + formatPercent(p) + "_us"] = percentile(runs.times, p) * 1e6;
  return object;
}

static json::Object toJson(const Row &row, ArrayRef<double> percentiles) {
  json::Object object = toJson(row.subject, percentiles);
  object["dims"] = row.dims;
  if (!row.kernels.empty()) {
    object["kernels"] = kernelTimesToJson(row.kernels);
    object["peaks"] = peaksToJson(row.peaks);
  }
  if (std::optional<double> share = shareOfBound(row.kernels))
    object["bound_share"] = *share;
  if (row.ratio) {
    object["other"] = toJson(row.other, percentiles);
    object["ratio"] = json::Object{{"median", row.ratio->median}, {"low", row.ratio->low}, {"high", row.ratio->high}};
  }
  return object;
}

static void printTable(raw_ostream &os, ArrayRef<Row> rows, ArrayRef<double> percentiles) {
  size_t width = 4, levelWidth = 12;
  for (const Row &row : rows) {
    width = std::max(width, row.dims.size());
    levelWidth = std::max({levelWidth, row.subject.level.size(), row.other.level.size()});
  }
  os << left_justify("dims", width) << "  threads  " << left_justify("level", levelWidth) << "      runs     min us";
  for (double p : percentiles)
    os << right_justify("p" + formatPercent(p) + " us", 11);
  os << '\n';
  auto print = [&](StringRef name, const Runs &runs) {
    os << left_justify(name, width) << format("  %7u  ", runs.threads) << left_justify(runs.level, levelWidth)
       << format("%10zu", runs.times.size()) << format(" %10.1f", runs.times.front() * 1e6);
    for (double p : percentiles)
      os << format(" %10.1f", percentile(runs.times, p) * 1e6);
    os << '\n';
  };
  for (const Row &row : rows) {
    print(row.dims, row.subject);
    if (row.ratio) {
      print("other", row.other);
      os << format("time / other's time: %.3f, between %.3f and %.3f (95 %%)\n", row.ratio->median, row.ratio->low,
                   row.ratio->high);
    }
    if (!row.kernels.empty())
      printKernelTimes(os, row.kernels, row.peaks);
  }
}

static StringRef nameOf(gate::TimeVerdict verdict) {
  switch (verdict) {
  case gate::TimeVerdict::Same:
    return "same";
  case gate::TimeVerdict::Slower:
    return "slower";
  case gate::TimeVerdict::Faster:
    return "faster";
  case gate::TimeVerdict::Undecided:
    return "undecided";
  }
  llvm_unreachable("a verdict");
}

/// One verdict a row; an error if the library is slower in any.
static Error judge(Session &session, const BenchOptions &options, const ModelLibrary &library,
                   ArrayRef<SymbolDims> dimSets, ArrayRef<unsigned> threads) {
  unsigned slower = 0;
  json::Array list;
  for (const SymbolDims &named : dimSets)
    for (unsigned count : threads) {
      TimeTierOptions how{.model = modelOptions(options, named, count)};
      how.rule.tolerance = options.tolerance / 100;
      Expected<SymbolDims> dims = dimsOf(library, how.model);
      if (!dims)
        return dims.takeError();
      Expected<gate::TimeResult> result = compareLibraries(session, options.library, options.other, how);
      if (!result)
        return result.takeError();
      slower += result->verdict == gate::TimeVerdict::Slower;
      if (!options.json)
        session.out << (dims->empty() ? "" : formatDims(*dims) + ": ") << nameOf(result->verdict) << ", "
                    << describeTimes(*result) << '\n';
      const gate::Interval &ratio = result->ratio;
      list.push_back(
          json::Object{{"dims", formatDims(*dims)},
                       {"threads", count},
                       {"verdict", nameOf(result->verdict)},
                       {"ratio", json::Object{{"median", ratio.median}, {"low", ratio.low}, {"high", ratio.high}}},
                       {"measurements", result->measurements}});
    }
  if (options.json)
    session.out << formatv("{0:2}\n",
                           json::Value(json::Object{{"library", options.library}, {"verdicts", std::move(list)}}));
  if (!slower)
    return Error::success();
  return exitError(exitDifference, "'" + options.library + "' is slower than '" + options.other + "' by more than " +
                                       formatPercent(options.tolerance) + " %");
}

/// One row: the library alone, or in turns with the other.
static Error measureRow(Session &session, const ModelLibrary &library, const ModelLibrary *other,
                        const BenchOptions &options, const SymbolDims &dims, unsigned threads, std::vector<Row> &rows,
                        std::vector<ProfiledRuns> &traces) {
  TimedModelOptions how = modelOptions(options, dims, threads);
  Expected<TimedModel> subject = TimedModel::prepare(library, how);
  if (!subject)
    return subject.takeError();
  std::optional<TimedModel> rival;
  if (other) {
    Expected<TimedModel> prepared = TimedModel::prepare(*other, how);
    if (!prepared)
      return prepared.takeError();
    rival.emplace(std::move(*prepared));
  }
  Row &row = rows.emplace_back(Row{.dims = formatDims(subject->getDims()), .subject = runsOf(library, *subject)});
  if (rival)
    row.other = runsOf(*other, *rival);
  if (Error error = measure(*subject, rival ? &*rival : nullptr, options.minTime, row))
    return error;
  if (options.perKernel || !options.profile.empty())
    return profileRow(session, library, options, dims, row, traces);
  return Error::success();
}

static Error printRows(Session &session, const BenchOptions &options, ArrayRef<Row> rows) {
  if (!options.json) {
    printTable(session.out, rows, options.percentiles);
    return Error::success();
  }
  json::Array list;
  for (const Row &row : rows)
    list.push_back(toJson(row, options.percentiles));
  session.out << formatv("{0:2}\n", json::Value(json::Object{{"library", options.library}, {"rows", std::move(list)}}));
  return Error::success();
}

static Error checkOptions(const BenchOptions &options) {
  if (options.tolerance < 0)
    return Error::success();
  if (options.other.empty())
    return exitError(exitUsage, "--tolerance says by how much a library may be slower than another",
                     "--ab=OTHER.so names that one");
  if (options.perKernel || !options.profile.empty())
    return exitError(exitUsage, "--tolerance gives a verdict alone",
                     "--per-kernel and --profile in a call of their own");
  return Error::success();
}

static Error bench(Session &session, const BenchOptions &options) {
  if (Error error = checkOptions(options))
    return error;
  Expected<ModelLibrary> library = ModelLibrary::open(session, options.library);
  if (!library)
    return library.takeError();
  std::optional<ModelLibrary> other;
  if (!options.other.empty()) {
    Expected<ModelLibrary> opened = ModelLibrary::open(session, options.other);
    if (!opened)
      return opened.takeError();
    other = std::move(*opened);
    if (Error error = warnIfOtherInputs(session, *library, *other, options.function))
      return error;
  }
  Expected<std::vector<SymbolDims>> dimSets = combinations(options.dims);
  if (!dimSets)
    return dimSets.takeError();
  bool isJudged = options.tolerance >= 0;
  std::vector<unsigned> threads = options.threads;
  if (threads.empty())
    threads = {isJudged ? 1u : 0u}; // one thread is judged by its processor time, which noise hardly touches
  if (isJudged)
    return judge(session, options, *library, *dimSets, threads);
  std::vector<Row> rows;
  std::vector<ProfiledRuns> traces;
  for (const SymbolDims &dims : *dimSets)
    for (unsigned count : threads) {
      session.progress.show("measuring", rows.size(), dimSets->size() * threads.size());
      if (Error error = measureRow(session, *library, other ? &*other : nullptr, options, dims, count, rows, traces))
        return error;
    }
  session.progress.clear();
  if (!options.profile.empty())
    if (Error error = writeFile(options.profile, formatTrace(traces, library->table())))
      return error;
  return printRows(session, options, rows);
}

Action declareBench(CLI::App &app) {
  auto options = std::make_shared<BenchOptions>();
  app.add_option("library", options->library, "a library made by ptc")->required()->type_name("MODEL.so");
  app.add_option("--ab", options->other, "another library, measured in turns with the first")->type_name("OTHER.so");
  app.add_option("-i,--input", options->inputs, inputSpecHelp.str() + " (default: random:0)")
      ->allow_extra_args(false)
      ->type_name("SPEC");
  app.add_option("--dim,--at", options->dims, "values of a symbol, a row for each: batch=1,8")
      ->allow_extra_args(false)
      ->type_name("NAME=N,...");
  app.add_option("--threads", options->threads, "numbers of threads, a row for each (default: all; 1 with --tolerance)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N,...");
  app.add_option("--min-time", options->minTime, "seconds of measuring a row (default: 1)")
      ->check(CLI::Range(0.0, 3600.0))
      ->type_name("SECONDS");
  app.add_option("--percentile", options->percentiles, "which percentiles (default: 50,90,99)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(0.0, 100.0))
      ->type_name("P,...");
  app.add_option("--tolerance", options->tolerance, "with --ab: a verdict; exit code 1 if slower by more than this")
      ->check(CLI::Range(0.0, 1000.0))
      ->type_name("PERCENT");
  app.add_option("--function", options->function, "which function of the library (default: the first)")
      ->type_name("NAME");
  app.add_flag("--per-kernel", options->perKernel,
               "also time each kernel, with its share, its rates and how near it comes to the machine's peaks");
  app.add_option(
         "--profile", options->profile,
         "write the launches of a run of each row, and their pieces on threads, for chrome://tracing or Perfetto")
      ->type_name("FILE");
  app.add_flag("--json", options->json, "print JSON");
  addInstanceOptions(app, options->instance);
  return [options](Session &session) { return bench(session, *options); };
}

} // namespace ptc
