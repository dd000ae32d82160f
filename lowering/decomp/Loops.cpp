//===- Loops.cpp - Loop and Scan -------------------------------------------===//
//
// The body becomes the region of a prim.loop, imported once, and what surrounds it is used directly:
//
//   the number of the round     the symbol `round`, so that shape arithmetic follows it
//   the condition of a round    true: a round runs only if it holds
//   states                      arguments; those that no round changes are the initial values themselves
//   scanned tensors             transposed and flipped in front of the loop, so that round i takes element i of dim 0
//   scanned results             stacked along dim 0, then transposed and flipped
//
// If the body's condition is always true the loop counts; if it compares the round with a size it counts, too.
//
// A loop of few rounds is unrolled: the body is imported once a round, with the round's values as its inputs. So are
// loops of a known number of rounds whose states change their shapes: each round has types of its own.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/OnnxOps.h"

using namespace mlir;
using namespace ptc::prim;

namespace ptc::decomp {

namespace {

/// Of how many rounds a loop is unrolled in any case: from there on a loop costs less than the code (README.md).
constexpr int64_t fewRounds = 4;
/// And in the worst case, where a region cannot express what the rounds do.
constexpr int64_t mostRounds = 64;

/// A loop as ONNX has it, before anything is imported.
struct LoopForm {
  Expr trips;             // null: only the limit or the condition ends the loop
  Value limit, condition; // null where there is none
  Values states, scanned; // dim 0 of the latter is that of the trips
  size_t stacks = 0;
  bool hasCondition = false; // the body gives one
};

/// The rounds of one loop: `run` imports the body for a round, and gives [condition,] states, rows.
using Body = llvm::function_ref<std::optional<Values>(Expr round, ArrayRef<Value> states, ArrayRef<Value> elements)>;

//===----------------------------------------------------------------------===//
// Unrolled
//===----------------------------------------------------------------------===//

/// The rounds one after the other; nothing after a diagnostic, or if a condition is not known.
std::optional<Values> unroll(NodeContext &n, const LoopForm &form, int64_t limit, Body body) {
  Values states = form.states;
  SmallVector<Values> rows(form.stacks);
  Value condition = form.condition;
  for (int64_t round = 0; round < limit; ++round) {
    if (round == mostRounds)
      n.fail(DiagId::TooLongToUnroll, limit, mostRounds);
    std::optional<Ints> isLive = condition ? n.knownInts(condition) : Ints{1};
    if (!isLive || n.hasFailed())
      return std::nullopt;
    if (!isLive->front())
      break;
    Values elements;
    for (Value scanned : form.scanned)
      elements.push_back(n.at(scanned, 0, round));
    std::optional<Values> results = body(n.expr(round), states, elements);
    if (!results)
      return std::nullopt;
    ArrayRef<Value> next = *results;
    if (form.hasCondition)
      condition = n.reshape(next.consume_front(), {});
    states.assign(next.begin(), next.begin() + states.size());
    for (size_t i = 0; i < form.stacks; ++i)
      rows[i].push_back(next[states.size() + i]);
  }
  Values outputs = states;
  for (const Values &row : rows) {
    if (row.empty())
      return std::nullopt; // nothing says of which type they were
    outputs.push_back(n.stack(row, 0));
  }
  return outputs;
}

//===----------------------------------------------------------------------===//
// As a region
//===----------------------------------------------------------------------===//

/// The number of rounds of a loop that goes on while `condition` of the last one, an expression of its number, is
/// not 0: null where that is no comparison with something that stays.
Expr countRounds(Expr condition, Expr round) {
  if (condition.getKind() != ExprKind::Lt)
    return {};
  Expr rest, difference = condition.getOperands()[0] - condition.getOperands()[1];
  Expr coefficient = difference.coefficientOf(round.getSymbol(), &rest);
  if (!coefficient || !coefficient.isConstant(1))
    return {};
  // Round i runs, but for the first one, if (i - 1) + rest < 0.
  Expr one = Expr::constant(rest.getContext(), 1);
  return Expr::max(one, one - rest);
}

class RegionLoop {
public:
  RegionLoop(NodeContext &n, LoopForm form)
      : n(n), form(std::move(form)), state(n.getLoc(), LoopOp::getOperationName()) {}

  /// The loop's results; nothing after a diagnostic.
  std::optional<Values> build(Body body) {
    round = n.shapes.declareBound({.min = 0, .hint = 0}, form.trips ? form.trips - 1 : Expr());
    region = state.addRegion();
    if (!importBody(body) || !checkStates())
      return std::nullopt;
    simplifyCondition();
    dropConstantStates();
    return create();
  }

private:
  Block &block() { return region->front(); }

  bool importBody(Body body) {
    OpBuilder &builder = n.getBuilder();
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(region);
    Values states, elements;
    for (Value initial : form.states)
      states.push_back(block().addArgument(initial.getType(), n.getLoc()));
    for (Value scanned : form.scanned) {
      Dims dims = n.dims(scanned);
      Type type = getTensorType(ArrayRef<Expr>(dims).drop_front(), n.elementType(scanned));
      elements.push_back(block().addArgument(type, n.getLoc()));
    }
    std::optional<Values> results = body(round, states, elements);
    if (!results)
      return false;
    ArrayRef<Value> yielded = *results;
    if (form.hasCondition)
      next = n.reshape(yielded.consume_front(), {});
    nextStates.assign(yielded.begin(), yielded.begin() + form.states.size());
    rows.assign(yielded.begin() + form.states.size(), yielded.end());
    return !n.hasFailed();
  }

  bool checkStates() {
    for (auto [i, types] : llvm::enumerate(llvm::zip_equal(form.states, nextStates))) {
      auto [initial, next] = types;
      if (initial.getType() == next.getType())
        continue;
      n.fail(DiagId::UnsupportedForm, "a loop whose state " + std::to_string(i) + " changes from " +
                                          describeType(initial.getType()) + " to " + describeType(next.getType()));
      return false;
    }
    return true;
  }

  /// What the condition is known to be becomes part of the trips.
  void simplifyCondition() {
    if (!form.hasCondition)
      return;
    std::optional<Expr> known = n.knownCondition(next);
    std::optional<Ints> first = form.condition ? n.knownInts(form.condition) : Ints{1};
    Expr count = known && known->isConstant() && !known->isConstant(0) ? Expr()
                 : known                                               ? countRounds(*known, round)
                                                                       : Expr();
    bool isCounted = known && (count || (known->isConstant() && !known->isConstant(0)));
    if (first && !first->front()) {
      form.trips = n.expr(0);
      isCounted = true;
    }
    if (!first || !isCounted)
      return;
    if (count)
      form.trips = n.shapes.simplify(form.trips ? Expr::min(form.trips, count) : count);
    if (!form.trips && !form.limit)
      return; // without end
    form.condition = next = {};
    form.hasCondition = false;
  }

  /// States that the body hands on as they are.
  void dropConstantStates() {
    results.assign(form.states.size(), Value());
    for (size_t i = form.states.size(); i-- > 0;) {
      BlockArgument argument = block().getArgument(i);
      if (nextStates[i] != argument)
        continue;
      results[i] = form.states[i];
      argument.replaceAllUsesWith(form.states[i]);
      for (Value &row : rows)
        row = row == argument ? form.states[i] : row;
      for (Value &other : nextStates)
        other = other == argument ? form.states[i] : other;
      form.states.erase(form.states.begin() + i);
      nextStates.erase(nextStates.begin() + i);
      block().eraseArgument(i);
    }
  }

  std::optional<Values> create() {
    OpBuilder &builder = n.getBuilder();
    bool isCounted = form.trips && !form.condition && !form.limit && !form.hasCondition;
    if (!rows.empty() && !isCounted) {
      n.failWithHelp("pin it with --dim or --shape", DiagId::DataDependentShape, "the number of rounds");
      return std::nullopt;
    }
    Values yielded;
    if (form.hasCondition) {
      yielded.push_back(next);
      form.condition = form.condition ? form.condition : n.scalar(1, n.i1());
    }
    llvm::append_range(yielded, nextStates);
    llvm::append_range(yielded, rows);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(&block());
      YieldOp::create(builder, n.getLoc(), yielded);
    }
    for (Value value : {form.limit, form.condition})
      if (value)
        state.addOperands(value);
    state.addOperands(form.states);
    state.addOperands(form.scanned);
    auto &properties = state.getOrAddProperties<LoopOp::Properties>();
    properties.counter = builder.getStringAttr(round.getSymbol());
    if (form.trips)
      properties.trips = form.trips;
    properties.operandSegmentSizes = {form.limit ? 1 : 0, form.condition ? 1 : 0, int(form.states.size()),
                                      int(form.scanned.size())};
    for (Value initial : form.states)
      state.addTypes(initial.getType());
    for (Value row : rows) {
      Dims dims = n.dims(row);
      dims.insert(dims.begin(), form.trips);
      state.addTypes(getTensorType(dims, n.elementType(row)));
    }
    auto values = builder.create(state)->getResults().begin();
    for (Value &result : results)
      result = result ? result : Value(*values++);
    for (size_t i = 0; i < rows.size(); ++i)
      results.push_back(*values++);
    return results;
  }

  NodeContext &n;
  LoopForm form;
  OperationState state;
  Region *region = nullptr;
  Expr round;
  Value next; // condition
  Values nextStates, rows, results;
};

std::optional<Values> build(NodeContext &n, const LoopForm &form, Body body) {
  std::optional<int64_t> count = form.trips && !form.limit ? form.trips.asConstant() : std::nullopt;
  if (count && *count > 0 && *count <= fewRounds)
    if (std::optional<Values> unrolled = unroll(n, form, *count, body); unrolled || n.hasFailed())
      return unrolled;
  std::optional<Values> results;
  std::vector<Diagnostic> reports, ignored;
  if (n.attempt([&] { return bool(results = RegionLoop(n, form).build(body)); }, reports))
    return results;
  if (!form.limit && (count || !form.trips))
    if (n.attempt([&] { return bool(results = unroll(n, form, count.value_or(mostRounds + 1), body)); }, ignored))
      return results;
  if (form.limit && !n.inputInt(0, "trip count"))
    return std::nullopt; // with it the rounds could be laid out
  n.report(std::move(reports));
  return std::nullopt;
}

} // namespace

//===----------------------------------------------------------------------===//
// Scan
//===----------------------------------------------------------------------===//

/// An attribute with one entry a scanned value, 0 where it is absent.
static std::optional<Ints> perValue(NodeContext &n, StringRef name, size_t count) {
  Ints values = n.integers(name, Ints(count, 0));
  if (values.size() == count)
    return values;
  n.fail(DiagId::DimMismatch, "the number of values in '" + name.str() + "'", values.size(), "what is needed", count);
  return std::nullopt;
}

/// The tensor with `from` moved to `to`.
static Value moveAxis(NodeContext &n, Value x, int64_t from, int64_t to) {
  Ints permutation = llvm::to_vector(llvm::seq<int64_t>(0, n.rank(x)));
  permutation.erase(permutation.begin() + from);
  permutation.insert(permutation.begin() + to, from);
  return n.transpose(x, permutation);
}

static Value flip(NodeContext &n, Value x, int64_t axis) {
  Expr size = n.dim(x, axis);
  return n.sliceAxis(x, axis, size - 1, size, -1);
}

/// Checks how many results the body gives.
static std::optional<Values> runBody(NodeContext &n, ArrayRef<Value> arguments, size_t needed) {
  std::optional<Values> results = n.subgraph("body", arguments);
  if (results && results->size() == needed)
    return results;
  n.fail(DiagId::BodyResults, results ? results->size() : 0, needed);
  return std::nullopt;
}

static Values concatenated(ArrayRef<Value> a, ArrayRef<Value> b) {
  Values all(a);
  llvm::append_range(all, b);
  return all;
}

/// The inputs are the initial state, then the scanned tensors; the body maps state and slices to state and slices.
Values scan(NodeContext &n) {
  int64_t scanned = n.integer("num_scan_inputs", 0), states = int64_t(n.inputCount()) - scanned;
  int64_t stacked = int64_t(n.outputCount()) - states;
  if (scanned < 1 || states < 0 || stacked < 0)
    return {n.fail(DiagId::BadAttribute, "num_scan_inputs", scanned, "it must be one of the inputs at least")};
  std::optional<Ints> inAxes = perValue(n, "scan_input_axes", scanned),
                      outAxes = perValue(n, "scan_output_axes", stacked);
  std::optional<Ints> inReversed = perValue(n, "scan_input_directions", scanned);
  std::optional<Ints> outReversed = perValue(n, "scan_output_directions", stacked);
  if (!inAxes || !outAxes || !inReversed || !outReversed)
    return {};
  LoopForm form;
  form.states.assign(n.allInputs().begin(), n.allInputs().begin() + states);
  form.stacks = stacked;
  for (int64_t i = 0; i < scanned; ++i) {
    Value input = n.input(states + i);
    std::optional<int64_t> axis = n.normalizeAxis((*inAxes)[i], n.rank(input));
    if (!axis)
      return {};
    Expr size = n.dim(input, *axis);
    form.trips = form.trips ? form.trips : size;
    if (!n.shapes.assumeEqual(size, form.trips))
      return {n.fail(DiagId::DimMismatch, "a scanned dim", size, "the first one", form.trips)};
    input = (*inReversed)[i] ? flip(n, input, *axis) : input;
    form.scanned.push_back(moveAxis(n, input, *axis, 0));
  }
  std::optional<Values> results = build(n, form, [&](Expr, ArrayRef<Value> state, ArrayRef<Value> elements) {
    return runBody(n, concatenated(state, elements), states + stacked);
  });
  if (!results)
    return {};
  for (int64_t i = 0; i < stacked; ++i) {
    Value &stack = (*results)[states + i];
    std::optional<int64_t> axis = n.normalizeAxis((*outAxes)[i], n.rank(stack));
    if (!axis)
      return {};
    stack = moveAxis(n, (*outReversed)[i] ? flip(n, stack, 0) : stack, 0, *axis);
  }
  return *results;
}

/// Version 8: every element of a batch is scanned for itself, along the second dim. A loop over the batch around that
/// of the sequence.
Values scanBatch(NodeContext &n) {
  int64_t scanned = n.integer("num_scan_inputs", 0), states = int64_t(n.inputCount()) - 1 - scanned;
  int64_t stacked = int64_t(n.outputCount()) - states;
  if (scanned < 1 || states < 0 || stacked < 0)
    return {n.fail(DiagId::BadAttribute, "num_scan_inputs", scanned, "it must be one of the inputs at least")};
  if (n.hasInput(0))
    return {n.fail(DiagId::UnsupportedForm, "a Scan of sequences of several lengths (input 0)")};
  std::optional<Ints> isReversed = perValue(n, "directions", scanned);
  if (!isReversed)
    return {};
  LoopForm overBatch, overTime;
  overBatch.trips = n.dim(n.input(1 + states), 0);
  overTime.trips = n.dim(n.input(1 + states), 1);
  overBatch.stacks = states + stacked;
  overTime.stacks = stacked;
  for (int64_t i = 0; i < states + scanned; ++i) {
    Value x = n.input(1 + i);
    bool isState = i < states;
    if (n.rank(x) < (isState ? 1 : 2) || !n.shapes.assumeEqual(n.dim(x, 0), overBatch.trips) ||
        (!isState && !n.shapes.assumeEqual(n.dim(x, 1), overTime.trips)))
      return {n.fail(DiagId::WrongRank, 1 + i, n.rank(x), "the dims of the batch and of the sequences are needed")};
    overBatch.scanned.push_back(!isState && (*isReversed)[i - states] ? flip(n, x, 1) : x);
  }
  std::optional<Values> results = build(n, overBatch, [&](Expr, ArrayRef<Value>, ArrayRef<Value> element) {
    overTime.states.assign(element.begin(), element.begin() + states);
    overTime.scanned.assign(element.begin() + states, element.end());
    return build(n, overTime, [&](Expr, ArrayRef<Value> state, ArrayRef<Value> slices) {
      return runBody(n, concatenated(state, slices), states + stacked);
    });
  });
  return results.value_or(Values());
}

//===----------------------------------------------------------------------===//
// Loop
//===----------------------------------------------------------------------===//

/// Rounds go on for `trip count` times, while the condition that the body gives holds.
Values loop(NodeContext &n) {
  int64_t states = std::max<int64_t>(0, int64_t(n.inputCount()) - 2);
  LoopForm form;
  form.stacks = std::max<int64_t>(0, int64_t(n.outputCount()) - states);
  form.hasCondition = true;
  for (int64_t i = 0; i < states; ++i)
    form.states.push_back(n.input(2 + i));
  if (Value count = n.optionalInput(0)) {
    std::optional<Dims> known = n.knownExprs(n.reshape(count, {}));
    if (known)
      form.trips = n.shapes.simplify(Expr::max(known->front(), n.expr(0)));
    else
      form.limit = n.reshape(count, {});
  }
  if (Value condition = n.optionalInput(1))
    form.condition = n.reshape(condition, {});
  if (n.hasFailed())
    return {};
  std::optional<Values> results = build(n, form, [&](Expr round, ArrayRef<Value> state, ArrayRef<Value>) {
    Values arguments = {n.fromExprs(round, n.si64(), /*isScalar=*/true), n.scalar(1, n.i1())};
    return runBody(n, concatenated(arguments, state), 1 + states + form.stacks);
  });
  return results.value_or(Values());
}

} // namespace ptc::decomp
