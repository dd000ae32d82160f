//===- NodeLoops.cpp - loops over a node's dims ---------------------------===//
#include "codegen/common/Interleaving.h"
#include "codegen/cpu/NodeEmitter.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ToldNumbers.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static Points withDim(const Points &points, int64_t dim, Value value) {
  Points result = points;
  for (EmissionPoint &point : result)
    point.dims[size_t(dim)] = value;
  return result;
}

SmallVector<Value> cpu::emitLoops(KernelEmitter &e, ArrayRef<Expr> domain, ArrayRef<int64_t> dims, const Points &points,
                                  ValueRange carried, PointBody body, int64_t unrolled) {
  if (dims.empty())
    return body(points, carried);
  int64_t dim = dims.front();
  Value extent = e.emitExpr(domain[size_t(dim)], points.front());
  auto inner = [&](Value iv, ValueRange values) {
    return emitLoops(e, domain, dims.drop_front(), withDim(points, dim, iv), values, body, unrolled);
  };
  std::optional<int64_t> known = e.invariants.asConstant(extent);
  int64_t iterations = 1;
  for (int64_t each : dims)
    iterations *= std::clamp<int64_t>(domain[size_t(each)].asConstant().value_or(unrolled + 1), 1, unrolled + 1);
  if (!known || iterations > unrolled)
    return e.createLoop(e.constant(0), extent, 1, carried, inner);
  SmallVector<Value> values(carried);
  for (int64_t i = 0; i < *known; ++i)
    values = inner(e.constant(i), values);
  return values;
}

bool cpu::hasMasks(Operation *op, const CpuLevel &level) {
  WalkResult result = op->walk([&](Operation *inner) {
    Type type;
    if (auto load = dyn_cast<loop::LoadOp>(inner))
      type = load.getType();
    else if (auto store = dyn_cast<loop::StoreOp>(inner))
      type = store.getValue().getType();
    if (type && !level.hasMasksFor(KernelEmitter::getMemoryType(type).getIntOrFloatBitWidth()))
      return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return !result.wasInterrupted();
}

int64_t cpu::chooseLanes(KernelEmitter &e, Operation *op, Expr extent) {
  int64_t lanes = e.chooseLanes(op);
  if (std::optional<int64_t> known = extent.asConstant(); known && *known > 0)
    lanes = std::min<int64_t>(lanes, std::max<int64_t>(int64_t(llvm::PowerOf2Ceil(uint64_t(*known))), 2));
  return lanes;
}

static constexpr int64_t fewestLanes = 8; // that vectors are shortened to

int64_t cpu::shortenToBlocks(Operation *op, int64_t dim, int64_t lanes) {
  auto isGrouped = [&](loop::LoadOp load, Expr index, int64_t width) {
    Operation *node = load;
    while (!loop::isNode(node))
      node = node->getParentOp();
    return codegen::findGroupedLanes(index, dim, width, codegen::getWholeRanges(node)).has_value();
  };
  auto fits = [&](int64_t width) {
    WalkResult result = op->walk([&](loop::LoadOp load) {
      Expr index = cast<ExprAttr>(load.getIndices()[0]);
      std::string name = dimName(dim);
      bool repeats = load.getIndexOperands().empty() && index.uses(name) && !index.coefficientOf(name);
      bool isWhole = !repeats || codegen::findStepInBlocks(index, dim, width) || isGrouped(load, index, width);
      return isWhole ? WalkResult::advance() : WalkResult::interrupt();
    });
    return !result.wasInterrupted();
  };
  for (int64_t width = lanes; width >= fewestLanes; width /= 2)
    if (fits(width))
      return width;
  return lanes;
}

int64_t cpu::chooseWholeLanes(KernelEmitter &e, Operation *op, Expr extent) {
  int64_t whole = extent.getValue();
  return std::min<int64_t>(e.chooseLanes(op), whole & -whole);
}

bool cpu::isFunction(Operation *op) {
  return isa<math::MathDialect>(op->getDialect()) && !isa<math::SqrtOp, math::AbsFOp, math::FmaOp>(op);
}

bool cpu::takesPairs(Operation *node, const CpuLevel &level) {
  auto calls = [](Operation *op) { return isFunction(op) ? WalkResult::interrupt() : WalkResult::advance(); };
  return level.vectorBits <= 256 && isa<loop::PointwiseOp>(node) && node->walk(calls).wasInterrupted();
}

static constexpr int64_t fewPoints = 4; // at once, and of what larger steps leave

int64_t cpu::choosePointsPerStep(ArrayRef<Operation *> ops) {
  int64_t operations = 0, reductions = 0, heavy = 0;
  for (Operation *outermost : ops)
    outermost->walk([&](Operation *op) {
      operations += !loop::isStepOfNumber(op);
      reductions += isa<loop::ReduceOp>(op);
      heavy += isa<loop::ArgReduceOp, loop::RunningOp>(op) || isFunction(op);
    });
  if (heavy > 1 || operations > 40)
    return 1;
  if (heavy > 0 || operations > 16 || reductions > 2)
    return 2;
  return fewPoints;
}

int64_t cpu::choosePointsPerStep(Operation *node) {
  return isa<loop::SortOp>(node) ? 1 : choosePointsPerStep(ArrayRef(node)); // places of rows fill the registers
}

namespace {
/// One vector loop being emitted.
struct VectorLoop {
  KernelEmitter &e;
  const EmissionPoint &point;
  int64_t dim;
  PointBody body;

  Points pointsAt(Value base, int64_t lanes, int64_t count, Value mask = {}) const {
    Points points;
    for (int64_t i = 0; i < count; ++i) {
      EmissionPoint at = point;
      at.dims[size_t(dim)] = e.invariants.add(base, e.constant(i * lanes));
      at.vectorDim = lanes > 1 ? dim : -1;
      at.lanes = lanes;
      at.mask = mask;
      points.push_back(at);
    }
    return points;
  }

  // for base = lower; base < upper; base += lanes * count, where upper - lower is a multiple of that
  SmallVector<Value> steps(Value lower, Value upper, int64_t lanes, int64_t count, ValueRange carried) const {
    return e.createLoop(lower, upper, lanes * count, carried,
                        [&](Value base, ValueRange values) { return body(pointsAt(base, lanes, count), values); });
  }

  // lower + the largest multiple of `step` in upper - lower
  Value wholeSteps(Value lower, Value upper, int64_t step) const {
    InvariantBuilder &in = e.invariants;
    Value length = in.max(in.sub(upper, lower), e.constant(0));
    return in.add(lower, in.mul(in.floorDiv(length, e.constant(step), true), e.constant(step)));
  }

  SmallVector<Value> maskedTail(Value lower, Value upper, int64_t lanes, ValueRange carried) const {
    InvariantBuilder &in = e.invariants;
    auto tail = [&](ValueRange values) {
      return body(pointsAt(lower, lanes, 1, e.laneMask(in.sub(upper, lower), lanes)), values);
    };
    Value isLeft = in.compare(arith::CmpIPredicate::slt, lower, upper);
    if (auto known = in.asConstant(isLeft))
      return *known ? tail(carried) : SmallVector<Value>(carried);
    SmallVector<Type> types(TypeRange(carried.getTypes()));
    auto choice = scf::IfOp::create(e.builder, e.loc, types, isLeft, !types.empty());
    OpBuilder::InsertionGuard guard(e.builder);
    e.builder.setInsertionPointToStart(choice.thenBlock());
    SmallVector<Value> values = tail(carried);
    if (types.empty())
      return {};
    scf::YieldOp::create(e.builder, e.loc, values);
    e.builder.setInsertionPointToStart(choice.elseBlock());
    scf::YieldOp::create(e.builder, e.loc, carried);
    return SmallVector<Value>(choice.getResults());
  }
};
} // namespace

SmallVector<Value> cpu::emitVectorLoop(KernelEmitter &e, const EmissionPoint &point, int64_t dim, Value lower,
                                       Value upper, int64_t lanes, int64_t pointsPerStep, bool hasMasks,
                                       ValueRange carried, PointBody body, bool inPairs) {
  VectorLoop loop{e, point, dim, body};
  SmallVector<Value> values(carried);
  Value at = lower;
  if (inPairs) {
    at = loop.wholeSteps(lower, upper, 2 * lanes);
    values = loop.steps(lower, at, 2 * lanes, 1, values);
    pointsPerStep = 1;
  }
  // Six vectors are two steps of three, not one of four and two of one. Carried values belong to points: their number
  // is the caller's.
  if (auto length = e.invariants.asConstant(e.invariants.sub(upper, lower)); length && carried.empty()) {
    int64_t vectors = *length / lanes, steps = std::max<int64_t>((vectors + pointsPerStep - 1) / pointsPerStep, 1);
    if (vectors && vectors % steps == 0)
      pointsPerStep = vectors / steps;
  }
  for (int64_t points = pointsPerStep; points > 1; points = points > fewPoints ? fewPoints : 1) {
    Value next = loop.wholeSteps(at, upper, lanes * points);
    values = loop.steps(at, next, lanes, points, values);
    at = next;
  }
  Value next = loop.wholeSteps(at, upper, lanes);
  values = loop.steps(at, next, lanes, 1, values);
  at = next;
  std::optional<int64_t> left = e.invariants.asConstant(e.invariants.sub(upper, at));
  // A power of two needs no mask. (One element under a constant mask must not be a masked store: LLVM 22 makes a
  // scalar store of it that is too wide where the value was truncated.)
  if (hasMasks && !(left && llvm::isPowerOf2_64(uint64_t(*left))))
    return loop.maskedTail(at, upper, lanes, values);
  // Constant rests in halved steps; others one by one, lest the code grow.
  for (int64_t width = left ? lanes / 2 : 1; width >= 1; width /= 2) {
    next = loop.wholeSteps(at, upper, width);
    values = loop.steps(at, next, width, 1, values);
    at = next;
  }
  return values;
}
