//===- BlockShortRows.cpp - rows of a kernel that are finished together --------===//
//
// Between the passes over a row of a softmax or a norm stands what makes one number of another one: the logarithm or
// the inverse of a sum, the root of a variance. It takes as long as a tenth of the row's vectors, or a third of them,
// one operation after the other, and all of the next pass waits for it. So a kernel takes rows in blocks of as many as
// vectors have lanes:
//
//   for each row:    m = max(x); s = log(sum(exp(x - m))); y = x - m - s
//
//   for each block:  for each row: m[r] = max(x[r]);   for each row: s[r] = sum(exp(x[r] - m[r]));
//                    s = log(s), a vector;             for each row: y[r] = x[r] - m[r] - s[r]
//
// The shared dim (rows) becomes (rows / 8, 8) and its last digit one of the nodes' own; the part of a reduction behind
// its loop becomes a node over these 8 points. Rows are short: a block of them, and what lies between the nodes, stays
// in the first-level cache. Of long ones that part is little.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/MergeNodes.h"
#include "compiler/schedule/PartialSums.h"
#include "compiler/schedule/Scheduler.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

static constexpr int64_t rowsOfBlock = 8;
static constexpr int64_t fewestBlocks = 64; // which threads share
static constexpr int64_t longestRow = 256;  // elements; 512 take 1.04 to 1.17 of the time

/// Whether the op takes as long as ten others and more, or waits for a function.
static bool isSlow(Operation &op) {
  return isa<arith::DivFOp>(op) || (isa<math::MathDialect>(op.getDialect()) && !isa<math::AbsFOp, math::FmaOp>(op));
}

static bool isOfReduction(Operation &op, ReductionOp node) {
  return llvm::any_of(op.getOperands(), [&](Value operand) {
    Operation *source = operand.getDefiningOp();
    return source && source->getParentOp() == node && (isa<ReduceOp>(source) || isOfReduction(*source, node));
  });
}

/// Whether something slow is computed of what the node has reduced.
static bool hasSlowResult(ReductionOp node) {
  return llvm::any_of(node.getBody().front(), [&](Operation &op) { return isSlow(op) && isOfReduction(op, node); });
}

/// Whether nodes are of the kind, and their rows short.
static bool hasShortRows(const Group &group) {
  size_t outer = group.outer.size();
  return llvm::all_of(group.nodes, [&](Operation *const &node) {
    auto reduction = dyn_cast<ReductionOp>(node);
    SmallVector<Expr> domain = getDomain(node);
    auto row = product(node->getContext(), ArrayRef(domain).drop_front(outer)).asConstant();
    bool isPlain =
        reduction ? canSumParts(reduction) && size_t(getKeptCount(reduction)) == outer : isPlainPointwise(node);
    return isPlain && row && *row <= longestRow && domain.size() == outer + 1;
  });
}

/// Whether lanes run along rows in all nodes: what they read of large values lies side by side.
static bool readsAlongRows(Operation *node, unsigned outer) {
  bool isAlong = true;
  node->walk([&](LoadOp load) {
    Expr address = getAddress(load);
    Expr step = address.coefficientOf(dimName(outer));
    isAlong &= !isIndirect(load) && step && (step.isConstant(1) || step.isConstant(0));
  });
  return isAlong;
}

/// What the node computes of its sums, as a node of its own behind it.
static PointwiseOp splitResults(ReductionOp sum) {
  OpBuilder b(sum->getContext());
  b.setInsertionPointAfter(sum);
  auto results = cast<ReductionOp>(b.clone(*sum));
  dropResults(sum);
  SmallVector<Value> sums = storePartials(sum);
  SmallVector<Expr> kept = getDomain(results);
  kept.truncate(getKeptCount(results));
  Expr position = getPartialPosition(kept, sum.getContext());
  for (auto [reduce, buffer] : llvm::zip_equal(llvm::to_vector(results.getBody().getOps<ReduceOp>()), sums)) {
    b.setInsertionPoint(reduce);
    reduce.replaceAllUsesWith(LoadOp::create(b, reduce.getLoc(), buffer, ArrayRef<Expr>(position)).getResult());
    reduce.erase();
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(results.getBody().front())))
    if (auto store = dyn_cast<StoreOp>(op); store ? getAddress(store).uses(dimName(kept.size())) : op.use_empty())
      op.erase();
  b.setInsertionPoint(results);
  auto node = PointwiseOp::create(b, results.getLoc(), prim::getExprArray(b.getContext(), kept));
  node.getBody().takeBody(results.getBody());
  results.erase();
  return node;
}

void loop::blockShortRows(Group &group, const FusionContext &context) {
  size_t outer = group.outer.size();
  if (group.nodes.size() < 2 || outer == 0 || !hasShortRows(group))
    return;
  auto isWaitedFor = [](Operation *node) { return isa<ReductionOp>(node) && hasSlowResult(cast<ReductionOp>(node)); };
  auto isAlong = [&](Operation *node) { return readsAlongRows(node, unsigned(outer)); };
  std::optional<int64_t> rows = group.outer.back().asConstant();
  if (!rows || *rows % rowsOfBlock || *rows / rowsOfBlock < fewestBlocks || llvm::none_of(group.nodes, isWaitedFor) ||
      !llvm::all_of(group.nodes, isAlong))
    return;
  MLIRContext *mlir = group.nodes[0]->getContext();
  SmallVector<Expr> dims = group.outer;
  dims.back() = Expr::constant(mlir, *rows / rowsOfBlock);
  SmallVector<Expr> digits = dims;
  digits.push_back(Expr::constant(mlir, rowsOfBlock));
  SmallVector<Operation *> nodes;
  for (Operation *node : group.nodes) {
    nodes.push_back(node);
    if (isWaitedFor(node))
      nodes.push_back(splitResults(cast<ReductionOp>(node)));
  }
  for (Operation *node : nodes)
    splitPrefix(node, digits, context.symbols);
  group.nodes = nodes;
  group.outer = dims;
}
