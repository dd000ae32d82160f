//===- LoopForm.cpp - region or rounds ------------------------------------===//
//
// A loop of few rounds is unrolled: the body is imported once a round, with the round's values as its inputs. So are
// loops of a known number of rounds that no region expresses, such as those whose states change their ranks: each round
// has types of its own.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/LoopForm.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::decomp;

/// Up to how many rounds a loop is unrolled in any case: README.md has the reason.
static constexpr int64_t fewRounds = 4;
/// And in the worst case, where a region cannot express what the rounds do.
static constexpr int64_t mostRounds = 64;

/// The rounds one after the other; nothing after a diagnostic, or if a condition is not known.
static std::optional<Values> unroll(NodeContext &n, const LoopForm &form, int64_t limit, LoopBody body) {
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

std::optional<Values> decomp::buildLoop(NodeContext &n, const LoopForm &form, LoopBody importRound) {
  auto body = [&](Expr round, ArrayRef<Value> states, ArrayRef<Value> elements) {
    n.shapes.rounds.push_back(round);
    std::optional<Values> results = importRound(round, states, elements);
    n.shapes.rounds.pop_back();
    return results;
  };
  std::optional<int64_t> count = form.trips && !form.limit ? form.trips.asConstant() : std::nullopt;
  if (count && *count > 0 && *count <= fewRounds)
    if (std::optional<Values> unrolled = unroll(n, form, *count, body); unrolled || n.hasFailed())
      return unrolled;
  std::optional<Values> results;
  std::vector<Diagnostic> reports, ignored;
  if (n.attempt([&] { return bool(results = buildRegionLoop(n, form, body)); }, reports))
    return results;
  if (!form.limit && (count || !form.trips))
    if (n.attempt([&] { return bool(results = unroll(n, form, count.value_or(mostRounds + 1), body)); }, ignored))
      return results;
  n.report(std::move(reports));
  return std::nullopt;
}
