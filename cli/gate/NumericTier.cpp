// Every level of the library that this machine runs is run on made-up inputs, with one thread and with several: the
// bits have to be the same. What code of one level computes does not depend on the machine, nor on the number of
// threads, so that figures of a level can be compared wherever they were recorded; figures of two levels differ (one
// has a fused multiply-add, another sums in wider vectors), which is why each has its own rows.
//
// The reference (cli/Reference.h) interprets the imported model element by element, tens of times slower than compiled
// code. It is asked only when it has something to tell: a row holds a digest of the output's bytes, and an output with
// the recorded digest is as far from the reference as it was. So a clean recompile of any model costs a few runs of it,
// and recording, or a change of results, one interpretation a seed.
#include "cli/gate/NumericTier.h"
#include "cli/Comparison.h"
#include "cli/Reference.h"
#include "cli/gate/NodeSearch.h"
#include "compiler/artifact/Weights.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace ptc {

namespace {
constexpr unsigned severalThreads = 4; // on any machine: how work is split must not matter

/// The reference's outputs on one seed's inputs, once somebody wants them.
class Reference {
public:
  Reference(Session &session, const CompileOptions &options, const std::vector<Tensor> &inputs)
      : session(session), options(options), inputs(inputs) {}

  Expected<const Tensor *> find(StringRef output) {
    if (!isKnown) {
      Expected<NamedTensors> evaluated = evaluateReference(session, options, inputs);
      if (!evaluated)
        return evaluated.takeError();
      outputs = std::move(*evaluated);
      isKnown = true;
    }
    for (const auto &[name, tensor] : outputs)
      if (name == output)
        return &tensor;
    return exitError(exitInternal, "the reference has no output '" + output + "'");
  }

private:
  Session &session;
  const CompileOptions &options;
  const std::vector<Tensor> &inputs;
  NamedTensors outputs;
  bool isKnown = false;
};

/// One library under measurement.
struct Subject {
  Session &session;
  const CompileOptions &options;
  const ModelLibrary &library;
  ArrayRef<gate::NumericRow> recorded;
};
} // namespace

static std::string digestOf(const Tensor &tensor) {
  artifact::Digest digest = artifact::digestOf({tensor.bytes.data(), tensor.bytes.size()}, /*jobs=*/1);
  return toHex(ArrayRef(digest).take_front(16), /*LowerCase=*/true);
}

static Expected<std::vector<Tensor>> run(const ModelLibrary &library, StringRef level, unsigned threads,
                                         std::vector<Tensor> inputs) {
  InstanceOptions how;
  how.threads = threads;
  how.cpuLevel = level.str();
  return runOnce(library, how, std::move(inputs));
}

/// Whether the machine runs the level. Any other failure stays an error of the runs.
static bool isRunnable(const ModelLibrary &library, StringRef level) {
  InstanceOptions how;
  how.threads = 1;
  how.cpuLevel = level.str();
  Expected<ModelInstance> instance = ModelInstance::create(library, how);
  if (instance)
    return true;
  bool lacksLevel = false;
  handleAllErrors(
      instance.takeError(), [&](const ExitError &error) { lacksLevel = error.code == exitTarget; },
      [](const ErrorInfoBase &) {});
  return !lacksLevel;
}

static Error measureDistance(const Tensor &actual, const Tensor &expected, gate::NumericRow &row) {
  if (actual.shape != expected.shape || !(actual.dtype == expected.dtype))
    return exitError(exitDifference, "output '" + row.output + "' is " + formatType(actual.dtype) + " " +
                                         formatShape(actual.shape) + ", the reference's " + formatType(expected.dtype) +
                                         " " + formatShape(expected.shape));
  UlpSummary summary = summarizeUlps(actual, expected);
  row.maxUlp = static_cast<int64_t>(std::min<uint64_t>(summary.max, INT64_MAX));
  row.p99Ulp = static_cast<int64_t>(std::min<uint64_t>(summary.p99, INT64_MAX));
  row.nans = summary.nans;
  row.infinities = summary.infinities;
  row.nansExpected = summary.nansExpected;
  row.infinitiesExpected = summary.infinitiesExpected;
  row.maxUlpTolerance = gate::defaultUlpTolerance(row.maxUlp);
  row.p99UlpTolerance = gate::defaultUlpTolerance(row.p99Ulp);
  return Error::success();
}

static const gate::NumericRow *findRecorded(ArrayRef<gate::NumericRow> recorded, const gate::NumericRow &row) {
  auto found = llvm::find_if(recorded, [&](const gate::NumericRow &old) {
    return old.level == row.level && old.seed == row.seed && old.function == row.function && old.output == row.output &&
           old.digest == row.digest;
  });
  return found == recorded.end() ? nullptr : &*found;
}

static Error measureLevel(const Subject &subject, StringRef level, uint64_t seed, const std::vector<Tensor> &inputs,
                          Reference &reference, std::vector<gate::NumericRow> &rows) {
  Expected<std::vector<Tensor>> one = run(subject.library, level, 1, inputs);
  if (!one)
    return one.takeError();
  Expected<std::vector<Tensor>> several = run(subject.library, level, severalThreads, inputs);
  if (!several)
    return several.takeError();
  const ptc_function &function = subject.library.table().functions[0];
  for (unsigned i = 0; i < function.output_count; ++i) {
    const Tensor &actual = (*one)[i];
    gate::NumericRow row;
    row.function = function.name;
    row.output = function.outputs[i].name;
    row.level = level.str();
    row.seed = static_cast<int64_t>(seed);
    row.digest = digestOf(actual);
    row.threadsEqual = actual.bytes == (*several)[i].bytes;
    if (const gate::NumericRow *same = findRecorded(subject.recorded, row)) {
      bool threadsEqual = row.threadsEqual;
      row = *same;
      row.threadsEqual = threadsEqual;
    } else {
      Expected<const Tensor *> expected = reference.find(row.output);
      if (!expected)
        return expected.takeError();
      if (Error error = measureDistance(actual, **expected, row))
        return error;
    }
    rows.push_back(std::move(row));
  }
  return Error::success();
}

namespace {
/// Names the nodes of rows that are worse than recorded, once a level: seeds differ in their inputs alone.
class RowBlame {
public:
  RowBlame(Session &session, const CompileOptions &options, StringRef library, ArrayRef<gate::NumericRow> recorded)
      : search(session, options, sys::path::parent_path(library)), recorded(recorded) {}

  void name(MutableArrayRef<gate::NumericRow> rows, const std::vector<Tensor> &inputs) {
    for (gate::NumericRow &row : rows) {
      const gate::NumericRow *before = gate::findRow(recorded, row);
      if (!before || !gate::isWorse(*before, row))
        continue;
      auto [known, isNew] = byLevel.try_emplace(row.level);
      if (isNew)
        known->second = search.run(row.level, inputs);
      row.nodes = known->second.nodes;
      row.cause = known->second.cause;
    }
  }

private:
  NodeSearch search;
  ArrayRef<gate::NumericRow> recorded;
  StringMap<NodeBlame> byLevel;
};
} // namespace

Expected<MeasuredNumerics> measureNumerics(Session &session, const CompileOptions &options, StringRef path,
                                           const NumericTierOptions &how, ArrayRef<gate::NumericRow> recorded) {
  Expected<ModelLibrary> library = ModelLibrary::open(session, path);
  if (!library)
    return library.takeError();
  Subject subject{session, options, *library, recorded};
  const ptc_model_table &table = library->table();
  MeasuredNumerics measured;
  std::vector<std::string> levels;
  for (const std::string &level : how.levels)
    (isRunnable(*library, level) ? levels : measured.skipped).push_back(level);
  RowBlame blame(session, options, path, recorded);
  for (uint64_t seed : how.seeds) {
    std::vector<std::string> specs = {"random:" + std::to_string(seed)};
    append_range(specs, how.inputs);
    Expected<std::vector<Tensor>> inputs = makeInputs(table.functions[0], specs, {});
    if (!inputs)
      return inputs.takeError();
    Reference reference(session, options, *inputs);
    for (const std::string &level : levels) {
      size_t first = measured.rows.size();
      if (Error error = measureLevel(subject, level, seed, *inputs, reference, measured.rows))
        return std::move(error);
      if (how.namesNodes)
        blame.name(MutableArrayRef(measured.rows).drop_front(first), *inputs);
    }
  }
  return measured;
}

} // namespace ptc
