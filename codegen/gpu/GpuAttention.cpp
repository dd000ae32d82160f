//===- GpuAttention.cpp - streaming softmax attention, a warp a query -----===//
//
//   o[i] = sum over j of softmax_j(score(q[i] . k[j])) * v[j]
//
// A warp takes one query and walks over the keys in groups of 32 (online softmax, as in codegen/cpu/CpuAttention.cpp,
// which states the invariants for -inf and NaN). Lanes are keys while scores are computed: each does the dot product of
// its key. Then lanes are columns of v: the weights go round by shuffles, and each lane keeps up to `columnsOfLane`
// sums in registers. Wider values take the walk again for each part of the columns.
//
// Every lane computes the same maxima and sums by the same tree of exchanges, so that all agree bit by bit.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/GpuTemplates.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t columnsOfLane = 8;

namespace {

class QueryEmitter {
public:
  QueryEmitter(GpuEmitter &e, loop::AttentionOp op, const EmissionPoint &point);
  void emit();

private:
  Value number(float value) { return e.invariants.constant(b.getF32FloatAttr(value)); }
  Value infinity() { return number(-std::numeric_limits<float>::infinity()); }
  Value element(Region &region, EmissionPoint at, int64_t dim, Value value);
  Value exponential(Value x, Value base);
  Value overWarp(Value value, llvm::function_ref<Value(Value, Value)> step);
  Value scoreOf(Value key);
  SmallVector<Value> step(Value first, ValueRange state, Value firstColumn);
  void emitColumns(Value firstColumn);

  GpuEmitter &e;
  OpBuilder &b;
  loop::AttentionOp op;
  EmissionPoint point;
  int64_t iDim, jDim, dDim, eDim, columns; // columns of a lane
  Value keys, depth, width, lane;
  Type f32;
};

} // namespace

QueryEmitter::QueryEmitter(GpuEmitter &e, loop::AttentionOp op, const EmissionPoint &given)
    : e(e), b(e.builder), op(op), point(given), iDim(int64_t(op.getBatch())), jDim(iDim + 1), dDim(iDim + 2),
      eDim(iDim + 3), lane(e.row.rank), f32(b.getF32Type()) {
  SmallVector<Expr> domain = loop::getDomain(op);
  e.setDomain(domain);
  point.dims.resize(domain.size());
  keys = e.emitExpr(domain[size_t(jDim)], point);
  if (op.getCausal())
    keys = e.invariants.min(keys, e.invariants.add(point.dims[size_t(iDim)], e.constant(1)));
  depth = e.emitExpr(domain[size_t(dDim)], point);
  width = e.emitExpr(domain[size_t(eDim)], point);
  int64_t known = domain[size_t(eDim)].asConstant().value_or(warpSize * columnsOfLane);
  columns = std::clamp<int64_t>(llvm::divideCeil(known, warpSize), 1, columnsOfLane);
}

/// The region's value with `dim` at `value`, as f32.
Value QueryEmitter::element(Region &region, EmissionPoint at, int64_t dim, Value value) {
  at.dims[size_t(dim)] = value;
  Value result = e.emitRegion(region, at);
  return result.getType() == f32 ? result : arith::ExtFOp::create(b, e.loc, f32, result).getResult();
}

Value QueryEmitter::exponential(Value x, Value base) {
  return math::ExpOp::create(b, e.loc, arith::SubFOp::create(b, e.loc, x, base).getResult());
}

Value QueryEmitter::overWarp(Value value, llvm::function_ref<Value(Value, Value)> step) {
  for (int64_t distance = warpSize / 2; distance > 0; distance /= 2)
    value = step(value, e.createShuffle({value}, distance)[0]);
  return value;
}

Value QueryEmitter::scoreOf(Value key) {
  EmissionPoint at = point;
  at.dims[size_t(jDim)] = key;
  Value dot = e.createLoop(e.constant(0), depth, 1, {number(0)}, [&](Value d, ValueRange in) {
    Value x = element(op.getQ(), at, dDim, d), y = element(op.getK(), at, dDim, d);
    return SmallVector<Value>{math::FmaOp::create(b, e.loc, x, y, in[0])};
  })[0];
  return e.emitRegion(op.getScore(), at, {dot});
}

/// Keys from `first` on. State: the largest score, the sum of weights, the sums of the lane's columns.
SmallVector<Value> QueryEmitter::step(Value first, ValueRange state, Value firstColumn) {
  auto larger = [&](Value a, Value c) -> Value { // what is no number leaves the maximum as it is
    Value isLarger = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OGT, c, a);
    return arith::SelectOp::create(b, e.loc, isLarger, c, a);
  };
  auto plus = [&](Value a, Value c) -> Value { return arith::AddFOp::create(b, e.loc, a, c); };
  Value own = e.invariants.add(first, lane);
  Value exists = e.invariants.compare(arith::CmpIPredicate::slt, own, keys);
  Value last = e.invariants.sub(keys, e.constant(1));
  Value score = scoreOf(e.invariants.min(own, last));
  score = arith::SelectOp::create(b, e.loc, exists, score, infinity());
  Value maximum = larger(state[0], overWarp(larger(infinity(), score), larger));
  Value isNone = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OEQ, maximum, infinity());
  Value base = arith::SelectOp::create(b, e.loc, isNone, number(0), maximum);
  Value weight = exponential(score, base), scale = exponential(state[0], base);
  weight = arith::SelectOp::create(b, e.loc, exists, weight, number(0));
  auto times = [&](Value a) -> Value { return arith::MulFOp::create(b, e.loc, a, scale); };
  Value sum = plus(times(state[1]), overWarp(weight, plus));
  SmallVector<Value> sums = llvm::map_to_vector(state.drop_front(2), times);

  Value count = e.invariants.min(e.constant(warpSize), e.invariants.sub(keys, first));
  sums = e.createLoop(e.constant(0), count, 1, sums, [&](Value from, ValueRange in) {
    Value taken = e.createBroadcast(weight, from);
    EmissionPoint at = point;
    at.dims[size_t(jDim)] = e.invariants.add(first, from);
    SmallVector<Value> out;
    Value lastColumn = e.invariants.sub(width, e.constant(1));
    for (int64_t i = 0; i < columns; ++i) {
      Value column = e.invariants.add(e.invariants.add(firstColumn, lane), e.constant(i * warpSize));
      Value v = element(op.getV(), at, eDim, e.invariants.min(column, lastColumn));
      out.push_back(math::FmaOp::create(b, e.loc, taken, v, in[size_t(i)]));
    }
    return out;
  });
  SmallVector<Value> next{maximum, sum};
  next.append(sums);
  return next;
}

void QueryEmitter::emitColumns(Value firstColumn) {
  SmallVector<Value> state(size_t(columns) + 2, number(0));
  state[0] = infinity();
  state = e.createLoop(e.constant(0), keys, warpSize, state,
                       [&](Value first, ValueRange in) { return step(first, in, firstColumn); });
  Value isSome = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OGT, state[1], number(0));
  for (int64_t i = 0; i < columns; ++i) {
    Value column = e.invariants.add(e.invariants.add(firstColumn, lane), e.constant(i * warpSize));
    Value exists = e.invariants.compare(arith::CmpIPredicate::slt, column, width);
    e.createIf(exists, {}, [&] {
      Value result = arith::DivFOp::create(b, e.loc, state[size_t(i) + 2], state[1]);
      if (op.getZeroMaskedRows())
        result = arith::SelectOp::create(b, e.loc, isSome, result, number(0));
      EmissionPoint at = point;
      at.dims[size_t(eDim)] = column;
      e.emitRegion(op.getEpilogue(), at, {result});
      return SmallVector<Value>();
    });
  }
}

void QueryEmitter::emit() {
  e.createLoop(e.constant(0), width, columns * warpSize, {}, [&](Value firstColumn, ValueRange) {
    emitColumns(firstColumn);
    return SmallVector<Value>();
  });
}

void gpu::emitAttention(GpuEmitter &e, loop::AttentionOp op, const EmissionPoint &point) {
  QueryEmitter(e, op, point).emit();
}
