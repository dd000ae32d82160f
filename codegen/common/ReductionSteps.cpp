//===- ReductionSteps.cpp - the parts of a reduction node -----------------===//
#include "codegen/common/ReductionSteps.h"
#include "codegen/common/BodyEmitter.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::codegen;

size_t codegen::slotsOf(Operation *reduction) { return isa<loop::ArgReduceOp>(reduction) ? 2 : 1; }

size_t codegen::slotsOf(const BodyParts &parts) {
  size_t slots = 0;
  for (Operation *reduction : parts.reductions)
    slots += slotsOf(reduction);
  return slots;
}

BodyParts codegen::splitBody(Block &block) {
  llvm::DenseSet<Operation *> dependent, before, after;
  auto dependsOnReduction = [&](Operation *op) {
    WalkResult result = op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *def = operand.getDefiningOp())
          if (dependent.contains(def) || isa<loop::ReduceOp, loop::ArgReduceOp, loop::RunningOp>(def))
            return WalkResult::interrupt();
      return WalkResult::advance();
    });
    return result.wasInterrupted();
  };
  BodyParts parts;
  for (Operation &op : block) {
    if (isa<loop::ReduceOp, loop::ArgReduceOp, loop::RunningOp>(op))
      parts.reductions.push_back(&op);
    else if (dependsOnReduction(&op))
      dependent.insert(&op);
  }
  // What each part needs, from its roots backwards.
  auto need = [&](Operation *op, llvm::DenseSet<Operation *> &set) {
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *def = operand.getDefiningOp(); def && def->getBlock() == &block)
          set.insert(def);
    });
  };
  for (Operation &op : llvm::reverse(block)) {
    bool isReduction = isa<loop::ReduceOp, loop::ArgReduceOp, loop::RunningOp>(op);
    bool isRoot = isa<loop::StoreOp>(op) || op.getNumResults() == 0;
    if (isReduction) {
      need(&op, before);
    } else if (dependent.contains(&op)) {
      if (isRoot)
        after.insert(&op);
      if (after.contains(&op))
        need(&op, after);
    } else {
      if (isRoot || isa<loop::CheckIndexOp>(op))
        before.insert(&op);
      if (before.contains(&op))
        need(&op, before);
      if (after.contains(&op))
        need(&op, after);
    }
  }
  for (Operation &op : block) {
    if (isa<loop::ReduceOp, loop::ArgReduceOp, loop::RunningOp>(op))
      continue;
    if (before.contains(&op))
      parts.before.push_back(&op);
    if (after.contains(&op))
      parts.after.push_back(&op);
  }
  return parts;
}

// Best starts at the worst value, so that any element, even an equal one for select_last, may follow.
TypedAttr codegen::identityOf(Operation *reduction) {
  if (auto reduce = dyn_cast<loop::ReduceOp>(reduction))
    return getIdentity(reduce.getKind(), reduce.getType(), reduce.getIsUnsigned());
  if (auto running = dyn_cast<loop::RunningOp>(reduction))
    return getIdentity(running.getKind(), running.getType(), running.getIsUnsigned());
  auto arg = cast<loop::ArgReduceOp>(reduction);
  auto kind = arg.getKind() == prim::ArgKind::Max ? prim::ReduceKind::Max : prim::ReduceKind::Min;
  return getIdentity(kind, arg.getValue().getType(), arg.getIsUnsigned());
}

// (a, ia) is replaced by (b, ib) where b is better; NaN beats all. The scan runs upwards, so that an equal value is
// later: it is taken for select_last only.
Value codegen::isBetter(KernelEmitter &e, loop::ArgReduceOp arg, Value a, Value b, bool orEqual) {
  bool isMax = arg.getKind() == prim::ArgKind::Max;
  if (!isa<FloatType>(arg.getValue().getType())) {
    using P = arith::CmpIPredicate;
    P predicate = arg.getIsUnsigned() ? (isMax ? (orEqual ? P::uge : P::ugt) : (orEqual ? P::ule : P::ult))
                                      : (isMax ? (orEqual ? P::sge : P::sgt) : (orEqual ? P::sle : P::slt));
    return arith::CmpIOp::create(e.builder, e.loc, predicate, b, a);
  }
  using P = arith::CmpFPredicate;
  if (orEqual) { // b is NaN, or b >= a (false where a alone is NaN)
    Value nan = arith::CmpFOp::create(e.builder, e.loc, P::UNO, b, b);
    Value better = arith::CmpFOp::create(e.builder, e.loc, isMax ? P::OGE : P::OLE, b, a);
    return arith::OrIOp::create(e.builder, e.loc, nan, better);
  }
  Value better = arith::CmpFOp::create(e.builder, e.loc, isMax ? P::UGT : P::ULT, b, a);
  Value isNumber = arith::CmpFOp::create(e.builder, e.loc, P::ORD, a, a);
  return arith::AndIOp::create(e.builder, e.loc, better, isNumber);
}

SmallVector<Value> codegen::mergeSlots(KernelEmitter &e, Operation *reduction, ArrayRef<Value> a, ArrayRef<Value> b) {
  if (auto reduce = dyn_cast<loop::ReduceOp>(reduction))
    return {emitCombine(e, reduce.getKind(), a[0], b[0], reduce.getIsUnsigned(), reduce.getNoNan())};
  if (auto running = dyn_cast<loop::RunningOp>(reduction))
    return {emitCombine(e, running.getKind(), a[0], b[0], running.getIsUnsigned())};
  // b wins if it is better, or as good at an earlier (later) position.
  auto arg = cast<loop::ArgReduceOp>(reduction);
  Value better = isBetter(e, arg, a[0], b[0], false), worse = isBetter(e, arg, b[0], a[0], false);
  auto predicate = arg.getSelectLast() ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::slt;
  Value first = arith::CmpIOp::create(e.builder, e.loc, predicate, b[1], a[1]);
  Value none = e.splat(e.invariants.constant(e.builder.getBoolAttr(false)),
                       isVector(first) ? cast<VectorType>(first.getType()).getNumElements() : 1);
  Value tie = arith::SelectOp::create(e.builder, e.loc, worse, none, first);
  Value take = arith::OrIOp::create(e.builder, e.loc, better, tie);
  return {arith::SelectOp::create(e.builder, e.loc, take, b[0], a[0]).getResult(),
          arith::SelectOp::create(e.builder, e.loc, take, b[1], a[1]).getResult()};
}
