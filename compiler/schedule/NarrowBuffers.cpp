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
// the writer's, too. The values are whole numbers less than 256 apart, so all results are the same. -0 becomes 0: all
// that is computed of what is read must end in comparisons or integers. Rows and columns of products stay what they
// are: their tiles read floats. --fp=strict leaves values in the types that they have.
//
// A quarter of the bytes is written and read: the 1 x 1 convolutions of ResNet-50 in 8 bits whose results are added up.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Passes.h"
#include "ir/loop/Bounds.h"
#include "ir/loop/Loop.h"
#include "mlir/Dialect/Math/IR/Math.h"
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
} // namespace

/// Of a value that is an integer, and not NaN, wherever it lies between bounds.
static std::optional<Range> rangeOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_present<math::RoundEvenOp, math::FloorOp, math::CeilOp, math::TruncOp>(op))
    return Range();
  auto select = dyn_cast_or_null<arith::SelectOp>(op);
  auto bound = select ? findBound(select) : std::nullopt;
  auto range = bound ? rangeOf(bound->x) : std::nullopt;
  if (!range || bound->number != std::trunc(bound->number))
    return std::nullopt;
  // Both ends: bounds may cross.
  if (bound->isUpper)
    return Range{std::min(range->lower, bound->number), std::min(range->upper, bound->number)};
  return Range{std::max(range->lower, bound->number), std::max(range->upper, bound->number)};
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
      if (!bound || !bound->isUpper || !isSameValue(bound->x, load) || bound->number != std::trunc(bound->number))
        return std::nullopt;
      most = std::max(most.value_or(-infinity), bound->number);
    }
  }
  return most;
}

/// Whether 0 and -0 are the same to all that is computed of the value.
static bool hidesSignOfZero(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    if (isa<arith::CmpFOp, arith::FPToSIOp, arith::FPToUIOp>(user))
      return true;
    if (isa<YieldOp>(user) && isa<MaskedOp>(user->getParentOp()))
      return hidesSignOfZero(user->getParentOp()->getResult(0));
    return isa<arith::SelectOp, arith::MulFOp, arith::AddFOp, arith::SubFOp, math::RoundEvenOp>(user) &&
           hidesSignOfZero(user->getResult(0));
  });
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
  bool hasNegativeZero = all.lower < 0 && all.upper >= 0;
  if (hasNegativeZero && !llvm::all_of(accesses.loads, [](LoadOp load) { return hidesSignOfZero(load); }))
    return std::nullopt;
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
  void runOnOperation() override {
    SmallVector<BufferOp> buffers;
    getOperation().walk([&](BufferOp buffer) { buffers.push_back(buffer); });
    for (BufferOp buffer : llvm::reverse(buffers)) // what is stored of one in the next may be integers by then
      narrow(buffer);
  }
};
} // namespace
