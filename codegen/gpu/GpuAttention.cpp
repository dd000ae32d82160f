//===- GpuAttention.cpp - streaming softmax attention, a warp a query -----===//
//
//   o[i] = sum over j of softmax_j(score(q[i] . k[j])) * v[j]
//
// A warp walks over the keys of one query in groups of 32 (online softmax, as in codegen/cpu/CpuAttention.cpp, which
// states the invariants for -inf and NaN). Lanes are keys while scores are computed: each does the dot product of its
// key. Then lanes are columns of v: the weights go round by shuffles, and each lane keeps up to `columnsOfLane` sums in
// registers. Wider values take the walk again for each part of the columns. What takes time is to wait for memory, so
// that several elements and keys are asked for at once.
//
// Where queries are few (a decoder's one), the warps of a row take groups of keys in turn. Each leaves its maximum and
// sums in shared memory, and all add them up in the order of the warps.
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
static constexpr int64_t elementsTogether = 32, keysTogether = 8; // that a lane asks for at once

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
  Value larger(Value a, Value c);
  SmallVector<Value> elements(Region &region, EmissionPoint at, Value first, int64_t count);
  Value scoreOf(Value key);
  SmallVector<Value> step(Value first, ValueRange state, Value firstColumn);
  SmallVector<Value> joinWarps(SmallVector<Value> state);
  void emitColumns(Value firstColumn);

  GpuEmitter &e;
  OpBuilder &b;
  loop::AttentionOp op;
  EmissionPoint point;
  int64_t iDim, jDim, dDim, eDim, columns; // columns of a lane
  Value keys, depth, width, lane, warp, memory;
  const int64_t warps; // of the query
  Type f32;
};

} // namespace

QueryEmitter::QueryEmitter(GpuEmitter &e, loop::AttentionOp op, const EmissionPoint &given)
    : e(e), b(e.builder), op(op), point(given), iDim(int64_t(op.getBatch())), jDim(iDim + 1), dDim(iDim + 2),
      eDim(iDim + 3), lane(e.invariants.mod(e.row.rank, e.constant(warpSize), true)),
      warp(e.invariants.floorDiv(e.row.rank, e.constant(warpSize), true)), warps(e.row.size / warpSize),
      f32(b.getF32Type()) {
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

/// The larger one; what is no number leaves `a` as it is.
Value QueryEmitter::larger(Value a, Value c) {
  Value isLarger = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OGT, c, a);
  return arith::SelectOp::create(b, e.loc, isLarger, c, a);
}

/// `count` neighbours along d.
SmallVector<Value> QueryEmitter::elements(Region &region, EmissionPoint at, Value first, int64_t count) {
  SmallVector<Operation *> ops;
  for (Operation &inner : region.front())
    if (!isa<loop::YieldOp>(inner))
      ops.push_back(&inner);
  Value yielded = cast<loop::YieldOp>(region.front().getTerminator()).getValue();
  int64_t widest = loop::getElementBytes(yielded.getType());
  region.walk([&](loop::LoadOp load) { widest = loop::getElementBytes(load.getType()); });
  int64_t lanes = std::min<int64_t>(16 / widest, count);
  SmallVector<Value> values;
  for (int64_t from = 0; from < count; from += lanes) {
    at.dims[size_t(dDim)] = e.invariants.add(first, e.constant(from));
    LaneEmitter group(e, op, at, dDim, lanes);
    group.emitOps(ops);
    for (int64_t i = 0; i < lanes; ++i) {
      Value value = group.getBody(size_t(i)).lookup(yielded);
      values.push_back(value.getType() == f32 ? value : arith::ExtFOp::create(b, e.loc, f32, value).getResult());
    }
  }
  return values;
}

Value QueryEmitter::scoreOf(Value key) {
  EmissionPoint at = point;
  at.dims[size_t(jDim)] = key;
  int64_t together = elementsTogether, known = e.invariants.asConstant(depth).value_or(1);
  while (known % together != 0)
    together /= 2;
  Value dot = e.createLoop(e.constant(0), depth, together, {number(0)}, [&](Value d, ValueRange in) {
    SmallVector<Value> x = elements(op.getQ(), at, d, together), y = elements(op.getK(), at, d, together);
    Value sum = in[0];
    for (auto [left, right] : llvm::zip_equal(x, y))
      sum = math::FmaOp::create(b, e.loc, left, right, sum);
    return SmallVector<Value>{sum};
  })[0];
  return e.emitRegion(op.getScore(), at, {dot});
}

/// Keys from `first` on. State: the largest score, the sum of weights, the sums of the lane's columns.
SmallVector<Value> QueryEmitter::step(Value first, ValueRange state, Value firstColumn) {
  auto larger = [&](Value a, Value c) { return this->larger(a, c); };
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
  sums = e.createLoop(e.constant(0), count, keysTogether, sums, [&](Value from, ValueRange in) {
    SmallVector<Value> out(in), taken, values; // key by key; those that do not exist weigh nothing and are read as 0
    for (int64_t next = 0; next < keysTogether; ++next) {
      Value place = e.invariants.add(from, e.constant(next)), key = e.invariants.add(first, place);
      Value isThere = e.invariants.compare(arith::CmpIPredicate::slt, key, keys);
      taken.push_back(e.createShuffleFrom(weight, place)[0]);
      EmissionPoint at = point;
      at.dims[size_t(jDim)] = e.invariants.min(key, last);
      Value lastColumn = e.invariants.sub(width, e.constant(1));
      for (int64_t i = 0; i < columns; ++i) {
        Value column = e.invariants.add(e.invariants.add(firstColumn, lane), e.constant(i * warpSize));
        Value v = element(op.getV(), at, eDim, e.invariants.min(column, lastColumn));
        values.push_back(arith::SelectOp::create(b, e.loc, isThere, v, number(0)));
      }
    }
    for (size_t i = 0; i < values.size(); ++i)
      out[i % size_t(columns)] =
          math::FmaOp::create(b, e.loc, taken[i / size_t(columns)], values[i], out[i % size_t(columns)]);
    return out;
  });
  SmallVector<Value> next{maximum, sum};
  next.append(sums);
  return next;
}

/// What all warps of the query have found, in each of them.
SmallVector<Value> QueryEmitter::joinWarps(SmallVector<Value> state) {
  if (warps == 1)
    return state;
  int64_t words = int64_t(state.size());
  if (!memory)
    memory = e.sharedMemoryOfRow(warps * words * warpSize * 4);
  auto addressOf = [&](Value from, int64_t word) {
    Value line = e.invariants.add(e.invariants.mul(from, e.constant(words)), e.constant(word));
    return e.getAddress(memory, f32, e.invariants.add(e.invariants.mul(line, e.constant(warpSize)), lane));
  };
  for (auto [word, value] : llvm::enumerate(state))
    e.createStore(value, addressOf(warp, int64_t(word)));
  e.createBarrier();
  Value maximum = infinity();
  for (int64_t from = 0; from < warps; ++from)
    maximum = larger(maximum, e.createLoad(f32, 1, addressOf(e.constant(from), 0)));
  Value isNone = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OEQ, maximum, infinity());
  Value base = arith::SelectOp::create(b, e.loc, isNone, number(0), maximum);
  SmallVector<Value> joint(state.size(), number(0));
  joint[0] = maximum;
  for (int64_t from = 0; from < warps; ++from) {
    Value scale = exponential(e.createLoad(f32, 1, addressOf(e.constant(from), 0)), base);
    for (int64_t word = 1; word < words; ++word) {
      Value part = e.createLoad(f32, 1, addressOf(e.constant(from), word));
      joint[size_t(word)] = math::FmaOp::create(b, e.loc, part, scale, joint[size_t(word)]);
    }
  }
  e.createBarrier(); // before the next columns
  return joint;
}

void QueryEmitter::emitColumns(Value firstColumn) {
  SmallVector<Value> state(size_t(columns) + 2, number(0));
  state[0] = infinity();
  Value begin = e.invariants.mul(warp, e.constant(warpSize));
  state = e.createLoop(begin, keys, warps * warpSize, state,
                       [&](Value first, ValueRange in) { return step(first, in, firstColumn); });
  state = joinWarps(state);
  Value isSome = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OGT, state[1], number(0));
  for (int64_t i = 0; i < columns; ++i) {
    Value column = e.invariants.add(e.invariants.add(firstColumn, lane), e.constant(i * warpSize));
    Value exists = e.invariants.compare(arith::CmpIPredicate::slt, column, width);
    Value isOne = e.invariants.compare(arith::CmpIPredicate::eq, warp, e.constant(0));
    e.createIf(e.invariants.logicalAnd(exists, isOne), {}, [&] {
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
