//===- LaneConditions.cpp - which lanes a condition holds for -------------===//
//
// A window at the border of an image asks for each of its elements which lanes lie inside: lane + d >= 0. In 64 bits
// that takes four vectors, which are packed into the mask of one of floats: more than the window's arithmetic.
//
// A condition that is affine in the lanes' dim is a comparison of 32-bit numbers. What is far from 0 stays so when it
// is clamped. The constant, in which neighbours and the terms of an unrolled window differ, is the other side of it, so
// that the rest is emitted once for all of them: a condition is one instruction then.
//
// So is a comparison of an index, of 32 bits by its range, with a number that lanes share, such as a length or the
// place of a 1: a number that is not in the range is replaced by one that compares with all of it alike.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/LaneConditions.h"
#include "ir/expr/DimName.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::codegen;

static constexpr int64_t farFromZero = int64_t(1) << 29;

static bool usesOperands(Expr expr) {
  bool found = false;
  expr.walkSymbols([&](StringRef name) { found |= parseOperand(name).has_value(); });
  return found;
}

/// With the numbers of the point's other dims where these are known.
static Expr bindKnown(KernelEmitter &e, Expr expr, const EmissionPoint &point) {
  return expr
      .substitute([&](StringRef name) -> Expr {
        for (auto [dim, value] : llvm::enumerate(point.dims)) {
          if (!value || name != dimName(int64_t(dim)) || int64_t(dim) == point.vectorDim)
            continue;
          int64_t offset = dim < point.offsets.size() ? point.offsets[dim] : 0;
          if (auto known = e.invariants.asConstant(value))
            return Expr::constant(expr.getContext(), *known + offset);
        }
        return {};
      })
      .simplify(e.getRanges());
}

/// The constant among the terms of a sum.
static int64_t constantOf(Expr sum) {
  if (sum.getKind() == ExprKind::Add)
    for (Expr operand : sum.getOperands())
      if (operand.isConstant())
        return operand.getValue();
  return 0;
}

/// The coefficient of the lanes' dim, if that and the vector of its products are small constants.
static std::optional<int64_t> stepOfLanes(Expr condition, const EmissionPoint &point) {
  std::string dim = dimName(point.vectorDim);
  if (!point.isVector() || !condition.uses(dim) || usesOperands(condition))
    return std::nullopt;
  Expr coefficient = condition.coefficientOf(dim);
  std::optional<int64_t> step = coefficient ? coefficient.asConstant() : std::nullopt;
  return step && std::abs(*step) <= farFromZero / point.lanes ? step : std::nullopt;
}

Value codegen::emitCondition(KernelEmitter &e, Expr condition, const EmissionPoint &point, ValueRange operands) {
  condition = bindKnown(e, condition, point);
  InvariantBuilder &in = e.invariants;
  std::optional<int64_t> step = stepOfLanes(condition, point);
  if (!step) {
    Value value = e.emitLaneIndex(condition, point, operands);
    Value zero = in.constant(cast<TypedAttr>(e.builder.getZeroAttr(getElementTypeOrSelf(value.getType()))));
    return in.compare(arith::CmpIPredicate::sge, value, zero);
  }
  int64_t constant = constantOf(condition);
  if (std::abs(constant) > farFromZero)
    constant = 0;
  Expr rest = condition - constant;
  Value first = e.emitExpr(rest, point);
  if (ExprRange range = rest.range(e.getRanges()); range.min < -2 * farFromZero || range.max > 2 * farFromZero)
    first = in.min(in.max(first, e.constant(-2 * farFromZero)), e.constant(2 * farFromZero));
  Type i32 = e.builder.getI32Type();
  Value lanes = in.add(in.get<arith::TruncIOp>(i32, first), e.laneNumbers(point, i32, *step));
  return in.compare(arith::CmpIPredicate::sge, lanes, in.constant(IntegerAttr::get(i32, -constant)));
}

/// What a value is but for a constant that is added to it last, and that.
static std::pair<Value, int64_t> withoutConstant(KernelEmitter &e, Value sum) {
  if (auto add = sum.getDefiningOp<arith::AddIOp>())
    if (auto constant = e.invariants.asConstant(add.getRhs()); constant && std::abs(*constant) <= farFromZero)
      return {add.getLhs(), *constant};
  return {sum, 0};
}

/// The index in 32-bit lanes; lanes that a mask leaves out may wrap.
static Value emitShortLanes(KernelEmitter &e, Expr index, int64_t step, const EmissionPoint &point) {
  InvariantBuilder &in = e.invariants;
  Type i32 = e.builder.getI32Type();
  // Neighbours of a step differ in the constant alone.
  auto [first, constant] = withoutConstant(e, e.emitExpr(index, point));
  Value start = in.broadcast(in.get<arith::TruncIOp>(i32, first), point.lanes);
  Value lanes = in.get<arith::AddIOp>(start, e.laneNumbers(point, i32, step));
  if (!constant)
    return lanes;
  return in.get<arith::AddIOp>(lanes, in.constant(SmallVector<int64_t>(size_t(point.lanes), constant), i32));
}

namespace {
struct ShortComparison {
  arith::CmpIPredicate predicate;
  Value number; // i64 that 32 bits hold
};
} // namespace

/// The comparison of what is in the range with `number` as one with least - 1, or with a number of the range:
///   x < n, x >= n are x <= n - 1, x > n - 1; n - 1 is clamped.
static std::optional<ShortComparison> shorten(InvariantBuilder &in, arith::CmpIPredicate predicate, Value number,
                                              const ExprRange &range) {
  using Predicate = arith::CmpIPredicate;
  Value least = in.constant(range.min), below = in.constant(range.min - 1), most = in.constant(range.max);
  auto clamped = [&] { return in.min(in.max(number, below), most); };
  auto before = [&] { return in.sub(in.min(in.max(number, least), in.constant(range.max + 1)), in.constant(1)); };
  switch (predicate) {
  case Predicate::eq:
  case Predicate::ne: {
    Value bounded = in.max(number, below);
    return ShortComparison{predicate, in.select(in.compare(Predicate::sgt, bounded, most), below, bounded)};
  }
  case Predicate::sle:
  case Predicate::sgt:
    return ShortComparison{predicate, clamped()};
  case Predicate::slt:
    return ShortComparison{Predicate::sle, before()};
  case Predicate::sge:
    return ShortComparison{Predicate::sgt, before()};
  default:
    return std::nullopt;
  }
}

Value codegen::emitIndexComparison(KernelEmitter &e, arith::CmpIPredicate predicate, Expr index, Value other,
                                   const EmissionPoint &point) {
  index = bindKnown(e, index, point);
  std::optional<int64_t> step = stepOfLanes(index, point);
  if (!step || isVector(other) || !other.getType().isInteger(64))
    return {};
  ExprRange range = index.range(e.getRanges());
  if (range.min <= std::numeric_limits<int32_t>::min() || range.max > std::numeric_limits<int32_t>::max())
    return {};
  auto comparison = shorten(e.invariants, predicate, other, range);
  if (!comparison)
    return {};
  Value number = e.invariants.get<arith::TruncIOp>(e.builder.getI32Type(), comparison->number);
  return e.invariants.compare(comparison->predicate, emitShortLanes(e, index, *step, point), number);
}
