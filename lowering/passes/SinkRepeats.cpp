//===- SinkRepeats.cpp - sums are computed before their rows repeat -----------===//
//
// A mask is repeated for all heads, and then asked whether it hides a whole row. Each head has the same answer:
//
//   reduce(repeat(x))    ->    repeat(reduce(x))
//
// repeat: a broadcast along the first dims, and a reshape of these.
//
// So is what is computed point by point of repeats alike and of what depends on the last dims alone, before and behind
// such a sum, until something reads it that is none of these: that one reads the repeat. Without a sum repeats stay as
// they are: points cost little, and who reads a repeated value walks fewer dims.
//
// A repeat of `once` with dims Q, S has dims P, S: once is broadcast to B, S and reshaped. S are the dims that sums and
// broadcasts may take away and add; two repeats are alike if their Q, B and P are the same.
//
// Cost: linear in the ops.
//
//===----------------------------------------------------------------------===//
#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"
#include "llvm/ADT/DenseMap.h"

namespace ptc {
#define GEN_PASS_DEF_SINKREPEATS
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace ptc::prim;
using namespace mlir;

namespace {
struct Repeat {
  Value once;                  // its dims are Q, S
  SmallVector<Expr> stretched; // B
  SmallVector<int64_t> axes;   // where the dims of Q are among those of B
  SmallVector<Expr> first;     // P
  bool hasSum = false;

  SmallVector<Expr> getFirst() const { // Q
    SmallVector<Expr> dims = getDims(once);
    dims.resize(axes.size());
    return dims;
  }
  bool isLike(const Repeat &other) const {
    return stretched == other.stretched && axes == other.axes && first == other.first && getFirst() == other.getFirst();
  }
  /// The same with fewer last dims: those before them lie among the first.
  Repeat withLast(unsigned count) const {
    Repeat fewer = *this;
    SmallVector<Expr> dims = getDims(once);
    while (dims.size() - fewer.axes.size() > count) {
      Expr dim = dims[fewer.axes.size()];
      fewer.axes.push_back(int64_t(fewer.stretched.size()));
      fewer.stretched.push_back(dim);
      fewer.first.push_back(dim);
    }
    return fewer;
  }
  unsigned getLastCount() const { return unsigned(getDims(once).size() - axes.size()); }
};

class RepeatSinker {
public:
  void run(Block &block);

private:
  std::optional<Repeat> findRepeat(Operation &op);
  std::optional<Repeat> findPointwise(Operation &op);
  Value onceOf(Value operand, unsigned rank, const Repeat &shape, OpBuilder &b);

  DenseMap<Value, Repeat> repeats;
};
} // namespace

/// How many of the last dims both have in common.
static unsigned countCommonLast(ArrayRef<Expr> a, ArrayRef<Expr> b) {
  unsigned count = 0;
  while (count < std::min(a.size(), b.size()) && a[a.size() - 1 - count] == b[b.size() - 1 - count])
    ++count;
  return count;
}

/// The broadcast as a repeat of its operand; nothing if it stretches or adds last dims, or nothing at all.
static std::optional<Repeat> asRepeat(BroadcastOp op) {
  SmallVector<Expr> from = getDims(op.getX()), to = getDims(op.getResult());
  unsigned last = 0;
  while (last < from.size() && op.getAxes()[from.size() - 1 - last] == int64_t(to.size() - 1 - last) &&
         from[from.size() - 1 - last] == to[to.size() - 1 - last])
    ++last;
  if (last == 0 || last == to.size())
    return std::nullopt;
  auto first = ArrayRef(to).drop_back(last);
  return Repeat{op.getX(), SmallVector<Expr>(first), SmallVector<int64_t>(op.getAxes().drop_back(last)),
                SmallVector<Expr>(first)};
}

static std::optional<Repeat> reshapeRepeat(ReshapeOp op, const Repeat &repeat) {
  SmallVector<Expr> dims = getDims(op.getResult());
  unsigned last = std::min(countCommonLast(getDims(op.getX()), dims), repeat.getLastCount());
  if (last == 0)
    return std::nullopt;
  Repeat reshaped = repeat.withLast(last);
  reshaped.first.assign(dims.begin(), dims.end() - last);
  return reshaped;
}

/// A copy of the op, of the values before they repeat: the result has the repeat's first dims and `last`.
static Value cloneOnce(OpBuilder &b, Operation &op, const Repeat &shape, ArrayRef<Value> operands,
                       ArrayRef<Expr> last) {
  IRMapping mapping;
  mapping.map(op.getOperands(), operands);
  Operation *copy = b.clone(op, mapping);
  SmallVector<Expr> dims = shape.getFirst();
  llvm::append_range(dims, last);
  copy->getResult(0).setType(getTensorType(dims, getElementType(op.getResult(0))));
  return copy->getResult(0);
}

static std::optional<Repeat> reduceRepeat(ReduceOp op, Repeat repeat) {
  int64_t first = int64_t(repeat.first.size()), shift = int64_t(repeat.axes.size()) - first;
  if (op.getAxes().empty() || op.getAxes().front() < first)
    return std::nullopt;
  OpBuilder b(op);
  repeat.once = cloneOnce(b, *op, repeat, {repeat.once}, ArrayRef(getDims(op.getResult())).drop_front(first));
  SmallVector<int64_t> axes(op.getAxes());
  for (int64_t &axis : axes)
    axis += shift;
  cast<ReduceOp>(repeat.once.getDefiningOp()).setAxes(axes);
  repeat.hasSum = true;
  return repeat;
}

/// What adds or stretches last dims of a repeat.
static std::optional<Repeat> stretchRepeat(BroadcastOp op, Repeat repeat) {
  SmallVector<Expr> to = getDims(op.getResult());
  size_t first = repeat.first.size();
  if (to.size() < first || ArrayRef(to).take_front(first) != ArrayRef(repeat.first))
    return std::nullopt;
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, int64_t(repeat.axes.size())));
  for (auto [i, axis] : llvm::enumerate(op.getAxes())) {
    if (i < first ? axis != int64_t(i) : axis < int64_t(first))
      return std::nullopt;
    if (i >= first)
      axes.push_back(axis - int64_t(first) + int64_t(repeat.axes.size()));
  }
  OpBuilder b(op);
  repeat.once = cloneOnce(b, *op, repeat, {repeat.once}, ArrayRef(to).drop_front(first));
  cast<BroadcastOp>(repeat.once.getDefiningOp()).setAxes(axes);
  return repeat;
}

/// The operand before it repeats: of a repeat like `shape`, or of what depends on the last dims alone.
Value RepeatSinker::onceOf(Value operand, unsigned rank, const Repeat &shape, OpBuilder &b) {
  auto found = repeats.find(operand);
  if (found != repeats.end() && found->second.getLastCount() >= shape.getLastCount()) {
    Repeat fewer = found->second.withLast(shape.getLastCount());
    if (fewer.isLike(shape))
      return fewer.once;
  }
  auto broadcast = operand.getDefiningOp<BroadcastOp>();
  int64_t first = int64_t(shape.first.size()), shift = int64_t(shape.axes.size()) - first;
  if (!broadcast || llvm::any_of(broadcast.getAxes(), [&](int64_t axis) { return axis < first; }))
    return {};
  SmallVector<Expr> dims = shape.getFirst();
  llvm::append_range(dims, ArrayRef(getDims(operand)).take_back(rank - first));
  SmallVector<int64_t> axes(broadcast.getAxes());
  for (int64_t &axis : axes)
    axis += shift;
  return BroadcastOp::create(b, operand.getLoc(), getTensorType(dims, getElementType(operand)), broadcast.getX(), axes);
}

std::optional<Repeat> RepeatSinker::findPointwise(Operation &op) {
  unsigned rank = unsigned(getDims(op.getResult(0)).size());
  const Repeat *fewest = nullptr; // last dims
  bool hasSum = false;
  for (Value operand : op.getOperands())
    if (auto found = repeats.find(operand); found != repeats.end()) {
      hasSum |= found->second.hasSum;
      if (!fewest || found->second.getLastCount() < fewest->getLastCount())
        fewest = &found->second;
    }
  if (!fewest)
    return std::nullopt;
  Repeat shape = *fewest;
  OpBuilder b(&op);
  SmallVector<Value> operands;
  for (Value operand : op.getOperands()) {
    operands.push_back(onceOf(operand, rank, shape, b));
    if (!operands.back())
      return std::nullopt;
  }
  shape.hasSum = hasSum;
  shape.once = cloneOnce(b, op, shape, operands, ArrayRef(getDims(op.getResult(0))).drop_front(shape.first.size()));
  return shape;
}

std::optional<Repeat> RepeatSinker::findRepeat(Operation &op) {
  if (op.getNumResults() != 1 || op.getNumRegions() > 0 || !isMemoryEffectFree(&op))
    return std::nullopt;
  if (isa<PointwiseOpInterface>(op))
    return findPointwise(op);
  auto broadcast = dyn_cast<BroadcastOp>(op);
  auto found = op.getNumOperands() == 1 ? repeats.find(op.getOperand(0)) : repeats.end();
  if (found != repeats.end()) {
    if (auto reshape = dyn_cast<ReshapeOp>(op))
      return reshapeRepeat(reshape, found->second);
    if (auto reduce = dyn_cast<ReduceOp>(op))
      return reduceRepeat(reduce, found->second);
    if (broadcast)
      if (auto stretched = stretchRepeat(broadcast, found->second))
        return stretched;
  }
  return broadcast ? asRepeat(broadcast) : std::nullopt;
}

void RepeatSinker::run(Block &block) {
  SmallVector<Value> sums;
  for (Operation &op : block)
    if (auto repeat = findRepeat(op)) {
      repeats[op.getResult(0)] = *repeat;
      if (repeat->hasSum)
        sums.push_back(op.getResult(0));
    }
  for (Value value : sums) {
    auto isOther = [&](OpOperand &use) {
      Operation *user = use.getOwner();
      return user->getNumResults() != 1 || !repeats.contains(user->getResult(0)) ||
             !repeats.find(user->getResult(0))->second.hasSum;
    };
    if (llvm::none_of(value.getUses(), isOther))
      continue;
    const Repeat &repeat = repeats.find(value)->second;
    SmallVector<Expr> dims(repeat.stretched);
    SmallVector<int64_t> axes(repeat.axes);
    for (Expr dim : ArrayRef(getDims(repeat.once)).drop_front(repeat.axes.size())) {
      axes.push_back(int64_t(dims.size()));
      dims.push_back(dim);
    }
    OpBuilder b(block.getParent()->getContext());
    b.setInsertionPointAfter(value.getDefiningOp());
    Value wide = BroadcastOp::create(b, value.getLoc(), getTensorType(dims, getElementType(value)), repeat.once, axes);
    if (wide.getType() != value.getType())
      wide = ReshapeOp::create(b, value.getLoc(), value.getType(), wide);
    value.replaceUsesWithIf(wide, isOther);
  }
}

namespace {
struct SinkRepeats : ptc::impl::SinkRepeatsBase<SinkRepeats> {
  void runOnOperation() override {
    for (Block &block : getOperation().getBody())
      RepeatSinker().run(block);
    eraseDeadOps(getOperation());
  }
};
} // namespace
