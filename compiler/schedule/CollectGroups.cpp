//===- CollectGroups.cpp - a block's nodes as groups, and their order -----===//
//
// Every node starts as a group. What a group depends on comes from the program order before any fusion and never
// changes: a node follows those that write what it reads (not another part of the buffer: DisjointAccesses.h), and a
// writer follows those that read what it overwrites (only scatters overwrite). Where the program learns a size
// (loop.bind), all that is made of it follows.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/BlockGroups.h"
#include "compiler/schedule/DisjointAccesses.h"
#include "ir/loop/Recurrence.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

/// Overwrites memory that was written before.
static bool overwrites(Operation *op) { return isa<ScatterOp>(op); }

llvm::StringSet<> loop::getSymbolsBoundIn(Block &block) {
  llvm::StringSet<> bound;
  for (Operation &op : block)
    if (auto binder = dyn_cast<prim::SymbolBinderOpInterface>(op))
      binder.forEachBinding([&](StringRef symbol, Expr, bool isInside) {
        if (!isInside)
          bound.insert(symbol);
      });
  return bound;
}

/// Guards that can be checked at the block's beginning are: nothing may run before them.
static void hoistGuards(Block &block) {
  llvm::StringSet<> bound = getSymbolsBoundIn(block);
  auto isBoundHere = [&](StringRef symbol) { return bound.contains(symbol); };
  SmallVector<GuardOp> guards = llvm::to_vector(block.getOps<GuardOp>());
  for (GuardOp guard : llvm::reverse(guards))
    if (!Expr(guard.getCondition()).usesAny(isBoundHere))
      guard->moveBefore(&block, block.begin());
}

void loop::hoistDeclarations(Block &block) {
  hoistGuards(block);
  Operation *last = nullptr;
  for (Operation &op : llvm::make_early_inc_range(block))
    if (isa<BufferOp, WeightOp, ConstantOp, FlattenOp, PartOp>(op)) {
      if (last)
        op.moveAfter(last);
      else
        op.moveBefore(&block, block.begin());
      last = &op;
    }
}

void loop::updateAccesses(Group &group) {
  group.read.clear();
  group.written.clear();
  for (Operation *node : group.nodes)
    collectAccesses(node, group.read, group.written);
  for (Operation *node : group.nodes)
    if (overwrites(node))
      collectAccesses(node, group.read, group.read);
}

std::vector<Group> loop::collectGroups(Block &block) {
  std::vector<Group> groups;
  for (Operation &op : block) {
    bool isOpaque = isControlFlow(&op) || isa<BindOp, GuardOp, RegrowOp, RecurrenceOp, CallOp>(op);
    if (!isNode(&op) && !isOpaque)
      continue;
    Group group;
    group.nodes = {&op};
    group.position = unsigned(groups.size());
    group.isOpaque = isOpaque;
    updateAccesses(group);
    groups.push_back(std::move(group));
  }
  return groups;
}

static Value getWhole(Value buffer) {
  while (auto part = buffer.getDefiningOp<PartOp>())
    buffer = part.getBuffer();
  return buffer;
}

/// Parts of one buffer do not overlap, but what control flow does with parts of its own concerns all others.
static llvm::SmallDenseSet<Value> getSharedWholes(ArrayRef<Group> groups) {
  llvm::SmallDenseSet<Value> wholes;
  for (const Group &group : groups)
    if (group.isOpaque)
      for (Value buffer : llvm::concat<const Value>(group.read, group.written))
        if (buffer.getDefiningOp<PartOp>() || isa<RegrowOp>(group.nodes[0]))
          wholes.insert(getWhole(buffer));
  return wholes;
}

/// A group runs behind the binds of all symbols that it, the buffers that it touches and what these are parts of are
/// made of, and behind what was found out about them.
static void dependOnSymbols(Operation *node, unsigned number, llvm::StringMap<SmallVector<unsigned>> &binders,
                            GroupOrder &order) {
  if (auto binder = dyn_cast<prim::SymbolBinderOpInterface>(node))
    binder.forEachBinding([&](StringRef symbol, Expr, bool isInside) {
      if (!isInside)
        binders[symbol].push_back(number);
    });
  if (binders.empty())
    return;
  auto depend = [&](StringRef symbol) {
    if (auto found = binders.find(symbol); found != binders.end()) {
      order.addEarlier(number, found->second);
      if (isa<GuardOp>(node))
        found->second.push_back(number);
    }
  };
  auto dependOnPlace = [&](Value buffer) {
    while (true) {
      for (Expr extent : cast<BufferType>(buffer.getType()).getShape())
        extent.walkSymbols(depend);
      auto part = buffer.getDefiningOp<PartOp>();
      if (!part)
        return;
      prim::walkSymbols(part, depend);
      buffer = part.getBuffer();
    }
  };
  node->walk([&](Operation *op) {
    prim::walkSymbols(op, depend);
    for (Value operand : op->getOperands())
      if (isa<BufferType>(operand.getType()))
        dependOnPlace(operand);
  });
}

GroupOrder loop::orderGroups(ArrayRef<Group> groups, const FusionContext &context) {
  GroupOrder order(unsigned(groups.size()));
  struct Accesses {
    SmallVector<unsigned> writers, readers;
  };
  llvm::MapVector<Value, Accesses> byMemory;
  llvm::SmallDenseSet<Value> wholes = getSharedWholes(groups);
  auto isShared = [&](Value buffer) { return wholes.contains(getWhole(buffer)); };
  auto accessesOf = [&](Value buffer) -> Accesses & { return byMemory[isShared(buffer) ? getWhole(buffer) : buffer]; };
  DisjointAccesses parts(context.symbols);
  auto follow = [&](unsigned number, ArrayRef<unsigned> others, Value buffer) {
    order.addEarlier(number, llvm::filter_to_vector(others, [&](unsigned other) {
                       return isShared(buffer) ||
                              !parts.areDisjoint(groups[other].nodes[0], groups[number].nodes[0], buffer);
                     }));
  };
  llvm::StringMap<SmallVector<unsigned>> binders; // of each symbol: what binds it, then guards over it
  for (unsigned number = 0; number < groups.size(); ++number) {
    const Group &group = groups[number];
    dependOnSymbols(group.nodes[0], number, binders, order);
    bool overwrite = overwrites(group.nodes[0]) || group.isOpaque;
    for (Value buffer : group.read) {
      Accesses &a = accessesOf(buffer);
      follow(number, a.writers, buffer);
    }
    for (Value buffer : group.written) {
      if (Value argument = context.aliases.lookup(buffer)) {
        Accesses &shared = accessesOf(argument);
        order.addEarlier(number, shared.readers);
      }
      Accesses &a = accessesOf(buffer);
      follow(number, a.readers, buffer);
      if (overwrite)
        order.addEarlier(number, a.writers);
    }
    for (Value buffer : group.read)
      accessesOf(buffer).readers.push_back(number);
    for (Value buffer : group.written)
      accessesOf(buffer).writers.push_back(number);
  }
  return order;
}
