//===- DropDeadTaps.cpp - taps must not keep work alive -------------------===//
//
// `--tap all` puts an optional tap on every value of the model. By now many of those are no part of the program any
// more: constants have been folded, two reshapes have become one, products around a softmax are one attention. What
// nothing but optional taps leads to would be computed for being looked at alone, and what is seen then says nothing
// about the code that runs without taps. Such a tap loses its operand and says why; a tap that a user
// asked for by name stays, and its value is computed for it.
//
//===----------------------------------------------------------------------===//

#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"
#include "llvm/ADT/DenseSet.h"

namespace ptc {
#define GEN_PASS_DEF_DROPDEADTAPS
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace ptc::prim;
using namespace mlir;

namespace {

bool isOptionalTap(Operation *op) {
  auto tap = dyn_cast<TapOp>(op);
  return tap && tap.getOptional();
}

/// Ops that the function's results, named taps and effects need.
llvm::DenseSet<Operation *> findNeeded(Operation *function) {
  llvm::DenseSet<Operation *> needed;
  SmallVector<Operation *> open;
  auto need = [&](Operation *op) {
    if (op && !isOptionalTap(op) && needed.insert(op).second)
      open.push_back(op);
  };
  function->walk([&](Operation *op) {
    bool isOfRegion = isa_and_nonnull<IfOp, LoopOp>(op->getParentOp()); // needed with its If or Loop
    if (!isOfRegion && op != function && (op->hasTrait<OpTrait::IsTerminator>() || isa<TapOp>(op)))
      need(op);
    if (isOfRegion && isa<TapOp>(op) && !isOptionalTap(op))
      need(op->getParentOp());
  });
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    for (Value operand : op->getOperands())
      need(operand.getDefiningOp());
    for (Region &region : op->getRegions())
      for (Operation &inner : region.getOps())
        if (inner.hasTrait<OpTrait::IsTerminator>() || isa<TapOp>(inner))
          need(&inner);
  }
  return needed;
}

struct DropDeadTaps : ptc::impl::DropDeadTapsBase<DropDeadTaps> {
  void runOnOperation() override {
    SmallVector<TapOp> taps;
    getOperation().walk([&](TapOp tap) {
      if (tap.getOptional() && tap.getX())
        taps.push_back(tap);
    });
    if (taps.empty())
      return;
    llvm::DenseSet<Operation *> needed = findNeeded(getOperation());
    for (TapOp tap : taps) {
      Operation *source = tap.getX().getDefiningOp();
      if (source && isa<ConstantOp, WeightOp, ExprsOp>(source))
        drop(tap, "known when the model is compiled");
      else if (source && !needed.contains(source))
        drop(tap, "part of what follows from it, never computed on its own");
    }
    eraseDeadOps(getOperation());
  }

  void drop(TapOp tap, StringRef reason) {
    tap.getXMutable().clear();
    tap.setReason(reason);
  }
};

} // namespace
