//===- NodeEmitter.cpp - pointwise, scatter and scan nodes ----------------===//
#include "codegen/cpu/NodeEmitter.h"
#include "codegen/common/ScanLoop.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ToldNumbers.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static Points resized(const Points &points, size_t rank) {
  Points result = points;
  for (EmissionPoint &point : result)
    point.dims.resize(rank);
  return result;
}

void NodeEmitter::emit(const Points &shared, int64_t sharedDims, int64_t vectorDim, int64_t tiled,
                       const PointContext &context) {
  Points points = resized(shared, domain.size());
  e.loc = node->getLoc();
  if (auto reduction = dyn_cast<loop::ReductionOp>(node))
    return emitReduction(reduction, points, sharedDims, vectorDim, tiled, context);
  if (auto scan = dyn_cast<loop::ScanOp>(node))
    return emitScan(scan, points, sharedDims, vectorDim);
  if (auto sort = dyn_cast<loop::SortOp>(node))
    return emitSort(sort, points, sharedDims, vectorDim);
  if (auto greedy = dyn_cast<loop::GreedyOp>(node))
    return emitGreedy(greedy, points.front(), sharedDims);
  assert((isa<loop::PointwiseOp, loop::ScatterOp>(node)) && "templates are emitted elsewhere");
  emitPointwise(points, sharedDims, vectorDim);
}

// An index that a whole row shares is read and checked once for the points of a step.
SmallVector<Operation *> cpu::findUniform(KernelEmitter &e, Block &block, ArrayRef<int64_t> dims) {
  auto differs = [&](Expr expr) { return llvm::any_of(dims, [&](int64_t dim) { return expr.uses(dimName(dim)); }); };
  auto stores = block.getOps<loop::StoreOp>();
  llvm::SmallPtrSet<Operation *, 8> uniform;
  auto isUniformLoad = [&](loop::LoadOp load) {
    Value buffer = load.getBuffer();
    bool isOwn = llvm::any_of(stores, [&](loop::StoreOp store) { return store.getBuffer() == buffer; });
    return !isOwn && !e.getHeld(buffer) && !e.isPerLane(buffer) && !differs(cast<ExprAttr>(load.getIndices()[0]));
  };
  SmallVector<Operation *> found;
  for (Operation &op : block) {
    bool isKnown = llvm::all_of(op.getOperands(), [&](Value operand) {
      Operation *source = operand.getDefiningOp();
      return (source && uniform.contains(source)) || isa<loop::BufferType>(operand.getType());
    });
    auto load = dyn_cast<loop::LoadOp>(op);
    auto check = dyn_cast<loop::CheckIndexOp>(op);
    bool isSame = load ? isUniformLoad(load) : check ? !differs(check.getExtent()) : loop::isNumber(&op);
    isSame |= !load && op.getNumResults() == 1 && op.getNumRegions() == 0 && op.getNumOperands() > 0 &&
              isMemoryEffectFree(&op) && op.hasTrait<OpTrait::Elementwise>();
    if (!isKnown || !isSame)
      continue;
    uniform.insert(&op);
    found.push_back(&op);
  }
  return found;
}

/// Ops of a scatter that are the same in its inner loops, behind the first loops that `outer` counts: an index that is
/// read, and its check. LLVM, to which what is stored may be the index, leaves them inside.
static SmallVector<Operation *> findIndicesOfRows(KernelEmitter &e, loop::ScatterOp scatter, ArrayRef<int64_t> dims,
                                                  int64_t vectorDim, size_t &outer) {
  for (outer = 1; scatter && outer < dims.size(); ++outer) {
    SmallVector<int64_t> inner(dims.drop_front(outer));
    if (vectorDim >= 0)
      inner.push_back(vectorDim);
    SmallVector<Operation *> found = findUniform(e, scatter.getBody().front(), inner);
    if (llvm::any_of(found, llvm::IsaPred<loop::CheckIndexOp>))
      return found;
  }
  outer = 0;
  return {};
}

// Scatters too: points of the lanes' dim never meet, and the other dims run in order.
void NodeEmitter::emitPointwise(const Points &points, int64_t shared, int64_t vectorDim) {
  Block &block = node->getRegion(0).front();
  SmallVector<std::pair<Value, Value>> ofRow;
  auto body = [&](const Points &at, ValueRange) {
    BodyEmitter first(e, at.front());
    for (auto [value, emitted] : ofRow)
      first.bind(value, emitted);
    first.emitBlock(block);
    if (at.size() == 1)
      return SmallVector<Value>();
    SmallVector<Operation *> uniform;
    if (at.front().isVector())
      uniform = findUniform(e, block, {at.front().vectorDim});
    for (const EmissionPoint &point : ArrayRef(at).drop_front()) {
      BodyEmitter other(e, point);
      for (Operation *op : uniform)
        other.bind(op->getResult(0), first.lookup(op->getResult(0)));
      other.emitBlock(block);
    }
    return SmallVector<Value>();
  };
  auto innermost = [&](const Points &at, ValueRange) {
    if (vectorDim < 0)
      return body(at, {});
    Expr extent = domain[size_t(vectorDim)];
    return emitVectorLoop(e, at.front(), vectorDim, e.constant(0), e.emitExpr(extent, at.front()),
                          shortenToBlocks(node, vectorDim, cpu::chooseLanes(e, node, extent)),
                          choosePointsPerStep(node), hasMasks(node, e.level), {}, body, takesPairs(node, e.level));
  };
  SmallVector<int64_t> dims = dimsBetween(shared, int64_t(domain.size()), vectorDim);
  size_t outer = 0;
  bool isAlone = points.size() == 1 && !points.front().isVector();
  SmallVector<Operation *> same =
      findIndicesOfRows(e, isAlone ? dyn_cast<loop::ScatterOp>(node) : loop::ScatterOp(), dims, vectorDim, outer);
  emitLoops(e, domain, ArrayRef(dims).take_front(outer), points, {}, [&](const Points &at, ValueRange) {
    BodyEmitter row(e, at.front());
    ofRow.clear();
    for (Operation *op : same) {
      row.emitOp(op);
      ofRow.push_back({op->getResult(0), row.lookup(op->getResult(0))});
    }
    return emitLoops(e, domain, ArrayRef(dims).drop_front(outer), at, {}, innermost);
  });
}

void NodeEmitter::emitScan(loop::ScanOp op, const Points &points, int64_t shared, int64_t vectorDim) {
  int64_t last = int64_t(domain.size()) - 1;
  auto scan = [&](const Points &at, ValueRange) {
    if (at.size() == 1 && !at.front().isVector() && codegen::scansInLanes(e, op))
      codegen::emitScanInLanes(e, op, at.front());
    else
      codegen::emitScanLoop(e, op, at);
    return SmallVector<Value>();
  };
  emitLoops(e, domain, dimsBetween(shared, last, vectorDim), points, {}, [&](const Points &at, ValueRange) {
    if (vectorDim < 0)
      return scan(at, {});
    Expr extent = domain[size_t(vectorDim)];
    return emitVectorLoop(e, at.front(), vectorDim, e.constant(0), e.emitExpr(extent, at.front()),
                          cpu::chooseLanes(e, node, extent), choosePointsPerStep(node), hasMasks(node, e.level), {},
                          scan);
  });
}
