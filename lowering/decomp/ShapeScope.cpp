//===- ShapeScope.cpp - what is known and assumed of shape symbols --------===//
#include "lowering/decomp/ShapeScope.h"
#include "ir/Diagnostics.h"
#include "llvm/Support/MathExtras.h"
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
  if (isAssumed(Expr::eq(a, b)))
    return true;
  if (std::optional<bool> known = knownEqual(a, b, ranges))
    return known;
  SmallVector<Expr> left = partsOf(a), right = partsOf(b);
  auto areIn = [&](ArrayRef<Expr> parts, ArrayRef<Expr> others) {
    return llvm::all_of(
        parts, [&](Expr part) { return llvm::any_of(others, [&](Expr other) { return equal(part, other) == true; }); });
  };
  bool isCompound = left.size() > 1 || right.size() > 1;
  if (isCompound && areIn(left, right) && areIn(right, left))
    return true;
  return std::nullopt;
}

bool ShapeScope::assumeEqual(Expr a, Expr b) {
  auto isNeeded = [&](const auto &pair) { return pair == std::pair(a, b) || pair == std::pair(b, a); };
  if (auto *pair = llvm::find_if(met, isNeeded); pair != met.end()) {
    metAndNeeded.push_back(*pair);
    met.erase(pair);
  }
  if (std::optional<bool> known = equal(a, b))
    return *known;
  return assume(Expr::eq(a, b));
}

bool ShapeScope::isGuardedEqual(Expr a, Expr b) const {
  return knownEqual(a, b, ranges) == true || llvm::is_contained(guards, simplify(Expr::eq(a, b)));
}

bool ShapeScope::assume(Expr condition) {
  condition = simplify(condition);
  if (condition.isConstant())
    return !condition.isConstant(0);
  if (isAssumed(condition))
    return true;
  if (!isBoundInside(condition) && !isConditional) {
    guards.push_back(condition);
    guardPlaces.push_back(place.loc);
    learnLeast(condition);
    return true;
  }
  assert(place.builder && "a symbol is bound inside, so there is a node");
  prim::GuardOp::create(*place.builder, place.loc, ExprAttr(condition), mlir::StringAttr());
  innerGuards.push_back({condition, place.builder->getInsertionBlock()});
  return true;
}

void ShapeScope::learnLeast(Expr guard) {
  constexpr int64_t mostTried = 1024;
  std::optional<StringRef> name;
  bool isOne = true;
  guard.walkSymbols([&](StringRef symbol) { isOne &= std::exchange(name, symbol).value_or(symbol) == symbol; });
  if (!name || !isOne)
    return;
  ExprRange range = this->range(Expr::symbol(context, *name));
  int64_t last = range.max - range.min > mostTried ? range.min + mostTried : range.max;
  for (int64_t least = range.min; least <= last; ++least) {
    std::optional<int64_t> value = guard.evaluate({{*name, least}});
    if (value == 0)
      continue;
    if (value && least > range.min)
      leasts[*name] = least;
    return;
  }
}

ExprRange ShapeScope::range(Expr e) const {
  ExprRange found = e.range(ranges);
  if (!e.usesAny([&](StringRef symbol) { return leasts.contains(symbol); }))
    return found;
  SymbolRanges admitted;
  e.walkSymbols([&](StringRef symbol) {
    ExprRange &own = admitted[symbol] = ranges.lookup(symbol);
    if (auto least = leasts.find(symbol); least != leasts.end())
      own.min = std::max(own.min, least->second);
  });
  ExprRange narrowed = e.range(admitted);
  found.min = std::max(found.min, narrowed.min);
  found.max = std::min(found.max, narrowed.max);
  return found;
}

bool ShapeScope::isAssumed(Expr condition) const {
  if (llvm::is_contained(guards, condition))
    return true;
  for (Block *block = innerGuards.empty() ? nullptr : place.builder->getInsertionBlock(); block;
       block = block->getParentOp() ? block->getParentOp()->getBlock() : nullptr)
    if (llvm::is_contained(innerGuards, std::pair(condition, block)))
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Symbols that the program binds
//===----------------------------------------------------------------------===//

Expr ShapeScope::declareBound(SymbolBounds bounds, Expr atMost) {
  std::string name;
  for (unsigned number = boundInside.size(); name.empty() || ranges.contains(name); ++number)
    name = ("u" + Twine(number)).str();
  if (atMost)
    bounds.max = std::max(bounds.min, std::min(bounds.max, range(atMost).max));
  Expr symbol = declare(name, bounds);
  if (atMost)
    ranges[name].below = atMost + 1;
  boundInside[name] = atMost ? mostOf(atMost) : Expr();
  return symbol;
}

Expr ShapeScope::mostOf(Expr e) const {
  return boundExpr(e, ranges,
                   [&](StringRef symbol) -> std::optional<ExprBounds> {
                     auto found = boundInside.find(symbol);
                     if (found == boundInside.end())
                       return std::nullopt;
                     return ExprBounds{constant(ranges.lookup(symbol).min), found->second};
                   })
      .upper;
}

Expr ShapeScope::boundBy(Expr e, function_ref<std::optional<Expr>(StringRef)> most) const {
  return boundExpr(e, ranges,
                   [&](StringRef symbol) -> std::optional<ExprBounds> {
                     std::optional<Expr> upper = most(symbol);
                     if (!upper)
                       return std::nullopt;
                     return ExprBounds{constant(ranges.lookup(symbol).min), *upper};
                   })
      .upper;
}

void ShapeScope::adopt(StringRef symbol, const ShapeScope &from) {
  auto name = StringAttr::get(context, symbol);
  symbols.insert({name, from.symbols.lookup(name)});
  ranges[symbol] = from.ranges.lookup(symbol);
  boundInside[symbol] = from.boundInside.lookup(symbol);
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

std::optional<int64_t> ShapeScope::inGeneral(Expr e) const {
  constexpr int64_t middling = 64;
  SymbolValues sizes;
  for (auto &[name, bounds] : symbols) {
    int64_t largest = bounds.max - bounds.max % bounds.divisor;
    int64_t usual = std::min(largest, llvm::divideCeilSigned(middling, bounds.divisor) * bounds.divisor);
    sizes[name.getValue()] = bounds.isHintChosen || bounds.hint > 1 ? bounds.hint : std::max(bounds.hint, usual);
  }
  return e.evaluate(sizes);
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// The constant that a dim is, or is a multiple of.
static int64_t coefficientOf(Expr dim) {
  if (dim.isConstant())
    return dim.getValue();
  if (dim.getKind() == ExprKind::Mul)
    for (Expr factor : dim.getOperands())
      if (factor.isConstant())
        return factor.getValue();
  return 1;
}

bool ShapeScope::isHoldable(ArrayRef<Expr> dims, Type elementType) {
  constexpr int64_t most = int64_t(1) << 48;
  int64_t bytes = elementType.isIntOrFloat()    ? llvm::divideCeil(elementType.getIntOrFloatBitWidth(), 8)
                  : prim::isHandle(elementType) ? 16
                                                : 1;
  for (Expr dim : dims) {
    int64_t size = coefficientOf(dim);
    if (size > 0 && (llvm::MulOverflow(bytes, size, bytes) || bytes > most))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Hints
//===----------------------------------------------------------------------===//

static bool admits(const SymbolBounds &bounds, int64_t value) {
  return value >= bounds.min && value <= bounds.max && value % bounds.divisor == 0;
}

/// Of two symbols that are equal: what the user chose, else the larger hint that both can have.
static bool unifyHints(SymbolBounds &a, SymbolBounds &b) {
  if (a.hint == b.hint)
    return false;
  bool takesA = a.isHintChosen != b.isHintChosen ? a.isHintChosen : a.hint > b.hint;
  SymbolBounds *from = takesA ? &a : &b, *to = takesA ? &b : &a;
  if (!admits(*to, from->hint) && !from->isHintChosen)
    std::swap(from, to);
  if (!admits(*to, from->hint))
    return false;
  to->hint = from->hint;
  to->isHintChosen |= from->isHintChosen;
  return true;
}

/// The operand that is a symbol modulo a constant where the guard says that the rest is 0; null otherwise.
static Expr exactMultiple(Expr left, Expr right) {
  Expr rest = right.isConstant(0) ? left : left.isConstant(0) ? right : Expr();
  bool isMultiple = rest && rest.getKind() == ExprKind::Mod && rest.getOperands()[0].getKind() == ExprKind::Symbol &&
                    rest.getOperands()[1].isConstant() && rest.getOperands()[1].getValue() > 0;
  return isMultiple ? rest : Expr();
}

/// The next multiple, if the bounds have it.
static bool roundHint(SymbolBounds &bounds, int64_t factor) {
  int64_t wanted = llvm::divideCeilSigned(bounds.hint, factor) * factor;
  if (wanted == bounds.hint || bounds.isHintChosen || !admits(bounds, wanted))
    return false;
  bounds.hint = wanted;
  return true;
}

/// Of sizes that are to fit in a broadcast, that they are equal.
static Expr equalityIn(Expr guard) {
  if (guard.getKind() == ExprKind::Max)
    for (Expr choice : guard.getOperands())
      if (choice.getKind() == ExprKind::Eq &&
          llvm::none_of(choice.getOperands(), [](Expr side) { return side.isConstant(1); }))
        return choice;
  return guard;
}

ShapeScope::Symbols ShapeScope::withAgreeingHints() const {
  Symbols result = symbols;
  auto find = [&](Expr e) -> SymbolBounds * {
    if (e.getKind() != ExprKind::Symbol)
      return nullptr;
    auto *entry = result.find(StringAttr::get(context, e.getSymbol()));
    return entry == result.end() ? nullptr : &entry->second;
  };
  auto setTo = [&](SymbolBounds &bounds, Expr value) {
    SymbolValues hints;
    for (auto &[name, other] : result)
      hints[name.getValue()] = other.hint;
    std::optional<int64_t> wanted = value.evaluate(hints);
    if (!wanted || *wanted == bounds.hint || !admits(bounds, *wanted))
      return false;
    bounds.hint = *wanted;
    return true;
  };
  bool isChanged = true;
  for (unsigned round = 0; isChanged && round < 8; ++round) { // a chain of equalities settles in a few
    isChanged = false;
    for (Expr guard : guards) {
      guard = equalityIn(guard);
      if (guard.getKind() != ExprKind::Eq)
        continue;
      Expr left = guard.getOperands()[0], right = guard.getOperands()[1];
      SymbolBounds *a = find(left), *b = find(right);
      if (Expr multiple = exactMultiple(left, right)) {
        if (SymbolBounds *symbol = find(multiple.getOperands()[0]))
          isChanged |= roundHint(*symbol, multiple.getOperands()[1].getValue());
      } else if (a && b)
        isChanged |= unifyHints(*a, *b);
      else if (a || b)
        isChanged |= setTo(a ? *a : *b, a ? right : left);
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Attributes of the entry
//===----------------------------------------------------------------------===//

DictionaryAttr ShapeScope::symbolsAttr() const {
  SmallVector<NamedAttribute> entries;
  for (auto &[name, bounds] : withAgreeingHints())
    entries.push_back({name, prim::SymbolAttr::get(context, bounds.min, bounds.max, bounds.divisor, bounds.hint)});
  return DictionaryAttr::get(context, entries);
}

DictionaryAttr ShapeScope::guardNodesAttr() const {
  NamedAttrList nodes;
  for (auto [guard, loc] : llvm::zip_equal(guards, guardPlaces))
    if (std::optional<NodeLocation> node = describeLocation(loc))
      nodes.set(guard.str(), StringAttr::get(context, node->node.empty() ? node->output : node->node));
  return nodes.getDictionary(context);
}
