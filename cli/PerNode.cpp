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
// What is computed together with others and never shown stays charged to the node that is shown; WrongNode::inside
// lists it.
//
// Memory: all tapped values at once, since nodes are interpreted in any order. Time: that of interpreting the model
// once (a few hundred million multiplications a second and thread).
#include "cli/PerNode.h"
#include "cli/Reference.h"
#include "cli/Taps.h"
#include "ir/Diagnostics.h"
#include "ir/loop/Loop.h"
#include "llvm/ADT/MapVector.h"
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
  std::string failure;    // of the interpreter
  bool isLacking = false; // the interpreter does not have what computes it

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
                      const SymbolValues &symbols, eval::WeightSource &weights,
                      const std::optional<Tolerance> &tolerance) {
  const eval::Tensor *actual = given(value.tap().getX());
  Expected<eval::Tensor> expected = eval::evaluateValue(value.tap().getX(), inputs, given, symbols, weights);
  if (!expected) {
    Error failure = expected.takeError();
    value.isLacking = failure.isA<eval::Lack>();
    value.failure = toString(std::move(failure));
    return;
  }
  if (actual->getShape() != expected->getShape()) {
    value.failure = "the library has " + formatShape(actual->getShape()) + " where " +
                    formatShape(expected->getShape()) + " is expected";
    return;
  }
  value.expected = fromReference(*expected);
  value.difference = compareTensors(fromReference(*actual), value.expected,
                                    tolerance ? *tolerance : toleranceOfRounding(value.expected));
}

/// Interprets every value that the library has shown, from the library's own.
static Error interpretAll(const CompileHooks &hooks, Compilation &compilation, mlir::func::FuncOp function,
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
        hooks.progress("interpreting nodes", ++done, values.size());
      });
  group.wait();
  return Error::success();
}

//===----------------------------------------------------------------------===//
// What came out
//===----------------------------------------------------------------------===//

static NodeName nameOf(const NodeValue &value) {
  std::optional<NodeLocation> node = describeLocation(value.tap().getLoc());
  return {node ? node->node.str() : "", value.tap().getOutput().str()};
}

namespace {
/// Which tapped values that the library has not shown are computed on the way to one that it has, back to the nearest
/// others that it has. Those that depend on no data are none of them.
///
/// Whether a value depends on data is asked of each once. `claim` looks at each value once over all calls; `listAll`
/// is for the few values that differ.
class InsideSearch {
public:
  InsideSearch(ArrayRef<NodeValue> values) {
    for (const NodeValue &value : values)
      tapped[value.tap().getX()].push_back(&value);
  }

  /// All of them inside `outer`.
  std::vector<NodeName> listAll(const NodeValue &outer) {
    DenseSet<mlir::Value> visited;
    return search(outer, visited);
  }

  /// Those inside `outer` that no earlier call has returned.
  std::vector<NodeName> claim(const NodeValue &outer) { return search(outer, claimed); }

private:
  ArrayRef<const NodeValue *> tapsOf(mlir::Value value) const {
    auto known = tapped.find(value);
    return known == tapped.end() ? ArrayRef<const NodeValue *>() : ArrayRef(known->second);
  }
  bool isSeen(mlir::Value value) const {
    return llvm::any_of(tapsOf(value), [](const NodeValue *tap) { return tap->seen; });
  }

  /// Calls `leave` of `root` and of each hidden value behind it once, operands first. Without recursion: graphs are
  /// deep. `isNew` says whether a value is to be gone into.
  static void walk(mlir::Value root, function_ref<bool(mlir::Value)> isNew, function_ref<void(mlir::Value)> leave) {
    SmallVector<std::pair<mlir::Value, unsigned>> path = {{root, 0}};
    while (!path.empty()) {
      auto &[value, next] = path.back();
      mlir::Operation *op = value.getDefiningOp();
      if (op && next < op->getNumOperands()) {
        mlir::Value operand = op->getOperand(next++);
        if (isNew(operand))
          path.push_back({operand, 0});
        continue;
      }
      leave(value);
      path.pop_back();
    }
  }

  bool dependsOnData(mlir::Value value) {
    auto isKnown = [&](mlir::Value each) { return isSeen(each) || !each.getDefiningOp() || dependence.contains(each); };
    auto answer = [&](mlir::Value each) { return isSeen(each) || !each.getDefiningOp() || dependence.lookup(each); };
    if (!isKnown(value))
      walk(
          value, [&](mlir::Value operand) { return !isKnown(operand); },
          [&](mlir::Value each) { dependence[each] = llvm::any_of(each.getDefiningOp()->getOperands(), answer); });
    return answer(value);
  }

  std::vector<NodeName> search(const NodeValue &outer, DenseSet<mlir::Value> &visited) {
    std::vector<NodeName> found;
    mlir::Value root = outer.tap().getX();
    walk(
        root,
        [&](mlir::Value operand) {
          return !isSeen(operand) && dependsOnData(operand) && visited.insert(operand).second;
        },
        [&](mlir::Value value) {
          if (value != root)
            for (const NodeValue *tap : tapsOf(value))
              found.push_back(nameOf(*tap));
        });
    return found;
  }

  DenseMap<mlir::Value, SmallVector<const NodeValue *, 1>> tapped;
  DenseMap<mlir::Value, bool> dependence; // of hidden values: on data
  DenseSet<mlir::Value> claimed;
};
} // namespace

static WrongNode describe(const NodeValue &value) {
  WrongNode wrong;
  wrong.name = nameOf(value);
  wrong.title = formatLocation(value.tap().getLoc());
  if (wrong.title.empty())
    wrong.title = "'" + wrong.name.value + "'";
  wrong.kernel = value.seen->kernel;
  wrong.nodesOfKernel = value.seen->nodes;
  wrong.launch = value.seen->launch;
  wrong.failure = value.failure;
  if (!value.failure.empty())
    return wrong;
  const Tensor &actual = value.seen->value;
  wrong.difference = *value.difference;
  wrong.shape = actual.shape;
  wrong.isFloat = actual.isFloat();
  if (wrong.difference.worst >= 0) {
    wrong.actual = actual.at(wrong.difference.worst);
    wrong.expected = value.expected.at(wrong.difference.worst);
  }
  return wrong;
}

static NodeComparison summarize(ArrayRef<NodeValue> values, const DenseMap<int64_t, std::string> &reasons) {
  NodeComparison result;
  result.values = values.size();
  InsideSearch inside(values);
  MapVector<StringRef, std::vector<std::string>> unseen;
  for (const NodeValue &value : values) {
    if (!value.seen) {
      auto found = reasons.find(value.tap().getNumber());
      StringRef reason = found == reasons.end() ? StringRef("not shown by the library") : StringRef(found->second);
      unseen[reason].push_back(value.tap().getOutput().str());
      continue;
    }
    if (value.isLacking) {
      unseen["the interpreter does not have their operator"].push_back(value.tap().getOutput().str());
      continue;
    }
    ++result.compared;
    if (value.differs() || !value.failure.empty()) {
      result.wrong.push_back(describe(value));
      result.wrong.back().inside = inside.listAll(value);
      continue;
    }
    for (NodeName &name : inside.claim(value))
      result.hidden.push_back({std::move(name), value.seen->kernel});
  }
  for (auto &[reason, names] : unseen)
    result.unseen.push_back({reason.str(), std::move(names)});
  return result;
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

/// How many launches of the library as compiled without taps are not there with them.
static Expected<FusionChange> compareFusion(const CompileHooks &hooks, const CompileOptions &options,
                                            mlir::ModuleOp tapped) {
  CompileOptions plain = options;
  plain.taps.clear();
  Compilation compilation(plain, hooks);
  if (Error error = compilation.runTo(Phase::Schedule))
    return std::move(error);
  std::vector<std::string> with = listLaunches(tapped), without = listLaunches(compilation.getModule()), lost;
  std::set_difference(without.begin(), without.end(), with.begin(), with.end(), std::back_inserter(lost));
  return FusionChange{without.size(), lost.size()};
}

/// What the library shows in one run.
static Expected<std::vector<TappedValue>> collectTaps(const PerNodeRequest &request) {
  std::vector<TappedValue> taps;
  InstanceOptions options = request.instance;
  options.tap = [&](const ptc_tap &tap) { taps.push_back(copyTap(tap)); };
  Expected<std::vector<Tensor>> outputs = runOnce(request.library, options, request.inputs);
  if (!outputs)
    return outputs.takeError();
  if (taps.empty())
    return exitError(exitUsage, "'" + request.library.path() + "' shows no values of its nodes",
                     "compile it with --tap all");
  return taps;
}

Expected<NodeComparison> compareNodes(const CompileHooks &hooks, const PerNodeRequest &request) {
  if (Error error = requireOneTarget(request.model, "a comparison of nodes"))
    return std::move(error);
  Expected<std::vector<TappedValue>> taps = collectTaps(request);
  if (!taps)
    return taps.takeError();
  CompileOptions options = request.model;
  options.taps = {"all"};
  Compilation compilation(options, hooks);
  if (Error error = compilation.runTo(Phase::Import))
    return std::move(error);
  mlir::OwningOpRef<mlir::ModuleOp> imported = compilation.getModule().clone();
  if (Error error = compilation.runTo(Phase::Schedule))
    return std::move(error);
  DenseMap<int64_t, std::string> reasons;
  compilation.getModule().walk([&](loop::TapOp tap) {
    if (tap.getReason())
      reasons[tap.getNumber()] = tap.getReason()->str();
  });
  mlir::func::FuncOp function = *imported->getOps<mlir::func::FuncOp>().begin();
  std::vector<NodeValue> values;
  function.walk([&](prim::TapOp tap) { values.push_back({tap, nullptr, std::nullopt, {}, {}, false}); });
  matchTaps(values, *taps);
  for (NodeValue &value : values)
    if (value.tap()->getParentOfType<prim::LoopOp>()) {
      value.seen = nullptr; // what a round is computed from, the rounds before it know
      reasons[value.tap().getNumber()] = "another value in each round of a loop, whose results are compared";
    }
  if (Error error = interpretAll(hooks, compilation, function, values, request))
    return std::move(error);
  NodeComparison result = summarize(values, reasons);
  if (request.isOwnLibrary) {
    Expected<FusionChange> fusion = compareFusion(hooks, options, compilation.getModule());
    if (!fusion)
      return fusion.takeError();
    result.fusion = *fusion;
  }
  return result;
}

} // namespace ptc
