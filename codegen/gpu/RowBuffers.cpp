//===- RowBuffers.cpp - what of a row its threads have themselves ---------===//
//
// Whose thread an access belongs to follows from the way nodes are emitted: the points of a pointwise node, and those
// of a reduction over the whole row, go to threads by their number alone. So if two such nodes have equal domains and
// take equal groups of lanes, the same thread has a point in both; and as no two points of a node write one element,
// equal indices mean equal points. In softmax each thread stores, and later reads, exponentials of its own: while a
// thread's turns are straight code, these are values and need no memory.
//
// What a reduction leaves behind need not go through memory either: all threads hold its result, so that buffers of one
// element that are made of it become registers (row values).
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/RowBuffers.h"
#include "codegen/common/ReductionSteps.h"
#include "codegen/gpu/LaneAnalysis.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

bool gpu::isWholeRow(Operation *node, const GpuConfig &config) {
  auto reduction = dyn_cast<loop::ReductionOp>(node);
  if (!reduction)
    return false;
  return int64_t(loop::getDomain(node).size()) - int64_t(reduction.getReduced()) == config.spread;
}

static int64_t ownLanes(Operation *node) {
  return LaneAnalysis(node, int64_t(loop::getDomain(node).size()) - 1).chooseLanes();
}

int64_t gpu::lanesOfRow(Operation *node) {
  int64_t lanes = ownLanes(node);
  SmallVector<Expr> domain = loop::getDomain(node);
  for (Operation *other : getNodes(node->getParentOfType<loop::KernelOp>()))
    if (lanes > 1 && other != node && loop::getDomain(other) == domain)
      if (int64_t theirs = ownLanes(other); theirs > 1)
        lanes = std::min(lanes, theirs);
  return lanes;
}

bool gpu::sharesPoints(Operation *a, Operation *b, const GpuConfig &config) {
  SmallVector<Expr> first = loop::getDomain(a);
  return first == loop::getDomain(b) && (int64_t(first.size()) == config.spread || lanesOfRow(a) == lanesOfRow(b));
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

//===----------------------------------------------------------------------===//
// Kept rows
//===----------------------------------------------------------------------===//

// The index of a load or store that the thread of the node's point does, once; null for others.
static Attribute indexAtPoint(Operation *access, const GpuConfig &config) {
  auto load = dyn_cast<loop::LoadOp>(access);
  auto store = dyn_cast<loop::StoreOp>(access);
  if (!load && (!store || store.getCombine()))
    return {};
  if (!(load ? load.getIndexOperands() : store.getIndexOperands()).empty())
    return {};
  Operation *node = access->getParentOp(); // inside a masked region it may be another op
  if (isWholeRow(node, config)) {
    codegen::BodyParts parts = codegen::splitBody(node->getRegion(0).front());
    if (!llvm::is_contained(parts.before, access) || llvm::is_contained(parts.after, access))
      return {};
  } else if (!isa<loop::PointwiseOp>(node)) {
    return {};
  }
  return (load ? load.getIndices() : store.getIndices())[0];
}

// Elements of a node that each thread has, if all threads have equally many and their turns are straight code.
static int64_t elementsOfThread(Operation *node, const GpuConfig &config) {
  int64_t points = 1;
  SmallVector<Expr> domain = loop::getDomain(node);
  for (Expr extent : ArrayRef(domain).drop_front(size_t(config.spread))) {
    std::optional<int64_t> known = extent.asConstant();
    if (!known || *known < 1)
      return 0;
    points *= *known;
  }
  int64_t lanes = lanesOfRow(node);
  bool isWhole = int64_t(domain.size()) > config.spread && *domain.back().asConstant() % lanes == 0;
  if (!isWhole || points % (lanes * config.threads) != 0)
    return 0;
  int64_t elements = points / config.threads;
  return elements / lanes <= unrolledTurns ? elements : 0;
}

int64_t gpu::countKept(loop::BufferOp buffer, const GpuConfig &config) {
  if (!config.isRows || config.threads == 1)
    return 0;
  Operation *first = nullptr;
  Attribute index;
  for (Operation *user : buffer.getResult().getUsers()) {
    Attribute own = indexAtPoint(user, config);
    Operation *node = user->getParentOp();
    if (!own || (first && (own != index || !sharesPoints(first, node, config))))
      return 0;
    index = own;
    first = node;
  }
  return first ? elementsOfThread(first, config) : 0;
}
