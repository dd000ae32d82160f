//===- ShareBlocks.cpp - products that run block by block in one kernel ---===//
//
// Of two products of the same rows by weights of one shape the second may read, at each element of its result, what the
// first has put there (a gated MLP: what the gate lets through times the other product). They run as one kernel: its
// tasks are blocks of rows and columns, and each computes its block of the first product, then that of the second,
// whose epilogue finds the first one's in the core's cache. The rows, too, are read while they lie there.
//
// Weights stay apart: nothing is interleaved, and each is replaced as before.
//
// Pointwise nodes that read a product part by part (the heads of queries and keys that are rotated) run behind it in
// the same way: blocks are cut between parts then, and a task's parts follow its sums. Those that write what an
// attention reads head by head, and products of its heads, run ahead of it (ShareDims.cpp).
//
// So do nodes that share the product's rows, reductions and sorts among them (a norm, a choice of experts), and copies
// of parts of rows, which the product may fill in part (the half that a shuffle of channels hands on). Blocks have all
// columns then, so that what every row reads anew is the whole weight: it must stay in the second-level cache, and rows
// must be enough for the tasks that blocks of columns would have given.
//
// A sum that reads a product column by column, each in any rows (a depthwise convolution, pooling), runs behind blocks
// of whole columns: what it reads lies in the second-level cache then. Every thread reads all rows for that, and there
// are no more tasks than blocks.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Scheduler.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ColumnParts.h"
#include "ir/loop/ContractionDims.h"
#include "ir/loop/Winograd.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace {

/// Whether the regions read weights of one shape in one way.
bool readWeightsAlike(Region &a, Region &b) {
  auto opsOf = [](Region &region) {
    SmallVector<Operation *> ops;
    region.walk([&](Operation *op) { ops.push_back(op); });
    return ops;
  };
  return llvm::equal(opsOf(a), opsOf(b), [](Operation *a, Operation *b) {
    return a->getName() == b->getName() && a->getAttrDictionary() == b->getAttrDictionary() &&
           a->getOperandTypes() == b->getOperandTypes() && a->getResultTypes() == b->getResultTypes();
  });
}

/// Whether the first thing that the product stores lies in rows, so that its columns are vectors.
bool storesRows(ContractionOp op) {
  std::string last = dimName(op.getBatch() + op.getM() + op.getN() - 1);
  bool storesRows = false;
  op.getEpilogue().walk([&](StoreOp store) {
    Expr step = prim::getExprs(store.getIndices())[0].coefficientOf(last);
    storesRows = step && step.isConstant(1);
    return WalkResult::interrupt();
  });
  return op.getN() > 0 && storesRows;
}

/// Why the products are not cut into the same blocks; empty: they are.
StringRef whyNotAlike(ContractionOp a, ContractionOp b) {
  if (getDomain(a) != getDomain(b) || getDimKinds(a) != getDimKinds(b))
    return "they run over other points";
  if (a.getRhs().getOps<PanelsOp>().empty() || !readWeightsAlike(a.getRhs(), b.getRhs()))
    return "they read no weights of one shape";
  if (getWinogradTile(a) || getWinogradTile(b))
    return "one of them is computed by Winograd's algorithm";
  if (!OperationEquivalence::isRegionEquivalentTo(&a.getLhs(), &b.getLhs(), OperationEquivalence::IgnoreLocations))
    return "they are of different rows";
  if (a.getEpilogue().getArgument(0).getType() != b.getEpilogue().getArgument(0).getType() || !storesRows(a) ||
      !storesRows(b))
    return "their results lie differently";
  return {};
}

/// Whether `reader` reads `buffer` in its epilogue alone, at the element that it computes, where `writer` has put it.
bool readsInPlace(ContractionOp reader, ContractionOp writer, Value buffer) {
  Attribute stored;
  bool isInPlace = true;
  writer->walk([&](StoreOp store) {
    if (store.getBuffer() != buffer)
      return;
    isInPlace &= !stored && store->getParentOp() == writer && store.getIndexOperands().empty() && !store.getCombine();
    stored = store.getIndices();
  });
  if (!stored) // another product of its group writes it
    return true;
  reader->walk([&](LoadOp load) {
    if (load.getBuffer() == buffer)
      isInPlace &= load.getIndices() == stored && load.getIndexOperands().empty() &&
                   reader.getEpilogue().isAncestor(load->getParentRegion());
  });
  return isInPlace;
}

} // namespace

/// Whether the product is one of rows and a weight, whose result lies in rows.
static bool isOfRows(ContractionOp product) {
  return !product.getRhs().getOps<PanelsOp>().empty() && !getWinogradTile(product) && !product.getBatch() &&
         storesRows(product);
}

/// Why the node cannot run behind blocks of the product; empty: it can.
static StringRef whyNotBehind(ContractionOp product, Operation *node) {
  constexpr int64_t widest = 8 * panelWidth; // a part is few whole panels
  if (!isOfRows(product))
    return "the product is none of rows and a weight in panels";
  auto parts = findColumnParts(product, node);
  if (!parts || parts->width % panelWidth || parts->width > widest)
    return "it does not read the product in parts of whole panels";
  return {};
}

/// May pointwise nodes run behind blocks of the products? Each reads one of them.
static FusionPlan canRunBehind(const Group &producer, const Group &consumer) {
  FusionPlan plan{.kind = FusionKind::Blocks};
  if (llvm::any_of(consumer.written, [&](Value buffer) { return consumer.reads(buffer); }))
    return FusionPlan::no("its nodes read of each other what other blocks make");
  if (producer.nodes.size() + consumer.nodes.size() > mostBeside)
    return FusionPlan::no("the kernel would have too many nodes");
  if (!producer.outer.empty())
    return FusionPlan::no("nodes that share its rows run behind the product");
  for (Operation *node : consumer.nodes) {
    SmallVector<Value> read, written, ignored;
    collectAccesses(node, read, written);
    unsigned products = 0;
    for (Operation *first : producer.nodes) {
      written.clear();
      collectAccesses(first, ignored, written);
      auto *shared = llvm::find_if(written, [&](Value buffer) { return llvm::is_contained(read, buffer); });
      if (shared == written.end())
        continue;
      auto product = dyn_cast<ContractionOp>(first);
      if (StringRef reason = product ? whyNotBehind(product, node) : "it reads what follows a product"; !reason.empty())
        return FusionPlan::no(reason.str());
      plan.buffer = *shared;
      ++products;
    }
    if (products != 1)
      return FusionPlan::no("it reads no product, or several");
  }
  return plan;
}

/// Whether blocks of the product may well have all columns: the weight stays in the second-level cache, and there would
/// be no blocks of columns anyway, or rows for about as many tasks. The first task of a thread waits for the whole
/// weight. Of one that no second-level cache holds each thread reads all, too (measured at two threads: 100 to 1000
/// rows by a weight of 1024 x 256 took 1 to 8 % longer, 49 rows by 2048 x 256 from memory a fifth).
static bool paysInWholeRows(ContractionOp product, const FusionContext &context) {
  constexpr int64_t mostBytes = 512 << 10, oneTask = 1 << 18;               // multiply-adds
  constexpr int64_t mostInCaches = 16 << 20;                                // of all weights, from one run to the next
  constexpr int64_t rowsOfBlock = 96, columnsOfBlock = 128, manyTasks = 16; // about what the CPU's plan has
  constexpr int64_t fewestOfBlock = 24;                                     // rows
  DimCounts counts(product);
  SmallVector<Expr> domain = getDomain(product);
  auto extentOf = [&](int64_t first, int64_t end) {
    return ptc::product(product.getContext(), ArrayRef(domain).slice(size_t(first), size_t(end - first)));
  };
  Expr rows = extentOf(0, counts.first(2));
  auto atHint = rows.evaluate(context.hints);
  auto columns = extentOf(counts.first(2), counts.first(3)).asConstant(),
       terms = extentOf(counts.first(3), int64_t(domain.size())).asConstant();
  if (!columns || !terms || !atHint || *columns < 1) // without columns there are no tasks
    return false;
  int64_t bytes = 0;
  for (PanelsOp panels : product.getRhs().getOps<PanelsOp>()) {
    auto type = cast<BufferType>(panels.getBuffer().getType());
    bytes += type.getElementCount().asConstant().value_or(mostBytes + 1) * type.getElementBytes();
  }
  bool isFree = !rows.isConstant(); // fewer rows are cut into blocks of columns where it is known that they are few
  int64_t blocks = llvm::divideCeil(*atHint, rowsOfBlock) * llvm::divideCeil(*columns, columnsOfBlock);
  bool isAsMany = *atHint >= fewestOfBlock * blocks;
  if (bytes > mostBytes)
    return false;
  if (std::max<int64_t>(*atHint, 8) * *columns * *terms < oneTask)
    return true;
  if (*columns < columnsOfBlock)
    return isFree || *atHint >= rowsOfBlock;
  if (*columns > 2 * columnsOfBlock)
    return false;
  int64_t tasks = llvm::divideCeil(*atHint, rowsOfBlock / 2);
  return tasks >= manyTasks || (isFree && (isAsMany || context.weightBytes <= mostInCaches));
}

/// May nodes that share the product's rows run behind blocks of whole rows?
static FusionPlan canRunBehindRows(const Group &producer, const Group &consumer, const FusionContext &context) {
  auto product = cast<ContractionOp>(producer.nodes[0]);
  if (producer.nodes.size() > 1)
    return FusionPlan::no("other nodes run in the product's blocks");
  if (!isOfRows(product))
    return FusionPlan::no("the product is none of rows and a weight in panels");
  if (producer.nodes.size() + consumer.nodes.size() > mostBeside)
    return FusionPlan::no("the kernel would have too many nodes");
  FusionPlan plan{.kind = FusionKind::Blocks, .outer = consumer.outer};
  for (Operation *node : consumer.nodes)
    if (!readsOwnRows(product, node, unsigned(consumer.outer.size())))
      return FusionPlan::no("its points are not rows of the product, or read others");
  for (Value buffer : producer.written)
    if (consumer.reads(buffer))
      plan.buffer = buffer;
  if (!plan.buffer)
    return FusionPlan::no("they share no value");
  if (!paysInWholeRows(product, context))
    return FusionPlan::no("the product is faster in blocks of columns");
  return plan;
}

/// Columns of a block of all rows that its reader may run behind; 0: there is no such block that pays. `first` and
/// `read`: which columns it reads.
static int64_t chooseColumns(ContractionOp product, int64_t first, int64_t read) {
  constexpr int64_t mostBytes = 256 << 10;             // of the block's results: some of the cache is for the rows
  constexpr int64_t fewestBlocks = 8, manyBlocks = 16; // many are even enough
  // Narrow tiles and short sums wait for their loads (measured: two panels, or 16 to 48 terms, took 5 to 14 % longer).
  constexpr int64_t widest = 4 * panelWidth, narrowest = 3 * panelWidth, fewestTerms = 64;
  DimCounts counts(product);
  SmallVector<Expr> domain = getDomain(product);
  auto extentOf = [&](int64_t begin, int64_t end) {
    return ptc::product(product.getContext(), ArrayRef(domain).slice(size_t(begin), size_t(end - begin))).asConstant();
  };
  // Rows that a run tells may be more than the cache or a thread's scratch memory have room for.
  auto rows = extentOf(0, counts.first(2)), columns = extentOf(counts.first(2), counts.first(3)),
       terms = extentOf(counts.first(3), int64_t(domain.size()));
  auto type = dyn_cast<FloatType>(product.getEpilogue().getArgument(0).getType());
  if (!rows || !columns || !terms || !type || *terms < fewestTerms)
    return 0;
  // Every thread reads all rows then. They would be cut into columns anyway, or are little beside the results
  // (measured: 400 rows by a weight of 384 x 384 took a tenth longer on two threads).
  if (*rows > *columns && 4 * *terms > *columns)
    return 0;
  // Some threads would wait for the last of few blocks (measured: 5 or 15 of them on two threads took 7 to 15 %
  // longer).
  auto areEven = [](int64_t blocks) { return blocks >= manyBlocks || (blocks >= fewestBlocks && blocks % 4 == 0); };
  for (int64_t width = widest; width >= narrowest; width -= panelWidth)
    if (first % width == 0 && read % width == 0 && *columns % width == 0 && areEven(read / width) &&
        *rows * width * (type.getWidth() / 8) <= mostBytes)
      return width;
  return 0;
}

/// Elements of the product's result.
static Expr countPoints(ContractionOp product) {
  SmallVector<Expr> domain = getDomain(product);
  return ptc::product(product.getContext(), ArrayRef(domain).take_front(size_t(DimCounts(product).first(3))));
}

/// May a lone sum that reads columns of the product in any rows run behind blocks of whole columns?
static FusionPlan canRunBehindColumns(const Group &producer, const Group &consumer) {
  constexpr int64_t fewestResults = 16; // one of so many products
  auto product = cast<ContractionOp>(producer.nodes[0]);
  Operation *node = consumer.nodes[0];
  if (producer.nodes.size() > 1)
    return FusionPlan::no("other nodes run in the product's blocks");
  if (!isOfRows(product))
    return FusionPlan::no("the product is none of rows and a weight in panels");
  FusionPlan plan{.kind = FusionKind::Blocks};
  for (Value buffer : producer.written)
    if (consumer.reads(buffer))
      plan.buffer = buffer;
  if (!plan.buffer)
    return FusionPlan::no("they share no value");
  auto parts = findOwnColumns(product, node);
  SmallVector<Expr> domain = getDomain(node);
  auto read = parts ? domain[parts->dim].asConstant() : std::nullopt;
  if (!read || parts->width != 1 || parts->dim >= getKeptCount(node))
    return FusionPlan::no("its points do not read one column each");
  // A mean of all rows is better taken in long runs of columns (measured: 2 to 5 % of product and mean).
  ArrayRef<Expr> kept = ArrayRef(domain).take_front(getKeptCount(node));
  auto results = ptc::product(node->getContext(), kept).asConstant(), products = countPoints(product).asConstant();
  if (!results || !products || *results * fewestResults < *products)
    return FusionPlan::no("it sums up most of what it reads");
  int64_t width = chooseColumns(product, parts->first, *read);
  if (!width)
    return FusionPlan::no("the product is faster in blocks of rows");
  plan.outer = {Expr::constant(product.getContext(), *read / width)};
  return plan;
}

/// The group as one over rows, if it is a node that copies parts of rows: its first dim counts them.
static std::optional<Group> asCopyOfRows(const Group &group) {
  auto isOfCopy = [](Operation &op) { return isa<LoadOp, StoreOp>(op); };
  auto node = group.nodes.size() == 1 && group.outer.empty() ? dyn_cast<PointwiseOp>(group.nodes[0]) : PointwiseOp();
  if (!node || getDomain(node).size() < 2 || !llvm::all_of(node.getBody().front(), isOfCopy))
    return std::nullopt;
  Group rows = group;
  rows.outer = {getDomain(node).front()};
  return rows;
}

/// A lone sum: its blocks may be of columns.
static bool isLoneSum(const Group &group) {
  return !group.isOpaque && group.outer.empty() && group.nodes.size() == 1 && isa<ReductionOp>(group.nodes[0]);
}

FusionPlan loop::canShareBlocks(const Group &producer, const Group &consumer, const FusionContext &context) {
  auto areAll = [](const Group &group, auto isOne) { return !group.isOpaque && llvm::all_of(group.nodes, isOne); };
  bool arePointwise = areAll(consumer, llvm::IsaPred<PointwiseOp>);
  bool shareRows =
      !arePointwise && !consumer.outer.empty() && areAll(consumer, llvm::IsaPred<PointwiseOp, ReductionOp, SortOp>);
  bool shareColumns = isLoneSum(consumer);
  bool areProducts = areAll(producer, llvm::IsaPred<ContractionOp>) && areAll(consumer, llvm::IsaPred<ContractionOp>);
  bool areAhead =
      areAll(producer, llvm::IsaPred<PointwiseOp, ContractionOp>) && isa<AttentionOp>(consumer.nodes.back());
  if (!areProducts && !areAhead &&
      !((arePointwise || shareRows || shareColumns) && isa<ContractionOp>(producer.nodes[0])))
    return {};
  if (context.hasDevice)
    return FusionPlan::no("a device's blocks hold one product's sums");
  if (areAhead)
    return canRunAhead(producer, consumer, context);
  for (Value buffer : consumer.written)
    if (producer.reads(buffer) || producer.writes(buffer))
      return FusionPlan::no("the consumer overwrites what the producer reads or writes");
  if (arePointwise) {
    FusionPlan parts = canRunBehind(producer, consumer);
    std::optional<Group> rows = parts ? std::nullopt : asCopyOfRows(consumer);
    FusionPlan whole = rows ? canRunBehindRows(producer, *rows, context) : FusionPlan();
    return whole ? whole : parts;
  }
  if (shareRows)
    return canRunBehindRows(producer, consumer, context);
  if (shareColumns)
    return canRunBehindColumns(producer, consumer);
  FusionPlan plan{.kind = FusionKind::Blocks};
  for (Operation *first : producer.nodes)
    for (Operation *second : consumer.nodes) {
      auto writer = cast<ContractionOp>(first), reader = cast<ContractionOp>(second);
      if (StringRef reason = whyNotAlike(writer, reader); !reason.empty())
        return FusionPlan::no(reason.str());
      for (Value buffer : producer.written)
        if (!readsInPlace(reader, writer, buffer))
          return FusionPlan::no("the consumer reads elements of other blocks");
        else if (consumer.reads(buffer))
          plan.buffer = buffer;
    }
  return plan.buffer ? plan : FusionPlan::no("they share no value");
}

/// Puts the dims by which the node reads a product part by part in front of the others.
static void bringPartsForward(Operation *node, ArrayRef<Operation *> products, const SymbolRanges &symbols) {
  for (Operation *first : products) {
    auto product = dyn_cast<ContractionOp>(first);
    auto parts = product && isa<PointwiseOp>(node) ? findColumnParts(product, node) : std::nullopt;
    if (!parts)
      continue;
    SmallVector<unsigned> dims = parts->rows;
    dims.push_back(parts->dim);
    bringForward(node, dims, symbols);
  }
}

/// Puts a dim in front of the others that counts blocks of the columns that the node reads of the product.
static void splitColumns(ContractionOp product, Operation *node, Expr blocks, const SymbolRanges &symbols) {
  MLIRContext *context = node->getContext();
  unsigned columns = findOwnColumns(product, node)->dim;
  SmallVector<Expr> domain = getDomain(node), oldDims;
  SmallVector<unsigned> kinds = getDimKinds(node);
  for (unsigned dim = 0; dim < domain.size(); ++dim)
    oldDims.push_back(Expr::dim(context, dim + 1));
  Expr width = exactQuotient(domain[columns], blocks, symbols);
  oldDims[columns] = oldDims[columns] + Expr::dim(context, 0) * width;
  domain[columns] = width;
  domain.insert(domain.begin(), blocks);
  kinds.insert(kinds.begin(), 0);
  rewriteDims(node, domain, oldDims, symbols);
  setDimKinds(node, kinds);
}

void loop::shareBlocks(Group &producer, const Group &consumer, const FusionPlan &plan, const FusionContext &context) {
  bool hasHeads = isa<AttentionOp>(consumer.nodes.back());
  if (hasHeads)
    for (Operation *node : llvm::concat<Operation *const>(producer.nodes, consumer.nodes))
      splitPrefix(node, plan.outer, context.symbols);
  else if (isLoneSum(consumer) && !plan.outer.empty())
    splitColumns(cast<ContractionOp>(producer.nodes[0]), consumer.nodes[0], plan.outer[0], context.symbols);
  else if (plan.outer.empty())
    for (Operation *node : consumer.nodes)
      bringPartsForward(node, producer.nodes, context.symbols);
  producer.nodes.append(consumer.nodes);
  producer.outer = plan.outer;
}
