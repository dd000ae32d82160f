//===- GpuBarriers.cpp - where the threads of a row must wait -------------===//
//
// Two accesses of one memory, one of them a write, by different threads need a barrier between them. Whose thread an
// access belongs to follows from the way nodes are emitted: the points of a pointwise node, and those of a reduction
// over the whole row, go to threads by their number alone. So if two such nodes have equal domains and take equal
// groups of lanes, the same thread has a point in both; and as no two points of a node write one element, equal indices
// mean equal points. In softmax each thread stores, and later reads, exponentials of its own.
//
// What a reduction leaves behind need not go through memory either: all threads hold its result, so that buffers of one
// element that are made of it become registers (row values).
//
// Arguments may share memory (buffers are reused in place), so different arguments count as one unless they are
// accessed at equal indices.
//
// A reduction over several warps has a barrier inside, behind everything but its outer part.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/GpuBarriers.h"
#include "codegen/common/ReductionSteps.h"
#include "codegen/gpu/LaneAnalysis.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

// A reduction of which the row's threads together have every point.
static bool isWholeRow(Operation *node, const GpuConfig &config) {
  auto reduction = dyn_cast<loop::ReductionOp>(node);
  int64_t rank = int64_t(loop::getDomain(node).size());
  return reduction && rank - int64_t(reduction.getReduced()) == config.spread;
}

static bool loadsWhatItStores(ArrayRef<Operation *> ops) {
  llvm::DenseSet<Value> stored;
  for (Operation *op : ops)
    if (auto store = dyn_cast<loop::StoreOp>(op))
      stored.insert(store.getBuffer());
  return llvm::any_of(ops, [&](Operation *op) {
    return op
        ->walk([&](loop::LoadOp load) {
          return stored.contains(load.getBuffer()) ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  });
}

bool gpu::isRowValue(loop::BufferOp buffer, const GpuConfig &config) {
  auto type = cast<loop::BufferType>(buffer.getResult().getType());
  if (!config.isRows || !type.getElementCount().isConstant(1))
    return false;
  return llvm::all_of(buffer.getResult().getUsers(), [&](Operation *user) {
    auto store = dyn_cast<loop::StoreOp>(user);
    if (!store)
      return isa<loop::LoadOp>(user);
    Operation *node = store->getParentOp();
    if (store.getCombine() || !isWholeRow(node, config))
      return false;
    codegen::BodyParts parts = codegen::splitBody(node->getRegion(0).front());
    return llvm::is_contained(parts.after, store.getOperation()) && !loadsWhatItStores(parts.after);
  });
}

void Barriers::collect(Operation *node, ArrayRef<Operation *> ops, bool isOwn, SmallVectorImpl<Access> &into) const {
  auto add = [&](Value buffer, ArrayAttr indices, ValueRange operands, bool isWrite) {
    auto local = buffer.getDefiningOp<loop::BufferOp>();
    if (!local || !isRowValue(local, config))
      into.push_back({node, buffer, isOwn && operands.empty() ? indices[0] : Attribute(), isWrite});
  };
  for (Operation *op : ops)
    op->walk([&](Operation *inner) {
      if (auto load = dyn_cast<loop::LoadOp>(inner))
        add(load.getBuffer(), load.getIndices(), load.getIndexOperands(), false);
      else if (auto store = dyn_cast<loop::StoreOp>(inner))
        add(store.getBuffer(), store.getIndices(), store.getIndexOperands(), true);
    });
}

// The same thread has a point in both nodes.
bool Barriers::sharesPoints(Operation *a, Operation *b) const {
  SmallVector<Expr> first = loop::getDomain(a), second = loop::getDomain(b);
  if (first != second)
    return false;
  int64_t rank = int64_t(first.size());
  return rank == config.spread || LaneAnalysis(a, rank - 1).chooseLanes() == LaneAnalysis(b, rank - 1).chooseLanes();
}

bool Barriers::conflict(const Access &a, const Access &b) const {
  if (!a.isWrite && !b.isWrite)
    return false;
  bool areArguments = isa<BlockArgument>(a.buffer) && isa<BlockArgument>(b.buffer);
  if (a.buffer != b.buffer && !areArguments)
    return false;
  bool isSameElement = a.index && a.index == b.index && a.buffer.getType() == b.buffer.getType();
  return !isSameElement || !sharesPoints(a.node, b.node);
}

bool Barriers::enter(Operation *node) {
  SmallVector<Access> early, late;
  SmallVector<Operation *> all;
  for (Region &region : node->getRegions())
    for (Operation &op : region.front())
      all.push_back(&op);
  if (isWholeRow(node, config)) {
    codegen::BodyParts parts = codegen::splitBody(node->getRegion(0).front());
    collect(node, parts.before, true, early);
    collect(node, parts.after, false, late);
  } else {
    collect(node, all, isa<loop::PointwiseOp>(node), early);
  }
  auto conflicts = [&](ArrayRef<Access> accesses) {
    return llvm::any_of(
        accesses, [&](const Access &b) { return llvm::any_of(open, [&](const Access &a) { return conflict(a, b); }); });
  };
  bool hasInner = isWholeRow(node, config) && config.threads > warpSize;
  bool isNeeded = conflicts(early) || (!hasInner && conflicts(late));
  if (isNeeded || hasInner)
    open.clear();
  if (!hasInner)
    open.append(early);
  open.append(late);
  return isNeeded;
}
