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
// What a value is behind the diagonal of its last two dims is told from what computes it, to a depth:
//
//   true, false   constants, comparisons of a row's and a column's number, not, and, or, select of such
//   lowest        constants, select(mask, x, -inf), sums with -inf, these without the maximum of their row; without
//                 sums and a maximum the lowest finite number as well
//   zero          constants, select(mask, x, 0), exp of what is lowest, products with what is zero, their signs
//
// and through other float types and views that keep these dims.
//
// A maximum of -inf makes NaN of its whole row, also of what is not hidden, so that it shows in either case.
//
//===----------------------------------------------------------------------===//
#include "lowering/prim_to_loop/NeededTerms.h"
#include "lowering/passes/Patterns.h"
#include <limits>

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

static constexpr int mostSteps = 16; // that lie between a product and its mask
static constexpr int64_t mostElements = 1 << 20;
static constexpr double mostOffset = 1 << 20; // of a diagonal: numbers of places do not wrap

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

namespace {
/// row * r + column * c + constant
struct Place {
  int64_t row = 0, column = 0, constant = 0;
};
} // namespace

/// The integers as such, of which the two axes count rows and columns (-1: none does).
static std::optional<Place> matchPlace(Value value, int64_t rows, int64_t columns, int steps) {
  Operation *op = value.getDefiningOp();
  auto type = dyn_cast<IntegerType>(prim::getElementType(value));
  if (!op || steps == 0 || !type || type.getWidth() < 32 || type.isUnsigned()) // those wrap
    return std::nullopt;
  if (std::optional<double> splat = prim::getSplat(value); splat && std::abs(*splat) <= mostOffset)
    return Place{.constant = int64_t(*splat)};
  if (auto iota = dyn_cast<prim::IotaOp>(op)) {
    int64_t axis = int64_t(iota.getAxis());
    return axis == rows      ? std::optional(Place{.row = 1})
           : axis == columns ? std::optional(Place{.column = 1})
                             : std::nullopt;
  }
  if (auto broadcast = dyn_cast<prim::BroadcastOp>(op)) {
    SmallVector<Expr> dims = prim::getDims(broadcast.getX());
    auto below = [&](int64_t axis) {
      const int64_t *found = llvm::find(broadcast.getAxes(), axis);
      int64_t own = found - broadcast.getAxes().begin();
      return found != broadcast.getAxes().end() && !dims[size_t(own)].isConstant(1) ? own : -1;
    };
    return matchPlace(broadcast.getX(), below(rows), below(columns), steps - 1);
  }
  if (!isa<prim::AddOp, prim::SubOp>(op))
    return std::nullopt;
  auto a = matchPlace(op->getOperand(0), rows, columns, steps / 2);
  auto b = matchPlace(op->getOperand(1), rows, columns, steps / 2);
  int64_t sign = isa<prim::AddOp>(op) ? 1 : -1;
  if (!a || !b)
    return std::nullopt;
  return Place{a->row + sign * b->row, a->column + sign * b->column, a->constant + sign * b->constant};
}

/// Whether a < b, or a <= b, is so or is not at all places behind the diagonal.
static bool comparesBehind(Operation *comparison, bool isSo) {
  int64_t rank = prim::getRank(comparison->getResult(0));
  auto a = matchPlace(comparison->getOperand(0), rank - 2, rank - 1, mostSteps);
  auto b = matchPlace(comparison->getOperand(1), rank - 2, rank - 1, mostSteps);
  if (rank < 2 || !a || !b)
    return false;
  int64_t row = b->row - a->row, column = b->column - a->column;
  // It is so where this is not negative: on the diagonal, and one step behind it, which decides.
  int64_t on = b->constant - a->constant - (isa<prim::LtOp>(comparison) ? 1 : 0);
  return isSo ? row == -1 && column == 1 && on + 1 >= 0 : row == 1 && column == -1 && on - 1 < 0;
}

/// Whether all elements of a constant behind the diagonal are so.
template <typename Element>
static bool isConstantBehind(DenseElementsAttr elements, llvm::function_ref<bool(const Element &)> isSo) {
  ArrayRef<int64_t> shape = elements.getType().getShape();
  if (shape.size() < 2 || elements.getNumElements() > mostElements)
    return false;
  int64_t rows = shape[shape.size() - 2], columns = shape.back(), at = 0;
  return llvm::all_of(elements.getValues<Element>(), [&](const Element &x) {
    int64_t row = at / columns % rows, column = at++ % columns;
    return column <= row || isSo(x);
  });
}

/// Whether the condition is `expected` at all places behind the diagonal.
static bool isBehind(Value condition, bool expected, int steps = mostSteps) {
  Operation *op = condition.getDefiningOp();
  if (!op || steps == 0)
    return false;
  auto isSo = [&](unsigned operand, bool wanted) { return isBehind(op->getOperand(operand), wanted, steps / 2); };
  if (DenseElementsAttr elements = prim::getConstant(condition))
    return elements.isSplat() ? elements.getSplatValue<bool>() == expected
                              : isConstantBehind<bool>(elements, [&](bool x) { return x == expected; });
  if (isa<prim::LtOp, prim::LeOp>(op))
    return comparesBehind(op, expected);
  if (isa<prim::NotOp>(op))
    return isSo(0, !expected);
  if (isa<prim::AndOp, prim::OrOp>(op)) {
    bool isDecided = isa<prim::OrOp>(op) == expected; // by one operand
    return isDecided ? isSo(0, expected) || isSo(1, expected) : isSo(0, expected) && isSo(1, expected);
  }
  if (isa<prim::SelectOp>(op))
    return isSo(0, true) ? isSo(1, expected) : isSo(0, false) && isSo(2, expected);
  auto broadcast = dyn_cast<prim::BroadcastOp>(op);
  bool isScalar = broadcast && broadcast.getAxes().empty();
  return (isScalar || keepsMatrices(op)) && isSo(0, expected);
}

/// What the select has behind the diagonal; null if it may be either.
static Value putBehind(prim::SelectOp select) {
  if (isBehind(select.getCondition(), false))
    return select.getB();
  return isBehind(select.getCondition(), true) ? select.getA() : Value();
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

static constexpr double infinity = std::numeric_limits<double>::infinity();
static constexpr double lowest = std::numeric_limits<float>::lowest();

/// Whether all elements behind the diagonal are at most `most`, whose exponential is 0.
static bool isLowestBehind(Value value, int steps, double most = lowest) {
  Operation *op = value.getDefiningOp();
  if (!op || steps == 0 || !isFloat(value))
    return false;
  if (std::optional<double> splat = prim::getSplat(value))
    return *splat <= most;
  if (DenseElementsAttr elements = prim::getConstant(value))
    return isConstantBehind<APFloat>(elements, [&](const APFloat &x) { return x.convertToDouble() <= most; });
  if (auto select = dyn_cast<prim::SelectOp>(op)) {
    Value behind = putBehind(select);
    return behind && isLowestBehind(behind, steps - 1, most);
  }
  // What is added to a finite number, or is a row's maximum, may be as large as that is low.
  if (auto sum = dyn_cast<prim::AddOp>(op))
    return isLowestBehind(sum.getA(), steps / 2, -infinity) || isLowestBehind(sum.getB(), steps / 2, -infinity);
  if (auto difference = dyn_cast<prim::SubOp>(op))
    return isLowestBehind(difference.getA(), steps - 1, -infinity) &&
           isRowMaximum(difference.getB(), difference.getA());
  return keepsMatrices(op) && isLowestBehind(op->getOperand(0), steps - 1, most);
}

/// Whether all elements behind the diagonal of the last two dims, column > row, are 0 by construction.
static bool isZeroBehind(Value value, int steps = mostSteps) {
  Operation *op = value.getDefiningOp();
  if (!op || steps == 0 || !isFloat(value))
    return false;
  if (std::optional<double> splat = prim::getSplat(value))
    return *splat == 0;
  if (DenseElementsAttr elements = prim::getConstant(value))
    return isConstantBehind<APFloat>(elements, [](const APFloat &x) { return x.isZero(); });
  if (auto select = dyn_cast<prim::SelectOp>(op)) {
    Value behind = putBehind(select);
    return behind && isZeroBehind(behind, steps - 1);
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
