//===- NanElsewhere.cpp - extremes whose NaN nobody needs -----------------===//
//
// A maximum that yields NaN where any element is NaN takes two more instructions a vector. A softmax does not need it:
// exp(x - max) is NaN at that element whatever the maximum is, so is the sum of the row, and so is every quotient by
// that. The uses of an extreme of x over some axes are followed, and each value is known to be
//
//   tainted   other than with a NaN for the extreme, if x has one in that row
//   nan here  NaN at each element that is NaN in x
//   nan row   NaN in all of each row that has a NaN in x
//
// Arithmetic passes all three on, other functions of elements pass on the taint; a sum over the same axes of what is
// "nan here" is "nan row". The extreme may lose its NaN if whatever is tainted and not "nan row" is only read by such
// ops. Values are those of x's dims and those of a row, whose dims are x's without the axes, or with 1 in their place.
//
//===----------------------------------------------------------------------===//
#include "lowering/prim_to_loop/NanElsewhere.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

static constexpr size_t mostOps = 32; // that are followed: a softmax has 5, a logarithm of one 8

namespace {

struct Knowledge {
  bool isTainted = false, isNanHere = false, isNanRow = false;
};

class UseWalk {
public:
  explicit UseWalk(prim::ReduceOp extreme) : extreme(extreme), x(extreme.getX()) {}
  bool run();

private:
  std::optional<Knowledge> learn(Operation *op);
  Knowledge learnPointwise(Operation *op);
  bool follow(Value value);

  prim::ReduceOp extreme;
  Value x;
  llvm::DenseMap<Value, Knowledge> known;
  SmallVector<Operation *> waiting; // users of what is known
};

} // namespace

/// NaN wherever an operand is.
static bool passesNan(Operation *op) {
  if (auto convert = dyn_cast<prim::ConvertOp>(op)) {
    Type type = prim::getElementType(convert.getResult());
    return type.isF16() || type.isBF16() || type.isF32() || type.isF64();
  }
  return isa<prim::AddOp, prim::SubOp, prim::MulOp, prim::DivOp, prim::NegOp, prim::AbsOp, prim::MaximumOp,
             prim::MinimumOp, prim::SqrtOp, prim::ExpOp, prim::Exp2Op, prim::LogOp, prim::Log2Op>(op);
}

/// Whether these are the dims of the rows of x that the extreme is over.
static bool isRow(prim::ReduceOp extreme, ArrayRef<Expr> dims) {
  SmallVector<Expr> full = prim::getDims(extreme.getX()), without;
  bool hasOnes = dims.size() == full.size();
  for (auto [axis, dim] : llvm::enumerate(full)) {
    bool isReduced = llvm::is_contained(extreme.getAxes(), int64_t(axis));
    hasOnes = hasOnes && (isReduced ? dims[axis].isConstant(1) : dims[axis] == dim);
    if (!isReduced)
      without.push_back(dim);
  }
  return hasOnes || dims == ArrayRef(without);
}

/// The view shows a row as a row, or each element of a row in all of its columns.
static bool isAligned(prim::ReduceOp extreme, Operation *view) {
  Value x = extreme.getX();
  SmallVector<Expr> from = prim::getDims(view->getOperand(0)), to = prim::getDims(view->getResult(0));
  if (!isRow(extreme, from))
    return false;
  auto broadcast = dyn_cast<prim::BroadcastOp>(view);
  if (!broadcast)
    return isRow(extreme, to);
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(prim::getRank(x)));
  if (from.size() < axes.size())
    llvm::erase_if(axes, [&](int64_t axis) { return llvm::is_contained(extreme.getAxes(), axis); });
  for (auto [dim, axis, place] : llvm::zip_equal(from, axes, broadcast.getAxes()))
    if (place != axis && !dim.isConstant(1)) // where one row is put does not matter
      return false;
  return to == prim::getDims(x);
}

Knowledge UseWalk::learnPointwise(Operation *op) {
  Knowledge result;
  for (Value operand : op->getOperands()) {
    Knowledge own = known.lookup(operand);
    result.isTainted |= own.isTainted;
    result.isNanHere |= own.isNanHere && passesNan(op);
    result.isNanRow |= own.isNanRow && passesNan(op);
  }
  return result;
}

/// What is known of the op's result; nothing, if it may be anything.
std::optional<Knowledge> UseWalk::learn(Operation *op) {
  if (op->getBlock() != extreme->getBlock())
    return std::nullopt;
  if (isa<prim::PointwiseOpInterface>(op))
    return learnPointwise(op);
  if (isa<prim::BroadcastOp, prim::ReshapeOp>(op) && isAligned(extreme, op)) {
    Knowledge own = known.lookup(op->getOperand(0));
    return Knowledge{.isTainted = own.isTainted, .isNanRow = own.isNanRow};
  }
  auto sum = dyn_cast<prim::ReduceOp>(op);
  bool isOfRows = sum && sum.getKind() == prim::ReduceKind::Sum && sum.getAxes() == extreme.getAxes() &&
                  prim::getDims(sum.getX()) == prim::getDims(x) && known.lookup(sum.getX()).isNanHere;
  return isOfRows ? std::optional(Knowledge{.isTainted = true, .isNanRow = true}) : std::nullopt;
}

bool UseWalk::follow(Value value) {
  for (Operation *user : value.getUsers())
    if (user != extreme && !llvm::is_contained(waiting, user))
      waiting.push_back(user);
  return waiting.size() <= mostOps;
}

bool UseWalk::run() {
  known[x].isNanHere = true;
  known[extreme.getResult()].isTainted = true;
  if (!follow(extreme.getResult()))
    return false;
  for (size_t count = 0; !waiting.empty(); ++count) {
    auto first = llvm::min_element(waiting, [&](Operation *a, Operation *b) {
      bool isInside = a->getBlock() == extreme->getBlock(), isOtherInside = b->getBlock() == extreme->getBlock();
      return isInside && (!isOtherInside || a->isBeforeInBlock(b));
    });
    Operation *op = *first;
    waiting.erase(first);
    std::optional<Knowledge> result = count < mostOps ? learn(op) : std::nullopt;
    if (!result) {
      if (llvm::any_of(op->getOperands(), [&](Value operand) {
            Knowledge own = known.lookup(operand);
            return own.isTainted && !own.isNanRow;
          }))
        return false;
      continue;
    }
    known[op->getResult(0)] = *result;
    if (!follow(op->getResult(0)))
      return false;
  }
  return true;
}

bool ptc::loop::isNanElsewhere(prim::ReduceOp extreme) {
  bool isExtreme = extreme.getKind() == prim::ReduceKind::Max || extreme.getKind() == prim::ReduceKind::Min;
  return isExtreme && isa<FloatType>(prim::getElementType(extreme.getX())) && UseWalk(extreme).run();
}

/// The reduction of x whose rows the value shows, each in all of its columns; null: it is none.
static prim::ReduceOp getReductionOf(Value x, prim::ReduceKind kind, Value value) {
  SmallVector<Operation *> views;
  Operation *op = value.getDefiningOp();
  for (; op && isa<prim::BroadcastOp, prim::ReshapeOp>(op); op = op->getOperand(0).getDefiningOp())
    views.push_back(op);
  auto reduction = dyn_cast_or_null<prim::ReduceOp>(op);
  bool isOfX = reduction && reduction.getKind() == kind && reduction.getX() == x &&
               llvm::all_of(views, [&](Operation *view) { return isAligned(reduction, view); });
  return isOfX ? reduction : prim::ReduceOp();
}

/// Of exp(x - max x).
static prim::ReduceOp getMaximumOf(Operation *exp) {
  auto distance = isa_and_present<prim::ExpOp>(exp) ? exp->getOperand(0).getDefiningOp<prim::SubOp>() : prim::SubOp();
  return distance ? getReductionOf(distance->getOperand(0), prim::ReduceKind::Max, distance->getOperand(1))
                  : prim::ReduceOp();
}

bool ptc::loop::isPowerOfDistance(Operation *op) { return bool(getMaximumOf(op)); }

bool ptc::loop::isSoftmaxQuotient(Operation *op) {
  if (!isa<prim::DivOp>(op))
    return false;
  Value exp = op->getOperand(0);
  prim::ReduceOp max = getMaximumOf(exp.getDefiningOp());
  prim::ReduceOp sum = max ? getReductionOf(exp, prim::ReduceKind::Sum, op->getOperand(1)) : prim::ReduceOp();
  return sum && sum.getAxes() == max.getAxes();
}
