// ptc verify --per-node: which node is computed wrong?
//
// Comparing every value with that of a whole run of the interpreter finds where an error first leaves the tolerance,
// which is seldom where it is made: rounding grows from layer to layer until some innocent node crosses the line, and
// behind a wrong node everything is wrong. So each node is asked alone: the interpreter computes it from the library's
// own values of its operands, and a difference is this node's own work. Nodes then do not depend on each other: the
// first one that differs, in the order of the graph, is where an error enters, later ones that differ make errors of
// their own, and all are interpreted at once on the threads of -j.
//
// The library shows its values through taps (ptc_options::tap), one of each node's outputs. A tap is one more store in
// the kernel that has the value in a register, and what the kernel goes on with is that register; where one
// more user of a value changes which nodes are fused, the report says how many kernels. A value that the program does
// not compute at all (folded constants, what is inside an attention kernel) has no tap, and the report counts
// those by reason; the node behind it is then computed from the nearest values that are known, so that a fault inside
// is charged to it.
//
// Memory: all tapped values at once, since nodes are interpreted in any order. Time: that of interpreting the model
// once (a few hundred million multiplications a second and thread).
#include "cli/PerNode.h"
#include "cli/CompileSession.h"
#include "cli/Reference.h"
#include "cli/Taps.h"
#include "ir/Diagnostics.h"
#include "ir/loop/Loop.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"
#include <mutex>
#include <set>

using namespace llvm;

namespace ptc {

namespace {
/// A value of the user's graph.
struct NodeValue {
  prim::TapOp op;
  const TappedValue *seen = nullptr; // what the library has
  std::optional<Difference> difference;
  Tensor expected;
  std::string failure; // of the interpreter

  prim::TapOp tap() const { return op; } // MLIR's handles are not const
  bool differs() const { return difference && difference->count; }
};

/// Files are mapped at first use.
struct SharedWeights : eval::WeightSource {
  explicit SharedWeights(eval::WeightSource &source) : source(source) {}
  Expected<ArrayRef<char>> getBytes(prim::WeightRefAttr ref) override {
    std::lock_guard<std::mutex> lock(mutex);
    return source.getBytes(ref);
  }
  eval::WeightSource &source;
  std::mutex mutex;
};
} // namespace

static std::string keyOf(StringRef node, StringRef output) { return (node + "\n" + output).str(); }

/// Values by node and name; a name that comes more than once (rounds of a loop) by its order in the graph.
static void matchTaps(std::vector<NodeValue> &values, std::vector<TappedValue> &taps) {
  llvm::stable_sort(taps, [](const TappedValue &a, const TappedValue &b) { return a.number < b.number; });
  StringMap<std::vector<const TappedValue *>> byName;
  for (const TappedValue &tap : taps)
    byName[keyOf(tap.node, tap.output)].push_back(&tap);
  StringMap<size_t> used;
  for (NodeValue &value : values) {
    std::optional<NodeLocation> node = describeLocation(value.tap().getLoc());
    std::string key = keyOf(node ? node->node : "", value.tap().getOutput());
    if (const auto &same = byName[key]; used[key] < same.size())
      value.seen = same[used[key]++];
  }
}

/// The library's bytes under the reference's type: booleans and elements below 8 bits lie one a byte in both.
static Expected<eval::Tensor> toReference(prim::TapOp tap, const Tensor &value) {
  Expected<eval::Tensor> result = eval::Tensor::create(prim::getElementType(tap.getX()), value.shape);
  if (result && result->getBytes().size() != value.bytes.size())
    return exitError(exitUsage, "'" + tap.getOutput() + "' has another type in the library than in the model");
  if (result)
    llvm::copy(value.bytes, result->getBytes().begin());
  return result;
}

static void interpret(NodeValue &value, ArrayRef<eval::Tensor> inputs, eval::GivenValues given,
                      const SymbolValues &symbols, eval::WeightSource &weights, const Tolerance &tolerance) {
  const eval::Tensor *actual = given(value.tap().getX());
  Expected<eval::Tensor> expected = eval::evaluateValue(value.tap().getX(), inputs, given, symbols, weights);
  if (!expected) {
    value.failure = toString(expected.takeError());
    return;
  }
  if (actual->getShape() != expected->getShape()) {
    value.failure = "the library has " + formatShape(actual->getShape()) + " where " +
                    formatShape(expected->getShape()) + " is expected";
    return;
  }
  value.expected = fromReference(*expected);
  value.difference = compareTensors(fromReference(*actual), value.expected, tolerance);
}

/// Interprets every value that the library has shown, from the library's own.
static Error interpretAll(Session &session, Compilation &compilation, mlir::func::FuncOp function,
                          std::vector<NodeValue> &values, const PerNodeRequest &request) {
  Expected<std::vector<eval::Tensor>> inputs = toReference(function, request.inputs);
  if (!inputs)
    return inputs.takeError();
  Expected<SymbolValues> symbols = eval::bindSymbols(function, *inputs);
  if (!symbols)
    return exitError(exitUsage, "the inputs do not fit the model: " + toString(symbols.takeError()));
  DenseMap<mlir::Value, eval::Tensor> known;
  for (NodeValue &value : values) {
    if (!value.seen)
      continue;
    Expected<eval::Tensor> tensor = toReference(value.tap(), value.seen->value);
    if (!tensor)
      return tensor.takeError();
    known.try_emplace(value.tap().getX(), std::move(*tensor));
  }
  auto given = [&](mlir::Value value) -> const eval::Tensor * {
    auto found = known.find(value);
    return found == known.end() ? nullptr : &found->second;
  };
  SharedWeights weights(compilation.weightFiles);
  std::mutex mutex;
  size_t done = 0;
  ThreadPoolTaskGroup group(compilation.pool);
  for (NodeValue &value : values)
    if (value.seen)
      group.async([&] {
        interpret(value, *inputs, given, *symbols, weights, request.tolerance);
        std::lock_guard<std::mutex> lock(mutex);
        session.progress.show("interpreting nodes", ++done, values.size());
      });
  group.wait();
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Report
//===----------------------------------------------------------------------===//

static std::string nameOf(const NodeValue &value) {
  std::string name = formatLocation(value.tap().getLoc());
  return name.empty() ? "'" + value.tap().getOutput().str() + "'" : name;
}

/// "[0, 3, 1]" for a row-major position.
static std::string formatIndex(ArrayRef<int64_t> shape, int64_t position) {
  std::string text;
  for (int64_t extent : llvm::reverse(shape)) {
    text = std::to_string(position % extent) + (text.empty() ? "" : ", ") + text;
    position /= extent;
  }
  return "[" + text + "]";
}

static void reportDifference(raw_ostream &os, const NodeValue &value) {
  const Difference &difference = *value.difference;
  const Tensor &actual = value.seen->value;
  os << nameOf(value) << ", value '" << value.tap().getOutput() << "': " << difference.count << " of "
     << actual.elementCount() << " elements differ; " << format("largest difference %.3g", difference.largest);
  if (actual.isFloat())
    os << ", " << difference.largestUlp << " ulp";
  if (difference.worst >= 0)
    os << "; at " << formatIndex(actual.shape, difference.worst)
       << format(": %.9g, expected %.9g", actual.at(difference.worst), value.expected.at(difference.worst));
  os << '\n';
}

static void reportFirst(raw_ostream &os, const NodeValue &value) {
  os << "first node that differs: ";
  if (value.failure.empty())
    reportDifference(os, value);
  else
    os << nameOf(value) << ": " << value.failure << '\n';
  os << "  expected from the library's own values of what the node reads, which agree: the error is made here\n";
  if (value.seen->kernel.empty())
    return;
  os << "  kernel " << value.seen->kernel << ", launch " << value.seen->launch << ", of " << value.seen->nodes << '\n';
}

/// How many values have no tap, by reason, with the first few names.
static void reportUnseen(raw_ostream &os, ArrayRef<NodeValue> values, const DenseMap<int64_t, std::string> &reasons) {
  MapVector<StringRef, SmallVector<const NodeValue *>> byReason;
  for (const NodeValue &value : values)
    if (!value.seen) {
      auto found = reasons.find(value.tap().getNumber());
      StringRef reason = found == reasons.end() ? StringRef("not shown by the library") : StringRef(found->second);
      byReason[reason].push_back(&value);
    }
  constexpr size_t shown = 3;
  for (const auto &[reason, list] : byReason) {
    os << list.size() << " not compared, " << reason << ": ";
    for (const NodeValue *value : ArrayRef(list).take_front(shown))
      os << (value == list.front() ? "" : ", ") << '\'' << value->tap().getOutput() << '\'';
    os << (list.size() > shown ? ", ...\n" : "\n");
  }
}

static Error report(Session &session, ArrayRef<NodeValue> values, const DenseMap<int64_t, std::string> &reasons) {
  raw_ostream &os = session.out;
  size_t compared = 0, wrong = 0;
  uint64_t largest = 0;
  for (const NodeValue &value : values) {
    compared += value.seen != nullptr;
    if (value.seen && (value.differs() || !value.failure.empty())) {
      if (++wrong == 1)
        reportFirst(os, value);
      else if (session.common.verbose && value.failure.empty())
        reportDifference(os << "also: ", value);
    } else if (value.difference) {
      largest = std::max(largest, value.difference->largestUlp);
    }
  }
  if (wrong > 1)
    os << wrong - 1 << " later value(s) differ too, each from what it is computed from\n";
  os << compared << " of " << values.size() << " values compared, ";
  if (wrong)
    os << compared - wrong << " agree\n";
  else
    os << "all agree\n";
  reportUnseen(os, values, reasons);
  if (wrong)
    return exitError(exitDifference, Twine(wrong) + " of " + Twine(compared) + " values differ");
  return Error::success();
}

//===----------------------------------------------------------------------===//
// What taps change
//===----------------------------------------------------------------------===//

/// Which nodes each launch does the work of.
static std::vector<std::string> listLaunches(mlir::ModuleOp module) {
  std::vector<std::string> launches;
  module.walk([&](loop::LaunchOp launch) {
    std::set<std::string> nodes;
    launch.getLoc()->walk([&](mlir::Location part) {
      if (std::optional<NodeLocation> node = describeLocation(part))
        nodes.insert(keyOf(node->node, node->output));
      return mlir::WalkResult::advance();
    });
    std::string text;
    for (const std::string &node : nodes)
      text += node + "\n";
    launches.push_back(std::move(text));
  });
  llvm::sort(launches);
  return launches;
}

/// Says how many launches of the library as compiled without taps are not there with them.
static Error reportFusion(Session &session, const CompileOptions &options, mlir::ModuleOp tapped) {
  CompileOptions plain = options;
  plain.taps.clear();
  CompileHooks hooks = hooksOf(session, "verify");
  Compilation compilation(plain, hooks);
  if (Error error = compilation.runTo(Phase::Schedule))
    return error;
  std::vector<std::string> with = listLaunches(tapped), without = listLaunches(compilation.getModule()), lost;
  std::set_difference(without.begin(), without.end(), with.begin(), with.end(), std::back_inserter(lost));
  if (lost.empty())
    session.out << "taps changed no kernel's nodes: all " << without.size() << " launches are those without taps\n";
  else
    session.out << "taps changed which nodes are fused in " << lost.size() << " of " << without.size()
                << " launches; `ptc verify` without --per-node checks the library as it is without taps\n";
  return Error::success();
}

Error verifyPerNode(Session &session, PerNodeRequest request) {
  std::vector<TappedValue> taps;
  InstanceOptions instanceOptions = request.instance;
  instanceOptions.tap = [&](const ptc_tap &tap) { taps.push_back(copyTap(tap)); };
  Expected<ModelInstance> instance = ModelInstance::create(request.library, instanceOptions);
  if (!instance)
    return instance.takeError();
  std::vector<Tensor> inputs = request.inputs; // those of alias pairs are updated
  Expected<std::vector<Tensor>> outputs = instance->makeOutputs(0, inputs);
  if (!outputs)
    return outputs.takeError();
  if (Error error = instance->run(0, inputs, *outputs))
    return error;
  if (taps.empty())
    return exitError(exitUsage, "'" + request.library.path() + "' shows no values of its nodes",
                     "compile it with --tap all");

  CompileOptions options = request.model;
  options.taps = {"all"};
  CompileHooks hooks = hooksOf(session, "verify");
  Compilation compilation(options, hooks);
  if (Error error = compilation.runTo(Phase::Import))
    return error;
  mlir::OwningOpRef<mlir::ModuleOp> imported = compilation.getModule().clone();
  if (Error error = compilation.runTo(Phase::Schedule))
    return error;
  DenseMap<int64_t, std::string> reasons;
  compilation.getModule().walk([&](loop::TapOp tap) {
    if (tap.getReason())
      reasons[tap.getNumber()] = tap.getReason()->str();
  });
  mlir::func::FuncOp function = *imported->getOps<mlir::func::FuncOp>().begin();
  std::vector<NodeValue> values;
  function.walk([&](prim::TapOp tap) { values.push_back({tap, nullptr, std::nullopt, {}, {}}); });
  matchTaps(values, taps);
  if (Error error = interpretAll(session, compilation, function, values, request))
    return error;
  Error outcome = report(session, values, reasons);
  if (request.isOwnLibrary)
    outcome = joinErrors(std::move(outcome), reportFusion(session, options, compilation.getModule()));
  return outcome;
}

} // namespace ptc
