#include "cli/gate/LibraryTiers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace ptc {

static void warn(Session &session, StringRef subject, const Twine &message, const Twine &help) {
  DiagnosticRecord record{.severity = DiagnosticRecord::Severity::Warning, .subject = subject.str()};
  record.message = message.str();
  record.helps.push_back(help.str());
  session.diagnostics.report(std::move(record));
}

//===----------------------------------------------------------------------===//
// Numerics
//===----------------------------------------------------------------------===//

/// A baseline holds what its inputs are made of, and no files.
static Error checkSpecs(ArrayRef<std::string> inputs) {
  for (StringRef spec : inputs)
    if (spec.starts_with("@") || spec.contains("=@"))
      return exitError(exitUsage, "-i " + spec + ": a baseline holds no files", "random:SEED, zeros or ones");
  return Error::success();
}

/// Random integers are seldom indices and masks; ones are. `specs` for all integer inputs that it does not name.
static Error addOnes(Session &session, StringRef path, std::vector<std::string> &specs) {
  Expected<ModelLibrary> library = ModelLibrary::open(session, path);
  if (!library)
    return library.takeError();
  const ptc_function &function = library->table().functions[0];
  for (const ptc_value &value : ArrayRef(function.inputs, function.input_count)) {
    bool isInteger = value.dtype.code == PTC_INT || value.dtype.code == PTC_UINT;
    std::string name = std::string(value.name) + "=";
    if (isInteger && none_of(specs, [&](StringRef spec) { return spec.starts_with(name); }))
      specs.push_back(name + "ones");
  }
  return Error::success();
}

/// Takes the error if it is one of the model's run: of its inputs, that is.
static bool takeRunFailure(Error &error) {
  error = handleErrors(std::move(error), [](std::unique_ptr<ExitError> exit) {
    return exit->code == exitRunFailure ? Error::success() : Error(std::move(exit));
  });
  return !error;
}

static Expected<MeasuredNumerics> recordNumerics(Session &session, const CompileOptions &options, StringRef library,
                                                 NumericTierOptions &how) {
  Expected<MeasuredNumerics> measured = measureNumerics(session, options, library, how, {});
  if (measured)
    return measured;
  Error failure = measured.takeError();
  if (!takeRunFailure(failure))
    return std::move(failure);
  if (Error error = addOnes(session, library, how.inputs))
    return std::move(error);
  measured = measureNumerics(session, options, library, how, {});
  if (measured)
    return measured;
  failure = measured.takeError();
  return handleErrors(std::move(failure), [&](std::unique_ptr<ExitError> exit) -> Error {
    if (exit->code != exitRunFailure)
      return Error(std::move(exit));
    return exitError(exitRunFailure, "results cannot be measured on made-up inputs: " + exit->message,
                     "-i NAME=zeros, ones or random:SEED for those that do not suit, or --no-numerics");
  });
}

static Error measureOutputs(Session &session, const LibraryTiers &tiers, const CompileOptions &options,
                            const gate::Baseline *recorded, gate::Observed &observed) {
  gate::Baseline &baseline = observed.baseline;
  NumericTierOptions how{
      .levels = baseline.levels, .seeds = tiers.seeds, .inputs = tiers.inputs, .namesNodes = tiers.namesNodes};
  if (Error error = checkSpecs(how.inputs))
    return error;
  bool isAnew = tiers.measuresAnew(recorded);
  if (isAnew && how.seeds.empty())
    how.seeds = {0};
  ArrayRef<gate::NumericRow> known;
  if (!isAnew) {
    known = recorded->numerics;
    SmallSetVector<uint64_t, 4> seeds;
    for (const gate::NumericRow &row : known)
      seeds.insert(static_cast<uint64_t>(row.seed));
    how.seeds.assign(seeds.begin(), seeds.end());
    how.inputs = recorded->inputs;
  }
  Expected<MeasuredNumerics> measured = isAnew ? recordNumerics(session, options, observed.library, how)
                                               : measureNumerics(session, options, observed.library, how, known);
  if (!measured)
    return measured.takeError();
  if (!measured->skipped.empty())
    warn(session, options.model,
         "this machine does not run " + join(measured->skipped, ", ") + "; results of these levels are not measured",
         !isAnew ? "what was recorded of them is neither confirmed nor refuted"
                 : "to have them in the baseline, record on a machine that runs them");
  for (gate::NumericRow &row : measured->rows) // names as a baseline spells them
    for (std::string *name : {&row.function, &row.output})
      *name = json::fixUTF8(*name);
  gate::checkNumerics(measured->rows, observed.unstable);
  baseline.inputs = how.inputs;
  baseline.numerics = std::move(measured->rows);
  for (const gate::NumericRow &row : known) // those of other machines stay
    if (is_contained(measured->skipped, row.level))
      baseline.numerics.push_back(row);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

/// The library to compare with: `against`, or the one in that folder that is called as the model's is.
static Expected<std::string> findOther(StringRef against, StringRef library) {
  if (!sys::fs::is_directory(against))
    return against.str();
  SmallString<128> path(against);
  sys::path::append(path, sys::path::filename(library));
  if (!sys::fs::exists(path))
    return exitError(exitFile, "'" + against + "' has no '" + sys::path::filename(library) + "' to compare times with",
                     "--against names a library, or a folder of them");
  return path.str().str();
}

static gate::Finding findingOf(const gate::TimeResult &result, double tolerance) {
  auto format = [](double seconds) { return formatv("{0:f4} ms", seconds * 1e3).str(); };
  return {.kind = gate::FindingKind::Time,
          .direction =
              result.verdict == gate::TimeVerdict::Slower ? gate::Direction::Regression : gate::Direction::Improvement,
          .subject = "model",
          .what = "time of a run on one thread",
          .before = format(result.otherSeconds),
          .after = format(result.seconds),
          .tolerance = formatv("{0:f1}%", tolerance).str(),
          .reason = describeTimes(result)};
}

static Error compareTimes(Session &session, const LibraryTiers &tiers, gate::Observed &observed) {
  Expected<std::string> other = findOther(tiers.against, observed.library);
  if (!other)
    return other.takeError();
  TimeTierOptions how;
  how.model.instance.threads = 1;
  how.model.inputs = observed.baseline.inputs;
  how.rule.tolerance = tiers.tolerance / 100;
  Expected<gate::TimeResult> result = compareLibraries(session, observed.library, *other, how);
  if (!result)
    return result.takeError();
  session.log("time: " + describeTimes(*result));
  if (result->verdict == gate::TimeVerdict::Slower || result->verdict == gate::TimeVerdict::Faster)
    observed.unstable.push_back(findingOf(*result, tiers.tolerance));
  if (result->verdict == gate::TimeVerdict::Undecided)
    warn(session, *other, "whether it is slower is undecided: " + describeTimes(*result),
         "the machine is too noisy; check again when it is quieter, or with a higher --time-tolerance");
  return Error::success();
}

Error measureLibrary(Session &session, const LibraryTiers &tiers, const CompileOptions &options,
                     const gate::Baseline *recorded, gate::Observed &observed) {
  if (tiers.measuresResults(recorded))
    if (Error error = measureOutputs(session, tiers, options, recorded, observed))
      return error;
  return tiers.against.empty() ? Error::success() : compareTimes(session, tiers, observed);
}

} // namespace ptc
