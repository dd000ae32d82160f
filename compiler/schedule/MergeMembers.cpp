//===- MergeMembers.cpp - fewer passes inside a kernel --------------------===//
//
// Nodes that share outer dims run one after the other over the same slice, each in a loop of its own.
// While groups grow a pointwise node merges only with groups of one node; once they are final, a pointwise
// node P of a group moves into a later node T of it that reads what P writes:
//
//   e = exp(x - max);  sum(e)      becomes one loop over the row
//
// Allowed where the two walk the same elements in the same way (canMergeIntoConsumer), and no node between them
// touches what P writes: P's stores move to T's place.
//
// Where several later nodes read what P writes, a part of it each (the steps of a loop that was unrolled), each of them
// computes its part, if that is no more work in all and P is cheap: every reader holds its code. Nothing that P reads
// is written between.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/MergeNodes.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace {

struct Accesses {
  SmallVector<Value> read, written;
  explicit Accesses(Operation *node) { collectAccesses(node, read, written); }
  bool touchesAny(ArrayRef<Value> buffers) const {
    return llvm::any_of(
        buffers, [&](Value buffer) { return llvm::is_contained(read, buffer) || llvm::is_contained(written, buffer); });
  }
};

/// The buffer that `from` writes and `to` reads, if it is one.
Value getOnlyShared(const Accesses &from, const Accesses &to) {
  Value shared;
  for (Value buffer : from.written)
    if (llvm::is_contained(to.read, buffer)) {
      if (shared)
        return {};
      shared = buffer;
    }
  return shared;
}

/// Merges one pair; true if there was one.
bool mergeOne(Group &group, const FusionContext &context) {
  SmallVector<Operation *> &nodes = group.nodes;
  for (unsigned from = 0; from < nodes.size(); ++from) {
    if (!isa<PointwiseOp>(nodes[from]))
      continue;
    Accesses producer(nodes[from]);
    for (unsigned to = from + 1; to < nodes.size(); ++to) {
      Accesses consumer(nodes[to]);
      Value shared = getOnlyShared(producer, consumer);
      FusionPlan plan;
      if (shared && !llvm::is_contained(consumer.written, shared))
        plan = canMergeIntoConsumer(nodes[from], nodes[to], shared, /*isAlone=*/false, context);
      if (plan) {
        mergeIntoConsumer(nodes[from], nodes[to], plan, context);
        nodes.erase(nodes.begin() + from);
        return true;
      }
      if (consumer.touchesAny(producer.written))
        break;
    }
  }
  return false;
}

/// The nodes behind number `from`, which writes `buffer`, that read it; none if others touch it, or if what number
/// `from` reads changes until the last of them has run.
SmallVector<Operation *> getReaders(const Group &group, unsigned from, Value buffer) {
  Accesses producer(group.nodes[from]);
  SmallVector<Operation *> readers;
  SmallVector<Value> written;
  size_t accesses = 1;
  for (Operation *node : ArrayRef(group.nodes).drop_front(from + 1)) {
    Accesses own(node);
    llvm::append_range(written, own.written);
    if (!llvm::is_contained(own.read, buffer))
      continue;
    if (llvm::any_of(producer.read, [&](Value read) { return llvm::is_contained(written, read); }))
      return {};
    readers.push_back(node);
    accesses += getLoads(node, buffer).size();
  }
  return llvm::range_size(buffer.getUsers()) == accesses ? readers : SmallVector<Operation *>();
}

/// Where the reader finds its part: dims of the node whose `store` writes it; nothing where it reads elements twice, at
/// several places or in another order.
std::optional<SmallVector<Expr>> locatePart(Operation *reader, StoreOp store, const FusionContext &context) {
  if (!isa<PointwiseOp, ReductionOp>(reader))
    return std::nullopt;
  SmallVector<LoadOp> loads = getLoads(reader, store.getBuffer());
  for (LoadOp load : loads)
    if (isIndirect(load) || load->getParentOp() != reader || getAddress(load) != getAddress(loads[0]))
      return std::nullopt;
  SymbolRanges ranges = getNodeRanges(reader, context.symbols);
  Expr rest;
  if (!getDigits(getAddress(loads[0]), getDomain(reader), ranges, context.hints, rest))
    return std::nullopt;
  return invert(getAddress(store), getDomain(store->getParentOp()), getAddress(loads[0]), ranges, context.hints);
}

/// Computes the node's value where the reader loads it.
void computePart(Operation *node, StoreOp store, Operation *reader, ArrayRef<Expr> dims, const FusionContext &context) {
  OpBuilder b(reader->getContext());
  b.setInsertionPointToStart(&reader->getRegion(0).front());
  SymbolRanges ranges = getNodeRanges(reader, context.symbols);
  IRMapping mapping;
  for (Operation &op : node->getRegion(0).front())
    if (&op != store)
      cloneWithDims(b, op, mapping, dims, ranges);
  for (LoadOp load : getLoads(reader, store.getBuffer())) {
    load.getResult().replaceAllUsesWith(mapping.lookup(store.getValue()));
    load.erase();
  }
  reader->setLoc(fuseLocations(node, reader));
}

/// Merges node number `from` into all that read parts of it; false if that is not possible.
bool mergeIntoReaders(Group &group, unsigned from, const FusionContext &context) {
  Operation *node = group.nodes[from];
  if (context.hasDevice || !isPlainPointwise(node) || !isCheap(node))
    return false;
  auto stores = llvm::to_vector(node->getRegion(0).getOps<StoreOp>());
  if (stores.size() != 1 || isIndirect(stores[0]) || getOnlyStore(node, stores[0].getBuffer()) != stores[0] ||
      !stores[0].getBuffer().getDefiningOp<BufferOp>())
    return false;
  SmallVector<Operation *> readers = getReaders(group, from, stores[0].getBuffer());
  if (readers.size() < 2 || countBodyOps(node) * readers.size() > maxBodyOps)
    return false;
  Expr points = Expr::constant(node->getContext(), 0);
  SmallVector<SmallVector<Expr>> parts;
  for (Operation *reader : readers) {
    auto dims = locatePart(reader, stores[0], context);
    if (!dims || countBodyOps(reader) + countBodyOps(node) > maxBodyOps)
      return false;
    parts.push_back(*dims);
    points = points + product(node->getContext(), getDomain(reader));
  }
  if (points != product(node->getContext(), getDomain(node)))
    return false;
  for (auto [reader, dims] : llvm::zip_equal(readers, parts))
    computePart(node, stores[0], reader, dims, context);
  group.nodes.erase(group.nodes.begin() + from);
  node->erase();
  return true;
}

} // namespace

void loop::mergeMembers(Group &group, const FusionContext &context) {
  while (group.nodes.size() > 1 && mergeOne(group, context))
    ;
  for (unsigned from = 0; from < group.nodes.size();)
    from += mergeIntoReaders(group, from, context) ? 0 : 1;
}
