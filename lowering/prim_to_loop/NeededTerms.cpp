//===- NeededTerms.cpp - terms that causal masks leave of products --------===//
//
// Sequences that see no later steps, but are not softmax attention (memories of matrices, decayed linear attention),
// weigh a product of queries and keys by what is zero behind the diagonal:
//
//   d = select(j > i, -inf, ...)                     and w = exp(d - max(d))
//   p = q k^T * w                                    or p = select(j > i, 0, q k^T), q k^T * constant triangle
//   y = p v
//
// The terms of y with k > i are zero: exp(-inf) is, whatever it is multiplied by, if that is finite ("products with
// zero" of arithmetic.md, which --fp=strict forbids). A sum of q k^T with j > i is only read by what is zero anyway.
// In both cases half of the product is left out by whoever computes whole tiles.
//
// Zero behind the diagonal is told of a value from what computes it, to a depth:
//
//   constants, select(mask, x, 0), products with such, their signs, other float types, views that keep the last two
//   dims exp of what is lowest there: of select(mask, x, -inf), x + mask, and these without the maximum of their row
//
// A maximum of -inf makes NaN of its whole row, also of what is not hidden, so that it shows in either case.
//
//===----------------------------------------------------------------------===//
#include "lowering/prim_to_loop/NeededTerms.h"
#include "lowering/passes/CausalMasks.h"
#include "lowering/passes/Patterns.h"
#include <limits>

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

static constexpr int mostSteps = 16; // that lie between a product and its mask
static constexpr int64_t mostElements = 1 << 20;

static bool isFloat(Value value) { return isa<FloatType>(prim::getElementType(value)); }

/// Whether the op is a view that shows the last two dims of what it reads as its own.
static bool keepsMatrices(Operation *view) {
  if (!isa<prim::ReshapeOp, prim::BroadcastOp>(view))
    return false;
  SmallVector<Expr> from = prim::getDims(view->getOperand(0)), to = prim::getDims(view->getResult(0));
  if (from.size() < 2 || to.size() < 2 || ArrayRef(from).take_back(2) != ArrayRef(to).take_back(2))
    return false;
  auto broadcast = dyn_cast<prim::BroadcastOp>(view);
  int64_t rank = int64_t(to.size());
  return !broadcast || broadcast.getAxes().take_back(2) == ArrayRef<int64_t>({rank - 2, rank - 1});
}

/// What the select puts behind the diagonal, if its condition is a causal mask.
static Value putBehind(prim::SelectOp select) {
  if (prim::isCausalMask(select.getCondition(), /*isInverted=*/false))
    return select.getB();
  return prim::isCausalMask(select.getCondition(), /*isInverted=*/true) ? select.getA() : Value();
}

/// Whether `value` has the largest element of each row of x in all of the row.
static bool isRowMaximum(Value value, Value x) {
  int64_t last = prim::getRank(x) - 1;
  auto broadcast = value.getDefiningOp<prim::BroadcastOp>();
  if (!broadcast || prim::getDims(value) != prim::getDims(x))
    return false;
  SmallVector<int64_t> axes = llvm::to_vector(broadcast.getAxes());
  value = broadcast.getX();
  if (auto reshape = value.getDefiningOp<prim::ReshapeOp>(); reshape && int64_t(axes.size()) == last + 1) {
    if (!prim::getDims(value).back().isConstant(1))
      return false;
    axes.pop_back();
    value = reshape.getX();
  }
  auto maximum = value.getDefiningOp<prim::ReduceOp>();
  return maximum && maximum.getKind() == prim::ReduceKind::Max && maximum.getX() == x &&
         maximum.getAxes() == ArrayRef<int64_t>({last}) && axes == llvm::to_vector(llvm::seq<int64_t>(last));
}

/// Whether all elements behind the diagonal are so low that their exponential is 0.
static bool isLowestBehind(Value value, int steps) {
  Operation *op = value.getDefiningOp();
  if (!op || steps == 0)
    return false;
  if (auto select = dyn_cast<prim::SelectOp>(op)) {
    Value behind = putBehind(select);
    std::optional<double> lowest = behind ? prim::getSplat(behind) : std::nullopt;
    return lowest && *lowest <= -std::numeric_limits<float>::max();
  }
  if (auto sum = dyn_cast<prim::AddOp>(op))
    return prim::isCausalMask(sum.getA(), false) || prim::isCausalMask(sum.getB(), false);
  if (auto difference = dyn_cast<prim::SubOp>(op))
    return isLowestBehind(difference.getA(), steps - 1) && isRowMaximum(difference.getB(), difference.getA());
  return keepsMatrices(op) && isLowestBehind(op->getOperand(0), steps - 1);
}

static bool isTriangle(DenseElementsAttr elements) {
  ArrayRef<int64_t> shape = elements.getType().getShape();
  if (shape.size() < 2 || !isa<FloatType>(elements.getElementType()) || elements.getNumElements() > mostElements)
    return false;
  int64_t rows = shape[shape.size() - 2], columns = shape.back(), at = 0;
  return llvm::all_of(elements.getValues<APFloat>(), [&](const APFloat &x) {
    int64_t row = at / columns % rows, column = at++ % columns;
    return column <= row || x.isZero();
  });
}

/// Whether all elements behind the diagonal of the last two dims, column > row, are 0 by construction.
static bool isZeroBehind(Value value, int steps = mostSteps) {
  Operation *op = value.getDefiningOp();
  if (!op || steps == 0 || !isFloat(value))
    return false;
  if (DenseElementsAttr elements = prim::getConstant(value))
    return isTriangle(elements);
  if (auto select = dyn_cast<prim::SelectOp>(op)) {
    Value behind = putBehind(select);
    return behind && (prim::getSplat(behind) == 0.0 || isZeroBehind(behind, steps - 1));
  }
  if (auto product = dyn_cast<prim::MulOp>(op))
    return isZeroBehind(product.getA(), steps / 2) || isZeroBehind(product.getB(), steps / 2);
  if (auto exponential = dyn_cast<prim::ExpOp>(op))
    return isLowestBehind(exponential.getX(), steps - 1);
  bool isKept = isa<prim::NegOp>(op) || (isa<prim::ConvertOp>(op) && isFloat(op->getOperand(0))) || keepsMatrices(op);
  return isKept && isZeroBehind(op->getOperand(0), steps - 1);
}

/// Whether what lies behind the diagonal is not read, or multiplied by 0 alone, behind arithmetic that keeps it finite.
static bool isHiddenBehind(Value value, int steps = mostSteps) {
  auto isHiddenIn = [&](Operation *user) {
    Value result = user->getNumResults() == 1 ? user->getResult(0) : Value();
    if (!result || steps == 0)
      return false;
    if (auto select = dyn_cast<prim::SelectOp>(user))
      if (Value behind = putBehind(select); behind && behind != value)
        return true;
    if (auto product = dyn_cast<prim::MulOp>(user))
      if (isZeroBehind(product.getA() == value ? product.getB() : product.getA()))
        return true;
    bool isArithmetic = isa<prim::AddOp, prim::SubOp, prim::MulOp, prim::NegOp>(user) ||
                        (isa<prim::ConvertOp>(user) && isFloat(result));
    return (isArithmetic || (isa<prim::ReshapeOp>(user) && keepsMatrices(user))) && isHiddenBehind(result, steps - 1);
  };
  return llvm::all_of(value.getUsers(), isHiddenIn);
}

SmallVector<Expr> loop::findNeededTerms(prim::MatmulOp product) {
  unsigned rank = unsigned(prim::getRank(product.getResult()));
  if (prim::getRank(product.getRhs()) != rank || !isFloat(product.getResult()))
    return {};
  auto dim = [&](unsigned number) { return Expr::dim(product.getContext(), number); };
  Expr row = dim(rank - 2), column = dim(rank - 1), term = dim(rank);
  SmallVector<Expr> needed;
  if (isZeroBehind(product.getLhs()))
    needed.push_back(row - term);
  if (isZeroBehind(product.getRhs()))
    needed.push_back(term - column);
  if (isHiddenBehind(product.getResult()))
    needed.push_back(row - column);
  return needed;
}
