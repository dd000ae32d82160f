//===- NarrowBuffers.cpp - integers of few values lie in memory as bytes --===//
//
// Problem. Where a model rounds a value to 8 bits and back between two products, neither of which takes bytes of it (a
// residual that is added up), what one kernel stores and another reads are integers in a float each.
//
// Idea. A buffer of floats whose values are rounded and bounded to at most 256 integers holds them as bytes, counted
// from the least one:
//
//   store r, max(r, -122)              ->     store i8(min(max(r, -122), 133) + 122)
//   y = min(load, 133)                        y = min(f32(load i8) - 122, 133)
//
// Kernels were cut between the bounds, so the reader's bound, if all that it does to what it reads begins with one, is
// the writer's, too. All numbers are small integers: results are the same, but that -0 becomes 0, as the integers of
// the model have it. --fp=strict leaves it out. Rows and columns of products stay what they are: their tiles read
// floats.
//
// A quarter of the bytes is written and read: the 1 x 1 convolutions of ResNet-50 in 8 bits whose results are added up.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Passes.h"
#include "ir/loop/Loop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_NARROWBUFFERS
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

static constexpr double mostValues = 256;
static constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {
struct Range {
  double lower = -infinity, upper = infinity;
};

/// The larger or the smaller of x and a number; the number where x is NaN.
struct Bounded {
  Value x;
  double number;
  bool isUpper; // the number is an upper bound
};
} // namespace

static std::optional<double> numberOf(Value value) {
  APFloat number(0.0);
  if (!matchPattern(value, m_ConstantFloat(&number)))
    return std::nullopt;
  bool loses = false;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
  return number.convertToDouble();
}

/// Loads of one element count as one value.
static bool isSame(Value a, Value b) {
  auto x = a.getDefiningOp<LoadOp>(), y = b.getDefiningOp<LoadOp>();
  if (a == b || !x || !y)
    return a == b;
  return x->getBlock() == y->getBlock() && x.getBuffer() == y.getBuffer() && x.getIndices() == y.getIndices() &&
         llvm::equal(x.getIndexOperands(), y.getIndexOperands());
}

static std::optional<Bounded> findBound(arith::SelectOp select) {
  auto compare = select.getCondition().getDefiningOp<arith::CmpFOp>();
  auto number = numberOf(select.getFalseValue());
  if (!compare || !number || std::isnan(*number))
    return std::nullopt;
  bool isLess = compare.getPredicate() == arith::CmpFPredicate::OLT;
  if (!isLess && compare.getPredicate() != arith::CmpFPredicate::OGT)
    return std::nullopt;
  Value smaller = isLess ? compare.getLhs() : compare.getRhs(), larger = isLess ? compare.getRhs() : compare.getLhs();
  Value x = select.getTrueValue();
  if (isSame(smaller, x) && numberOf(larger) == number)
    return Bounded{x, *number, /*isUpper=*/true};
  if (isSame(larger, x) && numberOf(smaller) == number)
    return Bounded{x, *number, /*isUpper=*/false};
  return std::nullopt;
}

/// Of a value that is an integer, and not NaN, wherever it lies between bounds.
static std::optional<Range> rangeOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_present<math::RoundEvenOp, math::FloorOp, math::CeilOp, math::TruncOp>(op))
    return Range();
  auto bound = isa_and_present<arith::SelectOp>(op) ? findBound(cast<arith::SelectOp>(op)) : std::nullopt;
  auto range = bound ? rangeOf(bound->x) : std::nullopt;
  if (!range || bound->number != std::trunc(bound->number))
    return std::nullopt;
  if (bound->isUpper)
    range->upper = std::min(range->upper, bound->number);
  else
    range->lower = std::max(range->lower, bound->number);
  return range;
}

/// The upper bound that all uses of what is read begin with.
static std::optional<double> boundOfReader(LoadOp load) {
  std::optional<double> most;
  for (Operation *user : load->getUsers()) {
    auto compare = dyn_cast<arith::CmpFOp>(user);
    SmallVector<Operation *> selects(compare ? SmallVector<Operation *>(compare->getUsers()) : SmallVector{user});
    for (Operation *op : selects) {
      auto select = dyn_cast<arith::SelectOp>(op);
      auto bound = select ? findBound(select) : std::nullopt;
      if (!bound || !bound->isUpper || !isSame(bound->x, load) || bound->number != std::trunc(bound->number))
        return std::nullopt;
      most = std::max(most.value_or(-infinity), bound->number);
    }
  }
  return most;
}

/// Whether the op is one of those that run for each point, not for each term of a product.
static bool isPointwise(Operation *op) {
  Operation *node = op->getParentOp();
  if (isa<MaskedOp>(node))
    return isPointwise(node);
  auto product = dyn_cast<ContractionOp>(node);
  return isa<PointwiseOp>(node) || (product && op->getParentRegion() == &product.getEpilogue());
}

namespace {
struct Accesses {
  SmallVector<StoreOp> stores;
  SmallVector<LoadOp> loads;
};
} // namespace

/// Of a buffer of f32 that nodes alone see; nothing otherwise.
static std::optional<Accesses> findAccesses(BufferOp buffer) {
  if (!cast<BufferType>(buffer.getType()).getElementType().isF32())
    return std::nullopt;
  Accesses accesses;
  for (OpOperand &use : buffer.getResult().getUses()) {
    Operation *user = use.getOwner();
    if (!isPointwise(user))
      return std::nullopt;
    if (auto store = dyn_cast<StoreOp>(user); store && !store.getCombine())
      accesses.stores.push_back(store);
    else if (auto load = dyn_cast<LoadOp>(user))
      accesses.loads.push_back(load);
    else
      return std::nullopt;
  }
  return accesses.stores.empty() || accesses.loads.empty() ? std::nullopt : std::optional(accesses);
}

/// What the buffer's values lie between; nothing if they are no integers or too many.
static std::optional<Range> findRange(const Accesses &accesses) {
  Range all{infinity, -infinity};
  for (StoreOp store : accesses.stores) {
    auto range = rangeOf(store.getValue());
    if (!range || range->lower == -infinity) // which NaN would be where the reader's bound is the only one
      return std::nullopt;
    all = {std::min(all.lower, range->lower), std::max(all.upper, range->upper)};
  }
  if (all.upper == infinity) {
    all.upper = -infinity;
    for (LoadOp load : accesses.loads) {
      auto bound = boundOfReader(load);
      if (!bound)
        return std::nullopt;
      all.upper = std::max(all.upper, *bound);
    }
  }
  bool isFew = all.upper >= all.lower && all.upper - all.lower < mostValues;
  return isFew ? std::optional(all) : std::nullopt;
}

static Value createNumber(OpBuilder &b, Location loc, double number) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(float(number)));
}

static void narrow(BufferOp buffer) {
  auto accesses = findAccesses(buffer);
  auto range = accesses ? findRange(*accesses) : std::nullopt;
  if (!range)
    return;
  OpBuilder b(buffer);
  auto type = cast<BufferType>(buffer.getType());
  buffer.getResult().setType(BufferType::get(b.getContext(), type.getShape(), b.getI8Type(), type.getLayout()));
  for (StoreOp store : accesses->stores) {
    b.setInsertionPoint(store);
    Location loc = store.getLoc();
    Value value = store.getValue(), upper = createNumber(b, loc, range->upper);
    Value isBelow = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, value, upper);
    value = arith::SelectOp::create(b, loc, isBelow, value, upper);
    value = arith::SubFOp::create(b, loc, value, createNumber(b, loc, range->lower));
    value = arith::FPToSIOp::create(b, loc, b.getI32Type(), value);
    store.getValueMutable().assign(arith::TruncIOp::create(b, loc, b.getI8Type(), value));
  }
  for (LoadOp load : accesses->loads) {
    load.getResult().setType(b.getI8Type());
    b.setInsertionPointAfter(load);
    Location loc = load.getLoc();
    auto whole = arith::ExtUIOp::create(b, loc, b.getI32Type(), load);
    Value value = arith::SIToFPOp::create(b, loc, b.getF32Type(), whole);
    value = arith::AddFOp::create(b, loc, value, createNumber(b, loc, range->lower));
    load.getResult().replaceAllUsesExcept(value, whole);
  }
}

namespace {
struct NarrowBuffers : ptc::impl::NarrowBuffersBase<NarrowBuffers> {
  void runOnOperation() override { getOperation().walk(narrow); }
};
} // namespace
