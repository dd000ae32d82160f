//===- ReplaceParts.h - parts of an expression replaced ---------*- C++ -*-===//
#ifndef PTC_IR_EXPR_REPLACEPARTS_H
#define PTC_IR_EXPR_REPLACEPARTS_H

#include "ir/expr/Expr.h"

namespace ptc {

/// The expression with what `map` answers in the place of its parts, the largest first; where it answers null, a part
/// is looked into. What comes in is not looked into again.
Expr replaceParts(Expr e, llvm::function_ref<Expr(Expr)> map);

} // namespace ptc

#endif // PTC_IR_EXPR_REPLACEPARTS_H
