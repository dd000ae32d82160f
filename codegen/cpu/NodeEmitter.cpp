//===- NodeEmitter.cpp - pointwise, scatter and scan nodes ----------------===//
#include "codegen/cpu/NodeEmitter.h"
#include "codegen/common/ScanLoop.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

// The node's own dims, without one of them.
static SmallVector<int64_t> dimsBetween(int64_t from, int64_t to, int64_t without) {
  SmallVector<int64_t> dims;
  for (int64_t dim = from; dim < to; ++dim)
    if (dim != without)
      dims.push_back(dim);
  return dims;
}

static Points resized(const Points &points, size_t rank) {
  Points result = points;
  for (EmissionPoint &point : result)
    point.dims.resize(rank);
  return result;
}

void NodeEmitter::emit(const Points &shared, int64_t sharedDims, int64_t vectorDim) {
  Points points = resized(shared, domain.size());
  e.loc = node->getLoc();
  if (auto reduction = dyn_cast<loop::ReductionOp>(node))
    return emitReduction(reduction, points, sharedDims, vectorDim);
  if (auto scan = dyn_cast<loop::ScanOp>(node))
    return emitScan(scan, points, sharedDims, vectorDim);
  if (auto sort = dyn_cast<loop::SortOp>(node))
    return emitSort(sort, points.front(), sharedDims);
  if (auto greedy = dyn_cast<loop::GreedyOp>(node))
    return emitGreedy(greedy, points.front(), sharedDims);
  assert((isa<loop::PointwiseOp, loop::ScatterOp>(node)) && "templates are emitted elsewhere");
  emitPointwise(points, sharedDims, vectorDim);
}

// Scatters too: points of the lanes' dim never meet, and the other dims run in order.
void NodeEmitter::emitPointwise(const Points &points, int64_t shared, int64_t vectorDim) {
  Block &block = node->getRegion(0).front();
  auto body = [&](const Points &at, ValueRange) {
    for (const EmissionPoint &point : at)
      e.emitBlock(block, point);
    return SmallVector<Value>();
  };
  int64_t rank = int64_t(domain.size());
  emitLoops(e, domain, dimsBetween(shared, rank, vectorDim), points, {}, [&](const Points &at, ValueRange) {
    if (vectorDim < 0)
      return body(at, {});
    Expr extent = domain[size_t(vectorDim)];
    return emitVectorLoop(e, at.front(), vectorDim, e.constant(0), e.emitExpr(extent, at.front()),
                          cpu::chooseLanes(e, node, extent), choosePointsPerStep(node, e.level),
                          hasMasks(node, e.level), {}, body, takesPairs(node, e.level));
  });
}

void NodeEmitter::emitScan(loop::ScanOp op, const Points &points, int64_t shared, int64_t vectorDim) {
  int64_t last = int64_t(domain.size()) - 1;
  auto scan = [&](const Points &at, ValueRange) {
    codegen::emitScanLoop(e, op, at);
    return SmallVector<Value>();
  };
  emitLoops(e, domain, dimsBetween(shared, last, vectorDim), points, {}, [&](const Points &at, ValueRange) {
    if (vectorDim < 0)
      return scan(at, {});
    Expr extent = domain[size_t(vectorDim)];
    return emitVectorLoop(e, at.front(), vectorDim, e.constant(0), e.emitExpr(extent, at.front()),
                          cpu::chooseLanes(e, node, extent), choosePointsPerStep(node, e.level),
                          hasMasks(node, e.level), {}, scan);
  });
}
