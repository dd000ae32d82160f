//===- PrimSymbols.cpp - who uses which symbol, and from where on it may ---===//

#include "ir/prim/Prim.h"
#include "mlir/IR/Iterators.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ptc;

void prim::walkSymbols(Operation *op, function_ref<void(StringRef)> visit) {
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      if (auto encoding = dyn_cast_or_null<DimsAttr>(tensor.getEncoding()))
        for (ExprAttr dim : encoding.getDims())
          Expr(dim).walkSymbols(visit);
  for (NamedAttribute entry : op->getAttrs()) {
    if (auto expr = dyn_cast<ExprAttr>(entry.getValue()))
      Expr(expr).walkSymbols(visit);
    else if (auto list = dyn_cast<ArrayAttr>(entry.getValue()))
      for (Attribute element : list) {
        if (auto expr = dyn_cast<ExprAttr>(element))
          Expr(expr).walkSymbols(visit);
        else if (auto size = dyn_cast<CarriedAttr>(element)) // `next` is of the region
          Expr(size.getInitial()).walkSymbols(visit);
      }
  }
}

namespace {
/// Walks in order; a region's bindings end with it.
class ScopeCheck {
public:
  explicit ScopeCheck(Operation *root) {
    root->walk([&](prim::SymbolBinderOpInterface binder) {
      binder.forEachBinding([&](StringRef symbol, Expr, bool) { isInner.insert(symbol); });
    });
  }

  LogicalResult run(Operation *root) {
    if (isInner.empty())
      return success();
    for (Region &region : root->getRegions())
      for (Block &block : region) {
        size_t outer = inOrder.size();
        for (Operation &op : block)
          if (failed(check(op)))
            return failure();
        unbindFrom(outer);
      }
    return success();
  }

private:
  LogicalResult check(Operation &op) {
    // While nodes are ordered a tap is no part of the order: it stands anywhere until PlaceTaps gives it its place.
    if (op.getName().stripDialect() == "tap")
      return success();
    std::string missing;
    llvm::StringSet<> own; // of loops: in their results' types
    if (auto binder = dyn_cast<prim::SymbolBinderOpInterface>(op); binder && op.getNumResults())
      binder.forEachBinding([&](StringRef symbol, Expr, bool) { own.insert(symbol); });
    prim::walkSymbols(&op, [&](StringRef symbol) {
      if (isInner.contains(symbol) && !bound.contains(symbol) && !own.contains(symbol))
        missing = symbol.str();
    });
    if (!missing.empty())
      return op.emitOpError("uses the symbol '") << missing << "' before it is bound";
    size_t outer = inOrder.size();
    bind(op, /*isInside=*/true);
    if (failed(run(&op)))
      return failure();
    unbindFrom(outer);
    bind(op, /*isInside=*/false);
    return success();
  }

  void bind(Operation &op, bool isInside) {
    if (auto binder = dyn_cast<prim::SymbolBinderOpInterface>(op))
      binder.forEachBinding([&](StringRef symbol, Expr, bool inside) {
        if (inside == isInside && bound.insert(symbol).second)
          inOrder.push_back(symbol);
      });
  }

  void unbindFrom(size_t place) {
    for (StringRef symbol : ArrayRef(inOrder).drop_front(place))
      bound.erase(symbol);
    inOrder.truncate(place);
  }

  llvm::StringSet<> isInner, bound;
  SmallVector<StringRef> inOrder; // those of `bound`
};
} // namespace

//===----------------------------------------------------------------------===//
// What nobody needs
//===----------------------------------------------------------------------===//

/// A size that the op binds for what comes behind it is an effect: types and guards may use it where no value is.
static void getEffectsOfBindings(prim::SymbolBinderOpInterface op,
                                 SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  op.forEachBinding([&](StringRef, Expr, bool isInside) {
    if (!isInside)
      effects.emplace_back(MemoryEffects::Write::get());
  });
}

void prim::IfOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  getEffectsOfBindings(*this, effects);
}

void prim::LoopOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  getEffectsOfBindings(*this, effects);
}

/// Whether all that the op does is to compute its results, and sizes.
static bool onlyComputes(Operation &op) {
  if (!isa<prim::IfOp, prim::LoopOp>(op))
    return isMemoryEffectFree(&op);
  return llvm::all_of(op.getRegions(), [](Region &region) {
    return llvm::all_of(region, [](Block &block) { return llvm::all_of(block, onlyComputes); });
  });
}

void prim::eraseDeadOps(Operation *root) {
  llvm::StringSet<> used; // symbols, by the ops behind the one that is looked at
  root->walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    bool isUsed = !op->use_empty() || op->getNumResults() == 0;
    if (auto binder = dyn_cast<SymbolBinderOpInterface>(op))
      binder.forEachBinding(
          [&](StringRef symbol, Expr, bool isInside) { isUsed |= !isInside && used.contains(symbol); });
    if (!isUsed && onlyComputes(*op))
      return op->erase();
    walkSymbols(op, [&](StringRef symbol) { used.insert(symbol); });
  });
}

void prim::forEachJoinedBinding(ArrayAttr joined, function_ref<void(StringRef, Expr, bool)> visit) {
  if (joined)
    for (auto size : joined.getAsRange<JoinedAttr>())
      visit(size.getName(), Expr::max(size.getThenSize(), size.getElseSize()), /*isInside=*/false);
}

void prim::forEachLoopBinding(StringRef counter, ExprAttr trips, StringAttr rounds, ArrayAttr carried,
                              function_ref<void(StringRef, Expr, bool)> visit) {
  visit(counter, trips ? Expr(trips) - 1 : Expr(), /*isInside=*/true);
  if (carried)
    for (auto size : carried.getAsRange<CarriedAttr>()) {
      visit(size.getName(), Expr(size.getAtMost()), true);
      visit(size.getFinal(), Expr(size.getAtMost()), false);
    }
  if (rounds)
    visit(rounds.getValue(), Expr(trips), false);
}

LogicalResult prim::verifyBoundSymbols(Operation *root) { return ScopeCheck(root).run(root); }

LogicalResult prim::BindOp::verify() {
  auto type = cast<RankedTensorType>(getX().getType());
  if (type.getRank() != 0 || !type.getElementType().isSignedInteger(64))
    return emitOpError("needs a scalar of type si64");
  if (Expr most = getUpper(); most && most.uses(getSymbol()))
    return emitOpError("bounds the symbol by itself");
  return success();
}
