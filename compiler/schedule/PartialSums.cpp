//===- PartialSums.cpp - sums taken in parts ------------------------------===//
#include "compiler/schedule/PartialSums.h"
#include "compiler/schedule/NodeDims.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

bool loop::canSumParts(ReductionOp sum) {
  return !sum.walk([&](Operation *op) {
               bool isNested = isa<ReduceOp, StoreOp>(op) && op->getParentOp() != sum;
               return isNested || isa<ArgReduceOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
             })
              .wasInterrupted();
}

/// The ops of the node that depend on a reduction, and those themselves.
static llvm::SmallPtrSet<Operation *, 16> findResults(ReductionOp sum) {
  llvm::SmallPtrSet<Operation *, 16> results;
  for (Operation &op : sum.getBody().front()) {
    bool isResult = isa<ReduceOp>(op);
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        isResult |= results.contains(operand.getDefiningOp());
    });
    if (isResult)
      results.insert(&op);
  }
  return results;
}

static void eraseIf(ReductionOp sum, llvm::function_ref<bool(Operation &)> isGone) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(sum.getBody().front())))
    if (isGone(op))
      op.erase();
}

void loop::eraseUnused(ReductionOp sum) {
  eraseIf(sum, [](Operation &op) { return !isa<StoreOp, ReduceOp>(op) && op.use_empty(); });
}

void loop::dropResults(ReductionOp sum) {
  auto results = findResults(sum);
  eraseIf(sum, [&](Operation &op) { return results.contains(&op) && !isa<ReduceOp>(op); });
  eraseUnused(sum);
}

void loop::dropElements(ReductionOp sum) {
  auto results = findResults(sum);
  eraseIf(sum, [&](Operation &op) { return isa<StoreOp>(op) && !results.contains(&op); });
  eraseUnused(sum);
}

PointwiseOp loop::replaceByPointwise(ReductionOp sum) {
  OpBuilder b(sum);
  auto pointwise = PointwiseOp::create(b, sum.getLoc(), sum.getDomainAttr());
  pointwise.getBody().takeBody(sum.getBody());
  sum.erase();
  return pointwise;
}

Expr loop::getPartialPosition(ArrayRef<Expr> keptDomain, MLIRContext *context) {
  Expr position = Expr::constant(context, 0);
  for (auto [dim, extent] : llvm::enumerate(keptDomain))
    position = position * extent + Expr::dim(context, unsigned(dim));
  return position;
}

SmallVector<Value> loop::storePartials(ReductionOp sum) {
  MLIRContext *context = sum.getContext();
  SmallVector<Expr> kept = getDomain(sum);
  kept.truncate(getKeptCount(sum));
  SmallVector<Value> partials;
  for (ReduceOp reduce : llvm::to_vector(sum.getBody().getOps<ReduceOp>())) {
    auto type = BufferType::get(context, ArrayRef<Expr>(product(context, kept)), prim::getScalarType(reduce.getType()),
                                LayoutAttr::getRowMajor(context, 1));
    OpBuilder b(sum);
    partials.push_back(BufferOp::create(b, reduce.getLoc(), type));
    b.setInsertionPointAfter(reduce);
    StoreOp::create(b, reduce.getLoc(), reduce, partials.back(), ArrayRef<Expr>(getPartialPosition(kept, context)));
  }
  return partials;
}
