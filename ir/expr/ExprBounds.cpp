//===- ExprBounds.cpp - intervals whose ends are expressions --------------===//
//
// Memory is planned before the program runs, for sizes that it learns while it runs. What such a size can be
// is known as an expression: NonZero finds at most batch*seq elements. This file is interval arithmetic whose ends
// are such expressions; [l, u] stands for what lies between them:
//
//   a + b            [la + lb, ua + ub]
//   c * a            [c*la, c*ua], the ends swapped where c < 0
//   a * b            [la*lb, ua*ub] where neither is ever negative, else the extremes of the four products
//   floordiv(a, b)   b > 0: the extremes of a's ends over b's
//   mod(a, b)        b > 0: [0, ub - 1], and not above a where a is never negative
//   min, max         end by end; of min the upper end is any of the operands' that is known, of max the lower one
//   lt, eq           [0, 1]
//   select(c, a, b)  [min(la, lb), max(ua, ub)]
//
// Substituting the largest value into the expression instead would be wrong: the rest of a slice, n - u, is the
// larger the smaller u is. Occurrences of one symbol are treated as if they were independent; the normal form has
// merged those that cancel. Symbols without bounds of their own are points and stay as they are.
//
// Source: R. E. Moore, Interval Analysis (1966), chapter 3.
//
//===----------------------------------------------------------------------===//
#include "ir/expr/Expr.h"

using namespace ptc;

namespace {

class Bounds {
public:
  Bounds(const SymbolRanges &ranges, llvm::function_ref<std::optional<ExprBounds>(llvm::StringRef)> of)
      : ranges(ranges), of(of) {}

  ExprBounds visit(Expr e) {
    if (!e.usesAny([&](llvm::StringRef symbol) { return of(symbol).has_value(); }))
      return {e, e};
    llvm::SmallVector<ExprBounds, 4> x;
    for (Expr operand : e.getOperands())
      x.push_back(visit(operand));
    switch (e.getKind()) {
    case ExprKind::Constant:
      return {e, e};
    case ExprKind::Symbol:
      return *of(e.getSymbol());
    case ExprKind::Add:
      return fold(x, [&](const ExprBounds &a, const ExprBounds &b) {
        return ExprBounds{both(a.lower, b.lower, [](Expr l, Expr r) { return l + r; }),
                          both(a.upper, b.upper, [](Expr l, Expr r) { return l + r; })};
      });
    case ExprKind::Mul:
      return fold(x, [&](const ExprBounds &a, const ExprBounds &b) { return multiply(a, b); });
    case ExprKind::FloorDiv:
      return divide(x[0], x[1]);
    case ExprKind::Mod:
      return modulo(x[0], x[1]);
    case ExprKind::Min:
      return fold(x, [&](const ExprBounds &a, const ExprBounds &b) {
        return ExprBounds{both(a.lower, b.lower, Expr::min), either(a.upper, b.upper, Expr::min)};
      });
    case ExprKind::Max:
      return fold(x, [&](const ExprBounds &a, const ExprBounds &b) {
        return ExprBounds{either(a.lower, b.lower, Expr::max), both(a.upper, b.upper, Expr::max)};
      });
    case ExprKind::Lt:
    case ExprKind::Eq:
      return {Expr::constant(e.getContext(), 0), Expr::constant(e.getContext(), 1)};
    case ExprKind::Select:
      return {both(x[1].lower, x[2].lower, Expr::min), both(x[1].upper, x[2].upper, Expr::max)};
    }
    return {};
  }

private:
  using Function = llvm::function_ref<Expr(Expr, Expr)>;

  static ExprBounds fold(llvm::ArrayRef<ExprBounds> x,
                         llvm::function_ref<ExprBounds(const ExprBounds &, const ExprBounds &)> join) {
    ExprBounds result = x[0];
    for (const ExprBounds &next : x.drop_front())
      result = join(result, next);
    return result;
  }
  static Expr both(Expr a, Expr b, Function f) { return a && b ? f(a, b) : Expr(); }
  static Expr either(Expr a, Expr b, Function f) { return a && b ? f(a, b) : a ? a : b; }
  bool isAtLeast(Expr e, int64_t value) const { return e && e.range(ranges).min >= value; }

  ExprBounds multiply(const ExprBounds &a, const ExprBounds &b) const {
    auto times = [](Expr l, Expr r) { return l * r; };
    if (isAtLeast(a.lower, 0) && isAtLeast(b.lower, 0))
      return {a.lower * b.lower, both(a.upper, b.upper, times)};
    if (a.lower && a.lower.isConstant() && a.lower == a.upper) // not positive, or the rule above would hold but for b
      return a.lower.getValue() < 0 ? ExprBounds{both(a.lower, b.upper, times), both(a.lower, b.lower, times)}
                                    : ExprBounds{both(a.lower, b.lower, times), both(a.lower, b.upper, times)};
    if (!a.lower || !a.upper || !b.lower || !b.upper)
      return {};
    Expr p = a.lower * b.lower, q = a.lower * b.upper, r = a.upper * b.lower, s = a.upper * b.upper;
    return {Expr::min(Expr::min(p, q), Expr::min(r, s)), Expr::max(Expr::max(p, q), Expr::max(r, s))};
  }

  ExprBounds divide(const ExprBounds &a, const ExprBounds &b) const {
    if (!isAtLeast(b.lower, 1))
      return {};
    auto over = [](Expr l, Expr r) { return l.floorDiv(r); };
    Expr low = both(a.lower, b.lower, over), high = both(a.upper, b.lower, over);
    if (b.lower == b.upper)
      return {low, high};
    // Towards zero as b grows; without an upper end of b it reaches 0, or -1.
    Expr zero = Expr::constant(b.lower.getContext(), 0), minusOne = zero - 1;
    if (low)
      low = Expr::min(low, isAtLeast(a.lower, 0) ? zero : b.upper ? a.lower.floorDiv(b.upper) : minusOne);
    if (high && !isAtLeast(a.upper, 0))
      high = Expr::max(high, b.upper ? a.upper.floorDiv(b.upper) : zero);
    return {low, high};
  }

  ExprBounds modulo(const ExprBounds &a, const ExprBounds &b) const {
    if (!isAtLeast(b.lower, 1))
      return {};
    Expr high = b.upper ? b.upper - 1 : Expr();
    if (isAtLeast(a.lower, 0))
      high = either(high, a.upper, Expr::min);
    return {Expr::constant(b.lower.getContext(), 0), high};
  }

  const SymbolRanges &ranges;
  llvm::function_ref<std::optional<ExprBounds>(llvm::StringRef)> of;
};

} // namespace

ExprBounds ptc::boundExpr(Expr e, const SymbolRanges &ranges,
                          llvm::function_ref<std::optional<ExprBounds>(llvm::StringRef)> of) {
  ExprBounds bounds = Bounds(ranges, of).visit(e);
  if (bounds.lower)
    bounds.lower = bounds.lower.simplify(ranges);
  if (bounds.upper)
    bounds.upper = bounds.upper.simplify(ranges);
  return bounds;
}
