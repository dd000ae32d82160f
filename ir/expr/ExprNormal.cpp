//===- ExprNormal.cpp - smart constructors and the normal form ------------===//
//
// Every constructor returns the normal form, so that equal functions built in
// different ways are mostly the same pointer. The rules here need no ranges:
// they hold for all integers (c, a, b below are constants > 0; k any monomial).
//
//   floordiv(c*x + r, c)            = x + floordiv(r, c)
//   floordiv(g*x + r, g*c)          = floordiv(x + r/g, c)           0 <= r < g*c constant
//   floordiv(floordiv(x, a) + r, b) = floordiv(x + a*r, a*b)
//   floordiv(mod(x, a*b), a)        = mod(floordiv(x, a), b)
//   floordiv(x, -c)                 = floordiv(-x, c)
//   mod(k*m + r, m)                 = mod(r, m)                      m any monomial, zero too
//   mod(g*x + r, g*c)               = g*mod(x + r/g, c) + r mod g
//   mod(mod(x, a*b), a)             = mod(x, a)
//   mod(x, -c)                      = -mod(-x, c)
// and in sums, so that splitting an index and joining it again gives it back:
//   k*m*floordiv(x, m) + k*mod(x, m)                   = k*x         m any expression
//   k*mod(x, a) + k*a*mod(floordiv(x, a), b)           = k*mod(x, a*b)
//   k*x - k*m*floordiv(x, m)                           = k*mod(x, m)
// min, max: flattened, sorted, one entry for operands that differ by a constant.
// lt, eq: common terms cancelled, divided by the common factor, each term on the
// side where its coefficient is positive.
//
//===----------------------------------------------------------------------===//
#include "ir/expr/ExprPolynomial.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace ptc;
using namespace ptc::detail;

/// A product of sums with more terms than this stays a product.
static constexpr size_t maxExpandedTerms = 256;

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

Term detail::termOf(Expr e) {
  if (e.isConstant())
    return {e.getValue(), {}};
  if (e.getKind() != ExprKind::Mul)
    return {1, {e}};
  Term term{1, {}};
  for (Expr factor : e.getOperands()) {
    if (factor.isConstant())
      term.coefficient = factor.getValue();
    else
      term.atoms.push_back(factor);
  }
  return term;
}

Polynomial detail::termsOf(Expr e) {
  Polynomial terms;
  if (e.getKind() == ExprKind::Add) {
    for (Expr operand : e.getOperands())
      terms.push_back(termOf(operand));
  } else if (!e.isConstant(0)) {
    terms.push_back(termOf(e));
  }
  return terms;
}

Expr detail::exprOf(mlir::MLIRContext *context, const Term &term) {
  if (term.coefficient == 0 || term.atoms.empty())
    return Expr::constant(context, term.coefficient);
  if (term.coefficient == 1 && term.atoms.size() == 1)
    return term.atoms.front();
  llvm::SmallVector<ExprAttr, 4> factors;
  if (term.coefficient != 1)
    factors.push_back(Expr::constant(context, term.coefficient));
  llvm::append_range(factors, term.atoms);
  return makeExpr(context, ExprKind::Mul, 0, {}, factors);
}

Term detail::multiply(const Term &a, const Term &b) {
  Term result{wrapMul(a.coefficient, b.coefficient), {}};
  std::merge(a.atoms.begin(), a.atoms.end(), b.atoms.begin(), b.atoms.end(), std::back_inserter(result.atoms),
             [](Expr x, Expr y) { return compare(x, y) < 0; });
  return result;
}

std::optional<Term> detail::divideExactly(const Term &a, const Term &b) {
  if (b.coefficient == 0 || b.coefficient == -1 || a.coefficient % b.coefficient != 0)
    return std::nullopt;
  Term result{a.coefficient / b.coefficient, a.atoms};
  for (Expr atom : b.atoms) {
    auto it = llvm::find(result.atoms, atom);
    if (it == result.atoms.end())
      return std::nullopt;
    result.atoms.erase(it);
  }
  return result;
}

int64_t detail::splitConstant(Expr e, Polynomial *rest) {
  int64_t constant = 0;
  for (Term &term : termsOf(e)) {
    if (term.atoms.empty())
      constant = term.coefficient;
    else if (rest)
      rest->push_back(std::move(term));
  }
  return constant;
}

/// Sorts terms, merges equal ones and drops zeros.
static void normalize(Polynomial &terms) {
  llvm::sort(terms, [](const Term &a, const Term &b) { return compareAtoms(a.atoms, b.atoms) < 0; });
  Polynomial merged;
  for (Term &term : terms) {
    if (!merged.empty() && merged.back().atoms == term.atoms)
      merged.back().coefficient = wrapAdd(merged.back().coefficient, term.coefficient);
    else
      merged.push_back(std::move(term));
  }
  llvm::erase_if(merged, [](const Term &term) { return term.coefficient == 0; });
  terms = std::move(merged);
}

static void addScaled(Polynomial &terms, const Polynomial &added, const Term &factor) {
  for (const Term &term : added)
    terms.push_back(multiply(term, factor));
}

static Term negated(Term term) {
  term.coefficient = wrapMul(term.coefficient, -1);
  return term;
}

/// Whether `terms` holds each term of `wanted`, scaled, with the same coefficient.
static bool containsScaled(const Polynomial &terms, const Polynomial &wanted, const Term &factor,
                           bool skipConstant = false) {
  return llvm::all_of(wanted, [&](const Term &term) {
    if (skipConstant && term.atoms.empty())
      return true;
    Term scaled = multiply(term, factor);
    return llvm::any_of(terms, [&](const Term &other) {
      return other.coefficient == scaled.coefficient && other.atoms == scaled.atoms;
    });
  });
}

static Term without(const Term &term, size_t atom) {
  Term result = term;
  result.atoms.erase(result.atoms.begin() + atom);
  return result;
}

/// k*m*floordiv(x, m) + k*mod(x, m) = k*x, and the joining of two digits.
static bool recombineMod(Polynomial &terms, const Term &term, size_t atomIndex) {
  Expr mod = term.atoms[atomIndex];
  Expr x = mod.getOperands()[0], m = mod.getOperands()[1];
  Term k = without(term, atomIndex);
  Expr quotient = x.floorDiv(m);
  Polynomial upper = termsOf(quotient * m);
  if (!quotient.isConstant() && containsScaled(terms, upper, k)) {
    addScaled(terms, upper, negated(k));
    terms.push_back(negated(term));
    addScaled(terms, termsOf(x), k);
    return true;
  }
  if (!m.isConstant())
    return false;
  for (const Term &other : terms)
    for (auto [index, atom] : llvm::enumerate(other.atoms)) {
      if (atom.getKind() != ExprKind::Mod || atom.getOperands()[0] != quotient || !atom.getOperands()[1].isConstant())
        continue;
      Term cofactor = without(other, index);
      Term wanted = multiply(k, termOf(m));
      if (cofactor.coefficient != wanted.coefficient || cofactor.atoms != wanted.atoms)
        continue;
      Expr joined = x.mod(m * atom.getOperands()[1]);
      Term digit = other, low = term;
      terms.push_back(negated(digit));
      terms.push_back(negated(low));
      addScaled(terms, termsOf(joined), k);
      return true;
    }
  return false;
}

/// k*x - k*m*floordiv(x, m) = k*mod(x, m), up to the constant of x.
static bool recombineFloorDiv(Polynomial &terms, const Term &term, size_t atomIndex) {
  Expr division = term.atoms[atomIndex];
  Expr x = division.getOperands()[0], m = division.getOperands()[1];
  if (m.getKind() == ExprKind::Add)
    return false;
  std::optional<Term> quotient = divideExactly(without(term, atomIndex), termOf(m));
  if (!quotient)
    return false;
  Term k = negated(*quotient);
  Polynomial xTerms = termsOf(x);
  if (!containsScaled(terms, xTerms, k, /*skipConstant=*/true))
    return false;
  addScaled(terms, xTerms, negated(k));
  terms.push_back(negated(term));
  addScaled(terms, termsOf(x.mod(m)), k);
  return true;
}

static bool recombineOnce(Polynomial &terms) {
  for (size_t i = 0; i != terms.size(); ++i)
    for (size_t j = 0; j != terms[i].atoms.size(); ++j) {
      ExprKind kind = terms[i].atoms[j].getKind();
      Term term = terms[i];
      if (kind == ExprKind::Mod && recombineMod(terms, term, j))
        return true;
      if (kind == ExprKind::FloorDiv && recombineFloorDiv(terms, term, j))
        return true;
    }
  return false;
}

Expr detail::exprOf(mlir::MLIRContext *context, Polynomial terms) {
  normalize(terms);
  // Each step removes a floordiv or a mod at some depth; the bound is a guard.
  for (int step = 0; step != 64 && terms.size() > 1 && recombineOnce(terms); ++step)
    normalize(terms);
  if (terms.empty())
    return Expr::constant(context, 0);
  if (terms.size() == 1)
    return exprOf(context, terms.front());
  llvm::SmallVector<ExprAttr, 6> operands;
  for (const Term &term : terms)
    operands.push_back(exprOf(context, term));
  return makeExpr(context, ExprKind::Add, 0, {}, operands);
}

//===----------------------------------------------------------------------===//
// Sums and products
//===----------------------------------------------------------------------===//

Expr Expr::operator+(Expr b) const {
  if (isConstant() && b.isConstant())
    return constant(getContext(), wrapAdd(getValue(), b.getValue()));
  Polynomial terms = termsOf(*this);
  llvm::append_range(terms, termsOf(b));
  return exprOf(getContext(), std::move(terms));
}

Expr Expr::operator*(Expr b) const {
  Polynomial left = termsOf(*this), right = termsOf(b), terms;
  if (left.size() * right.size() > maxExpandedTerms && left.size() > 1 && right.size() > 1)
    return exprOf(getContext(), multiply(Term{1, {*this}}, Term{1, {b}}));
  for (const Term &term : right)
    addScaled(terms, left, term);
  return exprOf(getContext(), std::move(terms));
}

Expr Expr::operator-() const { return *this * -1; }
Expr Expr::operator-(Expr b) const { return *this + (-b); }
Expr Expr::operator+(int64_t b) const { return *this + constant(getContext(), b); }
Expr Expr::operator*(int64_t b) const { return *this * constant(getContext(), b); }

//===----------------------------------------------------------------------===//
// Division and modulo
//===----------------------------------------------------------------------===//

static bool isConstantAbove(Expr e, int64_t bound) { return e.isConstant() && e.getValue() > bound; }
static bool isNegativeConstant(Expr e) {
  return e.isConstant() && e.getValue() < 0 && e.getValue() != std::numeric_limits<int64_t>::min();
}

namespace {
/// A dividend by a constant: x = divisor*whole + gcd*reduced + low, with
/// 0 <= low < gcd; floordiv(x, divisor) = whole + floordiv(reduced, divisor/gcd).
struct Division {
  Polynomial whole, reduced;
  int64_t gcd = 1, low = 0;
};
} // namespace

static Division splitDividend(Expr x, int64_t divisor) {
  Division result;
  Polynomial terms;
  int64_t constant = splitConstant(x, &terms);
  int64_t remainder = floorModTotal(constant, divisor);
  result.whole.push_back({floorDivTotal(constant, divisor), {}});
  int64_t gcd = divisor;
  for (Term &term : terms) {
    if (term.coefficient % divisor == 0) {
      term.coefficient /= divisor;
      result.whole.push_back(std::move(term));
      continue;
    }
    gcd = std::gcd(gcd, term.coefficient);
    result.reduced.push_back(std::move(term));
  }
  for (Term &term : result.reduced)
    term.coefficient /= gcd;
  result.gcd = gcd;
  result.low = remainder % gcd;
  result.reduced.push_back({remainder / gcd, {}});
  return result;
}

/// x with neither multiples of c nor a factor common with c.
static Expr floorDivReduced(Expr x, int64_t c) {
  mlir::MLIRContext *context = x.getContext();
  if (c == 1)
    return x;
  Polynomial terms;
  int64_t r = splitConstant(x, &terms);
  if (terms.empty())
    return Expr::constant(context, floorDivTotal(r, c));
  if (terms.size() == 1 && terms[0].coefficient == 1 && terms[0].atoms.size() == 1) {
    Expr atom = terms[0].atoms[0];
    ExprKind kind = atom.getKind();
    llvm::SmallVector<Expr, 4> ops = atom.getOperands();
    int64_t product;
    if (kind == ExprKind::FloorDiv && isConstantAbove(ops[1], 0) &&
        !__builtin_mul_overflow(ops[1].getValue(), c, &product))
      return (ops[0] + ops[1] * r).floorDiv(product);
    if (kind == ExprKind::Mod && isConstantAbove(ops[1], 0)) {
      if (r + (ops[1].getValue() - 1) < c)
        return Expr::constant(context, 0);
      if (r == 0 && ops[1].getValue() % c == 0)
        return ops[0].floorDiv(c).mod(ops[1].getValue() / c);
    }
  }
  return makeAtom(ExprKind::FloorDiv, {x, Expr::constant(context, c)});
}

Expr Expr::floorDiv(Expr b) const {
  mlir::MLIRContext *context = getContext();
  if (b.isConstant(0) || isConstant(0))
    return constant(context, 0);
  if (isConstant() && b.isConstant())
    return constant(context, floorDivTotal(getValue(), b.getValue()));
  if (isNegativeConstant(b))
    return (-*this).floorDiv(-b);
  if (!isConstantAbove(b, 0))
    return makeAtom(ExprKind::FloorDiv, {*this, b});
  Division parts = splitDividend(*this, b.getValue());
  Expr reduced = exprOf(context, std::move(parts.reduced));
  return exprOf(context, std::move(parts.whole)) + floorDivReduced(reduced, b.getValue() / parts.gcd);
}

static Expr modReduced(Expr x, int64_t c) {
  mlir::MLIRContext *context = x.getContext();
  if (c == 1)
    return Expr::constant(context, 0);
  if (x.isConstant())
    return Expr::constant(context, floorModTotal(x.getValue(), c));
  if (x.getKind() == ExprKind::Mod) {
    llvm::SmallVector<Expr, 4> ops = x.getOperands();
    if (isConstantAbove(ops[1], 0) && ops[1].getValue() <= c)
      return x;
    if (isConstantAbove(ops[1], 0) && ops[1].getValue() % c == 0)
      return ops[0].mod(c);
  }
  return makeAtom(ExprKind::Mod, {x, Expr::constant(context, c)});
}

Expr Expr::mod(Expr b) const {
  mlir::MLIRContext *context = getContext();
  if (b.isConstant(0) || isConstant(0))
    return *this;
  if (isConstant() && b.isConstant())
    return constant(context, floorModTotal(getValue(), b.getValue()));
  if (isNegativeConstant(b))
    return -((-*this).mod(-b));
  if (isConstantAbove(b, 0)) {
    Division parts = splitDividend(*this, b.getValue());
    Expr reduced = exprOf(context, std::move(parts.reduced));
    return modReduced(reduced, b.getValue() / parts.gcd) * parts.gcd + parts.low;
  }
  if (b.getKind() == ExprKind::Add)
    return *this == b ? constant(context, 0) : makeAtom(ExprKind::Mod, {*this, b});
  Polynomial terms = termsOf(*this);
  Term divisor = termOf(b);
  llvm::erase_if(terms, [&](const Term &term) { return divideExactly(term, divisor).has_value(); });
  Expr rest = exprOf(context, std::move(terms));
  return rest.isConstant(0) ? rest : makeAtom(ExprKind::Mod, {rest, b});
}

Expr Expr::floorDiv(int64_t b) const { return floorDiv(constant(getContext(), b)); }
Expr Expr::mod(int64_t b) const { return mod(constant(getContext(), b)); }

/// ceildiv(a, c) = floordiv(a + c - 1, c) keeps positive coefficients; for other
/// divisors -floordiv(-a, b).
Expr Expr::ceilDiv(Expr b) const {
  if (isConstantAbove(b, 0))
    return (*this + (b.getValue() - 1)).floorDiv(b);
  return -((-*this).floorDiv(b));
}
Expr Expr::ceilDiv(int64_t b) const { return ceilDiv(constant(getContext(), b)); }

//===----------------------------------------------------------------------===//
// Minimum, maximum, comparison, selection
//===----------------------------------------------------------------------===//

/// Operands are kept as (expression without constant, best constant).
static Expr makeExtremum(ExprKind kind, llvm::ArrayRef<Expr> operands) {
  mlir::MLIRContext *context = operands.front().getContext();
  bool isMin = kind == ExprKind::Min;
  llvm::MapVector<mlir::Attribute, int64_t> best;
  auto insert = [&](Expr e) {
    Polynomial rest;
    int64_t constant = splitConstant(e, &rest);
    auto [it, isNew] = best.insert({exprOf(context, std::move(rest)), constant});
    if (!isNew)
      it->second = isMin ? std::min(it->second, constant) : std::max(it->second, constant);
  };
  for (Expr operand : operands) {
    if (operand.getKind() == kind)
      llvm::for_each(operand.getOperands(), insert);
    else
      insert(operand);
  }
  llvm::SmallVector<Expr, 4> sorted;
  for (auto [rest, constant] : best)
    sorted.push_back(Expr(llvm::cast<ExprAttr>(rest)) + constant);
  // min(a, max(a, b)) = a and its dual.
  ExprKind dual = isMin ? ExprKind::Max : ExprKind::Min;
  llvm::SmallVector<Expr, 4> kept;
  for (Expr e : sorted)
    if (e.getKind() != dual || llvm::none_of(e.getOperands(), [&](Expr x) { return llvm::is_contained(sorted, x); }))
      kept.push_back(e);
  llvm::sort(kept, [](Expr a, Expr b) { return compare(a, b) < 0; });
  return kept.size() == 1 ? kept.front() : makeAtom(kind, kept);
}

Expr Expr::min(Expr a, Expr b) { return makeExtremum(ExprKind::Min, {a, b}); }
Expr Expr::max(Expr a, Expr b) { return makeExtremum(ExprKind::Max, {a, b}); }

/// Terms of `difference` by the sign of their coefficient, both sides positive.
static std::pair<Expr, Expr> splitBySign(mlir::MLIRContext *context, const Polynomial &difference) {
  Polynomial negative, positive;
  for (const Term &term : difference) {
    if (term.coefficient < 0)
      negative.push_back(negated(term));
    else
      positive.push_back(term);
  }
  return {exprOf(context, std::move(negative)), exprOf(context, std::move(positive))};
}

static int64_t commonFactor(const Polynomial &terms) {
  int64_t gcd = 0;
  for (const Term &term : terms)
    if (!term.atoms.empty())
      gcd = term.coefficient == std::numeric_limits<int64_t>::min() ? 1 : std::gcd(gcd, term.coefficient);
  return gcd ? gcd : 1;
}

Expr Expr::lt(Expr a, Expr b) {
  mlir::MLIRContext *context = a.getContext();
  if (a.isConstant() && b.isConstant()) // whose difference may wrap
    return constant(context, a.getValue() < b.getValue());
  Expr difference = b - a;
  if (difference.isConstant())
    return constant(context, difference.getValue() > 0);
  // 0 < g*y + r  <=>  0 < y + ceildiv(r, g)
  Polynomial terms;
  int64_t r = splitConstant(difference, &terms);
  int64_t g = commonFactor(terms);
  for (Term &term : terms)
    term.coefficient /= g;
  if (int64_t shifted = wrapMul(floorDivTotal(wrapMul(r, -1), g), -1))
    terms.push_back({shifted, {}});
  auto [left, right] = splitBySign(context, terms);
  return makeAtom(ExprKind::Lt, {left, right});
}

Expr Expr::eq(Expr a, Expr b) {
  mlir::MLIRContext *context = a.getContext();
  Expr difference = a - b;
  if (difference.isConstant())
    return constant(context, difference.getValue() == 0);
  Polynomial terms;
  int64_t r = splitConstant(difference, &terms);
  int64_t g = commonFactor(terms);
  if (r % g != 0)
    return constant(context, 0);
  if (terms.front().coefficient < 0)
    g = -g;
  for (Term &term : terms)
    term.coefficient /= g;
  if (r)
    terms.push_back({r / g, {}});
  auto [left, right] = splitBySign(context, terms);
  return makeAtom(ExprKind::Eq, {right, left});
}

Expr Expr::select(Expr c, Expr a, Expr b) {
  if (c.isConstant())
    return c.getValue() ? a : b;
  if (a == b)
    return a;
  bool isBoolean = c.getKind() == ExprKind::Lt || c.getKind() == ExprKind::Eq;
  if (isBoolean && a.isConstant(1) && b.isConstant(0))
    return c;
  return makeAtom(ExprKind::Select, {c, a, b});
}
