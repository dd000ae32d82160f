//===- InPlaceReuse.cpp - a result over an operand ------------------------===//
//
// A kernel may write over memory that it reads if it needs no element of it any more once it
// has written that element: every load is of the address that is stored, at the same point of the
// same loop nest or in an earlier nest of the kernel, and comes before the store. Templates read their operands
// in tiles, long after the first results are stored; their epilogues alone read at the point that they store.
// Later nests may read what was written.
//
//===----------------------------------------------------------------------===//

#include "compiler/memory/InPlaceReuse.h"
#include "ir/loop/Horizontal.h"
#include "ir/loop/Recurrence.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace {

/// Accesses to one argument of a kernel.
struct ArgumentAccess {
  Operation *op;
  Operation *node;
  Expr address;
  bool isStore, isInEpilogue;
};

Operation *getNode(Operation *op) {
  while (!isNode(op))
    op = op->getParentOp();
  return op;
}

std::optional<SmallVector<ArgumentAccess>> getAccesses(Value argument) {
  SmallVector<ArgumentAccess> accesses;
  for (Operation *user : argument.getUsers()) {
    auto indices = user->getAttrOfType<ArrayAttr>("indices");
    bool isDirect = isa<LoadOp, StoreOp>(user) && indices && indices.size() == 1;
    if (!isDirect || isInRecurrence(user)) // a later step reads again
      return std::nullopt;
    auto load = dyn_cast<LoadOp>(user);
    auto store = dyn_cast<StoreOp>(user);
    if (load ? !load.getIndexOperands().empty() : (!store.getIndexOperands().empty() || store.getCombine()))
      return std::nullopt;
    Operation *node = getNode(user);
    bool isInEpilogue = true;
    if (auto contraction = dyn_cast<ContractionOp>(node))
      isInEpilogue = contraction.getEpilogue().isAncestor(user->getParentRegion());
    if (auto attention = dyn_cast<AttentionOp>(node))
      isInEpilogue = attention.getEpilogue().isAncestor(user->getParentRegion());
    accesses.push_back({user, node, prim::getExprs(indices)[0], bool(store), isInEpilogue});
  }
  return accesses;
}

/// All operations of the node that `op` depends on.
void collectSources(Operation *op, SetVector<Operation *> &sources) {
  for (Value operand : op->getOperands())
    if (Operation *source = operand.getDefiningOp(); source && sources.insert(source))
      collectSources(source, sources);
}

/// Whether nothing needs the element that `load` reads once `store`, in the same node, has
/// written it. Order says so in a node that runs its body once. One with reductions runs
/// a pass for each and repeats the loads that a pass needs: there the store must come after
/// all reductions that the load feeds, and be the one store of what else is made of it.
bool isReadBefore(Operation *load, Operation *store, Operation *node) {
  if (load->getBlock() != store->getBlock() || !load->isBeforeInBlock(store))
    return false;
  if (!isa<ReductionOp>(node))
    return true;
  SetVector<Operation *> sources, reached;
  collectSources(store, sources);
  reached.insert(load);
  for (unsigned next = 0; next < reached.size(); ++next)
    for (Operation *user : reached[next]->getUsers()) {
      bool isReduction = isa<ReduceOp, ArgReduceOp>(user);
      if (isReduction ? !sources.contains(user) : isa<StoreOp>(user) && user != store)
        return false;
      if (!isReduction)
        reached.insert(user);
    }
  return true;
}

/// Whether a product or an attention is among the nodes: all of them run for a block of it then, while other threads do
/// for theirs.
bool hasBlocks(Block *block) {
  return !block->getOps<ContractionOp>().empty() || !block->getOps<AttentionOp>().empty();
}

} // namespace

// Whether `written` may lie where `read` does: each element is read at the point that
// writes it and before that, in that node or an earlier one of the same kernel.
bool loop::mayReuse(BlockArgument read, BlockArgument written) {
  if (cast<BufferType>(read.getType()).getElementBytes() != cast<BufferType>(written.getType()).getElementBytes())
    return false;
  auto loads = getAccesses(read), stores = getAccesses(written);
  if (!loads || !stores || loads->empty() || stores->empty())
    return false;
  const auto *store = llvm::find_if(*stores, [](const ArgumentAccess &access) { return access.isStore; });
  if (store == stores->end() || isa<ScatterOp, SortOp, GreedyOp, ScanOp>(store->node))
    return false;
  Operation *node = store->node;
  Expr address = store->address;
  // What nodes behind it read of the result is there whatever lay in its place.
  for (const ArgumentAccess &access : *stores)
    if (&access != store && (access.isStore || access.node == node || access.node->isBeforeInBlock(node)))
      return false;
  for (const ArgumentAccess &access : *loads) {
    if (access.isStore || access.address != address || !access.isInEpilogue)
      return false;
    bool isOther = access.node != node;
    if (isOther && (isHorizontal(node->getParentOp()) || hasBlocks(node->getBlock()))) // in any order; block by block
      return false;
    if (access.node == node ? !isReadBefore(access.op, store->op, node) : !access.node->isBeforeInBlock(node))
      return false;
    if (isa<ScatterOp, SortOp, GreedyOp, ScanOp>(access.node))
      return false;
  }
  return true;
}
