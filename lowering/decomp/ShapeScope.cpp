//===- ShapeScope.cpp - what is known and assumed of shape symbols --------===//
#include "lowering/decomp/ShapeScope.h"
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::decomp;

Expr ShapeScope::declare(StringRef name, SymbolBounds bounds) {
  auto [entry, isNew] = symbols.insert({StringAttr::get(context, name), bounds});
  SymbolBounds &known = entry->second;
  if (!isNew) {
    known.min = std::max(known.min, bounds.min);
    known.max = std::min(known.max, bounds.max);
    known.divisor = std::lcm(known.divisor, bounds.divisor);
    known.hint = std::clamp(known.hint, known.min, std::max(known.min, known.max));
  }
  ExprRange range;
  range.min = known.min;
  range.max = known.max;
  range.divisor = known.divisor;
  ranges[name] = range;
  return Expr::symbol(context, name);
}

std::string ShapeScope::unusedName(StringRef base) const {
  std::string name = base.str();
  for (unsigned n = 1; ranges.contains(name); ++n)
    name = (base + "_" + Twine(n)).str();
  return name;
}

std::optional<bool> ShapeScope::equal(Expr a, Expr b) const {
  if (a == b)
    return true;
  if (llvm::is_contained(guards, Expr::eq(a, b)))
    return true;
  return knownEqual(a, b, ranges);
}

bool ShapeScope::assumeEqual(Expr a, Expr b) {
  if (std::optional<bool> known = equal(a, b))
    return *known;
  return assume(Expr::eq(a, b));
}

bool ShapeScope::assume(Expr condition) {
  condition = simplify(condition);
  if (condition.isConstant())
    return !condition.isConstant(0);
  if (!llvm::is_contained(guards, condition))
    guards.push_back(condition);
  return true;
}

//===----------------------------------------------------------------------===//
// Quotients of products
//===----------------------------------------------------------------------===//

namespace {
/// coefficient * product of atoms
struct Factors {
  int64_t coefficient = 1;
  SmallVector<Expr> atoms;

  void multiply(Expr e) {
    if (e.isConstant()) {
      coefficient *= e.getValue();
    } else if (e.getKind() == ExprKind::Mul) {
      for (Expr operand : e.getOperands())
        multiply(operand);
    } else if (int64_t content = contentOf(e); content > 1) {
      coefficient *= content;
      atoms.push_back(e.floorDiv(content));
    } else {
      atoms.push_back(e);
    }
  }
  /// The greatest constant that divides every term of a sum.
  static int64_t contentOf(Expr e) {
    if (e.getKind() != ExprKind::Add)
      return 1;
    int64_t content = 0;
    for (Expr term : e.getOperands()) {
      int64_t coefficient = 1;
      if (term.isConstant())
        coefficient = term.getValue();
      else if (term.getKind() == ExprKind::Mul)
        for (Expr factor : term.getOperands())
          if (factor.isConstant())
            coefficient = factor.getValue();
      content = std::gcd(content, coefficient);
    }
    return content;
  }
  Expr product(MLIRContext *context) const {
    Expr result = Expr::constant(context, coefficient);
    for (Expr atom : atoms)
      result = result * atom;
    return result;
  }
};
} // namespace

ShapeScope::Quotient ShapeScope::divide(ArrayRef<Expr> numerators, ArrayRef<Expr> denominators) const {
  Factors above, below;
  for (Expr e : numerators)
    above.multiply(e);
  for (Expr e : denominators)
    below.multiply(e);
  for (Expr &atom : below.atoms)
    if (auto *match = llvm::find(above.atoms, atom); match != above.atoms.end()) {
      above.atoms.erase(match);
      atom = constant(1);
    }
  if (int64_t common = std::gcd(above.coefficient, below.coefficient)) {
    if (below.coefficient < 0)
      common = -common;
    above.coefficient /= common;
    below.coefficient /= common;
  }
  return {above.product(context), below.product(context)};
}

std::optional<int64_t> ShapeScope::atHints(Expr e) const {
  SymbolValues hints;
  for (auto &[name, bounds] : symbols)
    hints[name.getValue()] = bounds.hint;
  return e.evaluate(hints);
}

//===----------------------------------------------------------------------===//
// Attributes of the entry
//===----------------------------------------------------------------------===//

DictionaryAttr ShapeScope::symbolsAttr() const {
  SmallVector<NamedAttribute> entries;
  for (auto &[name, bounds] : symbols)
    entries.push_back({name, prim::SymbolAttr::get(context, bounds.min, bounds.max, bounds.divisor, bounds.hint)});
  return DictionaryAttr::get(context, entries);
}
