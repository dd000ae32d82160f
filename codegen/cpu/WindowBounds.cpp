//===- WindowBounds.cpp - where a window lies inside its input ------------===//
//
// Pooling and depthwise convolution read a window of the input for each output. At the border a part of the window lies
// outside, which their bodies say with masks: `masked [h + kh - 1 >= 0, ...] else 0`. To ask at every element costs
// more than the arithmetic, and most answers are known:
//
//   skipping    where an element outside adds nothing (0 to a sum, the least value to a maximum), the loop over kh runs
//               over the elements inside only: kh in [max(0, 1 - h), min(3, H + 1 - h))
//   interior    the outputs whose whole window lies inside: w in [1, W - 1); no condition on w is asked there
//
// Both follow from solving the condition, affine in each dim, for one of them.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/WindowBounds.h"
#include "codegen/cpu/CpuEmitter.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ToldNumbers.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t largestWindow = 128;       // elements; longer reductions have enough reuse of their own,
static constexpr int64_t largestOverlapping = 8192; // but windows of neighbours that overlap
static constexpr int64_t longestBody = 24;          // operations for an element of the window: tiles are unrolled
static constexpr int64_t nearest = 4;               // outputs to the next one whose window has elements of this one's
static constexpr int64_t widestVector = 16;         // lanes
static constexpr int64_t fewestJoined = 4;          // outputs whose sums over lanes are worth taking together

static bool isConstantValue(Value value, llvm::function_ref<bool(Attribute)> predicate) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  return constant && predicate(constant.getValue());
}

static bool isZero(Attribute value) {
  if (auto real = dyn_cast<FloatAttr>(value))
    return real.getValue().isZero();
  auto integer = dyn_cast<IntegerAttr>(value);
  return integer && integer.getValue().isZero();
}

/// The value is 0 where the mask fails.
static bool isZeroOutside(Value value, loop::MaskedOp mask) {
  if (value == mask.getResult())
    return isConstantValue(mask.getOther(), isZero);
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>(op))
    return isZeroOutside(op->getOperand(0), mask);
  if (isa_and_nonnull<arith::MulFOp, arith::MulIOp>(op))
    return isZeroOutside(op->getOperand(0), mask) || isZeroOutside(op->getOperand(1), mask);
  return false;
}

static bool addsNothingOutside(loop::ReduceOp reduce, loop::MaskedOp mask) {
  if (reduce.getKind() == prim::ReduceKind::Sum)
    return isZeroOutside(reduce.getValue(), mask);
  TypedAttr identity = getIdentity(reduce.getKind(), reduce.getType(), reduce.getIsUnsigned());
  return reduce.getValue() == mask.getResult() &&
         isConstantValue(mask.getOther(), [&](Attribute other) { return other == identity; });
}

static bool usesDims(Expr index, int64_t first, int64_t end) {
  return llvm::any_of(llvm::seq(first, end), [&](int64_t dim) { return index.uses(dimName(dim)); });
}

/// Elements of the window are results besides: what the mask says outside is stored, too.
static bool storesElements(loop::ReductionOp op) {
  int64_t rank = int64_t(loop::getDomain(op).size());
  return llvm::any_of(op.getBody().front().getOps<loop::StoreOp>(), [&](loop::StoreOp store) {
    return usesDims(cast<ExprAttr>(store.getIndices()[0]), rank - int64_t(op.getReduced()), rank);
  });
}

SmallVector<Expr> cpu::getSkippableConditions(loop::ReductionOp op) {
  Block &block = op.getBody().front();
  SmallVector<Expr> conditions;
  if (storesElements(op))
    return conditions;
  for (auto mask : block.getOps<loop::MaskedOp>()) {
    bool isNeutral = mask.getOperands_().empty() && llvm::all_of(block, [&](Operation &other) {
                       if (isa<loop::ArgReduceOp>(other))
                         return false;
                       auto reduce = dyn_cast<loop::ReduceOp>(other);
                       return !reduce || addsNothingOutside(reduce, mask);
                     });
    if (isNeutral)
      llvm::append_range(conditions, prim::getExprs(mask.getConditions()));
  }
  return conditions;
}

std::optional<DimBounds> cpu::solveFor(Expr condition, int64_t dim) {
  Expr rest, coefficient = condition.coefficientOf(dimName(dim), &rest);
  if (!coefficient || !coefficient.isConstant() || coefficient.isConstant(0))
    return std::nullopt;
  int64_t step = coefficient.getValue();
  if (step > 0) // step * d + rest >= 0
    return DimBounds{-rest.floorDiv(step), Expr()};
  return DimBounds{Expr(), rest.floorDiv(-step) + 1};
}

std::optional<DimBounds> cpu::solveForAllWindows(Expr condition, int64_t dim, ArrayRef<Expr> domain,
                                                 int64_t firstReduced) {
  // The least value over the reduced dims, each at the end that is worst.
  for (int64_t reduced = firstReduced; reduced < int64_t(domain.size()); ++reduced) {
    std::string name = dimName(reduced);
    if (!condition.uses(name))
      continue;
    Expr rest, coefficient = condition.coefficientOf(name, &rest);
    auto extent = domain[size_t(reduced)].asConstant();
    if (!coefficient || !coefficient.isConstant() || !extent)
      return std::nullopt;
    condition = rest + std::min<int64_t>(coefficient.getValue() * (*extent - 1), 0);
  }
  for (int64_t other = 0; other < firstReduced; ++other)
    if (other != dim && condition.uses(dimName(other)))
      return std::nullopt;
  return solveFor(condition, dim);
}

/// A load moves along `dim` and along a reduced dim: neighbours along it share elements or run in step.
static bool isWindowed(loop::LoadOp load, int64_t dim, int64_t firstReduced, int64_t rank) {
  Expr index = cast<ExprAttr>(load.getIndices()[0]);
  Expr step = load.getIndexOperands().empty() ? index.coefficientOf(dimName(dim)) : Expr();
  return step && index.uses(dimName(dim)) && usesDims(index, firstReduced, rank);
}

/// Whether outputs that are `apart` elements apart, so many of them, read some of the same ones of their windows, whose
/// elements are `step` apart: columns of a matrix in two halves do not.
static bool mayMeet(int64_t apart, int64_t step, std::optional<int64_t> outputs) {
  return !outputs || step / std::gcd(apart, step) < *outputs;
}

/// Whether neighbours along the dim read some of the same elements of their windows: all of them, or where windows
/// overlap, but not in another line of the image. (What a whole window reads once is no reason to run in step.)
static bool isSharedAlong(loop::LoadOp load, int64_t dim, int64_t firstReduced, ArrayRef<Expr> domain) {
  Expr index = cast<ExprAttr>(load.getIndices()[0]);
  if (!load.getIndexOperands().empty())
    return true;
  if (!index.uses(dimName(dim)))
    return usesDims(index, firstReduced, int64_t(domain.size()));
  auto stepOf = [&](int64_t along) -> std::optional<int64_t> {
    Expr step = index.uses(dimName(along)) ? index.coefficientOf(dimName(along)) : Expr::constant(load.getContext(), 0);
    return step ? step.asConstant() : std::nullopt;
  };
  std::optional<int64_t> step = stepOf(dim);
  int64_t span = 0;
  for (int64_t reduced = firstReduced; reduced < int64_t(domain.size()); ++reduced) {
    std::optional<int64_t> own = stepOf(reduced), extent = domain[size_t(reduced)].asConstant();
    if (!step || !own || (*own && !extent))
      return true; // not known
    if (std::abs(*own) > nearest * std::abs(*step) ||
        (*own && !mayMeet(std::abs(*step), std::abs(*own), domain[size_t(dim)].asConstant())))
      continue; // in another line
    span += std::abs(*own) * std::max<int64_t>(extent.value_or(1) - 1, 0);
  }
  return !step || span >= std::abs(*step);
}

/// Whether conditions differ between lanes, and at least three quarters of these are in vectors that see no border:
/// then those run apart and ask nothing.
static bool isMostlyInside(loop::ReductionOp op, int64_t lanesDim, int64_t firstReduced, ArrayRef<Expr> domain) {
  std::optional<int64_t> extent = domain[size_t(lanesDim)].asConstant();
  if (lanesDim >= firstReduced || !extent)
    return false;
  int64_t from = 0, to = *extent;
  WalkResult result = op.walk([&](loop::MaskedOp mask) {
    for (Expr condition : prim::getExprs(mask.getConditions())) {
      if (!condition.uses(dimName(lanesDim)))
        continue;
      auto bounds = solveForAllWindows(condition, lanesDim, domain, firstReduced);
      auto isKnown = [](Expr bound) { return !bound || bound.isConstant(); };
      if (!bounds || !isKnown(bounds->lower) || !isKnown(bounds->upper))
        return WalkResult::interrupt();
      from = bounds->lower ? std::max(from, bounds->lower.getValue()) : from;
      to = bounds->upper ? std::min(to, bounds->upper.getValue()) : to;
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted() || to <= from || to - from == *extent)
    return false;
  int64_t inside = to / widestVector * widestVector - int64_t(llvm::alignTo(uint64_t(from), uint64_t(widestVector)));
  return 4 * inside >= 3 * *extent;
}

/// Whether neighbours along the dim share anything: elements, or what is asked at a border (`asks`).
static bool isWorkShared(loop::ReductionOp op, int64_t dim, int64_t firstReduced, ArrayRef<Expr> domain, bool asks) {
  WalkResult found = op.walk([&](Operation *inner) {
    auto load = dyn_cast<loop::LoadOp>(inner);
    bool isShared = (isa<loop::MaskedOp>(inner) && asks) || (load && isSharedAlong(load, dim, firstReduced, domain));
    return isShared ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted();
}

bool cpu::windowsOverlap(loop::ReductionOp op, int64_t kept, int64_t reduced, bool inSteps) {
  SmallVector<Expr> domain = loop::getDomain(op);
  int64_t extent = domain[size_t(reduced)].asConstant().value_or(0);
  WalkResult found = op.walk([&](loop::LoadOp load) {
    Expr index = cast<ExprAttr>(load.getIndices()[0]);
    auto stepOf = [&](int64_t dim) {
      Expr step = index.uses(dimName(dim)) ? index.coefficientOf(dimName(dim)) : Expr();
      return step ? std::abs(step.asConstant().value_or(0)) : 0;
    };
    int64_t apart = stepOf(kept), step = stepOf(reduced);
    bool isShared = apart && step && step <= nearest * apart && (extent - 1) * step >= apart &&
                    (!inSteps || step % apart == 0) && mayMeet(apart, step, domain[size_t(kept)].asConstant());
    return isShared ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted();
}

int64_t cpu::findTiledDim(loop::ReductionOp op, int64_t apart, int64_t shared, int64_t lanesDim) {
  SmallVector<Expr> domain = loop::getDomain(op);
  int64_t rank = int64_t(domain.size()), firstReduced = rank - int64_t(op.getReduced());
  int64_t window = 1, operations = 0;
  for (int64_t dim = firstReduced; dim < rank; ++dim) {
    auto known = dim == lanesDim ? std::optional<int64_t>(1) : domain[size_t(dim)].asConstant();
    window *= std::clamp<int64_t>(known.value_or(largestOverlapping + 1), 1, largestOverlapping + 1);
    window = std::min(window, largestOverlapping + 1);
  }
  op.walk([&](Operation *inner) { operations += !loop::isStepOfNumber(inner); });
  bool joinsLanes = lanesDim >= firstReduced; // of several outputs in fewer steps
  int64_t most = joinsLanes ? largestWindow : largestOverlapping;
  if (op.getReduced() == 0 || window > most || operations > 2 * longestBody ||
      !llvm::none_of(op.getBody().front(), [](Operation &inner) { return isa<loop::ArgReduceOp>(inner); }))
    return -1;
  int64_t few = -1; // a dim with fewer outputs than are worth joining
  for (int64_t dim = shared - 1; dim >= apart; --dim) {
    auto extent = domain[size_t(dim)].asConstant();
    if (dim == lanesDim || (extent && *extent < 2))
      continue;
    WalkResult found = op.walk([&](loop::LoadOp load) {
      return isWindowed(load, dim, firstReduced, rank) ? WalkResult::interrupt() : WalkResult::advance();
    });
    // Of symbolic extent, as many outputs as the window is long would be by themselves at the borders.
    if (window > largestWindow && (!extent || llvm::none_of(llvm::seq(firstReduced, rank), [&](int64_t reduced) {
          return windowsOverlap(op, dim, reduced);
        })))
      continue;
    bool asks = !isMostlyInside(op, lanesDim, firstReduced, domain);
    if (!found.wasInterrupted() || !(joinsLanes || isWorkShared(op, dim, firstReduced, domain, asks)))
      continue;
    if (!joinsLanes || !extent || *extent >= fewestJoined)
      return dim;
    few = few < 0 ? dim : few;
  }
  return few;
}
