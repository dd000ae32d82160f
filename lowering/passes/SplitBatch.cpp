//===- SplitBatch.cpp - images of a batch, one after the other ------------===//
//
// Problem. A program runs op after op, each on the whole batch. What an op writes is then read again when the images
// behind it have pushed it out of the caches: the early layers of a network make tens of megabytes at a batch of eight,
// which come back from memory, where those of one image would still lie in the cache.
//
// Idea. Ops that treat each image alone become a loop over the images, whose body runs all of them on one:
//
//   y = f(x)   ->   y = stack over i of f(x[i])
//
// The body is the program of a batch of one; its buffers are those of one image, which the next one uses again. Its
// kernels are a single image's, threads share each of them as they do there. What leaves the loop with channels is
// stacked channels last, as convolutions write and read it, but for what the program returns, which is as it is.
//
// Choice. The loop reads the weights again for each image, so it holds the ops where that costs less than it saves: of
// all intervals of the function's ops the one for which the estimate is best, of bytes times what a byte costs in the
// nearest cache that holds all that an op touches; then of the ops that are left. Late layers, of few pixels and many
// weights, stay in the batch.
//
// The number of images may be free: the loop then runs as often as a run says, and its choice is made for the hint, as
// other choices are. A batch whose hint is one stays whole.
//
// Which ops treat images alone follows from what they do to dim 0; an op that is not known to ends the interval.
// Remarks say what runs image by image, and of what does not whether it cannot, or what it would gain.
//
//===----------------------------------------------------------------------===//
#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

namespace ptc {
#define GEN_PASS_DEF_SPLITBATCH
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace ptc::prim;
using namespace mlir;

namespace {

// What moving a byte costs, in those of the second-level cache: 118 GB/s there, 64 in the third level, which much of
// the arithmetic hides, 5 to 20 in memory.
constexpr double nearCost = 1, farCost = 1.25, memoryCost = 8;
// A round's launch of an op, in the same unit: about a microsecond.
constexpr double launchCost = 100e3;
// Ops between a convolution and what leaves the loop: a requantised activation has about a dozen.
constexpr unsigned mostPointwise = 32;
// Ops behind a loop among which one is looked for that makes what leaves it less.
constexpr size_t mostBehind = 64;
// Below, a loop is not worth its place in a report: some ten microseconds.
constexpr double leastGain = 2e6;

class BatchSplitter {
public:
  BatchSplitter(func::FuncOp function, int64_t nearBytes, int64_t farBytes, bool remarks)
      : function(function), b(function.getContext()), nearBytes(nearBytes), farBytes(farBytes), remarks(remarks) {}

  void run();

private:
  void splitOne();
  struct Interval {
    size_t begin = 0, end = 0;
    double gain = 0;
  };

  /// What runs in the loop, in order, and what of the interval follows it, from last to first.
  struct Parts {
    llvm::SetVector<Operation *> body, behind;
  };

  bool hasBatch(Value value) const {
    return isa<RankedTensorType>(value.getType()) && getElementType(value).isIntOrFloat() && getRank(value) > 0 &&
           getDims(value)[0] == batch;
  }
  /// Whether all that the value is made of is known before the run.
  bool isFixed(Value value) const { return !varying.contains(value); }
  bool isPerImage(Value value) const { return hasBatch(value) && (!isFixed(value) || isSpread(value)); }
  static bool isSpread(Value value);
  StringRef whyWhole(Operation *op) const;
  double getGain(Operation *op) const;
  double getCost(double bytes, double held) const {
    return bytes * (held <= double(nearBytes) ? nearCost : held <= double(farBytes) ? farCost : memoryCost);
  }
  double getBytesOfImage(Value value) const;
  Interval choose() const;
  Parts split(const Interval &interval) const;
  double getBoundaryCost(const Interval &interval) const;
  void extend(Interval &interval) const;
  void outline(const Interval &interval);
  void explainRest(const Interval &best) const;
  SmallVector<Expr> findBatches();
  void explainFree();
  Value getImageOf(Value value, IRMapping &images);
  static bool isOfBatch(Operation *op, unsigned operand);
  Type getTypeOfImage(Value value) const;

  func::FuncOp function;
  OpBuilder b;
  int64_t nearBytes, farBytes;
  Expr batch;         // how many images there are
  double rounds = 0;  // as many as the choice is for
  SymbolValues hints; // of what is not known
  bool remarks;
  DenseSet<Value> varying;
  SmallVector<Operation *> ops; // of the function
};

} // namespace

//===----------------------------------------------------------------------===//
// Which ops
//===----------------------------------------------------------------------===//

/// Whether a value that is fixed is the same for all images.
bool BatchSplitter::isSpread(Value value) {
  if (auto constant = getConstant(value))
    return constant.isSplat();
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return false;
  for (auto [dim, axis] : llvm::zip(getDims(broadcast.getX()), broadcast.getAxes()))
    if (axis == 0 && !dim.isConstant(1))
      return false;
  return true;
}

/// Why image i of the result does not depend on image i of the operands alone, in the way that the op with one image
/// says; empty: it does.
StringRef BatchSplitter::whyWhole(Operation *op) const {
  constexpr StringLiteral mixed = "it does not treat each image alone", none = "";
  auto only = [&](bool treatsImagesAlone) -> StringRef { return treatsImagesAlone ? none : mixed; };
  if (op->getNumOperands() == 0 || op->getNumResults() != 1 || op->getNumRegions() != 0 || !hasBatch(op->getResult(0)))
    return "its result does not have an element for each image";
  auto arePerImage = [&](ValueRange values) {
    return llvm::all_of(values, [&](Value value) { return isPerImage(value); });
  };
  bool readsSeveral = isa<PointwiseOpInterface, AttentionOp, ConcatOp>(op);
  if (readsSeveral ? !arePerImage(op->getOperands()) : !isPerImage(op->getOperand(0)))
    return "an operand does not have an element for each image";
  if (isa<PointwiseOpInterface, WindowReduceOp, ReshapeOp>(op))
    return none;
  if (isa<ConvolutionOp>(op))
    return isFixed(op->getOperand(1)) ? none : "its weights are computed in each run";
  if (auto product = dyn_cast<MatmulOp>(op))
    return only(getRank(product.getLhs()) > 2 &&
                (isFixed(product.getRhs()) ? getRank(product.getRhs()) == 2
                                           : isPerImage(product.getRhs()) && getRank(product.getRhs()) > 2));
  if (auto attention = dyn_cast<AttentionOp>(op))
    return attention.getMasks().empty()
               ? only(getRank(attention.getQ()) > 2 && getRank(attention.getK()) == getRank(attention.getQ()))
               : "attention with a mask stays whole";
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return only(!llvm::is_contained(reduce.getAxes(), 0));
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return only(transpose.getPermutation().front() == 0);
  if (auto slice = dyn_cast<SliceOp>(op))
    return only(getExprs(slice.getStarts()).front().isConstant(0) && slice.getSteps().front() == 1);
  if (auto pad = dyn_cast<PadOp>(op))
    return only(getExprs(pad.getLow()).front().isConstant(0) && isFixed(pad.getValue()));
  if (auto concat = dyn_cast<ConcatOp>(op))
    return only(concat.getAxis() != 0);
  if (auto gather = dyn_cast<GatherOp>(op))
    return only(gather.getAxis() != 0 && isFixed(gather.getIndices()));
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return only(!broadcast.getAxes().empty() && broadcast.getAxes().front() == 0);
  return "it is not known to treat each image alone";
}

//===----------------------------------------------------------------------===//
// Where it pays
//===----------------------------------------------------------------------===//

double BatchSplitter::getBytesOfImage(Value value) const {
  double bytes = std::max<double>(getElementType(value).getIntOrFloatBitWidth() / 8.0, 1);
  SmallVector<Expr> dims = getDims(value);
  for (Expr dim : ArrayRef(dims).drop_front())
    bytes *= double(dim.evaluate(hints).value_or(1));
  return bytes;
}

/// What the op costs in the batch less what it costs in rounds. What is computed where it is read moves no bytes.
double BatchSplitter::getGain(Operation *op) const {
  if (!isa<ConvolutionOp, MatmulOp, AttentionOp, WindowReduceOp, ReduceOp>(op))
    return 0;
  double moved = getBytesOfImage(op->getResult(0)), weights = 0;
  for (Value operand : op->getOperands())
    if (!isFixed(operand))
      moved += getBytesOfImage(operand);
    else
      weights += getBytesOfImage(operand) * double(getDims(operand)[0].evaluate(hints).value_or(1));
  double whole = getCost(rounds * moved, rounds * moved), single = getCost(rounds * moved, moved);
  return whole - single - getCost((rounds - 1) * weights, weights) - (rounds - 1) * launchCost;
}

/// Views, borders and what widens elements follow a loop better than they end it, where they would decide how the
/// result lies in memory.
static bool isBetterBehind(Operation *op) {
  return isa<BroadcastOp, ReshapeOp, TransposeOp, SliceOp, PadOp>(op) || widens(op);
}

/// The best interval of ops that split; what is fixed may lie between them. Pointwise work that follows belongs to it.
BatchSplitter::Interval BatchSplitter::choose() const {
  Interval best;
  std::optional<Interval> open;
  for (auto [index, op] : llvm::enumerate(ops)) {
    if (llvm::all_of(op->getResults(), [&](Value value) { return isFixed(value); }) && isMemoryEffectFree(op))
      continue;
    if (!whyWhole(op).empty()) {
      open.reset();
      continue;
    }
    if (!open || open->gain < 0)
      open = {index, index, 0};
    open->gain += getGain(op);
    open->end = index + 1;
    if (open->gain >= best.gain && !isBetterBehind(op))
      best = *open;
  }
  return best;
}

BatchSplitter::Parts BatchSplitter::split(const Interval &interval) const {
  Parts parts;
  for (Operation *op : ArrayRef(ops).slice(interval.begin, interval.end - interval.begin))
    if (llvm::any_of(op->getResults(), [&](Value result) { return !isFixed(result); }))
      parts.body.insert(op);
  auto isInside = [&](Operation *op) { return parts.body.contains(op) && !parts.behind.contains(op); };
  // What makes less of a value than it has leaves the loop in its place, unless the value leaves it anyway.
  auto replacesOperand = [&](Operation *op) {
    Value operand = op->getOperand(0);
    return parts.body.contains(operand.getDefiningOp()) &&
           getBytesOfImage(op->getResult(0)) < getBytesOfImage(operand) &&
           llvm::all_of(operand.getUsers(), [&](Operation *user) { return user == op || isInside(user); });
  };
  for (Operation *op : llvm::reverse(parts.body.getArrayRef()))
    if (isBetterBehind(op) && llvm::none_of(op->getUsers(), isInside) && !replacesOperand(op))
      parts.behind.insert(op);
  parts.body.remove_if([&](Operation *op) { return parts.behind.contains(op); });
  return parts;
}

/// What enters and leaves the loop is written and read for the whole batch, whatever could have been fused there.
double BatchSplitter::getBoundaryCost(const Interval &interval) const {
  llvm::SetVector<Operation *> body = split(interval).body;
  llvm::SetVector<Value> crossing;
  for (Operation *op : body) {
    for (Value operand : op->getOperands())
      if (!isFixed(operand) && operand.getDefiningOp() && !body.contains(operand.getDefiningOp()))
        crossing.insert(operand);
    for (Value result : op->getResults())
      if (!llvm::all_of(result.getUsers(), [&](Operation *user) { return body.contains(user); }))
        crossing.insert(result);
  }
  double cost = 0;
  for (Value value : crossing)
    if (hasBatch(value))
      cost += 2 * getCost(rounds * getBytesOfImage(value), rounds * getBytesOfImage(value));
  return cost;
}

/// Takes in what follows as far as the loop's results become smaller by more than that costs, as a pool's behind a
/// concat of convolutions.
void BatchSplitter::extend(Interval &interval) const {
  if (interval.end == 0)
    return;
  Interval next = interval;
  double net = interval.gain - getBoundaryCost(interval);
  for (Operation *op : ArrayRef(ops).drop_front(interval.end)) {
    if (++next.end - interval.end > mostBehind)
      return;
    if (llvm::all_of(op->getResults(), [&](Value value) { return isFixed(value); }) && isMemoryEffectFree(op))
      continue;
    if (!whyWhole(op).empty() || (next.gain += getGain(op)) <= net)
      return;
    if (isBetterBehind(op))
      continue;
    double nextNet = next.gain - getBoundaryCost(next);
    if (nextNet >= net) { // pointwise work belongs to what it follows
      interval = next;
      net = nextNet;
    }
  }
}

/// Why ops stay whole that compute much or end an interval; `best` is the interval that does not pay.
void BatchSplitter::explainRest(const Interval &best) const {
  constexpr double megabyte = 1 << 20;
  for (auto [index, op] : llvm::enumerate(ops)) {
    bool readsImages = llvm::any_of(op->getOperands(), [&](Value value) { return !isFixed(value) && hasBatch(value); });
    if (!readsImages || isa<LoopOp>(op))
      continue;
    if (StringRef reason = whyWhole(op); !reason.empty()) {
      op->emitRemark("runs on all images at once: ") << reason;
      continue;
    }
    double gain = getGain(op);
    bool isOfBest = index >= best.begin && index < best.end && best.gain > 0;
    if (isOfBest && gain != 0)
      op->emitRemark("runs on all images at once: image by image with its neighbours it would save what moving ")
          << llvm::formatv("{0:F1} MB in the core's cache takes, and needs {1:F1} to pay", best.gain / megabyte,
                           (leastGain + getBoundaryCost(best)) / megabyte)
                 .str();
    else if (gain < 0)
      op->emitRemark("runs on all images at once: image by image it would lose what moving ")
          << llvm::formatv("{0:F1} MB in the core's cache takes", -gain / megabyte).str();
    else if (gain > 0)
      op->emitRemark("runs on all images at once: it and its neighbours would lose by running image by image");
  }
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

Type BatchSplitter::getTypeOfImage(Value value) const {
  SmallVector<Expr> dims = getDims(value);
  dims[0] = Expr::constant(b.getContext(), 1);
  return getTensorType(dims, getElementType(value));
}

/// What is the same for all images, with one of them.
Value BatchSplitter::getImageOf(Value value, IRMapping &images) {
  if (Value found = images.lookupOrNull(value))
    return found;
  Operation *clone = b.clone(*value.getDefiningOp());
  if (auto constant = dyn_cast<ConstantOp>(clone)) {
    auto elements = cast<DenseElementsAttr>(constant.getValue());
    constant.setValueAttr(elements.resizeSplat(cast<ShapedType>(getTypeOfImage(value))));
  }
  clone->getResult(0).setType(getTypeOfImage(value));
  images.map(value, clone->getResult(0));
  return clone->getResult(0);
}

/// Whether an operand's dim 0 is the batch, of an op that splits; weights, indices and the like are others'.
bool BatchSplitter::isOfBatch(Operation *op, unsigned operand) {
  return operand == 0 || isa<PointwiseOpInterface, AttentionOp, ConcatOp>(op);
}

/// What a size is at most.
static int64_t getMost(Expr size, DictionaryAttr symbols) {
  return size.asConstant().value_or(size.isSymbol() ? symbols.getAs<SymbolAttr>(size.getSymbol()).getMax() : 0);
}

static std::string findFreeSymbol(DictionaryAttr symbols) {
  std::string name = "image";
  for (unsigned number = 0; symbols && symbols.get(name); ++number)
    name = "image" + std::to_string(number);
  return name;
}

/// Whether convolutions write the value, perhaps with pointwise work and concats between.
static bool isOfConvolution(Value value) {
  for (unsigned depth = 0; depth < mostPointwise; ++depth) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    if (isa<ConvolutionOp, WindowReduceOp>(op))
      return true;
    if (!isa<PointwiseOpInterface, ConcatOp>(op))
      return false;
    value = *llvm::max_element(op->getOperands(), [](Value x, Value y) {
      auto isMade = [](Value v) { return v.getDefiningOp() && !isa<BroadcastOp, ConstantOp>(v.getDefiningOp()); };
      return isMade(x) < isMade(y);
    });
  }
  return false;
}

/// 0, 2, 3, ..., 1: channels last.
static SmallVector<int64_t> getChannelsLast(int64_t rank) {
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(1, rank));
  order.front() = 0;
  for (int64_t i = 1; i + 1 < rank; ++i)
    order[i] = i + 1;
  order.resize(rank);
  order.back() = 1;
  return order;
}

static SmallVector<int64_t> invert(ArrayRef<int64_t> order) {
  SmallVector<int64_t> inverse(order.size());
  for (auto [index, place] : llvm::enumerate(order))
    inverse[place] = int64_t(index);
  return inverse;
}

void BatchSplitter::outline(const Interval &interval) {
  auto [body, behind] = split(interval);
  auto isInside = [&body = body](Operation *user) { return body.contains(user); };
  llvm::SetVector<Value> scanned;
  SmallVector<Value> results;
  for (Operation *op : body) {
    for (Value operand : op->getOperands())
      if (!isFixed(operand) && !body.contains(operand.getDefiningOp()))
        scanned.insert(operand);
    if (!llvm::all_of(op->getResult(0).getUsers(), isInside))
      results.push_back(op->getResult(0));
  }

  // The symbol that counts images.
  MLIRContext *context = b.getContext();
  auto symbols = function->getAttrOfType<DictionaryAttr>(symbolsAttr);
  std::string counter = findFreeSymbol(symbols);
  NamedAttrList all(symbols);
  all.set(counter, SymbolAttr::get(context, 0, std::max<int64_t>(getMost(batch, symbols) - 1, 0), 1, 0));
  function->setAttr(symbolsAttr, all.getDictionary(context));

  Location loc = body.back()->getLoc();
  OperationState state(loc, LoopOp::getOperationName());
  auto &properties = state.getOrAddProperties<LoopOp::Properties>();
  properties.counter = b.getStringAttr(counter);
  properties.trips = ExprAttr(batch);
  properties.operandSegmentSizes = {0, 0, 0, int(scanned.size())};
  state.addOperands(scanned.getArrayRef());
  Block &block = state.addRegion()->emplaceBlock();
  IRMapping inside, images; // what the loop computes; what is the same in all rounds
  b.setInsertionPointToEnd(&block);
  for (Value value : scanned) {
    Type element = getTensorType(ArrayRef(getDims(value)).drop_front(), getElementType(value));
    Location reader = (*llvm::find_if(value.getUsers(), isInside))->getLoc();
    Value image = block.addArgument(element, reader);
    inside.map(value, ReshapeOp::create(b, reader, getTypeOfImage(value), image).getResult());
  }
  for (Operation *op : body) {
    SmallVector<std::pair<unsigned, Value>> fixed;
    for (OpOperand &operand : op->getOpOperands())
      if (isFixed(operand.get()) && hasBatch(operand.get()) && isOfBatch(op, operand.getOperandNumber()))
        fixed.emplace_back(operand.getOperandNumber(), getImageOf(operand.get(), images));
    Operation *clone = b.clone(*op, inside);
    for (auto [number, image] : fixed)
      clone->setOperand(number, image);
    clone->getResult(0).setType(getTypeOfImage(op->getResult(0)));
  }
  SmallVector<Value> rows;
  SmallVector<SmallVector<int64_t>> orders;
  for (Value result : results) {
    Value image = inside.lookup(result);
    bool isReturned = llvm::all_of(
        result.getUsers(), [&](Operation *user) { return isInside(user) || user->hasTrait<OpTrait::IsTerminator>(); });
    bool isLast = getRank(result) > 2 && isOfConvolution(result) && !isReturned;
    orders.push_back(isLast ? getChannelsLast(getRank(result)) : SmallVector<int64_t>());
    if (isLast)
      image = TransposeOp::create(b, result.getLoc(), image, orders.back());
    SmallVector<Expr> dims = getDims(image);
    rows.push_back(ReshapeOp::create(b, result.getLoc(),
                                     getTensorType(ArrayRef(dims).drop_front(), getElementType(image)), image));
    dims[0] = batch;
    state.addTypes(getTensorType(dims, getElementType(image)));
  }
  YieldOp::create(b, loc, rows);
  b.setInsertionPointAfter(body.back());
  Operation *loop = b.create(state), *last = loop;
  for (auto [result, stack, order] : llvm::zip_equal(results, loop->getResults(), orders)) {
    Value whole = stack;
    if (!order.empty()) {
      last = TransposeOp::create(b, result.getLoc(), whole, invert(order));
      whole = last->getResult(0);
    }
    result.replaceUsesWithIf(whole, [&](OpOperand &use) { return !isInside(use.getOwner()); });
  }
  if (remarks)
    loop->emitRemark("runs image by image, as do ")
        << body.size() - 1 << " operations before it: it saves what moving "
        << llvm::formatv("{0:F1} MB in the core's cache takes", interval.gain / (1 << 20)).str();
  for (Operation *op : behind) // from last to first
    op->moveAfter(last);
  for (Operation *op : llvm::reverse(body))
    op->erase();
}

/// The numbers of images of arguments that have several: first those that are known.
SmallVector<Expr> BatchSplitter::findBatches() {
  SmallVector<Expr> known, free;
  for (BlockArgument argument : function.getArguments()) {
    if (!isa<RankedTensorType>(argument.getType()) || getRank(argument) < 3)
      continue;
    Expr first = getDims(argument)[0];
    SmallVector<Expr> &numbers = first.isConstant() ? known : free;
    bool counts = first.isConstant() || first.isSymbol();
    if (counts && first.evaluate(hints).value_or(1) > 1 && !llvm::is_contained(numbers, first))
      numbers.push_back(first);
  }
  known.append(free);
  return known;
}

/// A batch of one is nothing to split; of one that may be larger the first op tells it.
void BatchSplitter::explainFree() {
  if (!remarks)
    return;
  for (Operation &op : function.getBody().front())
    for (Value value : op.getOperands())
      if (isa<BlockArgument>(value) && isa<RankedTensorType>(value.getType()) && getRank(value) >= 3 &&
          !getDims(value)[0].asConstant()) {
        op.emitRemark("runs on all images at once, like what follows: how many there are, ")
            << getDims(value)[0].str() << ", is not known, and none is expected above 1 (--dim)";
        return;
      }
}

void BatchSplitter::run() {
  if (!llvm::hasSingleElement(function.getBody()))
    return;
  if (auto symbols = function->getAttrOfType<DictionaryAttr>(symbolsAttr))
    hints = getSymbolHints(symbols);
  SmallVector<Expr> batches = findBatches();
  if (batches.empty())
    return explainFree();
  varying.insert_range(function.getArguments());
  for (Expr each : batches) {
    batch = each;
    rounds = double(*batch.evaluate(hints));
    splitOne();
  }
}

/// Loops over the images of one batch.
void BatchSplitter::splitOne() {
  while (true) { // each loop takes ops away that a later one could hold
    ops.clear();
    for (Operation &op : function.getBody().front().without_terminator()) {
      ops.push_back(&op);
      bool reads = llvm::any_of(op.getOperands(), [&](Value value) { return varying.contains(value); });
      if (reads || op.getNumRegions() != 0 || !isMemoryEffectFree(&op))
        varying.insert_range(op.getResults());
    }
    Interval best = choose();
    extend(best);
    if (best.gain >= leastGain + getBoundaryCost(best)) {
      outline(best);
      continue;
    }
    if (remarks)
      explainRest(best);
    return;
  }
}

namespace {
struct SplitBatch : ptc::impl::SplitBatchBase<SplitBatch> {
  using SplitBatchBase::SplitBatchBase;
  void runOnOperation() override { BatchSplitter(getOperation(), nearBytes, farBytes, remarks).run(); }
};
} // namespace
