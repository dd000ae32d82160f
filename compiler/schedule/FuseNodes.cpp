//===- FuseNodes.cpp - which nodes become one kernel ----------------------===//
//
// Greedy fusion to a fixed point, after TorchInductor's scheduler. Every node starts as a group (CollectGroups.cpp).
// For each consumer in program order, its producers are tried by `scoreFusion`, the best first; a pair is fused if one
// of the ways of Scheduler.h applies and no third group lies on a path between the two (a cycle). Then groups of which
// neither depends on the other, and that follow each other or have the same readers, may run side by side, and so on
// until nothing changes. Values that nobody reads any more are dropped with their stores.
//
// Cost: near linear. A fusion asks anew only about the group that it changed, and GroupOrder.h looks at what lies
// between two groups alone.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/BlockGroups.h"
#include "compiler/schedule/PartialSums.h"
#include "compiler/schedule/Passes.h"
#include "ir/Diagnostics.h"
#include "ir/loop/Places.h"
#include "ir/loop/Recurrence.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_FUSENODES
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

namespace {

class BlockScheduler {
public:
  BlockScheduler(Block &block, const FusionContext &context, bool remarks)
      : block(block), context(context), remarks(remarks) {}

  void run(bool disable) {
    hoistDeclarations(block);
    std::vector<Group> groups = collectGroups(block);
    order = orderGroups(groups, context);
    for (auto [number, group] : llvm::enumerate(groups)) {
      for (Value buffer : group.written)
        writersOf[buffer].push_back(unsigned(number));
      entries.push_back({.group = std::move(group)});
    }
    if (!disable && !context.hasDevice && !isa<RecurrenceOp>(block.getParentOp()))
      mergeSums();
    do {
      while (!disable && fuseOnce())
        ;
    } while (!disable && fuseBeside());
    if (disable)
      explainDisabled();
    else
      shareBlocks();
    if (!disable)
      finish();
    SmallVector<Group *> kept;
    for (unsigned number : order.getOrder())
      kept.push_back(&entries[number].group);
    emitGroups(block, kept, context);
  }

private:
  struct Entry {
    Group group;
    unsigned version = 0; // of the group: changes when it is fused
    bool isGone = false;
  };

  /// What may be done once no more is fused.
  void finish() {
    for (Entry &entry : entries)
      if (!entry.isGone)
        mergeMembers(entry.group, context);
    while (dropUnused())
      ;
    for (Entry &entry : entries)
      if (!entry.isGone && !entry.group.nodes.empty())
        finish(entry.group);
  }

  void finish(Group &group) {
    replaceIdleReductions(group);
    if (!context.hasDevice)
      splitRuns(group, context);
    if (auto product = dyn_cast<ReductionOp>(group.nodes[0]); product && group.nodes.size() == 1)
      blockChosenRows(product, context);
  }

  /// Drops buffers that nobody reads, and nodes that write nothing; what these read may be unread then.
  bool dropUnused() {
    bool drops = false;
    for (Entry &entry : entries) {
      if (entry.isGone)
        continue;
      for (Value buffer : SmallVector<Value>(entry.group.written))
        drops |= dropUnread(buffer);
      drops |= dropIdle(entry.group);
    }
    return drops;
  }

  int64_t getBytes(Value buffer) {
    auto type = cast<BufferType>(buffer.getType());
    return type.getElementCount().evaluate(context.hints).value_or(1) * type.getElementBytes();
  }

  /// Buffers that the one writes and the other reads.
  SmallVector<Value> getSharedBuffers(const Group &producer, const Group &consumer) {
    SmallVector<Value> shared;
    for (Value buffer : producer.written)
      if (consumer.reads(buffer))
        shared.push_back(buffer);
    return shared;
  }

  Operation *getOnly(const Group &group, Value buffer, bool writer) {
    Operation *found = nullptr;
    for (Operation *node : group.nodes) {
      SmallVector<Value> read, written;
      collectAccesses(node, read, written);
      if (!llvm::is_contained(writer ? written : read, buffer))
        continue;
      if (found)
        return nullptr;
      found = node;
    }
    return found;
  }

  static bool usesHandles(const Group &group) {
    auto isOfHandles = [](Value buffer) { return holdsHandles(skipViews(buffer)); };
    return llvm::any_of(group.read, isOfHandles) || llvm::any_of(group.written, isOfHandles);
  }

  FusionPlan canFuse(unsigned producerNumber, unsigned consumerNumber) {
    Group &producer = entries[producerNumber].group, &consumer = entries[consumerNumber].group;
    for (const Group *group : {&producer, &consumer})
      if (group->isOpaque)
        return FusionPlan::no(isControlFlow(group->nodes[0]) ? "control flow is not fused"
                              : isa<CallOp>(group->nodes[0]) ? "functions of the runtime are not fused"
                                                             : "the host reads it to learn a size");
    if (context.hasDevice && usesHandles(producer) != usesHandles(consumer))
      return FusionPlan::no("one has to do with strings or sequences, which the host does, and the other has not");
    for (const Group *group : {&producer, &consumer})
      for (Value buffer : group->written)
        if (context.aliases.contains(buffer))
          return FusionPlan::no("it writes a result that may share an argument's memory");
    if (order.hasPathAround(producerNumber, consumerNumber))
      return FusionPlan::no("another kernel must run between the two");
    SmallVector<Value> shared = getSharedBuffers(producer, consumer);
    FusionPlan refusal = FusionPlan::no("they share no value");
    if (shared.size() == 1) {
      Value buffer = shared[0];
      if (consumer.nodes.size() == 1)
        if (Operation *target = getOnly(producer, buffer, true)) {
          FusionPlan plan = canMergeIntoProducer(target, consumer.nodes[0], buffer, context);
          if (plan)
            return plan;
          refusal = plan;
          FusionPlan parts =
              producer.nodes.size() == 1 ? canMergeParts(target, consumer.nodes[0], buffer, context) : FusionPlan();
          if (parts)
            return parts;
          if (!parts.reason.empty())
            refusal = parts;
        }
      if (producer.nodes.size() == 1)
        if (Operation *target = getOnly(consumer, buffer, false)) {
          FusionPlan plan =
              canMergeIntoConsumer(producer.nodes[0], target, buffer, consumer.nodes.size() == 1, context);
          if (!plan && consumer.nodes.size() == 1)
            plan = canMergeReads(producer.nodes[0], target, buffer, context);
          if (plan)
            return plan;
        }
    }
    FusionPlan share = canShare(producer, consumer, context);
    if (share)
      return share;
    return shared.size() == 1 && isa<PointwiseOp>(consumer.nodes[0]) ? refusal : share;
  }

  void apply(unsigned producerNumber, unsigned consumerNumber, const FusionPlan &plan) {
    Entry &producer = entries[producerNumber], &consumer = entries[consumerNumber];
    switch (plan.kind) {
    case FusionKind::MergeIntoProducer:
      mergeIntoProducer(getOnly(producer.group, plan.buffer, true), consumer.group.nodes[0], plan, context);
      break;
    case FusionKind::MergeIntoConsumer:
      mergeIntoConsumer(producer.group.nodes[0], getOnly(consumer.group, plan.buffer, false), plan, context);
      producer.group.nodes = consumer.group.nodes;
      if (!consumer.group.outer.empty())
        producer.group.outer = consumer.group.outer;
      break;
    case FusionKind::MergeParts:
      producer.group.nodes = {mergeParts(producer.group.nodes[0], consumer.group.nodes[0], plan.buffer, context)};
      break;
    case FusionKind::MergeReads:
      mergeReads(producer.group.nodes[0], consumer.group.nodes[0], plan, context);
      producer.group.nodes = consumer.group.nodes;
      break;
    case FusionKind::Share:
      share(producer.group, consumer.group, plan, context);
      break;
    case FusionKind::Blocks:
      loop::shareBlocks(producer.group, consumer.group, plan, context);
      break;
    case FusionKind::Beside:
    case FusionKind::MergeBeside:
    case FusionKind::None:
      return;
    }
    consumer.isGone = true;
    ++producer.version;
    order.fuse(producerNumber, consumerNumber);
    dropUnread(plan.buffer);
    updateAccesses(producer.group);
  }

  /// Removes a buffer that nobody reads, with its stores and what only they needed.
  bool dropUnread(Value buffer) {
    if (!buffer.getDefiningOp<BufferOp>())
      return false;
    for (Operation *user : buffer.getUsers())
      if (!isa<StoreOp>(user))
        return false;
    for (Operation *user : llvm::make_early_inc_range(buffer.getUsers())) {
      Operation *value = cast<StoreOp>(user).getValue().getDefiningOp();
      user->erase();
      eraseIfDead(value);
    }
    for (unsigned writer : writersOf[buffer]) // several groups may have written parts of it
      llvm::erase(entries[order.getKept(writer)].group.written, buffer);
    writersOf.erase(buffer);
    buffer.getDefiningOp()->erase();
    return true;
  }

  /// Nodes that neither write nor check anything.
  static bool dropIdle(Group &group) {
    size_t before = group.nodes.size();
    llvm::erase_if(group.nodes, [](Operation *node) {
      SmallVector<Value> read, written;
      collectAccesses(node, read, written);
      auto isCheck = [](CheckIndexOp) { return WalkResult::interrupt(); };
      bool isIdle = isNode(node) && written.empty() && !node->walk(isCheck).wasInterrupted();
      if (isIdle)
        node->erase();
      return isIdle;
    });
    return group.nodes.size() != before;
  }

  /// Reductions of which nobody reads any more what they reduced, but what they store on the way, are pointwise.
  static void replaceIdleReductions(Group &group) {
    for (Operation *&node : group.nodes) {
      auto reduction = dyn_cast<ReductionOp>(node);
      if (!reduction ||
          llvm::any_of(reduction.getBody().getOps(), [](Operation &op) { return isa<ReduceOp, ArgReduceOp>(op); }))
        continue;
      node = replaceByPointwise(reduction);
    }
  }

  static void eraseIfDead(Operation *op) {
    llvm::SmallSetVector<Operation *, 8> list; // an op may use another one twice
    list.insert(op);
    while (!list.empty()) {
      Operation *next = list.pop_back_val();
      if (!next || !next->use_empty() || !(isMemoryEffectFree(next) || isa<LoadOp>(next)))
        continue;
      for (Value operand : next->getOperands())
        list.insert(operand.getDefiningOp());
      next->erase();
    }
  }

  /// How much fusing the two is worth: where it happens (a template's epilogue saves a pass over its result,
  /// which no later fusion would), then bytes that need not be read again, then how near they are.
  struct FusionScore {
    bool isEpilogue = false;
    int64_t bytes = 0;
    int64_t distance = 0;
    bool operator<(const FusionScore &other) const {
      return std::tuple(isEpilogue, bytes, -distance) < std::tuple(other.isEpilogue, other.bytes, -other.distance);
    }
  };

  FusionScore scoreFusion(unsigned producerNumber, unsigned consumerNumber) {
    const Group &producer = entries[producerNumber].group, &consumer = entries[consumerNumber].group;
    FusionScore score;
    for (Value buffer : getSharedBuffers(producer, consumer))
      score.bytes += getBytes(buffer);
    score.isEpilogue =
        isa<ContractionOp, AttentionOp>(producer.nodes.front()) && isa<PointwiseOp>(consumer.nodes.front());
    score.distance = std::abs(int64_t(consumer.position) - int64_t(producer.position));
    return score;
  }

  /// Whether nothing has changed since the pair was refused. Notes the question.
  bool wasRefused(unsigned producer, unsigned consumer) {
    std::pair versions(entries[producer].version, entries[consumer].version);
    auto [known, isNew] = refused.try_emplace({producer, consumer}, versions);
    return !isNew && std::exchange(known->second, versions) == versions;
  }

  /// Fuses the first pair that may be; producers of a consumer by their score. What was refused before stays so until
  /// one of the two is another group: the next search begins at the first consumer of which that may be true.
  bool fuseOnce() {
    for (unsigned consumer = firstConsumer; consumer < entries.size(); ++consumer) {
      if (entries[consumer].isGone)
        continue;
      SmallVector<std::pair<FusionScore, unsigned>> candidates;
      for (unsigned producer : order.getEarlier(consumer))
        if (FusionScore score = scoreFusion(producer, consumer); score.bytes)
          candidates.push_back({score, producer});
      llvm::sort(candidates, [](const auto &a, const auto &b) {
        return b.first < a.first || (!(a.first < b.first) && a.second < b.second);
      });
      for (const auto &[score, producer] : candidates) {
        if (wasRefused(producer, consumer))
          continue;
        FusionPlan plan = canFuse(producer, consumer);
        if (!plan) {
          explain(producer, consumer, plan.reason, score.bytes);
          continue;
        }
        apply(producer, consumer, plan);
        firstConsumer = producer;
        for (unsigned later : order.getLater(producer))
          firstConsumer = std::min(firstConsumer, later);
        return true;
      }
    }
    return false;
  }

  /// Whether two groups that follow each other may be one kernel though neither depends on the other: those that read
  /// one value, or have the same readers.
  FusionPlan canFuseBeside(unsigned first, unsigned second) {
    auto depends = [&](unsigned later, unsigned earlier) {
      return order.getLater(earlier).contains(later) || order.hasPathAround(earlier, later);
    };
    if (depends(second, first) || depends(first, second)) // also by way of what has been united meanwhile
      return {};
    const Group &a = entries[first].group, &b = entries[second].group;
    FusionPlan plan = canMergeSums(a, b) ? FusionPlan{.kind = FusionKind::MergeBeside} : canRunBeside(a, b, context);
    if (!plan && order.getLater(first) == order.getLater(second))
      if (FusionPlan merged = canMergeBeside(a, b); merged || plan.reason.empty())
        plan = merged;
    for (Value buffer : llvm::concat<const Value>(a.written, b.written))
      if (plan && context.aliases.contains(buffer))
        return FusionPlan::no("it writes a result that may share an argument's memory");
    return plan;
  }

  /// The groups in an order in which they may run: those that write nothing but results right behind the last one that
  /// they depend on, where what they read is in cache. (Elsewhere a result's copy is the last thing to be done.)
  SmallVector<unsigned> getOrderWithEarlyResults() {
    SmallVector<unsigned> sequence = order.getOrder();
    llvm::DenseMap<unsigned, std::pair<size_t, size_t>> places; // the group before, and one's own place
    for (auto [place, number] : llvm::enumerate(sequence)) {
      const Group &group = entries[number].group;
      bool isResult = !group.isOpaque && isa<PointwiseOp>(group.nodes[0]) && !order.getEarlier(number).empty() &&
                      llvm::all_of(group.written, [](Value buffer) { return isa<BlockArgument>(skipViews(buffer)); });
      size_t behind = place;
      if (isResult) {
        behind = 0;
        for (unsigned earlier : order.getEarlier(number))
          behind = std::max(behind, places[earlier].first);
      }
      places[number] = {behind, place};
    }
    llvm::sort(sequence, [&](unsigned a, unsigned b) { return places[a] < places[b]; });
    return sequence;
  }

  /// Fuses pointwise groups that follow each other, so that no buffer lives much longer, or that stand among others
  /// with the same readers; false if there are none. (A device has horizontal kernels for that, and groups of a
  /// recurrence are phases.)
  bool fuseBeside() {
    constexpr size_t mostPartners = 64; // what is further away is out of cache, and thousands would ask each other
    if (context.hasDevice || isa<RecurrenceOp>(block.getParentOp()))
      return false;
    bool hasChanged = false;
    SmallVector<std::pair<unsigned, std::string>> refusals;
    SmallVector<unsigned> row; // the group before, and those before it
    for (unsigned number : getOrderWithEarlyResults()) {
      SmallVector<unsigned> partners;
      for (unsigned member : ArrayRef(row).take_back(mostPartners))
        if (member == row.back() || order.getLater(member) == order.getLater(number))
          partners.push_back(member);
      row = partners;
      std::string reason;
      bool isUnited = false;
      for (unsigned &member : row) {
        FusionPlan plan = canFuseBeside(member, number);
        if ((isUnited = bool(plan))) {
          member = uniteBeside(member, number, plan);
          break;
        }
        reason = plan.reason.empty() ? reason : plan.reason;
      }
      hasChanged |= isUnited;
      if (!isUnited)
        row.push_back(number);
      if (!isUnited && !reason.empty())
        refusals.push_back({number, reason});
    }
    for (const auto &[number, reason] : refusals)
      if (remarks && !hasChanged)
        entries[number].group.nodes[0]->emitRemark("not beside the kernel before it: ") << reason;
    firstConsumer = 0;
    return hasChanged;
  }

  /// The indices of one load of the node, which other nodes that read the same elements have, too.
  static Attribute getSomeIndices(Operation *node) {
    Attribute least;
    node->walk([&](LoadOp load) {
      Attribute indices = load.getIndices();
      if (!least || indices.getAsOpaquePointer() < least.getAsOpaquePointer())
        least = indices;
    });
    return least;
  }

  /// Merges reductions of the same elements, wherever they stand: before what reads one of them can join it alone.
  void mergeSums() {
    llvm::DenseMap<std::pair<Value, Attribute>, SmallVector<unsigned>> readers;
    for (unsigned number : order.getOrder()) {
      const Group &group = entries[number].group;
      if (group.read.empty() || !isa<ReductionOp>(group.nodes[0]))
        continue;
      SmallVector<unsigned> &others = readers[{group.read.front(), getSomeIndices(group.nodes[0])}];
      auto merges = [&](unsigned o) { return canMergeSums(entries[o].group, group) && canFuseBeside(o, number); };
      if (auto partner = llvm::find_if(others, merges); partner != others.end())
        *partner = uniteBeside(*partner, number, {.kind = FusionKind::MergeBeside});
      else
        others.push_back(number);
    }
  }

  /// Of two independent groups the one that stays, with the dependencies of both.
  unsigned uniteBeside(unsigned first, unsigned second, const FusionPlan &plan) {
    if (!order.isRankedBefore(first, second))
      std::swap(first, second);
    Group &group = entries[first].group;
    (plan.kind == FusionKind::MergeBeside ? mergeBeside : runBeside)(group, entries[second].group, plan, context);
    entries[second].isGone = true;
    ++entries[first].version;
    order.fuse(first, second);
    updateAccesses(group);
    return first;
  }

  void explain(unsigned producer, unsigned consumer, StringRef reason, int64_t bytes) {
    if (!remarks)
      return;
    Location location = entries[producer].group.nodes[0]->getLoc();
    std::string name = formatLocation(location);
    InFlightDiagnostic remark = entries[consumer].group.nodes[0]->emitRemark("not fused with its producer");
    remark << (name.empty() ? "" : ", ") << name << ": " << reason << "; it would keep " << bytes
           << " bytes out of memory";
    // The same for programs.
    NodeLocation node = describeLocation(location).value_or(NodeLocation());
    auto &parts = remark.getUnderlyingDiagnostic()->getMetadata();
    for (StringRef part : {StringRef(refusedFusion), node.node.empty() ? node.output : node.node, reason})
      parts.push_back(DiagnosticArgument(StringAttr::get(location.getContext(), part)));
  }

  void explainDisabled() {
    for (unsigned consumer = 0; consumer < entries.size(); ++consumer)
      for (unsigned producer = 0; producer < consumer; ++producer)
        if (order.getEarlier(consumer).contains(producer))
          if (FusionScore score = scoreFusion(producer, consumer); score.bytes)
            explain(producer, consumer, "fusion is switched off (-O0)", score.bytes);
  }

  /// Products whose epilogues are all that they will be run block by block with those whose results they read there,
  /// and so does what reads products part by part, or writes what an attention reads head by head.
  void shareBlocks() {
    if (isa<RecurrenceOp>(block.getParentOp()))
      return;
    for (unsigned number : order.getOrder()) {
      std::optional<unsigned> united = shareBlocks(number);
      while (united && isa<AttentionOp>(entries[*united].group.nodes.back())) // several nodes may run ahead of it
        united = shareBlocks(*united);
    }
  }

  /// Fuses the group with one that it reads; none where there is none.
  std::optional<unsigned> shareBlocks(unsigned consumer) {
    SmallVector<unsigned> producers(order.getEarlier(consumer).begin(), order.getEarlier(consumer).end());
    llvm::sort(producers);
    for (unsigned producer : producers) {
      FusionPlan plan = canShareBlocks(entries[producer].group, entries[consumer].group, context);
      if (plan && order.hasPathAround(producer, consumer))
        plan = FusionPlan::no("another kernel must run between the two");
      for (unsigned number : {producer, consumer})
        for (Value buffer : entries[number].group.written)
          if (plan && context.aliases.contains(buffer))
            plan = FusionPlan::no("it writes a result that may share an argument's memory");
      if (plan) {
        apply(producer, consumer, plan);
        return producer;
      }
      if (remarks && !plan.reason.empty())
        entries[consumer].group.nodes[0]->emitRemark("not block by block with its producer: ") << plan.reason;
    }
    return std::nullopt;
  }

  Block &block;
  const FusionContext &context;
  bool remarks;
  std::vector<Entry> entries;
  GroupOrder order{0};
  /// Pairs, producer first, with the versions that were refused.
  llvm::DenseMap<std::pair<unsigned, unsigned>, std::pair<unsigned, unsigned>> refused;
  unsigned firstConsumer = 0;                                // those before it have nothing new to ask
  llvm::DenseMap<Value, SmallVector<unsigned, 1>> writersOf; // groups as they were at first
};

/// The flattened argument, or the argument where nothing reads it.
Value getMemory(BlockArgument argument) {
  for (Operation *user : argument.getUsers())
    if (isa<FlattenOp>(user))
      return user->getResult(0);
  return argument;
}

struct FuseNodes : ptc::impl::FuseNodesBase<FuseNodes> {
  using FuseNodesBase::FuseNodesBase;
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      FusionContext context{prim::getSymbolRanges(program.getSymbols()), prim::getSymbolHints(program.getSymbols()),
                            nullptr, llvm::DenseMap<Value, Value>(), device};
      program.walk([&](WeightOp weight) {
        auto type = cast<BufferType>(weight.getType());
        context.weightBytes += type.getElementCount().asConstant().value_or(0) * type.getElementBytes();
      });
      if (device)
        program.walk([&](AttentionOp op) { groupHeads(op, context.symbols); });
      ArrayRef<int64_t> pairs = program.getAliases();
      for (size_t i = 0; i + 1 < pairs.size(); i += 2)
        context.aliases[getMemory(program.getOutputArgs()[pairs[i + 1]])] = getMemory(program.getInputArgs()[pairs[i]]);
      SmallVector<Block *> blocks;
      program.walk([&](Operation *op) {
        if (isControlFlow(op))
          for (Region &region : op->getRegions())
            blocks.push_back(&region.front());
      });
      program.walk([&](RecurrenceOp op) {
        for (Region *region : {&op.getBody(), &op.getOtherwise()})
          if (!region->empty())
            blocks.push_back(&region->front());
      });
      blocks.push_back(&program.getBlock());
      for (Block *block : blocks) {
        context.block = block;
        BlockScheduler(*block, context, remarks).run(disable);
      }
    }
  }
};

} // namespace
