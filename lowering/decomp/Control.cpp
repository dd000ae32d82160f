//===- Control.cpp - If, Scan, Loop ---------------------------------------===//
//
// A condition that is known while importing picks its branch, which is imported in
// place: exporters wrap shape fixes this way (`if dim == 1: squeeze`). A condition
// on dims that stay open picks the branch that their hints take, and a guard says
// so: the branches of such an If mostly differ in rank, which no type could join.
//
// Otherwise both branches become regions, which use the surrounding values
// directly. Both must give the same types, since a symbol that only one branch
// knows could not be bound outside.
//
// Scan and Loop are unrolled where the number of rounds is known: the body is
// imported once a round, with the round's values as its inputs.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/OnnxOps.h"

using namespace mlir;
using namespace ptc::prim;

namespace ptc::decomp {

static bool importBranch(NodeContext &n, Region &region, StringRef name) {
  OpBuilder &builder = n.getBuilder();
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&region);
  std::optional<Values> outputs = n.subgraph(name);
  YieldOp::create(builder, n.getLoc(), outputs ? ValueRange(*outputs) : ValueRange());
  return outputs.has_value();
}

static bool branchesAgree(NodeContext &n, YieldOp first, YieldOp second) {
  if (first.getNumOperands() != second.getNumOperands() || first.getNumOperands() < n.outputCount()) {
    n.fail(DiagId::BranchResults, first.getNumOperands(), second.getNumOperands(), n.outputCount());
    return false;
  }
  for (auto [i, types] : llvm::enumerate(llvm::zip(first.getOperandTypes(), second.getOperandTypes())))
    if (auto [a, b] = types; a != b) {
      n.fail(DiagId::BranchTypes, "output " + std::to_string(i), a, b);
      return false;
    }
  return true;
}

Values conditional(NodeContext &n) {
  Value condition = n.reshape(n.input(0), {});
  if (!condition || !n.isBool(condition))
    return {n.fail(DiagId::WrongInputType, 0, n.elementType(condition), "bool is needed")};
  if (std::optional<Expr> known = n.knownCondition(condition)) {
    bool isTaken = n.shapes.atHints(*known).value_or(1) != 0;
    n.shapes.assume(isTaken ? *known : Expr::eq(*known, n.expr(0)));
    std::optional<Values> outputs = n.subgraph(isTaken ? "then_branch" : "else_branch");
    return outputs ? *outputs : Values();
  }
  OpBuilder &builder = n.getBuilder();
  OperationState state(n.getLoc(), IfOp::getOperationName());
  state.addOperands(condition);
  Region *thenRegion = state.addRegion(), *elseRegion = state.addRegion();
  bool isComplete = importBranch(n, *thenRegion, "then_branch");
  isComplete &= importBranch(n, *elseRegion, "else_branch");
  if (!isComplete)
    return {};
  auto yield = [](Region *region) { return cast<YieldOp>(region->front().getTerminator()); };
  if (!branchesAgree(n, yield(thenRegion), yield(elseRegion)))
    return {};
  state.addTypes(yield(thenRegion).getOperandTypes());
  return Values(builder.create(state)->getResults());
}

//===----------------------------------------------------------------------===//
// Scan and Loop
//===----------------------------------------------------------------------===//

static constexpr int64_t maxRounds = 64;

/// An attribute with one entry a scanned value, 0 where it is absent.
static std::optional<Ints> perValue(NodeContext &n, StringRef name, size_t count) {
  Ints values = n.integers(name, Ints(count, 0));
  if (values.size() == count)
    return values;
  n.fail(DiagId::DimMismatch, "the number of values in '" + name.str() + "'", values.size(), "what is needed", count);
  return std::nullopt;
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
  Expr rounds;
  for (int64_t i = 0; i < scanned; ++i) {
    Value input = n.input(states + i);
    std::optional<int64_t> axis = n.normalizeAxis((*inAxes)[i], n.rank(input));
    if (!axis)
      return {};
    (*inAxes)[i] = *axis;
    rounds = rounds ? rounds : n.dim(input, *axis);
    if (!n.shapes.assumeEqual(n.dim(input, *axis), rounds))
      return {n.fail(DiagId::DimMismatch, "a scanned dim", n.dim(input, *axis), "the first one", rounds)};
  }
  if (!rounds.isConstant())
    return {n.failWithHelp("pin it with --dim or --shape", DiagId::DataDependentShape, "the number of rounds")};
  if (rounds.getValue() > maxRounds || rounds.getValue() < 1)
    return {n.fail(DiagId::TooLongToUnroll, rounds.getValue(), maxRounds)};

  Values state(n.allInputs().take_front(states));
  SmallVector<Values> rows(stacked);
  for (int64_t t = 0; t < rounds.getValue(); ++t) {
    Values arguments = state;
    for (int64_t i = 0; i < scanned; ++i)
      arguments.push_back(n.at(n.input(states + i), (*inAxes)[i], (*inReversed)[i] ? rounds.getValue() - 1 - t : t));
    std::optional<Values> results = n.subgraph("body", arguments);
    if (!results || int64_t(results->size()) != states + stacked)
      return {n.fail(DiagId::BodyResults, results ? results->size() : 0, states + stacked)};
    state.assign(results->begin(), results->begin() + states);
    for (int64_t i = 0; i < stacked; ++i)
      rows[i].push_back((*results)[states + i]);
  }
  Values outputs = state;
  for (int64_t i = 0; i < stacked; ++i) {
    std::optional<int64_t> axis = n.normalizeAxis((*outAxes)[i], n.rank(rows[i].front()) + 1);
    if (!axis)
      return {};
    if ((*outReversed)[i])
      std::reverse(rows[i].begin(), rows[i].end());
    outputs.push_back(n.stack(rows[i], *axis));
  }
  return outputs;
}

/// Version 8: every element of a batch is scanned for itself, along the second dim.
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
  Value first = n.input(1 + states);
  Expr batch = n.dim(first, 0), rounds = n.dim(first, 1);
  for (int64_t i = 0; i < states + scanned; ++i)
    if (Value x = n.input(1 + i); n.rank(x) < (i < states ? 1 : 2) || !n.shapes.assumeEqual(n.dim(x, 0), batch) ||
                                  (i >= states && !n.shapes.assumeEqual(n.dim(x, 1), rounds)))
      return {n.fail(DiagId::WrongRank, 1 + i, n.rank(x), "the dims of the batch and of the sequences are needed")};
  if (!batch.isConstant() || !rounds.isConstant())
    return {n.failWithHelp("pin it with --dim or --shape", DiagId::DataDependentShape, "the number of rounds")};
  int64_t total = batch.getValue() * rounds.getValue();
  if (batch.getValue() > maxRounds || rounds.getValue() > maxRounds || total > maxRounds || total < 1)
    return {n.fail(DiagId::TooLongToUnroll, total, maxRounds)};
  SmallVector<Values> results(states + stacked); // an element of the batch each
  for (int64_t b = 0; b < batch.getValue(); ++b) {
    Values state;
    SmallVector<Values> rows(stacked);
    for (int64_t i = 0; i < states; ++i)
      state.push_back(n.at(n.input(1 + i), 0, b));
    for (int64_t t = 0; t < rounds.getValue(); ++t) {
      Values arguments = state;
      for (int64_t i = 0; i < scanned; ++i)
        arguments.push_back(
            n.at(n.at(n.input(1 + states + i), 0, b), 0, (*isReversed)[i] ? rounds.getValue() - 1 - t : t));
      std::optional<Values> outputs = n.subgraph("body", arguments);
      if (!outputs || int64_t(outputs->size()) != states + stacked)
        return {n.fail(DiagId::BodyResults, outputs ? outputs->size() : 0, states + stacked)};
      state.assign(outputs->begin(), outputs->begin() + states);
      for (int64_t i = 0; i < stacked; ++i)
        rows[i].push_back((*outputs)[states + i]);
    }
    for (int64_t i = 0; i < states + stacked; ++i)
      results[i].push_back(i < states ? state[i] : n.stack(rows[i - states], 0));
  }
  return llvm::map_to_vector<2>(results, [&](const Values &elements) { return n.stack(elements, 0); });
}

/// Rounds go on for `trip count` times, while the condition that the body gives holds.
Values loop(NodeContext &n) {
  int64_t states = std::max<int64_t>(0, int64_t(n.inputCount()) - 2);
  int64_t stacked = int64_t(n.outputCount()) - states, limit = maxRounds + 1;
  if (n.hasInput(0)) {
    std::optional<int64_t> count = n.inputInt(0, "trip count");
    if (!count)
      return {};
    limit = std::min(*count, limit);
  }
  Value condition = n.hasInput(1) ? n.reshape(n.input(1), {}) : n.scalar(1, n.i1());
  Values state;
  for (int64_t i = 0; i < states; ++i)
    state.push_back(n.input(2 + i));
  SmallVector<Values> rows(std::max<int64_t>(0, stacked));
  int64_t round = 0;
  for (;; ++round) {
    std::optional<Ints> isLive = n.knownInts(condition);
    if (!isLive && round < limit)
      return {n.fail(DiagId::UnsupportedForm, "a Loop that ends when a value says so")};
    if (round >= limit || !isLive->front())
      break;
    if (round == maxRounds)
      return {n.fail(DiagId::TooLongToUnroll, "more", maxRounds)};
    Values arguments = {n.fromExprs(n.expr(round), n.si64(), /*isScalar=*/true), condition};
    llvm::append_range(arguments, state);
    std::optional<Values> results = n.subgraph("body", arguments);
    if (!results || int64_t(results->size()) != 1 + states + stacked)
      return {n.fail(DiagId::BodyResults, results ? results->size() : 0, 1 + states + stacked)};
    condition = n.reshape(results->front(), {});
    state.assign(results->begin() + 1, results->begin() + 1 + states);
    for (int64_t i = 0; i < stacked; ++i)
      rows[i].push_back((*results)[1 + states + i]);
  }
  if (round == 0 && stacked > 0)
    return {n.fail(DiagId::UnsupportedForm, "a Loop of no rounds with scan outputs")};
  Values outputs = state;
  for (const Values &row : rows)
    outputs.push_back(n.stack(row, 0));
  return outputs;
}

} // namespace ptc::decomp
