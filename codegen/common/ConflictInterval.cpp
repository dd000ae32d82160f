//===- ConflictInterval.cpp - intervals that meet in each conflict --------===//
//
// What two points have in common along a dim is min(a, b) - max(c, d) > 0, with one bound of each point in either. It
// implies b > c where these are numbers, whatever the minimum and the maximum give for a NaN: the smaller of two is
// NaN, for which no ordered comparison holds, or at most each number among them. Rounding keeps the sign of a
// difference, or makes it 0.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ConflictInterval.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::codegen;
using arith::CmpFPredicate;

using Pair = std::pair<Value, Value>;

static bool isLess(CmpFPredicate predicate) {
  return predicate == CmpFPredicate::OLT || predicate == CmpFPredicate::OLE || predicate == CmpFPredicate::ULT ||
         predicate == CmpFPredicate::ULE;
}
static bool isGreater(CmpFPredicate predicate) {
  return predicate == CmpFPredicate::OGT || predicate == CmpFPredicate::OGE || predicate == CmpFPredicate::UGT ||
         predicate == CmpFPredicate::UGE;
}

// The values of which `value` is the smaller one, or the larger one.
static std::optional<Pair> extremeOf(Value value, bool isSmaller) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : nullptr;
  if (!compare)
    return std::nullopt;
  Pair compared(compare.getLhs(), compare.getRhs()), chosen(select.getTrueValue(), select.getFalseValue());
  bool isSwapped = chosen == Pair(compared.second, compared.first);
  if (!isSwapped && chosen != compared)
    return std::nullopt;
  bool takesLess = isSwapped ? isGreater(compare.getPredicate()) : isLess(compare.getPredicate());
  bool takesGreater = isSwapped ? isLess(compare.getPredicate()) : isGreater(compare.getPredicate());
  return (isSmaller ? takesLess : takesGreater) ? std::optional(compared) : std::nullopt;
}

// The difference that a condition says is positive; null if it says something else.
static arith::SubFOp positiveDifference(Value condition) {
  auto compare = condition.getDefiningOp<arith::CmpFOp>();
  if (!compare)
    return {};
  bool isAbove = compare.getPredicate() == CmpFPredicate::OGT, isBelow = compare.getPredicate() == CmpFPredicate::OLT;
  Value value = isAbove ? compare.getLhs() : compare.getRhs(), bound = isAbove ? compare.getRhs() : compare.getLhs();
  return (isAbove || isBelow) && matchPattern(bound, m_AnyZeroFloat()) ? value.getDefiningOp<arith::SubFOp>() : nullptr;
}

std::optional<ConflictInterval> codegen::findConflictInterval(const ConflictParts &parts) {
  auto isChosens = [&](Value value) { return llvm::is_contained(parts.remembered, value); };
  auto isOwn = [&](Value value) { return llvm::is_contained(parts.own, value.getDefiningOp()); };
  // First the candidate's, then the chosen point's.
  auto sorted = [&](std::optional<Pair> pair) -> std::optional<Pair> {
    if (pair && isOwn(pair->second))
      std::swap(pair->first, pair->second);
    return pair && isOwn(pair->first) && isChosens(pair->second) ? pair : std::nullopt;
  };
  for (Value condition : parts.earlyConditions) {
    arith::SubFOp difference = positiveDifference(condition);
    if (!difference)
      continue;
    std::optional<Pair> uppers = sorted(extremeOf(difference.getLhs(), /*isSmaller=*/true));
    std::optional<Pair> lowers = sorted(extremeOf(difference.getRhs(), /*isSmaller=*/false));
    if (uppers && lowers)
      return ConflictInterval{lowers->first, uppers->first, lowers->second, uppers->second};
  }
  return std::nullopt;
}
