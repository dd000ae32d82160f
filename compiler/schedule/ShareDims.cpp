//===- ShareDims.cpp - groups that run under common outer dims ------------===//
//
// A reduction and the nodes around it (softmax, LayerNorm and their kind), or the sort of
// rows, run as one kernel if they share the kept dims: for each point of those, one node after
// the other, with what lies between them in cache. Where they keep none, the kernel is one task (one block of a GPU):
// such nodes share where they are small whatever the sizes.
//
// Condition for every buffer that one group writes and the other reads: with the
// shared dims x and the remaining dims y of each node, its addresses must split as
//
//   f(x) + g(y),   the same f in both groups, 0 <= g(y) < the smallest step of f,
//
// so that a point x of the consumer reads only what the same x of the producer wrote.
//
// Nodes may have those points as other dims: (3136) is (56, 56) to a node that reads windows of an image. The shared
// dims are then the finer ones, into which all nodes' dims can be split.
//
// An attention shares its heads in the same way with pointwise nodes and products that run ahead of it: a copy of keys
// and values is read while it lies in cache, and products of queries and keys by positions, of which each score gets
// one element, take the room of one head. A head is one task then; if it would be several, that must be worth it:
// nobody else reads what runs ahead, and products are among it, or what reads them.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Scheduler.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ContractionDims.h"
#include "ir/loop/Winograd.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace {

/// Nodes of a kernel: what it costs the compiler grows faster than they do. Scores of ninety classes are 93 nodes.
constexpr size_t mostSharing = 128;

/// On a device a row that nodes share is one block's, which reads some 80 GB/s. So few rows of so many points are done
/// sooner by launches of their own, in which all blocks take part.
constexpr int64_t fewRows = 32, longRow = 1 << 17;

/// Shared dims that a group asks for: those it has, or the kept dims of its reduction.
std::optional<SmallVector<Expr>> getWantedDims(const Group &group) {
  if (!group.outer.empty())
    return group.outer;
  for (Operation *node : group.nodes)
    if (isa<ReductionOp, ScanOp, SortOp>(node)) {
      SmallVector<Expr> domain = getDomain(node);
      domain.resize(getKeptCount(node));
      return domain;
    }
  return std::nullopt;
}

/// `address` as f(first `outer` dims) + g(other dims); false if it mixes them.
bool splitAddress(Expr address, unsigned outer, Expr &f, Expr &g) {
  MLIRContext *context = address.getContext();
  auto isOuter = [&](StringRef symbol) {
    auto dim = getDimNumber(symbol);
    return dim && *dim < outer;
  };
  f = Expr::constant(context, 0);
  Expr rest = address;
  for (unsigned dim = 0; dim < outer; ++dim) {
    std::string name = dimName(dim);
    if (!rest.uses(name))
      continue;
    Expr remainder;
    Expr step = rest.coefficientOf(name, &remainder);
    if (!step || step.usesAny(isDimSymbol))
      return false;
    f = f + step * Expr::dim(context, dim);
    rest = remainder;
  }
  g = rest;
  return !g.usesAny(isOuter);
}

/// Whether f maps different points to slices of at least `size` elements apart.
bool separates(Expr f, Expr g, ArrayRef<Expr> outer, const SymbolRanges &ranges, const SymbolValues &hints) {
  ExprRange range = g.range(ranges);
  if (range.min < 0)
    return false;
  SmallVector<std::pair<Expr, Expr>> steps; // step, extent
  for (auto [dim, extent] : llvm::enumerate(outer)) {
    if (extent.isConstant(1))
      continue;
    Expr step = f.coefficientOf(dimName(dim));
    if (!step || step.isConstant(0))
      return false;
    steps.push_back({step, extent});
  }
  llvm::stable_sort(steps, [&](auto &a, auto &b) {
    return a.first.evaluate(hints).value_or(0) > b.first.evaluate(hints).value_or(0);
  });
  for (unsigned i = 0; i + 1 < steps.size(); ++i) {
    auto isLess = knownLess(steps[i].first, steps[i + 1].first * steps[i + 1].second, ranges);
    if (!isLess || *isLess)
      return false;
  }
  if (steps.empty())
    return true;
  auto fits = knownLess(g, steps.back().first, ranges);
  return fits && *fits;
}

struct Slice {
  Expr f, g;
  SymbolRanges ranges;
};

/// Where the first few of a sorted row are stored the last dim is a rank among them.
SymbolRanges getAccessRanges(Operation *access, Operation *node, ArrayRef<Expr> domain, SymbolRanges ranges) {
  auto sort = dyn_cast<SortOp>(node);
  if (sort && sort.getBody().isAncestor(access->getParentRegion())) {
    Expr kept = sort.getKept();
    ranges[dimName(domain.size() - 1)] = {.min = 0, .max = kept.range(ranges).max - 1, .below = kept};
  }
  return ranges;
}

/// What an index that is read lies below, null if that is not known: the extent that it is checked against (one that
/// fails is 0), or one more than the largest of constants, which are not checked where they are not negative.
Expr getIndexBound(Value index) {
  if (auto check = index.getDefiningOp<CheckIndexOp>())
    return check.getExtent();
  auto widening = index.getDefiningOp<arith::ExtSIOp>();
  auto load = (widening ? widening.getIn() : index).getDefiningOp<LoadOp>();
  auto constant = load ? skipViews(load.getBuffer()).getDefiningOp<ConstantOp>() : ConstantOp();
  if (!constant)
    return {};
  int64_t least = 0, most = 0;
  for (const APInt &value : constant.getValue().getValues<APInt>()) {
    least = std::min(least, value.getSExtValue());
    most = std::max(most, value.getSExtValue());
  }
  return least < 0 ? Expr() : Expr::constant(index.getContext(), most + 1);
}

/// The ranges with those of an access's operands.
SymbolRanges addOperandRanges(ValueRange operands, SymbolRanges ranges) {
  for (auto [number, operand] : llvm::enumerate(operands))
    if (Expr bound = getIndexBound(operand)) {
      ExprRange known = bound.range(ranges), range;
      range.min = 0;
      if (known.max != std::numeric_limits<int64_t>::max())
        range.max = std::max<int64_t>(known.max - 1, 0);
      range.below = bound;
      ranges[Expr::operand(bound.getContext(), unsigned(number)).getSymbol().str()] = range;
    }
  return ranges;
}

/// All accesses to `buffer` in a group whose nodes' first dims are made `outer`, as slices.
std::optional<SmallVector<Slice>> getSlices(const Group &group, Value buffer, ArrayRef<Expr> outer,
                                            const FusionContext &context) {
  SmallVector<Slice> slices;
  bool ok = true;
  for (Operation *node : group.nodes) {
    DimSplit split = *findPrefixSplit(node, outer, context.symbols);
    SymbolRanges ranges = getNodeRanges(node, split.domain, context.symbols);
    node->walk([&](Operation *op) {
      Value accessed;
      Expr address;
      bool indirect = false;
      SymbolRanges own = getAccessRanges(op, node, split.domain, ranges);
      if (auto load = dyn_cast<LoadOp>(op)) {
        accessed = load.getBuffer();
        address = prim::getExprs(load.getIndices())[0];
        own = addOperandRanges(load.getIndexOperands(), own);
      } else if (auto store = dyn_cast<StoreOp>(op)) {
        accessed = store.getBuffer();
        address = prim::getExprs(store.getIndices())[0];
        indirect = !store.getIndexOperands().empty();
      }
      if (accessed != buffer)
        return;
      Slice slice{{}, {}, own};
      if (indirect ||
          !splitAddress(substituteDims(address, split.oldDims).simplify(ranges), outer.size(), slice.f, slice.g)) {
        ok = false;
        return;
      }
      slices.push_back(slice);
    });
  }
  if (!ok)
    return std::nullopt;
  return slices;
}

/// Whether what is sorted does not lie in runs: other nodes of a kernel would read it element by element, too, where
/// they had lanes along another dim.
bool sortsApart(Operation *node) {
  auto sort = dyn_cast<SortOp>(node);
  if (!sort)
    return false;
  std::string last = dimName(getDomain(sort).size() - 1);
  return sort.getKey()
      .walk([&](LoadOp load) {
        Expr address = prim::getExprs(load.getIndices())[0], step = address.coefficientOf(last);
        bool isRun = !address.uses(last) || (step && step.isConstant(1));
        return isRun ? WalkResult::advance() : WalkResult::interrupt();
      })
      .wasInterrupted();
}

/// Whether one of the nodes runs over more points than another one sorts: little of what it does is shared then, and it
/// may be worth more elsewhere (weights that the ranks choose are read by a product).
bool exceedsSorted(ArrayRef<const Group *> groups, const SymbolValues &hints) {
  int64_t sorted = std::numeric_limits<int64_t>::max(), largest = 0;
  for (const Group *group : groups)
    for (Operation *node : group->nodes) {
      int64_t points = product(node->getContext(), getDomain(node)).evaluate(hints).value_or(0);
      largest = std::max(largest, points);
      if (isa<SortOp>(node))
        sorted = std::min(sorted, points);
    }
  return largest > sorted;
}

/// Whether the node reads no element at several points: windows that overlap are better taken by neighbours together.
bool readsOnce(Operation *node, const FusionContext &context) {
  SymbolRanges ranges = getNodeRanges(node, context.symbols);
  Expr nothing = Expr::constant(node->getContext(), 0), one = Expr::constant(node->getContext(), 1);
  bool isOnce = true;
  node->walk([&](LoadOp load) {
    Expr address = prim::getExprs(load.getIndices())[0];
    SmallVector<Expr> domain = getDomain(node);
    for (auto [dim, extent] : llvm::enumerate(domain))
      extent = address.uses(dimName(dim)) ? extent : one;
    isOnce &= load.getIndexOperands().empty() && separates(address, nothing, domain, ranges, context.hints);
  });
  return isOnce;
}

/// Whether the groups, whose reductions keep different dims, may share those of the consumer: the producer is a sum
/// that keeps more of each of its points (what several experts say of a row, which is then normalised).
bool mayShareFewer(const Group &producer, Expr points, Expr fewer, const FusionContext &context) {
  if (context.hasDevice || producer.nodes.size() != 1 || !isa<ReductionOp>(producer.nodes[0]))
    return false;
  return exactQuotient(points, fewer, context.symbols) && readsOnce(producer.nodes[0], context);
}

/// Why a point of the outer dims of one group needs more of the other than what that does at the same point; empty: it
/// does not. Then `shared` is a value that they share. `mayBothWrite`: other elements of one buffer.
StringRef whyNotSliceBySlice(const Group &producer, const Group &consumer, ArrayRef<Expr> outer,
                             const FusionContext &context, bool mayBothWrite, Value &shared) {
  for (Value buffer : producer.written) {
    if (consumer.writes(buffer) && !mayBothWrite)
      return "both write the same buffer";
    if (!consumer.reads(buffer) && !consumer.writes(buffer))
      continue;
    if (consumer.reads(buffer))
      shared = buffer;
    auto a = getSlices(producer, buffer, outer, context), b = getSlices(consumer, buffer, outer, context);
    if (!a || !b)
      return "a shared value is not addressed slice by slice";
    for (ArrayRef<Slice> slices : {ArrayRef<Slice>(*a), ArrayRef<Slice>(*b)})
      for (const Slice &slice : slices)
        if (slice.f != a->front().f || !separates(slice.f, slice.g, outer, slice.ranges, context.hints))
          return "the consumer reads beyond the slice that the producer has written";
  }
  if (llvm::any_of(consumer.written, [&](Value buffer) { return producer.reads(buffer); }))
    return "the consumer overwrites what the producer reads";
  return shared ? "" : "they share no value";
}

/// The dims that the groups can share, if any: `outer`, or finer ones.
std::optional<SmallVector<Expr>> findSharedDims(ArrayRef<const Group *> groups, SmallVector<Expr> outer,
                                                const SymbolRanges &symbols) {
  SmallVector<Operation *> nodes;
  for (const Group *group : groups)
    llvm::append_range(nodes, group->nodes);
  auto fits = [&](Operation *node) { return findPrefixSplit(node, outer, symbols).has_value(); };
  for (Operation *node : nodes) {
    if (fits(node))
      continue;
    SmallVector<Expr> domain = getDomain(node);
    domain.resize(getIndependentCount(node));
    auto refined = refineDims(outer, domain, symbols);
    if (!refined)
      return std::nullopt;
    outer = *refined;
  }
  if (!llvm::all_of(nodes, fits))
    return std::nullopt;
  return outer;
}

} // namespace

FusionPlan loop::canShare(const Group &producer, const Group &consumer, const FusionContext &context) {
  if (producer.nodes.size() + consumer.nodes.size() > mostSharing)
    return FusionPlan::no("the kernel would have more than " + std::to_string(mostSharing) + " nodes");
  for (const Group *group : {&producer, &consumer})
    for (Operation *node : group->nodes)
      if (!isa<PointwiseOp, ReductionOp, ScanOp, SortOp>(node))
        return FusionPlan::no("only pointwise, reduction, scan and sort nodes share loops");
      else if (context.hasDevice && isa<SortOp>(node))
        return FusionPlan::no("a device's blocks meet at barriers while they sort");
  for (const Group *group : {&producer, &consumer})
    if (llvm::any_of(group->nodes, sortsApart))
      return FusionPlan::no("what is sorted does not lie in rows");
  if (exceedsSorted({&producer, &consumer}, context.hints))
    return FusionPlan::no("one of them runs over more points than are sorted");
  auto wanted = getWantedDims(producer), other = getWantedDims(consumer);
  if (!wanted && !other)
    return FusionPlan::no("two pointwise nodes are merged or not fused");
  SmallVector<Expr> outer = wanted ? *wanted : *other;
  MLIRContext *mlirContext = context.block->getParentOp()->getContext();
  if (wanted && other && product(mlirContext, *wanted) != product(mlirContext, *other)) {
    if (!mayShareFewer(producer, product(mlirContext, *wanted), product(mlirContext, *other), context))
      return FusionPlan::no("their reductions keep different dims");
    outer = *other;
  }
  int64_t points = product(mlirContext, outer).evaluate(context.hints).value_or(0);
  for (const Group *group : {&producer, &consumer})
    for (Operation *node : group->nodes) {
      int64_t work = product(node->getContext(), getDomain(node)).evaluate(context.hints).value_or(0);
      if (points < minParallelPoints && work > smallWork)
        return FusionPlan::no("too few points are shared to keep the cores busy");
      if (context.hasDevice && points <= fewRows && work >= points * longRow)
        return FusionPlan::no("rows are so few and long that a device shares each of them among blocks");
      // One point for any size: whatever hints say, it never is large.
      if (outer.empty() && product(node->getContext(), getDomain(node)).range(context.symbols).max > smallWork)
        return FusionPlan::no("nothing is kept that could be shared");
    }
  if (auto dims = findSharedDims({&producer, &consumer}, outer, context.symbols))
    outer = *dims;
  else
    return FusionPlan::no("its dims do not begin with the shared ones");
  Value shared;
  if (StringRef reason =
          whyNotSliceBySlice(producer, consumer, outer, context, /*mayBothWrite=*/!context.hasDevice, shared);
      !reason.empty())
    return FusionPlan::no(reason.str());
  return {.kind = FusionKind::Share, .buffer = shared, .outer = outer};
}

/// Whether nobody but the two groups touches what the producer writes.
static bool isOwn(const Group &producer, const Group &consumer) {
  auto isMember = [&](Operation *user) {
    Operation *node = getEnclosingNode(user);
    return llvm::is_contained(producer.nodes, node) || llvm::is_contained(consumer.nodes, node);
  };
  return llvm::all_of(producer.written, [&](Value buffer) {
    return buffer.getDefiningOp<BufferOp>() && llvm::all_of(buffer.getUsers(), isMember);
  });
}

/// Whether the node is a product of the heads, or reads one: there is more to do ahead than to move.
static bool hasProduct(Operation *node, ArrayRef<Expr> heads, const FusionContext &context) {
  auto isOfHeads = [&](Operation *op) {
    auto product = dyn_cast<ContractionOp>(op);
    if (!product)
      return false;
    SmallVector<Expr> batch = getDomain(product);
    batch.resize(product.getBatch());
    return !batch.empty() && refineDims(heads, batch, context.symbols).has_value();
  };
  if (isOfHeads(node))
    return true;
  SmallVector<Value> read, written;
  collectAccesses(node, read, written);
  return llvm::any_of(read, [&](Value buffer) {
    return llvm::any_of(buffer.getUsers(),
                        [&](Operation *user) { return isa<StoreOp>(user) && isOfHeads(getEnclosingNode(user)); });
  });
}

FusionPlan loop::canRunAhead(const Group &producer, const Group &consumer, const FusionContext &context) {
  constexpr int64_t mostQueries = 64; // that are one task
  auto attention = cast<AttentionOp>(consumer.nodes.back());
  SmallVector<Expr> outer = getDomain(attention);
  Expr queries = outer[attention.getBatch()];
  outer.resize(attention.getBatch());
  auto count = queries.asConstant();
  bool isOneTask = count && *count >= 1 && *count <= mostQueries;
  auto isCostly = [&](Operation *node) { return hasProduct(node, outer, context); };
  if (!isOneTask && !(isOwn(producer, consumer) && llvm::any_of(producer.nodes, isCostly)))
    return FusionPlan::no("a head may have several tasks, or none");
  for (Operation *node : producer.nodes)
    if (auto product = dyn_cast<ContractionOp>(node); product && (isNarrow(product) || getWinogradTile(product)))
      return FusionPlan::no("a product ahead of heads has its tiles of sums");
  if (llvm::any_of(producer.written, [&](Value buffer) { return producer.reads(buffer); }))
    return FusionPlan::no("what would run ahead reads of itself what other heads make");
  if (product(attention.getContext(), outer).evaluate(context.hints).value_or(0) < minParallelPoints)
    return FusionPlan::no("too few heads are shared to keep the cores busy");
  if (auto dims = findSharedDims({&producer, &consumer}, outer, context.symbols))
    outer = *dims;
  else
    return FusionPlan::no("its dims do not begin with those of heads");
  if (producer.nodes.size() + consumer.nodes.size() > mostBeside)
    return FusionPlan::no("the kernel would have too many nodes");
  Value shared;
  if (StringRef reason = whyNotSliceBySlice(producer, consumer, outer, context, /*mayBothWrite=*/true, shared);
      !reason.empty())
    return FusionPlan::no(reason.str());
  return {.kind = FusionKind::Blocks, .buffer = shared, .outer = outer};
}

void loop::share(Group &producer, const Group &consumer, const FusionPlan &plan, const FusionContext &context) {
  producer.nodes.append(consumer.nodes);
  producer.outer = plan.outer;
  for (Operation *node : producer.nodes)
    splitPrefix(node, plan.outer, context.symbols);
}
