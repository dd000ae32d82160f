//===- ShareOffsets.cpp - sums of sizes become one symbol -----------------===//
//
// A detector joins the boxes of ninety classes, of each as many as were found. Part k goes to
//
//   d0 + u0 + u1 + ... + u[k-1]
//
// with a symbol for every part before it: ninety kernels that do the same, with code that grows with k (LLVM's loop
// strength reduction is cubic in it). What the kernel needs is the sum. It becomes one symbol, which the host computes
// at the launch:
//
//   d0 + p       p = u0 + u1 + ... + u[k-1]
//
// and all parts share one kernel.
//
// Nothing is lost where the symbols of a sum occur in that sum only, in extents, positions and bounds alike: all that
// the kernel could know of them is the sum. Every expression of the kernel is a sum of terms, and so are the operands
// of its floordivs, minima and so on. A term is a product of a coefficient, of atoms with dims in them, and of atoms
// without; of the terms with one such atom, those with equal other factors are one weighted sum of atoms:
//
//   4*v$0*u0 + 4*v$0*u1 + d0 + u0 + u1      (u0 + u1) times 4*v$0, and once
//
// Atoms with a symbol that is used in another way, or in sums of different weights, are left where they are, until what
// remains agrees everywhere. Common factors stay outside. Sums that might be negative stay as well, since kernels take
// their symbols for sizes.
//
//===----------------------------------------------------------------------===//
#include "compiler/schedule/ShareOffsets.h"
#include "compiler/schedule/NodeDims.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace {

/// coefficient * others * atom, where only the atom, if there is one, is made of symbols alone.
struct Term {
  int64_t coefficient;
  Expr others; // of dims and operands
  Expr atom;   // null: none, or several, which are among the others then
};

/// Atoms of symbols with their weights.
using WeightedSum = llvm::MapVector<Attribute, int64_t>;

bool isOfSymbols(Expr e) {
  return !e.usesAny([](StringRef symbol) { return isDimSymbol(symbol) || isOperandSymbol(symbol); });
}

SmallVector<Expr> operandsOf(Expr e, ExprKind kind) {
  return e.getKind() == kind ? SmallVector<Expr>(e.getOperands()) : SmallVector<Expr>{e};
}
SmallVector<Expr> termsOf(Expr e) { return operandsOf(e, ExprKind::Add); }
SmallVector<Expr> factorsOf(Expr e) { return operandsOf(e, ExprKind::Mul); }

Term splitTerm(Expr e) {
  Term term{1, Expr::constant(e.getContext(), 1), {}};
  SmallVector<Expr> atoms = factorsOf(e);
  auto isOnlySymbols = [](Expr atom) { return !atom.isConstant() && isOfSymbols(atom); };
  bool isSingle = llvm::count_if(atoms, isOnlySymbols) == 1;
  for (Expr atom : atoms)
    if (atom.isConstant())
      term.coefficient *= atom.getValue();
    else if (isSingle && isOnlySymbols(atom))
      term.atom = atom;
    else
      term.others = term.others * atom;
  return term;
}

/// The operands of what is neither a leaf, a sum nor a product.
bool isCompound(Expr e) {
  return !llvm::is_contained({ExprKind::Constant, ExprKind::Symbol, ExprKind::Add, ExprKind::Mul}, e.getKind());
}

Expr withOperands(Expr e, ArrayRef<Expr> operands) {
  switch (e.getKind()) {
  case ExprKind::FloorDiv:
    return operands[0].floorDiv(operands[1]);
  case ExprKind::Mod:
    return operands[0].mod(operands[1]);
  case ExprKind::Min:
    return llvm::accumulate(operands.drop_front(), operands[0], Expr::min);
  case ExprKind::Max:
    return llvm::accumulate(operands.drop_front(), operands[0], Expr::max);
  case ExprKind::Lt:
    return Expr::lt(operands[0], operands[1]);
  case ExprKind::Eq:
    return Expr::eq(operands[0], operands[1]);
  case ExprKind::Select:
    return Expr::select(operands[0], operands[1], operands[2]);
  default:
    llvm_unreachable("isCompound lists the others");
  }
}

bool isChoice(Expr e) {
  return llvm::is_contained({ExprKind::Max, ExprKind::Select, ExprKind::Lt, ExprKind::Eq}, e.getKind()) &&
         isOfSymbols(e);
}

Attribute mapExprs(Attribute attribute, function_ref<Expr(Expr)> map) {
  if (auto expr = dyn_cast<ExprAttr>(attribute))
    return map(expr);
  auto list = dyn_cast<ArrayAttr>(attribute);
  if (!list || list.empty() || !isa<ExprAttr>(list[0]))
    return attribute;
  SmallVector<Attribute> elements;
  for (Attribute element : list)
    elements.push_back(map(Expr(cast<ExprAttr>(element))));
  return ArrayAttr::get(attribute.getContext(), elements);
}

void mapExprs(Operation *group, function_ref<Expr(Expr)> map) {
  group->walk([&](Operation *op) {
    for (NamedAttribute attribute : llvm::to_vector(op->getAttrs()))
      op->setAttr(attribute.getName(), mapExprs(attribute.getValue(), map));
  });
}

std::string nextName(const SharedOffsets &shared) {
  return "+" + std::to_string(shared.size()); // no symbol of a model is called so
}

/// `e` with other expressions for its choices; a null result of `map` looks inside the choice.
Expr mapChoices(Expr e, function_ref<Expr(Expr)> map) {
  if (e.isConstant() || e.isSymbol())
    return e;
  if (Expr mapped = isChoice(e) ? map(e) : Expr())
    return mapped;
  SmallVector<Expr> operands;
  for (Expr operand : e.getOperands())
    operands.push_back(mapChoices(operand, map));
  if (e.getKind() == ExprKind::Add)
    return llvm::accumulate(llvm::drop_begin(operands), operands[0], [](Expr a, Expr b) { return a + b; });
  return e.getKind() == ExprKind::Mul ? product(e.getContext(), operands) : withOperands(e, operands);
}

/// The symbol that stands for `value`; null if there is none.
Expr symbolOf(Expr value, const SharedOffsets &shared) {
  auto *known = llvm::find_if(shared, [&](const auto &pair) { return pair.second == value; });
  return known == shared.end() ? Expr() : Expr::symbol(value.getContext(), known->first);
}

void shareChoices(Operation *group, const SymbolRanges &symbols, SharedOffsets &shared) {
  mapExprs(group, [&](Expr e) {
    return mapChoices(e, [&](Expr choice) -> Expr {
      if (choice.range(symbols).min < 0)
        return {};
      if (!symbolOf(choice, shared))
        shared.push_back({nextName(shared), choice});
      return symbolOf(choice, shared);
    });
  });
}

class OffsetSharing {
public:
  OffsetSharing(Operation *group, const SymbolRanges &symbols) : group(group), symbols(symbols) {
    group->walk([&](Operation *op) {
      for (NamedAttribute attribute : op->getAttrs())
        mapExprs(attribute.getValue(), [&](Expr e) {
          collect(e);
          return e;
        });
    });
  }

  void run(SharedOffsets &shared) {
    while (leaveUsed())
      ;
    size_t before = shared.size();
    for (const WeightedSum &sum : sums)
      if (!sum.empty() && !places.contains(sum.front().first))
        share(sum, shared);
    if (shared.size() > before)
      mapExprs(group, [&](Expr e) { return rewrite(e); });
  }

private:
  /// Where an atom is in the sum that takes its place.
  struct Place {
    Expr symbol;
    int64_t weight;
    bool isFirst; // stands for the whole sum
  };

  void use(Expr e) {
    e.walkSymbols([&](StringRef symbol) { used.insert(symbol); });
  }

  void collect(Expr e) {
    llvm::MapVector<Attribute, WeightedSum> byOthers;
    for (Expr part : termsOf(e)) {
      Term term = splitTerm(part);
      if (term.atom)
        byOthers[term.others][term.atom] = term.coefficient;
      collectOthers(term.others);
    }
    for (auto &[others, sum] : byOthers)
      sums.push_back(sum);
  }

  void collectOthers(Expr others) {
    for (Expr atom : factorsOf(others))
      if (isCompound(atom) && !isOfSymbols(atom))
        for (Expr operand : atom.getOperands())
          collect(operand);
      else if (isOfSymbols(atom)) // one of several
        use(atom);
  }

  /// The sum without its common factor.
  static Expr normalized(const WeightedSum &sum, int64_t &factor) {
    factor = 0;
    for (auto [atom, weight] : sum)
      factor = std::gcd(factor, weight);
    Expr result;
    for (auto [atom, weight] : sum) {
      Expr part = Expr(cast<ExprAttr>(atom)) * (weight / factor);
      result = result ? result + part : part;
    }
    return result;
  }

  /// One round of dropping atoms whose symbols occur in another way; whether there were any.
  bool leaveUsed() {
    llvm::StringMap<Expr> sumAround; // a symbol's only sum
    for (const WeightedSum &sum : sums) {
      if (sum.empty())
        continue;
      int64_t factor;
      Expr whole = normalized(sum, factor);
      bool isShared = sum.size() > 1 && whole.range(symbols).min >= 0;
      whole.walkSymbols([&](StringRef symbol) {
        auto [place, isNew] = sumAround.try_emplace(symbol, whole);
        if (!isShared || (!isNew && place->second != whole))
          used.insert(symbol);
      });
    }
    bool hasChanged = false;
    for (WeightedSum &sum : sums)
      sum.remove_if([&](const auto &pair) {
        Expr atom = cast<ExprAttr>(pair.first);
        bool isUsed = atom.usesAny([&](StringRef symbol) { return used.contains(symbol); });
        if (isUsed)
          use(atom);
        hasChanged |= isUsed;
        return isUsed;
      });
    return hasChanged;
  }

  void share(const WeightedSum &sum, SharedOffsets &shared) {
    int64_t factor;
    Expr whole = normalized(sum, factor);
    shared.push_back({nextName(shared), whole});
    Expr symbol = Expr::symbol(whole.getContext(), shared.back().first);
    for (auto [atom, weight] : sum)
      places[atom] = {symbol, weight / factor, atom == sum.front().first};
  }

  Expr rewrite(Expr e) {
    Expr result = Expr::constant(e.getContext(), 0);
    for (Expr part : termsOf(e)) {
      Term term = splitTerm(part);
      Expr others = rewriteOthers(term.others);
      auto place = term.atom ? places.find(term.atom) : places.end();
      if (place == places.end())
        result = result + (term.atom ? others * term.atom : others) * term.coefficient;
      else if (place->second.isFirst)
        result = result + others * place->second.symbol * (term.coefficient / place->second.weight);
    }
    return result;
  }

  Expr rewriteOthers(Expr others) {
    Expr result = Expr::constant(others.getContext(), 1);
    for (Expr atom : factorsOf(others)) {
      if (isCompound(atom) && !isOfSymbols(atom)) {
        SmallVector<Expr> operands;
        for (Expr operand : atom.getOperands())
          operands.push_back(rewrite(operand));
        atom = withOperands(atom, operands);
      }
      result = result * atom;
    }
    return result;
  }

  Operation *group;
  const SymbolRanges &symbols;
  SmallVector<WeightedSum> sums;
  llvm::StringSet<> used;
  llvm::DenseMap<Attribute, Place> places;
};

} // namespace

SharedOffsets loop::shareOffsets(Operation *group, const SymbolRanges &symbols) {
  SharedOffsets shared;
  shareChoices(group, symbols, shared);
  OffsetSharing(group, symbols).run(shared);
  return shared;
}

Expr loop::useShared(Expr size, const SharedOffsets &shared) {
  return mapChoices(size, [&](Expr choice) { return symbolOf(choice, shared); });
}
