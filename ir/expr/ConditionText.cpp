//===- ConditionText.cpp - conditions as a person writes them -------------===//
#include "ir/expr/ConditionText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace ptc;

/// "a == b"; a constant stands on the right.
static std::string equationText(Expr equation, StringRef relation) {
  SmallVector<Expr, 4> sides = equation.getOperands();
  if (sides[0].isConstant())
    std::swap(sides[0], sides[1]);
  return (formulaText(sides[0]) + relation + formulaText(sides[1])).str();
}

std::string ptc::conditionText(Expr condition) {
  auto isCondition = [](Expr e) { return e.getKind() == ExprKind::Lt || e.getKind() == ExprKind::Eq; };
  bool isAny = condition.getKind() == ExprKind::Max || condition.getKind() == ExprKind::Add;
  if (isAny && llvm::all_of(condition.getOperands(), isCondition))
    return llvm::join(llvm::map_range(condition.getOperands(), conditionText), " or ");
  if (condition.getKind() == ExprKind::Eq)
    for (auto [side, other] : {std::pair(0, 1), std::pair(1, 0)})
      if (Expr denied = condition.getOperands()[side];
          isCondition(denied) && condition.getOperands()[other].isConstant(0))
        return denied.getKind() == ExprKind::Eq ? equationText(denied, " != ") : "not " + conditionText(denied);
  if (condition.getKind() == ExprKind::Eq)
    return equationText(condition, " == ");
  if (condition.getKind() != ExprKind::Lt)
    return formulaText(condition) + " != 0";
  SmallVector<Expr, 4> sides = condition.getOperands();
  if (sides[1].isConstant())
    return formulaText(sides[0]) + " <= " + formulaText(sides[1] - 1);
  if (sides[0].isConstant())
    return formulaText(sides[1]) + " >= " + formulaText(sides[0] + 1);
  return formulaText(sides[0]) + " < " + formulaText(sides[1]);
}
