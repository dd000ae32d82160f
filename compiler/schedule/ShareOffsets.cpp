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
// Nothing is lost where the symbols of a sum occur in that sum only: all that the kernel could know of them is the sum.
// So a sum is what remains of the terms without dims at the top of an access' position after those with a symbol that
// is used elsewhere in the kernel, or in another sum, are left where they are. A common factor stays outside, so that
// boxes of four numbers (4*p) and scores (p) get the same symbol. Sums that might be negative stay, since kernels take
// their symbols for sizes.
//
//===----------------------------------------------------------------------===//
#include "compiler/schedule/ShareOffsets.h"
#include "compiler/schedule/NodeDims.h"
#include "llvm/ADT/StringSet.h"
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace {

struct Term {
  int64_t coefficient;
  Expr rest; // without the coefficient
};

/// A position in memory, and its terms that no dim is in.
struct Access {
  Operation *op;
  Expr position;
  SmallVector<Term> terms;
};

Term splitCoefficient(Expr e) {
  if (e.getKind() == ExprKind::Mul && e.getOperands().front().isConstant()) {
    Expr rest = Expr::constant(e.getContext(), 1);
    for (Expr factor : ArrayRef<Expr>(e.getOperands()).drop_front())
      rest = rest * factor;
    return {e.getOperands().front().getValue(), rest};
  }
  return {1, e};
}

bool isOfSymbols(Expr e) {
  return !e.isConstant() && !e.usesAny([](StringRef symbol) { return isDimSymbol(symbol) || isOperandSymbol(symbol); });
}

class OffsetSharing {
public:
  OffsetSharing(Operation *group, const SymbolRanges &symbols) : symbols(symbols) {
    group->walk([&](Operation *op) {
      for (NamedAttribute attribute : op->getAttrs()) {
        bool isPosition = isa<LoadOp, StoreOp>(op) && attribute.getName() == "indices";
        forEachExprOf(attribute.getValue(), [&](Expr e) { isPosition ? addAccess(op, e) : use(e); });
      }
    });
  }

  SharedOffsets run() {
    while (leaveUsed())
      ;
    SharedOffsets shared;
    for (Access &access : accesses) {
      auto [factor, sum] = sumOf(access);
      if (access.terms.size() < 2)
        continue;
      auto *known = llvm::find_if(shared, [&, sum = sum](const auto &pair) { return pair.second == sum; });
      if (known == shared.end()) {
        // No symbol of a model is called so.
        shared.push_back({"+" + std::to_string(shared.size()), sum});
        known = std::prev(shared.end());
      }
      Expr symbol = Expr::symbol(sum.getContext(), known->first);
      Expr position = access.position - sum * factor + symbol * factor;
      access.op->setAttr("indices", prim::getExprArray(sum.getContext(), {position}));
    }
    return shared;
  }

private:
  static void forEachExprOf(Attribute attribute, function_ref<void(Expr)> visit) {
    if (auto expr = dyn_cast<ExprAttr>(attribute))
      visit(expr);
    else if (auto list = dyn_cast<ArrayAttr>(attribute))
      for (Attribute element : list)
        forEachExprOf(element, visit);
  }

  void use(Expr e) {
    e.walkSymbols([&](StringRef symbol) { used.insert(symbol); });
  }

  void addAccess(Operation *op, Expr position) {
    Access access{op, position, {}};
    SmallVector<Expr> terms(position.getOperands());
    if (position.getKind() != ExprKind::Add)
      terms = {position};
    for (Expr term : terms)
      if (isOfSymbols(term))
        access.terms.push_back(splitCoefficient(term));
      else
        use(term);
    accesses.push_back(access);
  }

  /// The terms over their common factor, and that factor.
  std::pair<int64_t, Expr> sumOf(const Access &access) {
    int64_t factor = 0;
    for (const Term &term : access.terms)
      factor = std::gcd(factor, term.coefficient);
    Expr sum = Expr::constant(access.position.getContext(), 0);
    for (const Term &term : access.terms)
      sum = sum + term.rest * (term.coefficient / factor);
    return {factor, sum};
  }

  /// One round of dropping terms whose symbols occur elsewhere; whether there were any.
  bool leaveUsed() {
    llvm::StringMap<Expr> sumAround; // a symbol's only sum
    for (Access &access : accesses) {
      if (access.terms.empty())
        continue;
      Expr sum = sumOf(access).second;
      bool isShared = access.terms.size() > 1 && sum.range(symbols).min >= 0;
      sum.walkSymbols([&](StringRef symbol) {
        auto [place, isNew] = sumAround.try_emplace(symbol, sum);
        if (!isShared || (!isNew && place->second != sum))
          used.insert(symbol);
      });
    }
    bool hasChanged = false;
    for (Access &access : accesses)
      hasChanged |= dropUsed(access);
    return hasChanged;
  }

  bool dropUsed(Access &access) {
    size_t before = access.terms.size();
    llvm::erase_if(access.terms, [&](const Term &term) {
      bool isUsed = term.rest.usesAny([&](StringRef symbol) { return used.contains(symbol); });
      if (isUsed)
        use(term.rest);
      return isUsed;
    });
    return access.terms.size() != before;
  }

  const SymbolRanges &symbols;
  SmallVector<Access> accesses;
  llvm::StringSet<> used;
};

} // namespace

SharedOffsets loop::shareOffsets(Operation *group, const SymbolRanges &symbols) {
  return OffsetSharing(group, symbols).run();
}
