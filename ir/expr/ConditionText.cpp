//===- ConditionText.cpp - conditions as a person writes them -------------===//
#include "ir/expr/ConditionText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace ptc;

std::string ptc::conditionText(Expr condition) {
  auto isCondition = [](Expr e) { return e.getKind() == ExprKind::Lt || e.getKind() == ExprKind::Eq; };
  bool isAny = condition.getKind() == ExprKind::Max || condition.getKind() == ExprKind::Add;
  if (isAny && llvm::all_of(condition.getOperands(), isCondition))
    return llvm::join(llvm::map_range(condition.getOperands(), conditionText), " or ");
  if (condition.getKind() == ExprKind::Eq)
    for (auto [side, other] : {std::pair(0, 1), std::pair(1, 0)})
      if (Expr denied = condition.getOperands()[side];
          isCondition(denied) && condition.getOperands()[other].isConstant(0)) {
        std::string text = conditionText(denied);
        size_t at = denied.getKind() == ExprKind::Eq ? text.find(" == ") : std::string::npos;
        return at == std::string::npos ? "not " + text : text.replace(at, 4, " != ");
      }
  if (condition.getKind() != ExprKind::Lt && condition.getKind() != ExprKind::Eq)
    return condition.str() + " != 0";
  SmallVector<Expr, 4> sides = condition.getOperands();
  std::string left = sides[0].str(), right = sides[1].str();
  if (condition.getKind() == ExprKind::Eq)
    return sides[0].isConstant() ? right + " == " + left : left + " == " + right;
  if (sides[1].isConstant())
    return left + " <= " + (sides[1] - 1).str();
  if (sides[0].isConstant())
    return right + " >= " + (sides[0] + 1).str();
  return left + " < " + right;
}
