//===- RegionSymbols.h - sizes that the body of a loop binds ----*- C++ -*-===//
//
// What a loop under import may ask of the symbols that its body binds: how large they can be, and whether what a symbol
// stands for can be computed in front of the loop.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_LOWERING_DECOMP_REGIONSYMBOLS_H
#define PTC_LOWERING_DECOMP_REGIONSYMBOLS_H

#include "ir/prim/Prim.h"
#include "llvm/ADT/SetVector.h"

namespace ptc::decomp {

/// The values that an op takes: its operands, and what its regions take of the ops around it. (MLIR's own function for
/// that wants regions that have a parent, which a body under import lacks.)
inline llvm::SetVector<Value> usedBy(mlir::Operation *op) {
  llvm::SetVector<Value> used;
  op->walk([&](mlir::Operation *part) {
    for (Value operand : part->getOperands())
      if (!operand.getDefiningOp() || !op->isProperAncestor(operand.getDefiningOp()))
        used.insert(operand);
  });
  return used;
}

/// Where the symbols of a region come from, and what moves out of it.
class RegionSymbols {
public:
  explicit RegionSymbols(mlir::Block &block) : block(block) {}

  /// The most that a symbol is said to be by the op that binds it: null if that says nothing; nothing if none does.
  std::optional<Expr> mostOf(llvm::StringRef symbol) const {
    std::optional<Expr> found;
    block.walk([&](prim::SymbolBinderOpInterface binder) {
      binder.forEachBinding([&](llvm::StringRef name, Expr most, bool) {
        if (name == symbol)
          found = most;
      });
    });
    return found;
  }

  /// The op that binds the symbol and all that its value is made of, in order, if that is the same in all rounds:
  /// `isOutside` says which symbols are known in front of the loop. Nothing if it is not.
  std::optional<llvm::SmallVector<mlir::Operation *>>
  originOf(llvm::StringRef symbol, llvm::function_ref<bool(llvm::StringRef)> isOutside) const {
    llvm::SetVector<mlir::Operation *> needed;
    if (!need(symbol, needed))
      return std::nullopt;
    for (unsigned i = 0; i < needed.size(); ++i) {
      mlir::Operation *op = needed[i];
      bool isBranch = llvm::isa<prim::IfOp>(op); // a size that a loop inside has moved here, say
      if ((op->getNumRegions() && !isBranch) || (!llvm::isa<prim::BindOp>(op) && !mlir::isMemoryEffectFree(op)))
        return std::nullopt;
      bool isFixed = true;
      op->walk([&](mlir::Operation *part) {
        prim::walkSymbols(part, [&](llvm::StringRef used) {
          auto bind = llvm::dyn_cast<prim::BindOp>(part);
          isFixed &= isOutside(used) || (bind && bind.getSymbol() == used) || need(used, needed);
        });
      });
      for (Value operand : usedBy(op)) {
        bool isArgument = llvm::is_contained(block.getArguments(), operand);
        isFixed &= !isArgument;
        if (mlir::Operation *maker = operand.getDefiningOp(); maker && maker->getBlock() == &block)
          needed.insert(maker);
      }
      if (!isFixed)
        return std::nullopt;
    }
    llvm::SmallVector<mlir::Operation *> ordered = needed.takeVector();
    llvm::sort(ordered, [](mlir::Operation *a, mlir::Operation *b) { return a->isBeforeInBlock(b); });
    return ordered;
  }

private:
  bool need(llvm::StringRef symbol, llvm::SetVector<mlir::Operation *> &needed) const {
    for (prim::BindOp bind : block.getOps<prim::BindOp>())
      if (bind.getSymbol() == symbol)
        return needed.insert(bind), true;
    return false;
  }

  mlir::Block &block;
};

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_REGIONSYMBOLS_H
