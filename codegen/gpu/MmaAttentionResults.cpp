//===- MmaAttentionResults.cpp - from sums of keys to results -------------===//
//
// Every warp leaves its sums in shared memory, with its rows' maxima and sums of weights. Then all threads take chunks
// of a row: the groups' sums, times what each weighs beside the others,
//
//   factor[g] = 2^(maximum[g] - maximum of all) / sum over g of 2^(maximum[g] - maximum of all) weights[g]
//
// in the order of the groups, so that results do not depend on timing; and writes are whole lines.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/GpuInstructions.h"
#include "codegen/gpu/MmaAttentionEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t mostLanes = 8;

/// Of a query of the block; `more` bytes on.
Value AttentionEmitter::sumAddress(Value of, Value row, Value column, int64_t more) {
  Value line = e.invariants.add(e.invariants.mul(of, e.constant(tile.queries())), row);
  Value index = e.invariants.add(e.invariants.mul(line, e.constant(tile.sumPitch())), column);
  return at(e.getAddress(shared, b.getF32Type(), index), more);
}

Value AttentionEmitter::rowSumsAddress(Value of, Value row) {
  Value line = e.invariants.add(e.invariants.mul(of, e.constant(tile.queries())), row);
  return e.getAddress(at(shared, tile.rowSumsOffset()), b.getI8Type(), e.invariants.mul(line, e.constant(8)));
}

void AttentionEmitter::spread(ValueRange state) {
  auto pairOf = [&](Value first, Value second) {
    Value vector = LLVM::PoisonOp::create(b, e.loc, VectorType::get({2}, b.getF32Type()));
    vector = LLVM::InsertElementOp::create(b, e.loc, vector, first, e.constant(0));
    return LLVM::InsertElementOp::create(b, e.loc, vector, second, e.constant(1)).getResult();
  };
  auto plus = [&](Value a, Value c) -> Value { return arith::AddFOp::create(b, e.loc, a, c); };
  Value inQuad = e.invariants.mod(lane, e.constant(4), true), pair = e.invariants.mul(inQuad, e.constant(2));
  Value first = e.invariants.add(warpRow, e.invariants.floorDiv(lane, e.constant(4), true));
  Value isFirst = e.invariants.compare(arith::CmpIPredicate::eq, inQuad, e.constant(0));
  for (size_t row : {0, 1}) {
    int64_t below = 8 * int64_t(row);
    for (int64_t column = 0; column < tile.width; column += 8) {
      size_t sum = firstSum + size_t(column / 2) + row * 2;
      Value address = sumAddress(group, first, pair, (below * tile.sumPitch() + column) * 4);
      LLVM::StoreOp::create(b, e.loc, pairOf(state[sum], state[sum + 1]), address, 8);
    }
    Value all = overQuad(state[row + 2], plus);
    e.createIf(isFirst, {}, [&] {
      LLVM::StoreOp::create(b, e.loc, pairOf(state[row], all), at(rowSumsAddress(group, first), below * 8), 8);
      return Values();
    });
  }
}

/// What sums of each group are multiplied by; `isSome`: some weight is not 0.
AttentionEmitter::Values AttentionEmitter::factorsOf(Value row, Value &isSome) {
  auto pair = VectorType::get({2}, b.getF32Type());
  Values maxima, weights, factors;
  for (int64_t from = 0; from < tile.groups; ++from) {
    Value both = LLVM::LoadOp::create(b, e.loc, pair, rowSumsAddress(e.constant(from), row), 8);
    maxima.push_back(LLVM::ExtractElementOp::create(b, e.loc, both, e.constant(0)));
    weights.push_back(LLVM::ExtractElementOp::create(b, e.loc, both, e.constant(1)));
  }
  Value maximum = maxima.front(), sum = weights.front();
  for (Value other : ArrayRef(maxima).drop_front())
    maximum = larger(maximum, other);
  if (tile.groups > 1) {
    Value base = baseOf(maximum);
    sum = number(0);
    for (auto [own, weight] : llvm::zip_equal(maxima, weights)) {
      factors.push_back(powerOfTwo(arith::SubFOp::create(b, e.loc, own, base)));
      sum = math::FmaOp::create(b, e.loc, weight, factors.back(), sum);
    }
  } else {
    factors.push_back(number(1));
  }
  isSome = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OGT, sum, number(0));
  for (Value &factor : factors)
    factor = arith::DivFOp::create(b, e.loc, factor, sum);
  return factors;
}

/// Neighbouring columns that a thread takes: 16 bytes of the widest element.
int64_t AttentionEmitter::chooseLanes() {
  int64_t widest = 1;
  op.getEpilogue().walk([&](Operation *inner) {
    if (auto load = dyn_cast<loop::LoadOp>(inner))
      widest = std::max(widest, loop::getElementBytes(load.getType()));
    else if (auto store = dyn_cast<loop::StoreOp>(inner))
      widest = std::max(widest, loop::getElementBytes(store.getValue().getType()));
  });
  return std::clamp<int64_t>(16 / widest, 1, mostLanes);
}

void AttentionEmitter::emitChunk(Value number, int64_t lanes) {
  Value perRow = e.constant(tile.width / lanes), row = e.invariants.floorDiv(number, perRow, true);
  Value column = e.invariants.mul(e.invariants.mod(number, perRow, true), e.constant(lanes)), isSome;
  Values factors = factorsOf(row, isSome), results(size_t(lanes), this->number(0));
  int64_t width = std::min<int64_t>(lanes, 4);
  for (int64_t from = 0; from < tile.groups; ++from)
    for (int64_t first = 0; first < lanes; first += width) {
      Value address = sumAddress(e.constant(from), row, column, first * 4);
      Type type = VectorType::get({width}, b.getF32Type());
      Value sums = LLVM::LoadOp::create(b, e.loc, type, address, unsigned(width * 4));
      for (int64_t i = 0; i < width; ++i) {
        Value sum = LLVM::ExtractElementOp::create(b, e.loc, sums, e.constant(i)), &result = results[size_t(first + i)];
        result = from ? math::FmaOp::create(b, e.loc, sum, factors[size_t(from)], result).getResult()
                      : arith::MulFOp::create(b, e.loc, sum, factors.front()).getResult();
      }
    }
  Value place = e.invariants.add(firstQuery, row), last = e.invariants.sub(queryCount, e.constant(1));
  EmissionPoint here = point;
  here.dims[size_t(iDim)] = e.invariants.min(place, last);
  here.dims[size_t(eDim)] = column;
  Block &body = op.getEpilogue().front();
  LaneEmitter epilogue(e, op, here, eDim, lanes);
  for (auto [lane, result] : llvm::enumerate(results)) {
    if (op.getZeroMaskedRows())
      result = arith::SelectOp::create(b, e.loc, isSome, result, this->number(0));
    epilogue.getBody(lane).bind(body.getArgument(0), result);
  }
  SmallVector<Operation *> ops;
  for (Operation &inner : body)
    if (!isa<loop::YieldOp>(inner))
      ops.push_back(&inner);
  e.createIf(less(place, queryCount), {}, [&] {
    epilogue.emitOps(ops);
    return Values();
  });
}

void AttentionEmitter::emitResults(ValueRange state) {
  e.createBlockBarrier(); // all have read their tiles
  spread(state);
  e.createBlockBarrier();
  int64_t lanes = chooseLanes(), total = tile.queries() * tile.width / lanes;
  for (int64_t begin = 0; begin < total; begin += tile.threads()) {
    Value index = e.invariants.add(thread, e.constant(begin));
    auto chunk = [&] {
      emitChunk(index, lanes);
      return Values();
    };
    if (begin + tile.threads() <= total)
      chunk();
    else
      e.createIf(less(index, e.constant(total)), {}, chunk);
  }
}
