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

AttentionEmitter::Joint AttentionEmitter::join(ValueRange maxima, ValueRange weights) {
  if (maxima.size() == 1)
    return {maxima[0], weights[0], {number(1)}};
  Joint joint{maxima[0], number(0), {}};
  for (Value other : maxima.drop_front())
    joint.maximum = larger(joint.maximum, other);
  Value base = baseOf(joint.maximum);
  for (auto [own, weight] : llvm::zip_equal(maxima, weights)) {
    joint.factors.push_back(powerOfTwo(arith::SubFOp::create(b, e.loc, own, base)));
    joint.weight = math::FmaOp::create(b, e.loc, weight, joint.factors.back(), joint.weight);
  }
  return joint;
}

AttentionEmitter::Joint AttentionEmitter::joinGroups(Value row) {
  auto pair = VectorType::get({2}, b.getF32Type());
  Values maxima, weights;
  for (int64_t from = 0; from < tile.groups; ++from) {
    Value both = LLVM::LoadOp::create(b, e.loc, pair, rowSumsAddress(e.constant(from), row), 8);
    maxima.push_back(LLVM::ExtractElementOp::create(b, e.loc, both, e.constant(0)));
    weights.push_back(LLVM::ExtractElementOp::create(b, e.loc, both, e.constant(1)));
  }
  return join(maxima, weights);
}

/// Of neighbouring columns, the groups' sums times their factors.
AttentionEmitter::Values AttentionEmitter::sumGroups(ArrayRef<Value> factors, Value row, Value column, int64_t lanes) {
  Values results(static_cast<size_t>(lanes));
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
  return results;
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

void AttentionEmitter::writeChunk(Value row, Value column, Values results, Value isSome) {
  Value place = e.invariants.add(firstQuery, row), last = e.invariants.sub(queryCount, e.constant(1));
  EmissionPoint here = point;
  here.dims[size_t(iDim)] = e.invariants.min(place, last);
  here.dims[size_t(eDim)] = column;
  Block &body = op.getEpilogue().front();
  LaneEmitter epilogue(e, op, here, eDim, int64_t(results.size()));
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

void AttentionEmitter::emitChunk(Value row, Value column, int64_t lanes) {
  Joint joint = joinGroups(row);
  for (Value &factor : joint.factors)
    factor = arith::DivFOp::create(b, e.loc, factor, joint.weight);
  Value isSome = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OGT, joint.weight, number(0));
  writeChunk(row, column, sumGroups(joint.factors, row, column, lanes), isSome);
}

void AttentionEmitter::forChunks(int64_t lanes, llvm::function_ref<void(Value row, Value column)> body) {
  int64_t rows = std::min(tile.queries(), domain[size_t(iDim)].asConstant().value_or(tile.queries()));
  int64_t total = rows * tile.width / lanes;
  for (int64_t begin = 0; begin < total; begin += tile.threads()) {
    Value index = e.invariants.add(thread, e.constant(begin));
    auto chunk = [&] {
      Value perRow = e.constant(tile.width / lanes), row = e.invariants.floorDiv(index, perRow, true);
      body(row, e.invariants.mul(e.invariants.mod(index, perRow, true), e.constant(lanes)));
      return Values();
    };
    if (begin + tile.threads() <= total)
      chunk();
    else
      e.createIf(less(index, e.constant(total)), {}, chunk);
  }
}

void AttentionEmitter::emitResults(ValueRange state) {
  e.createBlockBarrier(); // all have read their tiles
  spread(state);
  e.createBlockBarrier();
  int64_t lanes = chooseLanes();
  auto alone = [&] {
    forChunks(lanes, [&](Value row, Value column) { emitChunk(row, column, lanes); });
    return Values();
  };
  auto together = [&] {
    meet(std::min<int64_t>(lanes, 4));
    return Values();
  };
  if (splitsExpr.isConstant(1))
    alone();
  else if (splitsExpr.isConstant())
    together();
  else
    choose(e.invariants.compare(arith::CmpIPredicate::eq, splits, e.constant(1)), {}, alone, together);
}
