//===- GpuGreedy.cpp - greedy choice in rows ------------------------------===//
//
// The points of a row are taken 32 at a time, a tile, of which every warp of the row has one point in each lane. Three
// steps, of which only the last is in order:
//
//   1. Points against those chosen before: warps share these among themselves, lanes are the tile's points.
//   2. Points against each other: warps share the points that might exclude others; a ballot makes a word of 32
//   answers.
//   3. The decision, by every warp for itself: the lowest point that is left is chosen, and its word leaves the others.
//
// The masks of all pairs of a row would be the usual way (one launch for them, one for the decision); they grow with
// the square of the row, and most candidates meet their conflict early. What a chosen point brings to comparisons lies
// in scratch memory of the row, value by value in the order of choice (ConflictParts.h).
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ConflictParts.h"
#include "codegen/gpu/GpuTemplates.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;
using codegen::BodyEmitter;
using codegen::ConflictParts;

namespace {
class RowChoice {
public:
  RowChoice(GpuEmitter &e, loop::GreedyOp op, const EmissionPoint &row, Expr extent);
  void emit();

private:
  /// How many are chosen, and how many of those are remembered.
  struct Counts {
    Value chosen, remembered;
  };

  EmissionPoint at(Value position) const {
    EmissionPoint result = point;
    result.dims.back() = position;
    return result;
  }
  template <typename OpTy> Value make(Value a, Value b) const { return OpTy::create(e.builder, e.loc, a, b); }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) const {
    return arith::CmpIOp::create(e.builder, e.loc, predicate, a, b);
  }
  Value word(int32_t value) const { return e.invariants.constant(e.builder.getI32IntegerAttr(value)); }
  Value flag(bool value) const { return e.invariants.constant(e.builder.getBoolAttr(value)); }
  Value both(Value a, Value b) const { return !a ? b : !b ? a : make<arith::AndIOp>(a, b); }
  Value negate(Value condition) const { return make<arith::XOrIOp>(condition, flag(true)); }
  Value widen(Value number) const { return arith::ExtUIOp::create(e.builder, e.loc, e.builder.getI64Type(), number); }
  Value lowest(Value bits) const { return math::CountTrailingZerosOp::create(e.builder, e.loc, bits); }
  Value count(Value bits) const { return widen(math::CtPopOp::create(e.builder, e.loc, bits)); }
  /// Bit `number` (i64) of a word.
  Value bitOf(Value bits, Value number) const {
    Value shifted = make<arith::ShRUIOp>(bits, arith::TruncIOp::create(e.builder, e.loc, bits.getType(), number));
    return arith::TruncIOp::create(e.builder, e.loc, e.builder.getI1Type(), shifted);
  }
  Value all(const BodyEmitter &body, ArrayRef<Value> conditions) const {
    Value result;
    for (Value condition : conditions)
      result = both(result, body.lookup(condition));
    return result;
  }

  void bindOwn(BodyEmitter &body) const;
  Value comparePair(BodyEmitter &body, Value mayConflict) const;
  Value meetsChosen(Value remembered, Value mayConflict) const;
  Value remembers(BodyEmitter &body, Value position) const;
  void comparePoints(Value start, Value possible, Value mayConflict) const;
  std::pair<Value, Value> decide(Value start, Value possible, Value chosen) const;
  SmallVector<Value> takeTile(Value start, Value candidate, Value possible, Counts counts);

  GpuEmitter &e;
  mutable loop::GreedyOp op;
  const ConflictParts parts;
  const EmissionPoint point; // its last dim is the candidate's
  const Value length, lane, warp;
  const int64_t warps;
  Value excluded, pairs;     // shared words of 32 points: by chosen ones, for each warp; by each of the tile
  SmallVector<Value> arrays; // of remembered values
  std::optional<BodyEmitter> own;
};
} // namespace

RowChoice::RowChoice(GpuEmitter &e, loop::GreedyOp op, const EmissionPoint &row, Expr extent)
    : e(e), op(op), parts(op), point(row), length(e.emitExpr(extent, row)),
      lane(e.invariants.mod(e.row.rank, e.constant(warpSize), true)),
      warp(e.invariants.floorDiv(e.row.rank, e.constant(warpSize), true)), warps(e.row.size / warpSize) {
  constexpr int64_t wordBytes = 4;
  excluded = e.sharedMemoryOfRow(warps * wordBytes);
  pairs = e.sharedMemoryOfRow(warpSize * wordBytes);
  for (size_t i = 0; i < parts.remembered.size(); ++i)
    arrays.push_back(
        e.getAddress(e.getLocalMemory(op), e.builder.getI8Type(), e.emitExpr(parts.getOffset(i, extent), row)));
}

void RowChoice::bindOwn(BodyEmitter &body) const {
  for (Operation *inner : parts.own)
    body.bind(inner->getResults(), llvm::map_to_vector(inner->getResults(), [&](Value v) { return own->lookup(v); }));
}

/// Whether the pair conflicts, whose chosen point is bound; false unless `mayConflict`.
Value RowChoice::comparePair(BodyEmitter &body, Value mayConflict) const {
  return e.createIf(mayConflict, {flag(false)}, [&]() -> SmallVector<Value> {
    body.emitOps(parts.early);
    Value early = all(body, parts.earlyConditions);
    if (parts.lateConditions.empty())
      return {early ? early : flag(true)};
    return e.createIf(early ? early : flag(true), {flag(false)}, [&]() -> SmallVector<Value> {
      body.emitOps(parts.late);
      return {all(body, parts.lateConditions)};
    });
  })[0];
}

/// Whether the lane's point conflicts with some of the warp's share of the points that are remembered.
Value RowChoice::meetsChosen(Value remembered, Value mayConflict) const {
  OpBuilder &b = e.builder;
  auto loop = scf::WhileOp::create(b, e.loc, TypeRange{b.getI64Type(), b.getI1Type()}, ValueRange{warp, flag(false)},
                                   nullptr, nullptr);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&loop.getBefore().front());
  ValueRange state = loop.getBeforeArguments();
  Value isLeft = compare(arith::CmpIPredicate::slt, state[0], remembered);
  scf::ConditionOp::create(b, e.loc, both(both(isLeft, mayConflict), negate(state[1])), state);
  b.setInsertionPointToStart(&loop.getAfter().front());
  state = loop.getAfterArguments();
  BodyEmitter body(e, point);
  bindOwn(body);
  for (auto [value, array] : llvm::zip_equal(parts.remembered, arrays))
    body.bind(value, e.createLoad(value.getType(), 1, e.getAddress(array, value.getType(), state[0])));
  Value conflicts = comparePair(body, flag(true));
  scf::YieldOp::create(b, e.loc, ValueRange{make<arith::AddIOp>(state[0], e.constant(warps)), conflicts});
  return loop.getResult(1);
}

/// Emits what a chosen point at `position` brings to comparisons; whether it takes part in any, null for always.
Value RowChoice::remembers(BodyEmitter &body, Value position) const {
  body.bind(op.getConflict().front().getArgument(0), position);
  body.emitOps(parts.other);
  return all(body, parts.otherConditions);
}

/// Which of the tile's points each of them would exclude.
void RowChoice::comparePoints(Value start, Value possible, Value mayConflict) const {
  e.createLoop(warp, e.constant(warpSize), warps, {}, [&](Value number, ValueRange) {
    e.createIf(bitOf(possible, number), {}, [&] {
      BodyEmitter body(e, point);
      bindOwn(body);
      Value mayExclude = remembers(body, make<arith::AddIOp>(start, number));
      Value excludes = e.createBallot(comparePair(body, both(mayExclude, mayConflict)));
      e.createIf(compare(arith::CmpIPredicate::eq, lane, e.constant(0)), {}, [&] {
        e.createStore(excludes, e.getAddress(pairs, e.builder.getI32Type(), number));
        return SmallVector<Value>();
      });
      return SmallVector<Value>();
    });
    return SmallVector<Value>();
  });
}

/// The points that are chosen, as a word, and how many are chosen then.
std::pair<Value, Value> RowChoice::decide(Value start, Value possible, Value chosen) const {
  OpBuilder &b = e.builder;
  Type i32 = b.getI32Type();
  Value left = possible;
  for (int64_t i = 0; i < warps; ++i) {
    Value met = e.createLoad(i32, 1, e.getAddress(excluded, i32, e.constant(i)));
    left = make<arith::AndIOp>(left, make<arith::XOrIOp>(met, word(-1)));
  }
  auto loop = scf::WhileOp::create(b, e.loc, TypeRange{i32, i32, b.getI64Type()}, ValueRange{left, word(0), chosen},
                                   nullptr, nullptr);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&loop.getBefore().front());
  ValueRange state = loop.getBeforeArguments();
  scf::ConditionOp::create(b, e.loc, compare(arith::CmpIPredicate::ne, state[0], word(0)), state);
  b.setInsertionPointToStart(&loop.getAfter().front());
  state = loop.getAfterArguments();
  Value bit = lowest(state[0]), number = widen(bit);
  Value rest = make<arith::AndIOp>(state[0], make<arith::SubIOp>(state[0], word(1)));
  Value mayBe = e.emitRegion(op.getCandidate(), at(make<arith::AddIOp>(start, number)), {state[2]});
  SmallVector<Value> next = e.createIf(mayBe, {rest, state[1], state[2]}, [&]() -> SmallVector<Value> {
    Value excludes = e.createLoad(i32, 1, e.getAddress(pairs, i32, number));
    return {make<arith::AndIOp>(rest, make<arith::XOrIOp>(excludes, word(-1))),
            make<arith::OrIOp>(state[1], make<arith::ShLIOp>(word(1), bit)),
            make<arith::AddIOp>(state[2], e.constant(1))};
  });
  scf::YieldOp::create(b, e.loc, next);
  return {loop.getResult(1), loop.getResult(2)};
}

/// Decides about the tile's points of which some may be chosen; the word of those that are, and the counts then.
SmallVector<Value> RowChoice::takeTile(Value start, Value candidate, Value possible, Counts counts) {
  // Points that are no candidates may hold anything: their lanes read the first one that is.
  Value position = make<arith::AddIOp>(start, lane);
  Value known = e.invariants.select(candidate, position, make<arith::AddIOp>(start, widen(lowest(possible))));
  own.emplace(e, at(known));
  own->emitOps(parts.own);
  Value mayConflict = both(candidate, all(*own, parts.ownConditions));
  Value met = e.createBallot(meetsChosen(counts.remembered, mayConflict));
  e.createIf(compare(arith::CmpIPredicate::eq, lane, e.constant(0)), {}, [&] {
    e.createStore(met, e.getAddress(excluded, e.builder.getI32Type(), warp));
    return SmallVector<Value>();
  });
  comparePoints(start, possible, mayConflict);
  e.createBarrier();
  auto [chosen, number] = decide(start, possible, counts.chosen);

  BodyEmitter body(e, at(known));
  bindOwn(body);
  Value isRemembered = both(bitOf(chosen, lane), remembers(body, known));
  Value remembered = e.createBallot(isRemembered);
  Value isMine = both(isRemembered, compare(arith::CmpIPredicate::eq, warp, e.constant(0)));
  e.createIf(isMine, {}, [&] {
    Value below = make<arith::SubIOp>(
        make<arith::ShLIOp>(word(1), arith::TruncIOp::create(e.builder, e.loc, e.builder.getI32Type(), lane)), word(1));
    Value place = make<arith::AddIOp>(counts.remembered, count(make<arith::AndIOp>(remembered, below)));
    for (auto [value, array] : llvm::zip_equal(parts.remembered, arrays))
      e.createStore(body.lookup(value), e.getAddress(array, value.getType(), place));
    return SmallVector<Value>();
  });
  e.createBarrier(); // the next tile reads these, and writes the shared words
  return {chosen, number, make<arith::AddIOp>(counts.remembered, count(remembered))};
}

void RowChoice::emit() {
  Value isFirstWarp = compare(arith::CmpIPredicate::eq, warp, e.constant(0));
  e.createLoop(e.constant(0), length, warpSize, {e.constant(0), e.constant(0)}, [&](Value start, ValueRange counts) {
    Value position = make<arith::AddIOp>(start, lane);
    Value isInside = compare(arith::CmpIPredicate::slt, position, length);
    Value candidate = e.createIf(isInside, {flag(false)}, [&]() -> SmallVector<Value> {
      return {e.emitRegion(op.getCandidate(), at(position), {counts[0]})};
    })[0];
    Value possible = e.createBallot(candidate), isAny = compare(arith::CmpIPredicate::ne, possible, word(0));
    SmallVector<Value> next = e.createIf(isAny, {word(0), counts[0], counts[1]},
                                         [&] { return takeTile(start, candidate, possible, {counts[0], counts[1]}); });
    e.createIf(both(isInside, isFirstWarp), {}, [&] {
      e.emitRegion(op.getBody(), at(position), {bitOf(next[0], lane)});
      return SmallVector<Value>();
    });
    return SmallVector<Value>{next[1], next[2]};
  });
}

void gpu::emitGreedyRow(GpuEmitter &e, loop::GreedyOp op, const EmissionPoint &row, Expr extent) {
  RowChoice(e, op, row, extent).emit();
}
