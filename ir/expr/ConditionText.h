//===- ConditionText.h - conditions as a person writes them -----*- C++ -*-===//
#ifndef PTC_IR_EXPR_CONDITIONTEXT_H
#define PTC_IR_EXPR_CONDITIONTEXT_H

#include "ir/expr/Expr.h"
#include <string>

namespace ptc {

/// An expression as a person writes it: floordiv(n + 1, 2) is "floor((n + 1) / 2)". Not for Expr::parse.
std::string formulaText(Expr e);

/// A condition, an expression that must not be 0, as a person writes it: lt(batch, 65) is "batch <= 64", the greatest
/// or the sum of several conditions "one or the other", one that is 0 its opposite.
std::string conditionText(Expr condition);

} // namespace ptc

#endif // PTC_IR_EXPR_CONDITIONTEXT_H
