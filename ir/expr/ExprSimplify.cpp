//===- ExprSimplify.cpp - ranges and what they decide ---------------------===//
//
// `range` is interval arithmetic with a divisor (the greatest known common
// divisor of all values). `simplify` rebuilds an expression bottom-up and, with
// the ranges of the symbols, applies (g > 0 divides every value of x and of b)
//
//   floordiv(x + r, b) = floordiv(x, b)          0 <= r < g, b > 0
//   mod(x + r, b)      = mod(x, b) + r           0 <= r < g, b > 0
//   mod(x, b)          = x                       0 <= x < b
//   floordiv(k*b + r, b) = k + floordiv(r, b)    b != 0
//   floordiv(r, b)     = 0                       0 <= r < b
//   floordiv(g*x, g*b) = floordiv(x, b)          g != 0;  mod alike
//   floordiv(floordiv(x, a), b) = floordiv(x, a*b)   a, b > 0
//   k*c*floordiv(x, c) = k*x                     c divides x
//   min, max           drop operands that never win
//   lt, eq, select     decided by the range of the difference
//
// Bounds that are expressions (`d0 < batch*seq`, mod(x, b) < b) take part in
// comparisons: before the range of a - b is taken, terms with a coefficient that
// is not negative are replaced by their largest value.
//
//===----------------------------------------------------------------------===//
#include "ir/expr/ExprPolynomial.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace ptc;
using namespace ptc::detail;

static constexpr int64_t lowest = std::numeric_limits<int64_t>::min();
static constexpr int64_t highest = std::numeric_limits<int64_t>::max();

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

namespace {
/// Inside this file a divisor of 0 means "always zero".
struct Interval {
  int64_t min = lowest, max = highest, divisor = 1;
};

int64_t clamp(__int128 v) { return v < lowest ? lowest : v > highest ? highest : int64_t(v); }

int64_t divisorOf(int64_t v) { return v == lowest ? 1 : std::abs(v); }

Interval point(int64_t v) { return {v, v, divisorOf(v)}; }

Interval add(Interval a, Interval b) {
  return {clamp(__int128(a.min) + b.min), clamp(__int128(a.max) + b.max), std::gcd(a.divisor, b.divisor)};
}

int64_t multiplyDivisors(int64_t a, int64_t b) {
  __int128 product = __int128(a) * b;
  return product <= highest ? int64_t(product) : std::max(a, b);
}

Interval multiply(Interval a, Interval b) {
  __int128 p[] = {__int128(a.min) * b.min, __int128(a.min) * b.max, __int128(a.max) * b.min, __int128(a.max) * b.max};
  return {clamp(*std::min_element(p, p + 4)), clamp(*std::max_element(p, p + 4)),
          multiplyDivisors(a.divisor, b.divisor)};
}

Interval square(Interval a) {
  Interval result = multiply(a, a);
  if (a.min <= 0 && a.max >= 0)
    result.min = 0;
  else
    result.min = std::min(clamp(__int128(a.min) * a.min), clamp(__int128(a.max) * a.max));
  return result;
}

Interval join(Interval a, Interval b) {
  return {std::min(a.min, b.min), std::max(a.max, b.max), std::gcd(a.divisor, b.divisor)};
}

/// Quotients by divisors of one sign, 0 excluded.
Interval divideBySigned(Interval a, int64_t low, int64_t high) {
  int64_t q[] = {floorDivTotal(a.min, low), floorDivTotal(a.min, high), floorDivTotal(a.max, low),
                 floorDivTotal(a.max, high)};
  return {*std::min_element(q, q + 4), *std::max_element(q, q + 4), 1};
}

Interval divide(Interval a, Interval b) {
  std::optional<Interval> result;
  auto include = [&](Interval part) { result = result ? join(*result, part) : part; };
  if (b.min <= -1)
    include(divideBySigned(a, b.min, std::min<int64_t>(b.max, -1)));
  if (b.max >= 1)
    include(divideBySigned(a, std::max<int64_t>(b.min, 1), b.max));
  if (b.min <= 0 && b.max >= 0)
    include(point(0));
  bool isExact = b.min == b.max && b.min > 0 && a.divisor % b.min == 0;
  result->divisor = result->min == 0 && result->max == 0 ? 0 : isExact ? a.divisor / b.min : 1;
  return *result;
}

Interval modulo(Interval a, Interval b) {
  int64_t divisor = std::gcd(a.divisor, b.divisor);
  if (b.min > 0 && a.min >= 0 && a.max < b.min)
    return a;
  if (b.min == b.max && b.min > 0) {
    int64_t m = b.min;
    if (floorDivTotal(a.min, m) == floorDivTotal(a.max, m))
      return {floorModTotal(a.min, m), floorModTotal(a.max, m), divisor};
    // The largest multiple of the divisor below m.
    return {0, m - std::max<int64_t>(divisor, 1), divisor};
  }
  Interval result = b.min <= 0 && b.max >= 0 ? a : point(0);
  if (b.max >= 1)
    result = join(result, {0, a.min >= 0 ? std::min(b.max - 1, a.max) : b.max - 1, 1});
  if (b.min <= -1)
    result = join(result, {b.min + 1, 0, 1});
  result.divisor = divisor;
  return result;
}

/// 1, 0 or nothing for a < b.
std::optional<bool> less(Interval a, Interval b) {
  if (a.max < b.min)
    return true;
  if (a.min >= b.max)
    return false;
  return std::nullopt;
}

class RangeAnalysis {
public:
  explicit RangeAnalysis(const SymbolRanges &ranges) : ranges(ranges) {}

  Interval visit(Expr e) {
    if (e.isConstant())
      return point(e.getValue());
    if (e.isSymbol()) {
      const ExprRange *range = ranges.find(e.getSymbol());
      if (!range)
        return Interval();
      if (range->isPoint())
        return point(range->min);
      return {range->min, range->max, range->divisor > 0 ? range->divisor : 1};
    }
    if (auto it = known.find(mlir::Attribute(e)); it != known.end())
      return it->second;
    Interval result = compute(e);
    if (result.min == result.max)
      result = point(result.min);
    known[mlir::Attribute(e)] = result;
    return result;
  }

private:
  Interval compute(Expr e) {
    llvm::SmallVector<Interval, 4> v;
    llvm::SmallVector<Expr, 4> operands = e.getOperands();
    for (Expr operand : operands)
      v.push_back(visit(operand));
    switch (e.getKind()) {
    case ExprKind::Add:
      return llvm::accumulate(v, point(0), add);
    case ExprKind::Mul: {
      Interval result = point(1);
      for (size_t i = 0; i != v.size(); ++i) {
        bool isSquare = i + 1 != v.size() && operands[i] == operands[i + 1];
        result = multiply(result, isSquare ? square(v[i]) : v[i]);
        i += isSquare;
      }
      return result;
    }
    case ExprKind::FloorDiv:
      return divide(v[0], v[1]);
    case ExprKind::Mod:
      return modulo(v[0], v[1]);
    case ExprKind::Min:
      return llvm::accumulate(llvm::drop_begin(v), v[0], [](Interval a, Interval b) {
        return Interval{std::min(a.min, b.min), std::min(a.max, b.max), std::gcd(a.divisor, b.divisor)};
      });
    case ExprKind::Max:
      return llvm::accumulate(llvm::drop_begin(v), v[0], [](Interval a, Interval b) {
        return Interval{std::max(a.min, b.min), std::max(a.max, b.max), std::gcd(a.divisor, b.divisor)};
      });
    case ExprKind::Lt:
      if (std::optional<bool> known = less(v[0], v[1]))
        return point(*known);
      return {0, 1, 1};
    case ExprKind::Eq:
      return v[0].max < v[1].min || v[1].max < v[0].min ? point(0) : Interval{0, 1, 1};
    case ExprKind::Select:
      if (v[0].min > 0 || v[0].max < 0)
        return v[1];
      return v[0].min == 0 && v[0].max == 0 ? v[2] : join(v[1], v[2]);
    case ExprKind::Constant:
    case ExprKind::Symbol:
      break;
    }
    llvm_unreachable("leaves are ranged by visit");
  }

  const SymbolRanges &ranges;
  llvm::DenseMap<mlir::Attribute, Interval> known;
};

//===----------------------------------------------------------------------===//
// Simplification
//===----------------------------------------------------------------------===//

class Simplifier {
public:
  explicit Simplifier(const SymbolRanges &symbols) : symbols(symbols), ranges(symbols) {}

  Expr visit(Expr e);
  /// Whether a < b, from ranges and bounds that are expressions.
  std::optional<bool> isLess(Expr a, Expr b);
  std::optional<bool> isEqual(Expr a, Expr b);

private:
  Expr rebuild(Expr e);
  Expr multiplied(Expr e);
  Expr floorDiv(Expr a, Expr b);
  Expr mod(Expr a, Expr b);
  Expr extremum(Expr e, bool isMin);
  bool isInBlock(Expr a, Expr b);
  Expr dropLow(Expr a, Expr b, Expr *low);
  int64_t upperBound(Expr e);
  Expr largestValue(Expr atom);

  const SymbolRanges &symbols;
  RangeAnalysis ranges;
  llvm::DenseMap<mlir::Attribute, Expr> known;
  unsigned depth = 0;
};
} // namespace

/// The largest value of an atom as an expression, or null.
Expr Simplifier::largestValue(Expr atom) {
  if (atom.isSymbol()) {
    const ExprRange *range = symbols.find(atom.getSymbol());
    return range && range->below ? Expr(range->below) - 1 : Expr();
  }
  llvm::SmallVector<Expr, 4> ops = atom.getOperands();
  if (atom.getKind() == ExprKind::Mod && !ops[1].isConstant() && ranges.visit(ops[1]).min >= 1)
    return ops[1] - 1;
  if (atom.getKind() == ExprKind::FloorDiv && ops[0].isSymbol() && ranges.visit(ops[1]).min >= 1) {
    Expr largest = largestValue(ops[0]);
    return largest ? floorDiv(largest, ops[1]) : Expr();
  }
  return Expr();
}

/// An upper bound of e: atoms with a bound of their own are replaced by it, from
/// the last to the first, where their cofactor is never negative.
int64_t Simplifier::upperBound(Expr e) {
  int64_t best = ranges.visit(e).max;
  for (unsigned step = 0; step != 16; ++step) {
    Expr next;
    Polynomial terms = termsOf(e);
    for (const Term &term : llvm::reverse(terms)) {
      for (size_t i = term.atoms.size(); i-- != 0 && !next;) {
        Term cofactor = term;
        cofactor.atoms.erase(cofactor.atoms.begin() + i);
        Expr factor = exprOf(e.getContext(), cofactor);
        if (ranges.visit(factor).min < 0)
          continue;
        if (Expr largest = largestValue(term.atoms[i]))
          next = e + factor * (largest - term.atoms[i]);
      }
      if (next)
        break;
    }
    if (!next || next == e)
      break;
    e = next;
    best = std::min(best, ranges.visit(e).max);
  }
  return best;
}

std::optional<bool> Simplifier::isLess(Expr a, Expr b) {
  Expr difference = a - b;
  if (upperBound(difference) < 0)
    return true;
  if (upperBound(-difference) <= 0)
    return false;
  return std::nullopt;
}

std::optional<bool> Simplifier::isEqual(Expr a, Expr b) {
  Expr difference = a - b;
  if (difference.isConstant())
    return difference.isConstant(0);
  Interval range = ranges.visit(difference);
  if (range.min == 0 && range.max == 0)
    return true;
  // c + (multiple of g) with g not dividing c is never zero.
  Polynomial terms;
  int64_t constant = splitConstant(difference, &terms);
  int64_t g = ranges.visit(exprOf(a.getContext(), std::move(terms))).divisor;
  if ((g > 1 && constant % g != 0) || upperBound(difference) < 0 || upperBound(-difference) < 0)
    return false;
  return std::nullopt;
}

/// 0 <= a < b
bool Simplifier::isInBlock(Expr a, Expr b) { return ranges.visit(a).min >= 0 && isLess(a, b) == true; }

/// a = high + low with a common divisor g of b and high, and 0 <= low < g (a
/// constant multiple of g moves from low to high). Returns high, or null where
/// there is no low but the trivial one.
Expr Simplifier::dropLow(Expr a, Expr b, Expr *low) {
  mlir::MLIRContext *context = a.getContext();
  Polynomial terms = termsOf(a);
  int64_t divisor = ranges.visit(b).divisor;
  llvm::SmallVector<int64_t, 8> divisors, candidates;
  for (const Term &term : terms)
    divisors.push_back(std::gcd(divisor, ranges.visit(exprOf(context, term)).divisor));
  for (int64_t d : divisors)
    if (d > 1 && !llvm::is_contained(candidates, d))
      candidates.push_back(d);
  llvm::sort(candidates, std::greater<>());
  for (int64_t g : candidates) {
    Polynomial high, rest;
    for (auto [term, d] : llvm::zip(terms, divisors))
      (d % g == 0 ? high : rest).push_back(term);
    if (rest.empty())
      continue;
    Expr r = exprOf(context, rest);
    Interval range = ranges.visit(r);
    int64_t block = floorDivTotal(range.min, g);
    if (block != floorDivTotal(range.max, g))
      continue;
    *low = r - block * g;
    Expr result = exprOf(context, high) + block * g;
    if (result != a)
      return result;
  }
  return Expr();
}

/// The factor that all terms of a and the monomial b share.
static Term sharedFactor(Expr a, const Term &b) {
  Term shared{std::gcd(b.coefficient, int64_t(0)), b.atoms};
  for (const Term &term : termsOf(a)) {
    shared.coefficient = std::gcd(shared.coefficient, term.coefficient);
    Atoms kept, available = term.atoms;
    for (Expr atom : shared.atoms)
      if (auto it = llvm::find(available, atom); it != available.end()) {
        available.erase(it);
        kept.push_back(atom);
      }
    shared.atoms = kept;
  }
  return shared;
}

static Expr divideTerms(Expr e, const Term &factor) {
  Polynomial terms;
  for (const Term &term : termsOf(e))
    terms.push_back(*divideExactly(term, factor));
  return exprOf(e.getContext(), std::move(terms));
}

static bool isUnit(const Term &term) { return term.atoms.empty() && term.coefficient == 1; }

Expr Simplifier::floorDiv(Expr a, Expr b) {
  Interval rb = ranges.visit(b);
  mlir::MLIRContext *context = a.getContext();
  bool isNonZero = rb.min >= 1 || rb.max <= -1;
  if (isNonZero && a == b)
    return Expr::constant(context, 1);
  Expr low;
  if (rb.min >= 1)
    if (Expr high = dropLow(a, b, &low))
      return visit(high.floorDiv(b));
  if (rb.min >= 1 && isInBlock(a, b))
    return Expr::constant(context, 0);
  if (!isNonZero || b.isConstant() || b.getKind() == ExprKind::Add)
    return a.floorDiv(b);
  Term divisor = termOf(b);
  Term shared = sharedFactor(a, divisor);
  if (!isUnit(shared))
    return visit(divideTerms(a, shared).floorDiv(divideTerms(b, shared)));
  Polynomial whole, rest;
  for (const Term &term : termsOf(a)) {
    if (std::optional<Term> quotient = divideExactly(term, divisor))
      whole.push_back(*quotient);
    else
      rest.push_back(term);
  }
  if (!whole.empty())
    return exprOf(context, whole) + floorDiv(exprOf(context, rest), b);
  if (rb.min >= 1 && a.getKind() == ExprKind::FloorDiv && ranges.visit(a.getOperands()[1]).min >= 1)
    return visit(a.getOperands()[0].floorDiv(a.getOperands()[1] * b));
  return a.floorDiv(b);
}

Expr Simplifier::mod(Expr a, Expr b) {
  Interval rb = ranges.visit(b);
  if (rb.min >= 1 && isInBlock(a, b))
    return a;
  Expr low;
  if (rb.min >= 1)
    if (Expr high = dropLow(a, b, &low))
      return visit(high.mod(b)) + low;
  if (b.isConstant()) {
    Interval ra = ranges.visit(a);
    int64_t m = b.getValue(), block = floorDivTotal(ra.min, m);
    return m > 0 && block == floorDivTotal(ra.max, m) ? a - wrapMul(block, m) : a.mod(b);
  }
  if (b.getKind() == ExprKind::Add)
    return a.mod(b);
  Term divisor = termOf(b);
  Term shared = sharedFactor(a, divisor);
  if (a.isConstant(0) || isUnit(shared) || shared.coefficient == 0)
    return a.mod(b);
  Expr factor = exprOf(a.getContext(), shared);
  return factor * visit(divideTerms(a, shared).mod(divideTerms(b, shared)));
}

/// k*c*floordiv(x, c) = k*x where c divides x.
Expr Simplifier::multiplied(Expr e) {
  if (e.getKind() != ExprKind::Mul)
    return e;
  Term term = termOf(e);
  for (size_t i = 0; i != term.atoms.size(); ++i) {
    Expr atom = term.atoms[i];
    if (atom.getKind() != ExprKind::FloorDiv || !atom.getOperands()[1].isConstant())
      continue;
    Expr x = atom.getOperands()[0];
    int64_t c = atom.getOperands()[1].getValue();
    if (c <= 0 || term.coefficient % c != 0 || ranges.visit(x).divisor % c != 0)
      continue;
    Term rest{term.coefficient / c, term.atoms};
    rest.atoms.erase(rest.atoms.begin() + i);
    return exprOf(e.getContext(), rest) * x;
  }
  return e;
}

Expr Simplifier::extremum(Expr e, bool isMin) {
  llvm::SmallVector<Expr, 4> operands = e.getOperands();
  if (operands.size() > 64) // quadratic below
    return e;
  for (size_t i = 0; i != operands.size(); ++i)
    for (size_t j = 0; j != operands.size(); ++j) {
      if (i == j || !operands[i] || !operands[j])
        continue;
      // operands[i] loses where it is never better than operands[j].
      Expr a = isMin ? operands[j] : operands[i], b = isMin ? operands[i] : operands[j];
      if (upperBound(a - b) <= 0)
        operands[i] = Expr();
    }
  llvm::erase_if(operands, [](Expr x) { return !x; });
  return llvm::accumulate(llvm::drop_begin(operands), operands[0], isMin ? Expr::min : Expr::max);
}

Expr Simplifier::rebuild(Expr e) {
  llvm::SmallVector<Expr, 4> v;
  for (Expr operand : e.getOperands())
    v.push_back(visit(operand));
  mlir::MLIRContext *context = e.getContext();
  switch (e.getKind()) {
  case ExprKind::Add: {
    Polynomial terms;
    for (Expr x : v)
      llvm::append_range(terms, termsOf(x));
    return exprOf(context, std::move(terms));
  }
  case ExprKind::Mul:
    return multiplied(product(context, v));
  case ExprKind::FloorDiv:
    return floorDiv(v[0], v[1]);
  case ExprKind::Mod:
    return mod(v[0], v[1]);
  case ExprKind::Min:
  case ExprKind::Max: {
    bool isMin = e.getKind() == ExprKind::Min;
    Expr result = llvm::accumulate(llvm::drop_begin(v), v[0], isMin ? Expr::min : Expr::max);
    return result.getKind() == e.getKind() ? extremum(result, isMin) : result;
  }
  case ExprKind::Lt:
    if (std::optional<bool> value = isLess(v[0], v[1]))
      return Expr::constant(context, *value);
    return Expr::lt(v[0], v[1]);
  case ExprKind::Eq:
    if (std::optional<bool> value = isEqual(v[0], v[1]))
      return Expr::constant(context, *value);
    return Expr::eq(v[0], v[1]);
  case ExprKind::Select: {
    Interval condition = ranges.visit(v[0]);
    if (condition.min > 0 || condition.max < 0)
      return v[1];
    return Expr::select(v[0], v[1], v[2]);
  }
  case ExprKind::Constant:
  case ExprKind::Symbol:
    break;
  }
  llvm_unreachable("leaves are simplified by visit");
}

Expr Simplifier::visit(Expr e) {
  if (e.isConstant())
    return e;
  Interval range = ranges.visit(e);
  if (range.min == range.max)
    return Expr::constant(e.getContext(), range.min);
  if (e.isSymbol() || depth > 64)
    return e;
  if (Expr done = known.lookup(mlir::Attribute(e)))
    return done;
  ++depth;
  Expr result = rebuild(e);
  --depth;
  known[mlir::Attribute(e)] = result;
  return result;
}

//===----------------------------------------------------------------------===//
// Interface
//===----------------------------------------------------------------------===//

ExprRange Expr::range(const SymbolRanges &ranges) const {
  Interval interval = RangeAnalysis(ranges).visit(*this);
  return {interval.min, interval.max, std::max<int64_t>(interval.divisor, 1)};
}

Expr Expr::simplify(const SymbolRanges &ranges) const {
  Simplifier simplifier(ranges);
  Expr e = *this;
  // One rewrite can make another possible above it; four rounds are plenty.
  for (int round = 0; round != 4; ++round) {
    Expr next = simplifier.visit(e);
    if (next == e)
      break;
    e = next;
  }
  return e;
}

std::optional<bool> ptc::knownEqual(Expr a, Expr b, const SymbolRanges &ranges) {
  Simplifier simplifier(ranges);
  return simplifier.isEqual(simplifier.visit(a), simplifier.visit(b));
}

std::optional<bool> ptc::knownLess(Expr a, Expr b, const SymbolRanges &ranges) {
  Simplifier simplifier(ranges);
  return simplifier.isLess(simplifier.visit(a), simplifier.visit(b));
}
