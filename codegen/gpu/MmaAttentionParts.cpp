//===- MmaAttentionParts.cpp - blocks that share keys ---------------------===//
//
// Of few queries, `splits` blocks have a part of the keys each. A part's sums, to the base of its own maximum, go to
// the launch's scratch, each row's maximum and sum of weights behind them; then the block counts itself. The one that
// comes last joins the parts as groups of a block are joined (MmaAttentionResults.cpp), some at a time, in their order.
//
//   scratch   [tile][part][query][column], rows of `partPitch` f32
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/GpuInstructions.h"
#include "codegen/gpu/MmaAttentionEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t partsTogether = 8; // that a thread asks for at once

Value AttentionEmitter::partAddress(Value part, Value row, Value column) {
  Value line = e.invariants.add(e.invariants.mul(tileNumber, splits), part);
  line = e.invariants.add(e.invariants.mul(line, e.constant(tile.queries())), row);
  Value index = e.invariants.add(e.invariants.mul(line, e.constant(tile.partPitch())), column);
  return e.getAddress(e.scratch, b.getF32Type(), index);
}

static void storeVector(GpuEmitter &e, ValueRange values, Value address) {
  auto type = VectorType::get({int64_t(values.size())}, values[0].getType());
  Value vector = LLVM::PoisonOp::create(e.builder, e.loc, type);
  for (auto [i, value] : llvm::enumerate(values))
    vector = LLVM::InsertElementOp::create(e.builder, e.loc, vector, value, e.constant(int64_t(i)));
  LLVM::StoreOp::create(e.builder, e.loc, vector, address, unsigned(4 * values.size()));
}

static SmallVector<Value> loadVector(GpuEmitter &e, int64_t count, Value address) {
  auto type = VectorType::get({count}, e.builder.getF32Type());
  Value vector = LLVM::LoadOp::create(e.builder, e.loc, type, address, unsigned(4 * count));
  SmallVector<Value> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(LLVM::ExtractElementOp::create(e.builder, e.loc, vector, e.constant(i)));
  return values;
}

void AttentionEmitter::storePart(Value row, Value column, int64_t lanes) {
  Joint joint = joinGroups(row);
  storeVector(e, sumGroups(joint.factors, row, column, lanes), partAddress(split, row, column));
  e.createIf(e.invariants.compare(arith::CmpIPredicate::eq, column, e.constant(0)), {}, [&] {
    storeVector(e, {joint.maximum, joint.weight}, partAddress(split, row, e.constant(tile.width)));
    return Values();
  });
}

/// State: the maximum, the sum of weights, sums of neighbouring columns. Parts that do not exist weigh nothing.
AttentionEmitter::Values AttentionEmitter::takeParts(Value first, ValueRange state, Value row, Value column) {
  int64_t lanes = int64_t(state.size()) - 2;
  Value last = e.invariants.sub(splits, e.constant(1));
  Values maxima{state[0]}, weights{state[1]};
  SmallVector<Values> sums{Values(state.drop_front(2))};
  for (int64_t i = 0; i < partsTogether; ++i) {
    Value part = e.invariants.add(first, e.constant(i)), inside = e.invariants.min(part, last);
    Value exists = less(part, splits);
    Values both = loadVector(e, 2, partAddress(inside, row, e.constant(tile.width)));
    maxima.push_back(arith::SelectOp::create(b, e.loc, exists, both[0], infinity()));
    weights.push_back(arith::SelectOp::create(b, e.loc, exists, both[1], number(0)));
    for (Value &sum : sums.emplace_back(loadVector(e, lanes, partAddress(inside, row, column))))
      sum = arith::SelectOp::create(b, e.loc, exists, sum, number(0));
  }
  Joint joint = join(maxima, weights);
  Values next{joint.maximum, joint.weight};
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value all = number(0);
    for (auto [own, factor] : llvm::zip_equal(sums, joint.factors))
      all = math::FmaOp::create(b, e.loc, own[size_t(lane)], factor, all);
    next.push_back(all);
  }
  return next;
}

void AttentionEmitter::joinParts(Value row, Value column, int64_t lanes) {
  Values state(size_t(lanes) + 2, number(0));
  state[0] = infinity();
  state = e.createLoop(e.constant(0), splits, partsTogether, state,
                       [&](Value first, ValueRange in) { return takeParts(first, in, row, column); });
  Value isSome = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OGT, state[1], number(0));
  Values results;
  for (Value sum : ArrayRef(state).drop_front(2))
    results.push_back(arith::DivFOp::create(b, e.loc, sum, state[1]));
  writeChunk(row, column, std::move(results), isSome);
}

void AttentionEmitter::meet(int64_t lanes) {
  auto existing = [&](llvm::function_ref<void(Value row, Value column)> body) {
    forChunks(lanes, [&](Value row, Value column) {
      e.createIf(less(e.invariants.add(firstQuery, row), queryCount), {}, [&] {
        body(row, column);
        return Values();
      });
    });
  };
  existing([&](Value row, Value column) { storePart(row, column, lanes); });
  e.createIf(createLastArrival(e, tileNumber, splits), {}, [&] {
    existing([&](Value row, Value column) { joinParts(row, column, lanes); });
    return Values();
  });
}
