//===- SinkBroadcasts.cpp - constants are computed with before they repeat ===//
//
// A table of queries or positions is repeated for each element of a batch, and what is made of it alone is the same for
// each of them, too:
//
//   matmul(broadcast(x), w)     ->    broadcast(matmul(x, w))        x and w known, the broadcast along free dims
//
// So is what is added to that, normalised and multiplied again: in the decoder of a detector all of the first attention
// of the queries to each other. Without the free dims all of it has known dims, and FoldConstants computes it. (A
// batch whose size is known needs none of this.)
//
// A value is alike along its free dims if its op keeps them apart from others and all operands are known or alike; its
// short form has 1 in the place of each free dim. Of a dim 8*batch, heads and batch in one, 8 are left. Products,
// and what is computed of them, are short forms where something else reads them, and their readers read broadcasts.
// Values without a product stay as they are: they cost little, and who reads a repeated value walks fewer dims (a
// sampling grid took six times as long as a broadcast).
//
// Cost: linear in the ops.
//
//===----------------------------------------------------------------------===//
#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"
#include "llvm/ADT/DenseSet.h"

namespace ptc {
#define GEN_PASS_DEF_SINKBROADCASTS
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace ptc::prim;
using namespace mlir;

namespace {
class BroadcastSinker {
public:
  void run(Block &block);

private:
  bool isKnown(Operation *op) const;
  bool isAlike(Operation *op) const;
  Value shorten(Value value);

  llvm::DenseSet<Operation *> known; // computed of constants and weights alone, all dims known
  llvm::DenseSet<Operation *> alike; // along all free dims
  llvm::DenseSet<Operation *> costs; // of these: products, and what is computed of them
  DenseMap<Value, Value> shortForms;
};
} // namespace

static bool isFree(Expr dim) { return !dim.isConstant(); }

static bool hasFreeDims(Value value) { return llvm::any_of(getDims(value), isFree); }

/// What of a dim is known: the heads of 8*batch are 8 in each element of a batch; 1 where nothing is.
static int64_t getKnownPart(Expr dim) {
  if (!isFree(dim))
    return dim.getValue();
  int64_t part = dim.range(SymbolRanges()).divisor;
  return part > 0 && dim.floorDiv(part) * part == dim ? part : 1;
}

/// The type with each free dim's known part in its place.
static RankedTensorType getShortType(Value value) {
  SmallVector<Expr> dims = getDims(value);
  for (Expr &dim : dims)
    dim = Expr::constant(value.getContext(), getKnownPart(dim));
  return getTensorType(dims, getElementType(value));
}

/// Whether between free parts of dims, which are the same in both shapes, as many elements lie in both.
static bool keepsFreeDims(ReshapeOp op) {
  auto split = [](ArrayRef<Expr> dims) {
    SmallVector<Expr> parts; // counts of elements and free parts in turns
    int64_t count = 1;
    for (Expr dim : dims) {
      if (isFree(dim)) {
        parts.append({Expr::constant(dim.getContext(), count), dim.floorDiv(getKnownPart(dim))});
        count = 1;
      }
      count *= getKnownPart(dim);
    }
    if (!dims.empty())
      parts.push_back(Expr::constant(dims[0].getContext(), count));
    return parts;
  };
  return split(getDims(op.getX())) == split(getDims(op.getResult()));
}

/// Whether a free dim of the operand is one of the result; what is stretched along others has 1 there.
static bool keepsFreeDims(BroadcastOp op) {
  SmallVector<Expr> from = getDims(op.getX()), to = getDims(op.getResult());
  return llvm::all_of(llvm::zip_equal(from, op.getAxes()), [&](auto pair) {
    auto [dim, axis] = pair;
    return isFree(to[size_t(axis)]) ? dim == to[size_t(axis)] || dim.isConstant(1) : !isFree(dim);
  });
}

/// Whether free dims are taken whole.
static bool keepsFreeDims(SliceOp op) {
  SmallVector<Expr> from = getDims(op.getX()), to = getDims(op.getResult()), starts = getExprs(op.getStarts());
  for (size_t i = 0; i < from.size(); ++i)
    if ((isFree(from[i]) || isFree(to[i])) && (from[i] != to[i] || !starts[i].isConstant(0) || op.getSteps()[i] != 1))
      return false;
  return llvm::all_of(starts, [](Expr start) { return start.isConstant(); });
}

/// Whether the op, of operands that are alike along free dims, is so along those of its result.
static bool keepsFreeDims(Operation *op) {
  auto dimOf = [](Value value, int64_t axis) { return getDims(value)[size_t(axis)]; };
  if (isa<PointwiseOpInterface, TransposeOp>(op))
    return true;
  if (auto iota = dyn_cast<IotaOp>(op))
    return !isFree(dimOf(op->getResult(0), iota.getAxis()));
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return keepsFreeDims(broadcast);
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return keepsFreeDims(reshape);
  if (auto slice = dyn_cast<SliceOp>(op))
    return keepsFreeDims(slice);
  if (auto concat = dyn_cast<ConcatOp>(op))
    return llvm::none_of(concat.getInputs(), [&](Value input) { return isFree(dimOf(input, concat.getAxis())); });
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return llvm::none_of(reduce.getAxes(), [&](int64_t axis) { return isFree(dimOf(reduce.getX(), axis)); });
  if (auto product = dyn_cast<MatmulOp>(op))
    return !isFree(getDims(product.getLhs()).back());
  return false;
}

bool BroadcastSinker::isKnown(Operation *op) const {
  if (isa<ConstantOp, WeightOp>(op))
    return true;
  return op->getNumRegions() == 0 && isMemoryEffectFree(op) && isa_and_nonnull<PrimDialect>(op->getDialect()) &&
         llvm::none_of(op->getResults(), hasFreeDims) && !isa<ExprsOp>(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return known.contains(operand.getDefiningOp()); });
}

bool BroadcastSinker::isAlike(Operation *op) const {
  return op->getNumRegions() == 0 && op->getNumResults() == 1 && isMemoryEffectFree(op) && keepsFreeDims(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           Operation *source = operand.getDefiningOp();
           return source && (known.contains(source) || alike.contains(source));
         });
}

/// The short form of what is known or alike, which stands where the value does.
Value BroadcastSinker::shorten(Value value) {
  Operation *op = value.getDefiningOp();
  if (!alike.contains(op))
    return value;
  if (Value found = shortForms.lookup(value))
    return found;
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, shorten(operand));
  OpBuilder b(op);
  Operation *copy = b.clone(*op, mapping);
  copy->getResult(0).setType(getShortType(value));
  return shortForms[value] = copy->getResult(0);
}

/// The value out of its short form.
static Value repeat(OpBuilder &b, Value once, Value value) {
  SmallVector<Expr> apart; // each free dim as its free part and what is known of it
  SmallVector<int64_t> axes;
  for (Expr dim : getDims(value)) {
    int64_t part = getKnownPart(dim);
    if (isFree(dim) && part > 1)
      apart.append({dim.floorDiv(part), Expr::constant(b.getContext(), part)});
    else
      apart.push_back(dim);
    axes.push_back(int64_t(apart.size()) - 1);
  }
  Type element = getElementType(value);
  Value repeated = BroadcastOp::create(b, value.getLoc(), getTensorType(apart, element), once, axes);
  return repeated.getType() == value.getType() ? repeated
                                               : ReshapeOp::create(b, value.getLoc(), value.getType(), repeated);
}

void BroadcastSinker::run(Block &block) {
  for (Operation &op : block)
    if (isKnown(&op)) {
      known.insert(&op);
    } else if (isAlike(&op)) {
      alike.insert(&op);
      bool isCostly = isa<MatmulOp>(op);
      if (isCostly || llvm::any_of(op.getOperands(), [&](Value x) { return costs.contains(x.getDefiningOp()); }))
        costs.insert(&op);
    }
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto isOther = [&](Operation *user) { return !alike.contains(user); };
    if (!costs.contains(&op) || llvm::none_of(op.getUsers(), isOther))
      continue;
    Value value = op.getResult(0);
    OpBuilder b(op.getContext());
    b.setInsertionPointAfter(&op);
    Value repeated = repeat(b, shorten(value), value);
    value.replaceUsesWithIf(repeated, [&](OpOperand &use) { return isOther(use.getOwner()); });
  }
}

namespace {
struct SinkBroadcasts : ptc::impl::SinkBroadcastsBase<SinkBroadcasts> {
  void runOnOperation() override {
    for (Block &block : getOperation().getBody())
      BroadcastSinker().run(block);
    eraseDeadOps(getOperation());
  }
};
} // namespace
