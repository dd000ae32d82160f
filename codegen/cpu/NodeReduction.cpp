//===- NodeReduction.cpp - reduction nodes --------------------------------===//
//
// The body falls into three parts: what the reductions read (run for every point of the reduced dims), the reductions
// (loop-carried accumulators), and what depends on them (run once behind the loops). An op that both parts need is
// emitted in both.
//
//   lanes along a kept dim      each lane is a reduction of its own; several vectors of them run side by side
//                               where most of what they read has a stride they stay in the order in which such loads
//                               are merged (Strides.h), and one permutation at the end brings the results back
//   lanes along a reduced dim   lane l takes elements l, l + lanes, ...; several chains of vectors; at the end the
//                               chains and then the lanes are combined pairwise, in an order that only the extent and
//                               the number of lanes decide
//   tiles of those              up to as many neighbouring outputs as lanes, one vector each (NodeTiles.cpp): they
//                               share what does not depend on the output, and their lanes are combined into one vector
//                               of outputs
//
// Long float sums are blocked: every 64 steps the partial sums are added to outer ones, so that the error grows with
// the logarithm of the length in steps and not with the length.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/Interleaving.h"
#include "codegen/common/ReductionSteps.h"
#include "codegen/common/Strides.h"
#include "codegen/cpu/NodeEmitter.h"
#include "codegen/cpu/WindowBounds.h"
#include "ir/expr/DimName.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;
using codegen::BodyParts;
using codegen::identityOf;
using codegen::isBetter;
using codegen::mergeSlots;
using codegen::slotsOf;
using codegen::splitBody;

static constexpr int64_t unblockedSteps = 256; // no longer loop is left unblocked
// Windows of pooling and depthwise convolution are unrolled: their conditions and addresses become constants.
static constexpr int64_t unrolledWindow = 32;
static constexpr int64_t unrolledTile = 64;  // elements of the windows of a tile
static constexpr int64_t unrolledRow = 512;  // of a line of them, along which they overlap
static constexpr size_t longestOfRow = 8;    // operations for an element there
static constexpr int64_t unrolledGroup = 32; // elements of a window whose terms stand in groups of lanes

namespace {

/// One reduction node at points where all kept dims are known.
class ReductionEmitter {
public:
  ReductionEmitter(KernelEmitter &e, loop::ReductionOp op, ArrayRef<Expr> domain, const BodyParts &parts,
                   int64_t vectorDim, int64_t tiled, const PointContext &context)
      : e(e), op(op), domain(domain), parts(parts), vectorDim(vectorDim), tiled(tiled), context(context) {}

  void emit(const Points &points);

private:
  int64_t firstReduced() { return int64_t(domain.size()) - int64_t(op.getReduced()); }
  Type positionType();
  Value positionAt(const EmissionPoint &point);
  SmallVector<Value> initial(const Points &points, int64_t chains, int64_t lanes);
  SmallVector<Value> step(const Points &points, ValueRange carried);
  BodyEmitter bodyAt(const EmissionPoint &point);
  bool addsNothing(const EmissionPoint &point);
  bool isSharedBy(const Points &points, Expr condition, int64_t reducedDim);
  SmallVector<Value> windowLoops(ArrayRef<int64_t> dims, const Points &points, ValueRange carried);
  SmallVector<Value> emitWindow(ArrayRef<int64_t> dims, const Points &points, ValueRange carried);
  SmallVector<Value> innerLoop(const Points &points, int64_t dim, ValueRange carried);
  using RangeBody = llvm::function_ref<SmallVector<Value>(Value from, Value to, ValueRange carried)>;
  SmallVector<Value> blocked(Value extent, ValueRange carried, LoopBody rangeBody);
  SmallVector<Value> inBlocks(Value extent, int64_t granule, ValueRange carried, RangeBody body);
  void accumulate(Operation *reduction, const BodyEmitter &body, const EmissionPoint &point, Value mask, Value *slots);
  SmallVector<Value> wholeVectors(const Points &points, ValueRange carried);
  void joinRest(ArrayRef<Value> rest, MutableArrayRef<Value> chains);
  SmallVector<Value> horizontal(Operation *reduction, SmallVector<Value> slots);
  Value joinLanes(Operation *reduction, SmallVector<Value> sums);
  bool emitJoined(const Points &points, ValueRange sums);
  bool isBlocked() const;
  bool pairsSteps() const;
  SmallVector<Value> loopOfSteps(Value from, Value to, int64_t stride, ValueRange carried, LoopBody stepAt);
  int64_t chooseLaneStride(const EmissionPoint &point);
  SmallVector<int64_t> orderWindow(ArrayRef<int64_t> dims);
  int64_t findSummedApart(ArrayRef<int64_t> dims);
  /// How the reduced dims are walked.
  struct Walk {
    bool hasReducedLanes;       // lanes along a reduced dim
    bool isTile;                // of points, whose vectors are whole
    int64_t innermost;          // the dim of the innermost loop
    SmallVector<int64_t> outer; // the reduced dims around it
    int64_t lanes, chains;      // of an accumulator, of each point
  };
  Walk chooseWalk(const EmissionPoint &point);
  SmallVector<Value> reduceUnrolled(const Points &points, const Walk &walk, ValueRange carried);
  SmallVector<Value> reduceAll(const Points &points, const Walk &walk, ValueRange carried);
  SmallVector<Value> mergeChains(Operation *reduction, ArrayRef<Value> chains);
  Value widenPosition(Operation *reduction, Value result);
  void emitResults(const Points &points, const Walk &walk, ValueRange accumulators,
                   llvm::function_ref<Value(Value)> inLanesOrder);

  KernelEmitter &e;
  loop::ReductionOp op;
  ArrayRef<Expr> domain;
  const BodyParts &parts;
  int64_t vectorDim; // a reduced dim that carries lanes, -1
  int64_t tiled;     // the dim along which points are neighbours, -1
  const PointContext &context;
  int64_t groupTerm = -1; // the reduced dim over the channels of a group, of which lanes have several, -1
  // Of the window being emitted: conditions whose failure lets an element be skipped, loops of the reduced dims.
  SmallVector<Expr> skippable;
  struct Range {
    Value lower, upper;
  };
  llvm::DenseMap<int64_t, Range> windowRanges;
  int64_t summedApart = -1; // of its innermost loops are sums that are added to those of the others, -1
};

} // namespace

bool ReductionEmitter::isBlocked() const {
  bool hasFloatSum = false;
  for (Operation *reduction : parts.reductions) {
    auto reduce = dyn_cast<loop::ReduceOp>(reduction);
    if (!reduce)
      return false;
    hasFloatSum |= reduce.getKind() == prim::ReduceKind::Sum && isa<FloatType>(reduce.getType());
  }
  return hasFloatSum;
}

/// Two steps of an extreme of floats share the search for NaN (Combine.cpp), if they follow each other.
bool ReductionEmitter::pairsSteps() const {
  return parts.before.size() <= longestOfRow && llvm::all_of(parts.reductions, [&](Operation *reduction) {
           auto reduce = dyn_cast<loop::ReduceOp>(reduction);
           bool isExtreme = reduce && isa<FloatType>(reduce.getType()) && !reduce.getNoNan() &&
                            (reduce.getKind() == prim::ReduceKind::Max || reduce.getKind() == prim::ReduceKind::Min);
           return isExtreme && !(e.traits.hasExtrema && reduce.getType().isF32());
         });
}

/// The stride of most loads that differ between lanes along a kept dim, if their order can be kept; else 1. What other
/// nodes read of a lane, and what they left in its own buffer, stands in the lanes' order.
int64_t ReductionEmitter::chooseLaneStride(const EmissionPoint &point) {
  auto meetsNodes = [&](Operation *op) {
    auto load = dyn_cast<loop::LoadOp>(op);
    return isa<loop::StoreOp>(op) || (load && e.getHeld(load.getBuffer()));
  };
  auto holdsSuch = [&](Operation *op) {
    auto check = [&](Operation *inner) { return meetsNodes(inner) ? WalkResult::interrupt() : WalkResult::advance(); };
    return op->walk(check).wasInterrupted();
  };
  if (!point.isVector() || llvm::any_of(parts.before, holdsSuch))
    return 1;
  std::string name = dimName(point.vectorDim);
  std::array<int64_t, codegen::mostSplitStride + 1> counts = {}; // by stride; 0: other ways to differ
  for (Operation *before : parts.before)
    before->walk([&](loop::LoadOp load) {
      Expr index = cast<ExprAttr>(load.getIndices()[0]);
      if (!index.uses(name) && load.getIndexOperands().empty())
        return;
      Expr step = load.getIndexOperands().empty() ? index.coefficientOf(name) : Expr();
      int64_t stride = step ? step.asConstant().value_or(0) : 0;
      ++counts[stride >= 2 && stride <= codegen::mostSplitStride ? size_t(stride) : 0];
    });
  int64_t stride = std::max_element(counts.begin() + 2, counts.end()) - counts.begin();
  bool isMost = 2 * counts[size_t(stride)] > std::accumulate(counts.begin(), counts.end(), int64_t(0));
  return isMost && codegen::StridedLanes(point.lanes, stride).canMerge() ? stride : 1;
}

// Order of the slots: chain (or point), reduction, value before index.
SmallVector<Value> ReductionEmitter::initial(const Points &points, int64_t chains, int64_t lanes) {
  SmallVector<Value> values;
  for (int64_t i = 0; i < int64_t(points.size()) * chains; ++i)
    for (Operation *reduction : parts.reductions) {
      values.push_back(e.splat(e.invariants.constant(identityOf(reduction)), lanes));
      if (isa<loop::ArgReduceOp>(reduction))
        values.push_back(e.splat(e.invariants.constant(IntegerAttr::get(positionType(), 0)), lanes));
    }
  return values;
}

/// Of places along the reduced dim, half as wide as indices where that is known to do.
Type ReductionEmitter::positionType() {
  std::optional<int64_t> extent = domain[size_t(firstReduced())].asConstant();
  return e.builder.getIntegerType(extent && *extent <= INT32_MAX ? 32 : 64);
}

Value ReductionEmitter::positionAt(const EmissionPoint &point) {
  Expr position = Expr::dim(e.builder.getContext(), unsigned(firstReduced()));
  Type type = positionType();
  if (type.isInteger(64))
    return e.splat(e.emitLanes(position, point), point.lanes);
  Value first = e.splat(e.invariants.get<arith::TruncIOp>(type, e.emitExpr(position, point)), point.lanes);
  bool differs = point.isVector() && point.vectorDim == firstReduced();
  return differs ? e.invariants.get<arith::AddIOp>(first, e.laneNumbers(point, type, 1)) : first;
}

void ReductionEmitter::accumulate(Operation *reduction, const BodyEmitter &body, const EmissionPoint &point, Value mask,
                                  Value *slots) {
  auto select = [&](Value condition, Value a, Value b) -> Value {
    return arith::SelectOp::create(e.builder, e.loc, condition, a, b);
  };
  Value value = e.splat(body.lookup(reduction->getOperand(0)), point.lanes);
  if (auto reduce = dyn_cast<loop::ReduceOp>(reduction)) {
    Value next = emitCombine(e, reduce.getKind(), value, slots[0], reduce.getIsUnsigned(), reduce.getNoNan());
    slots[0] = mask ? select(mask, next, slots[0]) : next;
    return;
  }
  auto arg = cast<loop::ArgReduceOp>(reduction);
  Value better = isBetter(e, arg, slots[0], value, arg.getSelectLast());
  if (mask)
    better = arith::AndIOp::create(e.builder, e.loc, better, mask);
  slots[0] = select(better, value, slots[0]);
  slots[1] = select(better, positionAt(point), slots[1]);
}

BodyEmitter ReductionEmitter::bodyAt(const EmissionPoint &point) {
  BodyEmitter body(e, point);
  for (auto [value, emitted] : context.known)
    body.bind(value, emitted);
  return body;
}

// One vector (or scalar) of every point enters its accumulators.
SmallVector<Value> ReductionEmitter::step(const Points &points, ValueRange carried) {
  SmallVector<Value> values(carried);
  size_t slot = 0;
  for (const EmissionPoint &point : points) {
    if (addsNothing(point)) {
      slot += slotsOf(parts);
      continue;
    }
    BodyEmitter body = bodyAt(point);
    body.emitOps(parts.before);
    // Lanes along a kept dim may hold anything where the mask is off: their results are never stored.
    Value mask = point.vectorDim >= firstReduced() ? point.mask : Value();
    for (Operation *reduction : parts.reductions) {
      accumulate(reduction, body, point, mask, &values[slot]);
      slot += slotsOf(reduction);
    }
  }
  return values;
}

static Value half(KernelEmitter &e, Value vector, bool upper) {
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  if (lanes == 2)
    return LLVM::ExtractElementOp::create(e.builder, e.loc, vector, e.constant(upper));
  SmallVector<int32_t> order;
  for (int64_t lane = 0; lane < lanes / 2; ++lane)
    order.push_back(int32_t(lane + (upper ? lanes / 2 : 0)));
  return LLVM::ShuffleVectorOp::create(e.builder, e.loc, vector, vector, order);
}

/// `vector` with `part` in its first lanes.
static Value insertLanes(KernelEmitter &e, Value vector, Value part) {
  if (!isVector(part))
    return LLVM::InsertElementOp::create(e.builder, e.loc, vector, part, e.constant(0));
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  int64_t own = cast<VectorType>(part.getType()).getNumElements();
  SmallVector<int32_t> widened, order;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    widened.push_back(int32_t(lane % own));
    order.push_back(int32_t(lane < own ? lane : lanes + lane));
  }
  Value wide = LLVM::ShuffleVectorOp::create(e.builder, e.loc, part, part, widened);
  return LLVM::ShuffleVectorOp::create(e.builder, e.loc, wide, vector, order);
}

/// Vectors, at most as many as each has lanes, become the one vector of what their lanes combine to, in log2 rounds:
/// each halves the lanes of an output, and doubles the outputs of a vector until there is one. The order is that of
/// `horizontal`.
Value ReductionEmitter::joinLanes(Operation *reduction, SmallVector<Value> sums) {
  int64_t lanes = cast<VectorType>(sums.front().getType()).getNumElements();
  for (int64_t width = lanes, outputs = int64_t(sums.size()), end = lanes; end > outputs || sums.size() > 1;
       width /= 2) {
    bool isPair = sums.size() > 1;
    SmallVector<int32_t> low, high;
    for (int64_t first = 0; first < end; first += width)
      for (int64_t of = 0; of <= (isPair ? end : 0); of += end)
        for (int64_t lane = 0; lane < width / 2; ++lane) {
          low.push_back(int32_t(of + first + lane));
          high.push_back(int32_t(of + first + width / 2 + lane));
        }
    SmallVector<Value> joined;
    for (size_t i = 0, half = sums.size() / 2; i < std::max<size_t>(half, 1); ++i) {
      Value a = LLVM::ShuffleVectorOp::create(e.builder, e.loc, sums[i], sums[i + half], low);
      Value b = LLVM::ShuffleVectorOp::create(e.builder, e.loc, sums[i], sums[i + half], high);
      joined.push_back(mergeSlots(e, reduction, a, b)[0]);
    }
    sums = std::move(joined);
    end = isPair ? end : end / 2;
  }
  return sums.front();
}

/// The dim along which the points follow each other one by one; -1: none.
static int64_t neighbourDim(KernelEmitter &e, const Points &points) {
  auto placeOf = [&](const EmissionPoint &point, size_t dim) -> std::optional<int64_t> {
    int64_t offset = dim < point.offsets.size() ? point.offsets[dim] : 0;
    if (point.dims[dim] == points.front().dims[dim])
      return offset;
    auto first = e.invariants.asConstant(points.front().dims[dim]), own = e.invariants.asConstant(point.dims[dim]);
    return first && own ? std::optional(*own - *first + offset) : std::nullopt;
  };
  for (size_t dim = 0; dim < points.front().dims.size(); ++dim)
    if (points.front().dims[dim] && llvm::all_of(llvm::enumerate(points), [&](auto point) {
          return placeOf(point.value(), dim) == int64_t(point.index());
        }))
      return int64_t(dim);
  return -1;
}

/// What depends on the reductions, once for a vector of outputs. False where the points are none.
bool ReductionEmitter::emitJoined(const Points &points, ValueRange sums) {
  int64_t lanes = isVector(sums.front()) ? cast<VectorType>(sums.front().getType()).getNumElements() : 1;
  int64_t count = int64_t(points.size());
  bool fillsVector = count > 1 && count <= lanes && llvm::isPowerOf2_64(uint64_t(count));
  int64_t dim = fillsVector ? neighbourDim(e, points) : -1;
  if (dim < 0)
    return false;
  EmissionPoint point = points.front();
  point.vectorDim = dim;
  point.lanes = count;
  BodyEmitter body = bodyAt(point);
  for (auto [slot, reduction] : llvm::enumerate(parts.reductions)) {
    SmallVector<Value> own;
    for (size_t at = slot; at < sums.size(); at += parts.reductions.size())
      own.push_back(sums[at]);
    body.bind(reduction->getResult(0), joinLanes(reduction, own));
  }
  body.emitOps(parts.after);
  return true;
}

SmallVector<Value> ReductionEmitter::horizontal(Operation *reduction, SmallVector<Value> slots) {
  while (isVector(slots[0])) {
    SmallVector<Value> low, high;
    for (Value slot : slots) {
      low.push_back(half(e, slot, false));
      high.push_back(half(e, slot, true));
    }
    slots = mergeSlots(e, reduction, low, high);
  }
  return slots;
}

// Calls `rangeBody` (whose iv is the range's first element) so that float sums are taken over blocks.
SmallVector<Value> ReductionEmitter::blocked(Value length, ValueRange carried, LoopBody rangeBody) {
  return e.createLoop(e.constant(0), length, 1, carried, [&](Value block, ValueRange outer) {
    SmallVector<Value> zeros;
    for (Value value : outer) {
      int64_t lanes = isVector(value) ? cast<VectorType>(value.getType()).getNumElements() : 1;
      size_t which = zeros.size() % parts.reductions.size();
      zeros.push_back(e.splat(e.invariants.constant(identityOf(parts.reductions[which])), lanes));
    }
    SmallVector<Value> partial = rangeBody(block, zeros);
    SmallVector<Value> sums;
    for (auto [index, value] : llvm::enumerate(outer))
      sums.push_back(mergeSlots(e, parts.reductions[index % parts.reductions.size()], value, partial[index])[0]);
    return sums;
  });
}

/// The same of the elements [0, extent), `granule` of them a block.
SmallVector<Value> ReductionEmitter::inBlocks(Value extent, int64_t granule, ValueRange carried, RangeBody body) {
  InvariantBuilder &in = e.invariants;
  Value blocks = in.floorDiv(in.add(extent, e.constant(granule - 1)), e.constant(granule), true);
  return blocked(blocks, carried, [&](Value block, ValueRange values) {
    Value from = in.mul(block, e.constant(granule));
    return body(from, in.min(in.add(from, e.constant(granule)), extent), values);
  });
}

/// for iv = from; iv < to; iv += stride, two steps at once if they gain by it; to - from is a multiple of the stride.
SmallVector<Value> ReductionEmitter::loopOfSteps(Value from, Value to, int64_t stride, ValueRange carried,
                                                 LoopBody stepAt) {
  if (!pairsSteps())
    return e.createLoop(from, to, stride, carried, stepAt);
  InvariantBuilder &in = e.invariants;
  Value pair = e.constant(2 * stride), length = in.max(in.sub(to, from), e.constant(0));
  Value rest = in.add(from, in.mul(in.floorDiv(length, pair, true), pair));
  SmallVector<Value> values = e.createLoop(from, rest, 2 * stride, carried, [&](Value iv, ValueRange values) {
    return stepAt(in.add(iv, e.constant(stride)), stepAt(iv, values));
  });
  return e.createLoop(rest, to, stride, values, stepAt);
}

/// What a rest of fewer lanes was reduced to enters the first chain: sums and the like lane by lane, places of extremes
/// in lane 0.
void ReductionEmitter::joinRest(ArrayRef<Value> rest, MutableArrayRef<Value> chains) {
  size_t slot = 0;
  for (Operation *reduction : parts.reductions) {
    size_t count = slotsOf(reduction);
    ArrayRef<Value> own = rest.slice(slot, count);
    MutableArrayRef<Value> first = chains.slice(slot, count);
    slot += count;
    if (count == 1) {
      int64_t lanes = cast<VectorType>(first[0].getType()).getNumElements();
      Value identity = e.splat(e.invariants.constant(identityOf(reduction)), lanes);
      first[0] = mergeSlots(e, reduction, first[0], insertLanes(e, identity, own[0]))[0];
      continue;
    }
    SmallVector<Value> ends = horizontal(reduction, SmallVector<Value>(own)), lane0;
    for (Value value : first)
      lane0.push_back(LLVM::ExtractElementOp::create(e.builder, e.loc, value, e.constant(0)));
    for (auto [value, merged] : llvm::zip_equal(first, mergeSlots(e, reduction, lane0, ends)))
      value = LLVM::InsertElementOp::create(e.builder, e.loc, value, merged, e.constant(0));
  }
}

// The innermost reduced dim: steps of one point each, or vectors along it.
SmallVector<Value> ReductionEmitter::innerLoop(const Points &points, int64_t dim, ValueRange carried) {
  Value extent = e.emitExpr(domain[size_t(dim)], points.front());
  bool isVectorLoop = dim == vectorDim;
  int64_t lanes = isVectorLoop ? cpu::chooseLanes(e, op, domain[size_t(dim)]) : 1;
  int64_t chains = isVectorLoop ? int64_t(carried.size() / slotsOf(parts)) : 1;
  bool masks = hasMasks(op, e.level);
  auto range = [&](Value from, Value to, ValueRange values) -> SmallVector<Value> {
    if (isVectorLoop) {
      auto partial = [&](const Points &at, ValueRange in) {
        SmallVector<Value> next(in);
        if (at.front().lanes == lanes) {
          for (size_t first = 0; first < at.size(); first += size_t(chains)) {
            Points some(ArrayRef(at).drop_front(first).take_front(size_t(chains)));
            llvm::copy(step(some, ArrayRef(next).take_front(some.size() * slotsOf(parts))), next.begin());
          }
          return next;
        }
        joinRest(step(at, initial(at, 1, at.front().lanes)), next);
        return next;
      };
      int64_t pointsPerStep = pairsSteps() ? 2 * chains : chains;
      return emitVectorLoop(e, points.front(), dim, from, to, lanes, pointsPerStep, masks, values, partial);
    }
    return loopOfSteps(from, to, 1, values, [&](Value iv, ValueRange in) {
      Points at = points;
      for (EmissionPoint &point : at)
        point.dims[size_t(dim)] = iv;
      return step(at, in);
    });
  };
  int64_t granule = blockSteps * lanes * chains;
  std::optional<int64_t> known = e.invariants.asConstant(extent);
  if (!isBlocked() || (known && *known <= unblockedSteps * lanes * chains))
    return range(e.constant(0), extent, carried);
  return inBlocks(extent, granule, carried, range);
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

int64_t cpu::findGroupTerm(KernelEmitter &e, loop::ReductionOp op, int64_t lanesDim, int64_t lanes) {
  int64_t term = -1;
  SymbolRanges ranges = codegen::getWholeRanges(op);
  if (lanes > 1)
    op.walk([&](loop::LoadOp load) {
      Expr index = cast<ExprAttr>(load.getIndices()[0]);
      bool isAffine = !index.uses(dimName(lanesDim)) || index.coefficientOf(dimName(lanesDim));
      if (isAffine || !load.getIndexOperands().empty() || codegen::findStepInBlocks(index, lanesDim, lanes))
        return;
      if (auto grouped = codegen::findGroupedLanes(index, lanesDim, lanes, ranges))
        term = grouped->term;
    });
  return term;
}

/// A skippable condition is known to fail: the point stands at a border, with all that the condition uses constant.
bool ReductionEmitter::addsNothing(const EmissionPoint &point) {
  std::string lanesDim = dimName(point.vectorDim);
  return llvm::any_of(skippable, [&](Expr condition) {
    if (point.assumed->contains(condition) || condition.uses(lanesDim))
      return false;
    bool isKnown = !condition.usesAny([&](StringRef name) {
      auto dim = parseNumbered(name, 'd');
      return !dim || *dim >= point.dims.size() || !point.dims[*dim] || !e.invariants.asConstant(point.dims[*dim]);
    });
    auto value = isKnown ? e.invariants.asConstant(e.emitExpr(condition, point)) : std::nullopt;
    return value && *value < 0;
  });
}

/// The condition depends on one reduced dim, and otherwise on dims that have one value for all points and lanes.
bool ReductionEmitter::isSharedBy(const Points &points, Expr condition, int64_t reducedDim) {
  return !condition.usesAny([&](StringRef name) {
    auto number = parseNumbered(name, 'd');
    if (!number || int64_t(*number) == reducedDim)
      return false;
    if (int64_t(*number) >= firstReduced() || int64_t(*number) == points.front().vectorDim)
      return true;
    auto offsetOf = [&](const EmissionPoint &point) {
      return *number < point.offsets.size() ? point.offsets[*number] : 0;
    };
    return llvm::any_of(points, [&](const EmissionPoint &point) {
      return point.dims[*number] != points.front().dims[*number] || offsetOf(point) != offsetOf(points.front());
    });
  });
}

/// The dims of a tile's window with those last that neighbours' windows overlap along: what they share is read once, if
/// it is unrolled. Terms of a group always are, before those where both are few.
SmallVector<int64_t> ReductionEmitter::orderWindow(ArrayRef<int64_t> dims) {
  if (tiled < 0)
    return SmallVector<int64_t>(dims);
  bool inSteps = llvm::any_of(dims, [&](int64_t dim) { return windowsOverlap(op, tiled, dim, true); });
  auto overlaps = [&](int64_t dim) { return windowsOverlap(op, tiled, dim, inSteps); };
  int64_t together = 1; // elements of what is unrolled
  for (int64_t dim : dims)
    if (dim == groupTerm || overlaps(dim))
      together *= std::min(domain[size_t(dim)].asConstant().value_or(unrolledGroup + 1), unrolledGroup + 1);
  auto place = [&](int64_t dim) {
    return dim == groupTerm ? (together <= unrolledGroup ? 1 : 3) : overlaps(dim) ? 2 : 0;
  };
  SmallVector<int64_t> order(dims);
  llvm::stable_sort(order, [&](int64_t a, int64_t b) { return place(a) < place(b); });
  return order;
}

/// Vectors along a reduced dim that they fill, one of each point a step.
SmallVector<Value> ReductionEmitter::wholeVectors(const Points &points, ValueRange carried) {
  Expr extent = domain[size_t(vectorDim)];
  int64_t lanes = chooseWholeLanes(e, op, extent);
  auto at = [&](Value iv, ValueRange values) {
    Points inside = points;
    for (EmissionPoint &point : inside) {
      point.dims[size_t(vectorDim)] = iv;
      point.vectorDim = vectorDim;
      point.lanes = lanes;
    }
    if (context.atStep)
      context.atStep(inside.front(), int64_t(inside.size()));
    return step(inside, values);
  };
  if (extent.isConstant(lanes))
    return at(e.constant(0), carried);
  if (isBlocked() && extent.getValue() > unblockedSteps * lanes)
    return inBlocks(e.constant(extent.getValue()), blockSteps * lanes, carried,
                    [&](Value from, Value to, ValueRange in) { return loopOfSteps(from, to, lanes, in, at); });
  return loopOfSteps(e.constant(0), e.constant(extent.getValue()), lanes, carried, at);
}

/// Loops over what the window's ranges are; short ones are unrolled, and terms of a group, which lanes have to know.
SmallVector<Value> ReductionEmitter::windowLoops(ArrayRef<int64_t> dims, const Points &points, ValueRange carried) {
  if (dims.empty())
    return vectorDim >= 0 ? wholeVectors(points, carried) : step(points, carried);
  if (int64_t(dims.size()) == summedApart) {
    summedApart = -1; // within
    SmallVector<Value> sums(carried), own = windowLoops(dims, points, initial(points, 1, points.front().lanes));
    summedApart = int64_t(dims.size());
    for (size_t slot = 0; slot < sums.size(); ++slot) // sums have a slot each
      sums[slot] = mergeSlots(e, parts.reductions[slot % parts.reductions.size()], sums[slot], own[slot])[0];
    return sums;
  }
  int64_t budget = points.size() > 4 ? unrolledTile / int64_t(points.size()) : unrolledWindow;
  if (dims.size() == 1 && tiled >= 0 && parts.before.size() <= longestOfRow && windowsOverlap(op, tiled, dims.front()))
    budget = std::max(budget, unrolledRow / int64_t(points.size()));
  if (llvm::is_contained(dims, groupTerm))
    budget = unrolledGroup;
  int64_t iterations = 1;
  for (int64_t dim : dims) {
    Range range = windowRanges.lookup(dim);
    auto lower = e.invariants.asConstant(range.lower), upper = e.invariants.asConstant(range.upper);
    iterations *= lower && upper ? std::clamp<int64_t>(*upper - *lower, 1, budget + 1) : budget + 1;
  }
  Range range = windowRanges.lookup(dims.front());
  auto at = [&](Value iv, ValueRange values) {
    Points inside = points;
    for (EmissionPoint &point : inside)
      point.dims[size_t(dims.front())] = iv;
    return windowLoops(dims.drop_front(), inside, values);
  };
  auto lower = e.invariants.asConstant(range.lower), upper = e.invariants.asConstant(range.upper);
  if (!lower || !upper || (iterations > budget && dims.front() != groupTerm))
    return e.createLoop(range.lower, range.upper, 1, carried, at);
  SmallVector<Value> values(carried);
  for (int64_t i = *lower; i < *upper; ++i)
    values = at(e.constant(i), values);
  return values;
}

/// Of the loops over a long window, how many of the innermost are a sum of their own; -1: all.
int64_t ReductionEmitter::findSummedApart(ArrayRef<int64_t> dims) {
  int64_t elements = 1, inner = 0;
  for (int64_t dim : llvm::reverse(dims)) {
    elements *= std::min(domain[size_t(dim)].asConstant().value_or(unblockedSteps + 1), unblockedSteps + 1);
    if (elements > unblockedSteps)
      return inner ? inner : -1;
    ++inner;
  }
  return -1;
}

/// All of a window at once. Points of a tile, and windows too large to be unrolled, leave out what lies outside.
SmallVector<Value> ReductionEmitter::emitWindow(ArrayRef<int64_t> dims, const Points &points, ValueRange carried) {
  InvariantBuilder &in = e.invariants;
  int64_t size = 1;
  for (int64_t dim : dims) {
    Value extent = e.emitExpr(domain[size_t(dim)], points.front());
    windowRanges[dim] = {e.constant(0), extent};
    size *= std::clamp<int64_t>(in.asConstant(extent).value_or(unrolledWindow + 1), 1, unrolledWindow + 1);
  }
  if (!points.front().assumed && size <= unrolledWindow)
    return windowLoops(dims, points, carried);
  llvm::DenseSet<Attribute> assumed;
  if (points.front().assumed)
    assumed = *points.front().assumed;
  summedApart = vectorDim < 0 && isBlocked() ? findSummedApart(dims) : -1;
  skippable = getSkippableConditions(op);
  for (Expr condition : skippable)
    for (int64_t dim : dims) {
      if (assumed.contains(condition) || !condition.uses(dimName(dim)) || !isSharedBy(points, condition, dim))
        continue;
      std::optional<DimBounds> bounds = solveFor(condition, dim);
      if (!bounds)
        continue;
      Range &range = windowRanges[dim];
      if (bounds->lower)
        range.lower = in.max(range.lower, e.emitExpr(bounds->lower, points.front()));
      if (bounds->upper)
        range.upper = in.min(range.upper, e.emitExpr(bounds->upper, points.front()));
      assumed.insert(condition);
    }
  Points inside = points;
  for (EmissionPoint &point : inside)
    point.assumed = &assumed;
  SmallVector<Value> results = windowLoops(dims, inside, carried);
  skippable.clear();
  summedApart = -1;
  return results;
}

ReductionEmitter::Walk ReductionEmitter::chooseWalk(const EmissionPoint &point) {
  int64_t rank = int64_t(domain.size());
  Walk walk;
  walk.hasReducedLanes = vectorDim >= firstReduced();
  walk.isTile = walk.hasReducedLanes && point.assumed;
  walk.innermost = walk.hasReducedLanes ? vectorDim : rank - 1;
  walk.lanes = point.lanes;
  walk.chains = 1;
  if (walk.isTile) {
    walk.lanes = chooseWholeLanes(e, op, domain[size_t(vectorDim)]);
  } else if (walk.hasReducedLanes) {
    walk.lanes = cpu::chooseLanes(e, op, domain[size_t(vectorDim)]);
    walk.chains = choosePointsPerStep(llvm::to_vector(llvm::concat<Operation *const>(parts.before, parts.reductions)));
    if (auto known = domain[size_t(vectorDim)].asConstant())
      walk.chains = std::clamp<int64_t>(*known / walk.lanes / (pairsSteps() ? 2 : 1), 1, walk.chains);
  }
  for (int64_t dim = firstReduced(); dim < rank; ++dim)
    if (dim != walk.innermost)
      walk.outer.push_back(dim);
  return walk;
}

/// A short window. What is unrolled as a whole shares what it reads in any order; extremes, which take registers for
/// NaN, spill less in that of the window.
SmallVector<Value> ReductionEmitter::reduceUnrolled(const Points &points, const Walk &walk, ValueRange carried) {
  SmallVector<int64_t> dims = walk.outer;
  dims.push_back(walk.innermost);
  groupTerm = findGroupTerm(e, op, points.front().vectorDim, points.front().lanes);
  int64_t elements = int64_t(points.size());
  for (int64_t dim : dims)
    elements *= domain[size_t(dim)].asConstant().value_or(unrolledTile + 1);
  bool keepsOrder = elements <= unrolledTile && !isBlocked();
  return emitWindow(keepsOrder ? dims : orderWindow(dims), points, carried);
}

/// All terms of the points.
SmallVector<Value> ReductionEmitter::reduceAll(const Points &points, const Walk &walk, ValueRange carried) {
  if (op.getReduced() == 0)
    return step(points, carried);
  if (walk.isTile)
    return emitWindow(walk.outer, points, carried);
  std::optional<int64_t> inner = domain[size_t(walk.innermost)].asConstant();
  int64_t shortest = points.front().assumed ? unblockedSteps : unrolledWindow;
  if (!walk.hasReducedLanes && inner && *inner <= shortest)
    return reduceUnrolled(points, walk, carried);
  return emitLoops(e, domain, walk.outer, points, carried,
                   [&](const Points &at, ValueRange values) { return innerLoop(at, walk.innermost, values); });
}

/// The slots of a reduction's chains, one chain behind the other, become those of one, pairwise.
SmallVector<Value> ReductionEmitter::mergeChains(Operation *reduction, ArrayRef<Value> chains) {
  SmallVector<SmallVector<Value>> ends;
  for (size_t count = slotsOf(reduction); !chains.empty(); chains = chains.drop_front(count))
    ends.emplace_back(chains.take_front(count));
  while (ends.size() > 1) {
    SmallVector<SmallVector<Value>> merged;
    for (size_t i = 0; i + 1 < ends.size(); i += 2)
      merged.push_back(mergeSlots(e, reduction, ends[i], ends[i + 1]));
    if (ends.size() % 2)
      merged.push_back(ends.back());
    ends = std::move(merged);
  }
  return ends[0];
}

/// A result as the index that the body takes it for.
Value ReductionEmitter::widenPosition(Operation *reduction, Value result) {
  if (!isa<loop::ArgReduceOp>(reduction) || !positionType().isInteger(32))
    return result;
  Type wide = e.builder.getI64Type();
  if (auto vector = dyn_cast<VectorType>(result.getType()))
    wide = vector.clone(wide);
  return arith::ExtUIOp::create(e.builder, e.loc, wide, result);
}

/// Chains pairwise, then lanes; then what depends on the reductions.
void ReductionEmitter::emitResults(const Points &points, const Walk &walk, ValueRange accumulators,
                                   llvm::function_ref<Value(Value)> inLanesOrder) {
  size_t slots = slotsOf(parts);
  for (const EmissionPoint &point : points) {
    BodyEmitter body = bodyAt(point);
    size_t slot = 0;
    for (Operation *reduction : parts.reductions) {
      SmallVector<Value> chains;
      for (size_t chain = 0; chain < size_t(walk.chains); ++chain)
        llvm::append_range(chains, accumulators.slice(chain * slots + slot, slotsOf(reduction)));
      SmallVector<Value> end = mergeChains(reduction, chains);
      if (walk.hasReducedLanes)
        end = horizontal(reduction, end);
      body.bind(reduction->getResult(0), widenPosition(reduction, inLanesOrder(end.back())));
      slot += slotsOf(reduction);
    }
    body.emitOps(parts.after);
    accumulators = accumulators.drop_front(size_t(walk.chains) * slots);
  }
}

void ReductionEmitter::emit(const Points &places) {
  Points points = places;
  int64_t laneStride = chooseLaneStride(points.front());
  codegen::StridedLanes strided(std::max<int64_t>(points.front().lanes, 2), std::max<int64_t>(laneStride, 2));
  for (EmissionPoint &point : points) {
    point.laneStride = laneStride;
    if (laneStride > 1 && point.mask)
      point.mask = strided.fromLanes(e.builder, e.loc, point.mask);
  }
  Walk walk = chooseWalk(points.front());
  SmallVector<Value> results = reduceAll(points, walk, initial(points, walk.chains, walk.lanes));
  if (walk.isTile && emitJoined(points, results))
    return;
  emitResults(places, walk, results,
              [&](Value result) { return laneStride > 1 ? strided.toLanes(e.builder, e.loc, result) : result; });
}

void NodeEmitter::emitReduction(loop::ReductionOp op, const Points &points, int64_t shared, int64_t vectorDim,
                                int64_t tiled, const PointContext &context) {
  BodyParts parts = splitBody(op.getBody().front());
  auto isKnown = [&](Operation *inner) {
    return inner->getNumResults() == 1 && context.known.contains(inner->getResult(0));
  };
  llvm::erase_if(parts.before, isKnown);
  llvm::erase_if(parts.after, isKnown);
  int64_t firstReduced = int64_t(domain.size()) - op.getReduced();
  bool hasKeptLanes = vectorDim >= 0 && vectorDim < firstReduced;
  ReductionEmitter reduction(e, op, domain, parts, hasKeptLanes ? -1 : vectorDim, tiled, context);
  SmallVector<int64_t> kept;
  for (int64_t dim = shared; dim < firstReduced; ++dim)
    if (dim != vectorDim)
      kept.push_back(dim);
  auto body = [&](const Points &at, ValueRange) {
    reduction.emit(at);
    return SmallVector<Value>();
  };
  emitLoops(e, domain, kept, points, {}, [&](const Points &at, ValueRange) {
    if (!hasKeptLanes)
      return body(at, {});
    Expr extent = domain[size_t(vectorDim)];
    return emitVectorLoop(e, at.front(), vectorDim, e.constant(0), e.emitExpr(extent, at.front()),
                          cpu::chooseLanes(e, op, extent), choosePointsPerStep(op), hasMasks(op, e.level), {}, body);
  });
}
