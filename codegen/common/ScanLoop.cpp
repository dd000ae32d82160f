//===- ScanLoop.cpp - running values along a scan's last dim --------------===//
//
// Lines side by side are lanes or points, each with a state of its own. A line alone has none beside it; of integers,
// whose sums are the same in any order, its neighbours are lanes: a vector's own sums take a shift by 1, 2, 4, ...
// lanes and an addition each, and the state, which all lanes have, joins last. So states wait for one addition a
// vector.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ScanLoop.h"
#include "ir/expr/DimName.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::codegen;

namespace {
struct RunningValue {
  Value before, after; // the element
  Value state;         // for the next step
};
} // namespace

using Advance = llvm::function_ref<RunningValue(loop::RunningOp, Value state, Value value)>;

// One step: the states, one for each point and loop.running, enter and leave.
static SmallVector<Value> emitScanStep(KernelEmitter &e, Block &block, ArrayRef<EmissionPoint> points,
                                       ValueRange states, Advance advance) {
  SmallVector<Value> next(states);
  size_t slot = 0;
  for (const EmissionPoint &point : points) {
    BodyEmitter body(e, point);
    SmallVector<Operation *> ops; // up to the next loop.running
    for (Operation &op : block) {
      auto running = dyn_cast<loop::RunningOp>(op);
      if (!running) {
        ops.push_back(&op);
        continue;
      }
      body.emitOps(ops);
      ops.clear();
      Value value = e.splat(body.lookup(running.getValue()), point.lanes);
      RunningValue now = advance(running, states[slot], value);
      next[slot++] = now.state;
      body.bind(running.getResult(), running.getExclusive() ? now.before : now.after);
    }
    body.emitOps(ops);
  }
  return next;
}

static SmallVector<Value> emitScanStep(KernelEmitter &e, Block &block, ArrayRef<EmissionPoint> points,
                                       ValueRange states) {
  return emitScanStep(e, block, points, states, [&](loop::RunningOp op, Value state, Value value) -> RunningValue {
    Value after = emitCombine(e, op.getKind(), state, value, op.getIsUnsigned());
    return {state, after, after};
  });
}

void codegen::emitScanLoop(KernelEmitter &e, loop::ScanOp op, ArrayRef<EmissionPoint> points) {
  Block &block = op.getBody().front();
  SmallVector<Expr> domain = loop::getDomain(op);
  SmallVector<Value> states;
  for (const EmissionPoint &point : points)
    for (auto running : block.getOps<loop::RunningOp>()) {
      TypedAttr identity = getIdentity(running.getKind(), running.getType(), running.getIsUnsigned());
      states.push_back(e.splat(e.invariants.constant(identity), point.lanes));
    }
  Value extent = e.emitExpr(domain.back(), points.front());
  e.createLoop(e.constant(0), extent, 1, states, [&](Value iv, ValueRange carried) {
    Value position = op.getReverse() ? e.invariants.sub(e.invariants.sub(extent, e.constant(1)), iv) : iv;
    SmallVector<EmissionPoint> here(points);
    for (EmissionPoint &point : here)
      point.dims[domain.size() - 1] = position;
    return emitScanStep(e, block, here, carried);
  });
}

//===----------------------------------------------------------------------===//
// A line in lanes
//===----------------------------------------------------------------------===//

/// Whether lanes along the dim are neighbours in memory, or one element.
static bool areNeighbours(ArrayAttr indices, ValueRange operands, int64_t dim) {
  Expr index = cast<ExprAttr>(indices[0]);
  Expr step = index.coefficientOf(dimName(dim));
  return operands.empty() && (!index.uses(dimName(dim)) || (step && step.asConstant() == 1));
}

static bool fitsLanes(Operation &op, int64_t dim) {
  if (auto running = dyn_cast<loop::RunningOp>(op))
    return running.getKind() == prim::ReduceKind::Sum && isa<IntegerType>(running.getType()) &&
           !running.getType().isInteger(1);
  if (auto load = dyn_cast<loop::LoadOp>(op))
    return areNeighbours(load.getIndices(), load.getIndexOperands(), dim);
  if (auto store = dyn_cast<loop::StoreOp>(op))
    return !store.getCombine() && areNeighbours(store.getIndices(), store.getIndexOperands(), dim);
  return op.getNumRegions() == 0 && !isa<loop::CheckIndexOp>(op);
}

bool codegen::scansInLanes(KernelEmitter &e, loop::ScanOp op) {
  constexpr int64_t fewestVectors = 4;
  Block &block = op.getBody().front();
  SmallVector<Expr> domain = loop::getDomain(op);
  int64_t dim = int64_t(domain.size()) - 1, least = fewestVectors * e.chooseLanes(op);
  auto loads = block.getOps<loop::LoadOp>();
  auto isStored = [&](loop::LoadOp load) {
    return llvm::any_of(block.getOps<loop::StoreOp>(),
                        [&](loop::StoreOp store) { return store.getBuffer() == load.getBuffer(); });
  };
  return !op.getReverse() && domain.back().asConstant().value_or(least) >= least && llvm::none_of(loads, isStored) &&
         llvm::all_of(block, [&](Operation &inner) { return fitsLanes(inner, dim); });
}

/// The lanes of a vector of sums with those `distance` in front of them.
static Value addShifted(KernelEmitter &e, Value sums, int64_t distance) {
  auto type = cast<VectorType>(sums.getType());
  Value zero = e.invariants.constant(cast<TypedAttr>(e.builder.getZeroAttr(type)));
  SmallVector<int32_t> from; // of the lanes of `sums` and the zeros behind them
  for (int64_t lane = 0; lane < type.getNumElements(); ++lane)
    from.push_back(int32_t(lane < distance ? type.getNumElements() : lane - distance));
  Value shifted = LLVM::ShuffleVectorOp::create(e.builder, e.loc, sums, zero, from);
  return arith::AddIOp::create(e.builder, e.loc, sums, shifted);
}

static RunningValue advanceLanes(KernelEmitter &e, Value state, Value value) {
  int64_t lanes = cast<VectorType>(value.getType()).getNumElements();
  Value sums = value;
  for (int64_t distance = 1; distance < lanes; distance *= 2)
    sums = addShifted(e, sums, distance);
  SmallVector<int32_t> last(size_t(lanes), int32_t(lanes - 1));
  Value total = LLVM::ShuffleVectorOp::create(e.builder, e.loc, sums, sums, last);
  Value after = arith::AddIOp::create(e.builder, e.loc, state, sums);
  return {arith::SubIOp::create(e.builder, e.loc, after, value), after,
          arith::AddIOp::create(e.builder, e.loc, state, total)};
}

void codegen::emitScanInLanes(KernelEmitter &e, loop::ScanOp op, const EmissionPoint &point) {
  Block &block = op.getBody().front();
  SmallVector<Expr> domain = loop::getDomain(op);
  size_t dim = domain.size() - 1;
  InvariantBuilder &in = e.invariants;
  int64_t lanes = e.chooseLanes(op);
  Value extent = e.emitExpr(domain.back(), point);
  Value whole = in.mul(in.floorDiv(extent, e.constant(lanes), true), e.constant(lanes));
  SmallVector<Value> states;
  for (auto running : block.getOps<loop::RunningOp>())
    states.push_back(e.splat(in.constant(cast<TypedAttr>(e.builder.getZeroAttr(running.getType()))), lanes));
  EmissionPoint at = point;
  states = e.createLoop(e.constant(0), whole, lanes, states, [&](Value iv, ValueRange carried) {
    at.dims[dim] = iv;
    at.vectorDim = int64_t(dim);
    at.lanes = lanes;
    return emitScanStep(e, block, at, carried,
                        [&](loop::RunningOp, Value state, Value value) { return advanceLanes(e, state, value); });
  });
  for (Value &state : states)
    state = LLVM::ExtractElementOp::create(e.builder, e.loc, state, e.constant(0));
  at = point;
  e.createLoop(whole, extent, 1, states, [&](Value iv, ValueRange carried) {
    at.dims[dim] = iv;
    return emitScanStep(e, block, at, carried);
  });
}
