//===- Loops.cpp - Scan, Loop and SequenceMap ------------------------------===//
//
// What the rounds of each operator are. Scanned tensors are transposed and flipped in front of the loop, so that round
// i takes element i of dim 0; scanned results are stacked along dim 0, then transposed and flipped. LoopForm.cpp makes
// a program of it.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/LoopForm.h"
#include "lowering/decomp/OnnxOps.h"
#include "lowering/decomp/Sequences.h"

using namespace mlir;
using namespace ptc::prim;

namespace ptc::decomp {

/// A trip count above stands for none: exporters write the largest integer where the condition ends the loop.
static constexpr int64_t mostTrips = int64_t(1) << 31;

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
  std::optional<Values> results = buildLoop(n, form, [&](Expr, ArrayRef<Value> state, ArrayRef<Value> elements) {
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
  std::optional<Values> results = buildLoop(n, overBatch, [&](Expr, ArrayRef<Value>, ArrayRef<Value> element) {
    overTime.states.assign(element.begin(), element.begin() + states);
    overTime.scanned.assign(element.begin() + states, element.end());
    return buildLoop(n, overTime, [&](Expr, ArrayRef<Value> state, ArrayRef<Value> slices) {
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
  if (Value condition = n.optionalInput(1))
    form.condition = n.reshape(condition, {});
  if (Value count = n.optionalInput(0)) {
    count = n.reshape(count, {});
    std::optional<Dims> known = n.knownExprs(count);
    bool isEndless = known && known->front().isConstant() && known->front().getValue() > mostTrips;
    if (known && !isEndless)
      form.trips = n.shapes.simplify(Expr::max(known->front(), n.expr(0)));
    else if (form.stacks && !isEndless)
      form.trips = n.bind(n.maximum(count, n.scalarLike(0, count)), Expr());
    else
      form.limit = count;
  }
  if (n.hasFailed())
    return {};
  std::optional<Values> results = buildLoop(n, form, [&](Expr round, ArrayRef<Value> state, ArrayRef<Value>) {
    Values arguments = {n.fromExprs(round, n.si64(), /*isScalar=*/true), n.scalar(1, n.i1())};
    return runBody(n, concatenated(arguments, state), 1 + states + form.stacks);
  });
  return results.value_or(Values());
}

//===----------------------------------------------------------------------===//
// SequenceMap
//===----------------------------------------------------------------------===//

/// One round a tensor of the first sequence; the body's results are what the new sequences get. Other sequences give
/// the tensor at the same position, tensors are the same in all rounds.
Values sequenceMap(NodeContext &n) {
  Value sequence = n.input(0);
  if (!n.isSequence(sequence) || isOptional(sequence))
    return {n.fail(DiagId::WrongInputType, 0, n.elementType(sequence), "a sequence is needed")};
  std::optional<SmallVector<Type>> types = n.subgraphTypes("body");
  if (!types)
    return {};
  LoopForm form;
  form.trips = n.bind(sequenceLengthOf(n, sequence), Expr());
  for (Type type : *types)
    form.states.push_back(emptySequence(n, type));
  if (form.trips.isConstant(0))
    return form.states;
  std::optional<Values> results = buildLoop(n, form, [&](Expr round, ArrayRef<Value> lists, ArrayRef<Value>) {
    Value position = n.fromExprs(round, n.si64(), /*isScalar=*/true);
    Values arguments;
    for (Value input : n.allInputs())
      arguments.push_back(n.isSequence(input) && !isOptional(input) ? sequenceItem(n, input, position) : input);
    std::optional<Values> items = n.hasFailed() ? std::nullopt : runBody(n, arguments, lists.size());
    for (size_t i = 0; items && i < lists.size(); ++i)
      (*items)[i] = appendItem(n, lists[i], (*items)[i]);
    return n.hasFailed() ? std::nullopt : items;
  });
  return results.value_or(Values());
}

} // namespace ptc::decomp
