//===- RowSelection.cpp - the first points of a row -----------------------===//
//
// What of a long row may be among its first `kept` points, in one of two ways by how many these are. Both leave some
// more of them, in the order of the row; what is sorted then is little more than what is kept.
//
//   At most a 16th: by a bound. The row is dealt out to at least 4 groups for each point kept, element i to group i
//   modulo their number, and the least key of each is found: vectors of neighbours belong to neighbouring groups. The
//   `kept`-th of these minima bounds the keys sought, as that many groups have one that is no greater; and only these
//   groups have, so little more than a quarter of the row is left in any order of it, of a random one about 1.15 times
//   `kept`. It is found by halving the range of the minima and counting; an eighth more will do. Vectors of keys are
//   compared with the bound; what passes becomes points, those equal to it up to `kept`. Two passes over the keys,
//   which the first one stores, and a sort of the points.
//
//   One alone is the first key that equals the least of all minima.
//
//   Others: by buckets. Keys are counted in buckets of equal width between the lowest and the highest, buckets are
//   added up until they hold enough, and the points of these buckets move together (at worst all, where most keys are
//   in one bucket). Scalar steps, of which each key takes three.
//
// A heap of the best so far has no pass over the minima, but passes and moves as many points as a row that gets better
// to its end has; and its threshold is loose where most of a row's beginning is passed.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/SortKeys.h"
#include "codegen/cpu/RowSort.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;
using codegen::InvariantBuilder;

static constexpr int64_t veryFew = 16;   // what is kept of a row, as a share of it, for which a bound pays
static constexpr int64_t groupsEach = 4; // for each point kept
static constexpr int64_t leastGroups = 64;
static constexpr int64_t comparedLanes = 32; // before a branch: several vectors

//===----------------------------------------------------------------------===//
// Buckets
//===----------------------------------------------------------------------===//

/// The bucket that the first `kept` points end in.
Value RowSort::findBucket(Value kept) const {
  OpBuilder &b = e.builder;
  auto loop = scf::WhileOp::create(
      b, e.loc, TypeRange{i64, i64}, ValueRange{e.constant(0), load(sizes, e.constant(0))},
      [&](OpBuilder &, Location loc, ValueRange state) {
        Value isFew = compare(arith::CmpIPredicate::slt, state[1], kept);
        Value isLeft = compare(arith::CmpIPredicate::slt, state[0], e.constant(digits - 1));
        scf::ConditionOp::create(b, loc, create<arith::AndIOp>(isFew, isLeft), state);
      },
      [&](OpBuilder &, Location loc, ValueRange state) {
        Value next = create<arith::AddIOp>(state[0], e.constant(1));
        scf::YieldOp::create(b, loc, ValueRange{next, create<arith::AddIOp>(state[1], load(sizes, next))});
      });
  return loop.getResult(0);
}

/// Copies the points of the buckets, the first digits, that hold the first `kept`; returns how many they are.
Value RowSort::pick(Value kept) const {
  Value shift = create<arith::MaxSIOp>(create<arith::SubIOp>(rangeBits(), e.constant(digitBits)), e.constant(0));
  countDigits(from, count, shift);
  Value last = findBucket(kept), fromIndex = address(from, length), toIndex = address(to, length);
  // What is not picked is written over by the next one.
  return e.createLoop(e.constant(0), count, 1, {e.constant(0)}, [&](Value i, ValueRange picked) -> SmallVector<Value> {
    Value key = load(from, i);
    Value isIn = compare(arith::CmpIPredicate::ule, digitOf(key, shift), last);
    e.createStore(key, address(to, picked[0]));
    e.createStore(load(fromIndex, i), address(toIndex, picked[0]));
    return {create<arith::AddIOp>(picked[0], arith::ExtUIOp::create(e.builder, e.loc, i64, isIn))};
  })[0];
}

void RowSort::pickFew(Value kept) {
  Value areMany = compare(arith::CmpIPredicate::sge, count, e.constant(manyPoints));
  Value isFew = compare(arith::CmpIPredicate::sle, create<arith::AddIOp>(kept, kept), count);
  choose(
      create<arith::AndIOp>(areMany, isFew),
      [&] {
        count = pick(kept);
        std::swap(from, to);
      },
      [] {});
}

//===----------------------------------------------------------------------===//
// A bound
//===----------------------------------------------------------------------===//

// The last vector that is compared may lie behind the row.
Expr RowSort::getKeyBytes(Expr length) { return (length + comparedLanes) * wordBytes; }

Value RowSort::areVeryFew(Value kept) const {
  InvariantBuilder &in = e.invariants;
  Value isLong = in.compare(arith::CmpIPredicate::sge, length, e.constant(manyPoints));
  Value share = in.select(isLong, in.floorDiv(length, e.constant(veryFew), true), e.constant(0));
  // 0 - 1 is more than any share.
  return in.compare(arith::CmpIPredicate::ult, in.sub(kept, e.constant(1)), share);
}

/// Stores all keys, the last vector filled up with the greatest, and at `to` the least of each group.
void RowSort::minimaOf(const Keys &keys, Value groups) const {
  Type type = keys.type;
  loop::SortOp op = keys.op;
  int64_t dim = int64_t(keys.row.dims.size()) - 1;
  Value most = e.invariants.constant(IntegerAttr::get(type, APInt::getSignedMaxValue(keys.type.getWidth())));
  Value filling = e.splat(most, comparedLanes);
  e.createStore(filling, address(keys.memory, length, type));
  e.forEach(e.constant(0), groups, comparedLanes,
            [&](Value group) { e.createStore(filling, address(to, group, type)); });
  int64_t lanes = std::max<int64_t>(e.traits.vectorBits / keys.type.getWidth(), 2);
  bool masks = hasMasks(op, e.level) && e.level.hasMasksFor(keys.type.getWidth());
  InvariantBuilder &in = e.invariants;
  Value rounds = in.floorDiv(in.add(length, in.sub(groups, e.constant(1))), groups, true);
  e.createLoop(e.constant(0), rounds, 1, {}, [&](Value round, ValueRange) {
    Value begin = in.mul(round, groups);
    Value end = in.min(in.add(begin, groups), length);
    auto step = [&](const Points &points, ValueRange) -> SmallVector<Value> {
      for (const EmissionPoint &point : points) {
        Value position = point.dims[size_t(dim)];
        Value value = e.splat(e.emitRegion(op.getKey(), point), point.lanes);
        Value key = codegen::orderedKey(e, value, op.getIsUnsigned(), op.getDescending(), keys.type);
        e.createStore(key, address(keys.memory, position, type), point.mask);
        Value least = address(to, in.sub(position, begin), type);
        Value before = e.createLoad(type, point.lanes, least, point.mask);
        e.createStore(create<arith::MinSIOp>(before, key), least, point.mask);
      }
      return {};
    };
    return emitVectorLoop(e, keys.row, dim, begin, end, lanes, choosePointsPerStep(op), masks, {}, step);
  });
}

/// The lanes of a compare as bits.
Value RowSort::bitsOf(Value lanes) const {
  Value bits = LLVM::BitcastOp::create(e.builder, e.loc, e.builder.getIntegerType(comparedLanes), lanes);
  return arith::ExtUIOp::create(e.builder, e.loc, i64, bits);
}

Value RowSort::widened(Value key) const {
  return key.getType() == i64 ? key : arith::ExtSIOp::create(e.builder, e.loc, i64, key).getResult();
}

/// Makes points of keys up to the bound, of those equal to it the first `kept` and few more; how many.
Value RowSort::collectUpTo(const Keys &keys, Value bound, Value kept) const {
  Type type = keys.type;
  Value least = e.invariants.constant(IntegerAttr::get(type, APInt::getSignedMinValue(keys.type.getWidth())));
  Value one = e.invariants.constant(IntegerAttr::get(type, 1));
  Value below = select(compare(arith::CmpIPredicate::eq, bound, least), least, create<arith::SubIOp>(bound, one));
  Value fromIndex = address(from, length);
  auto keyAt = [&](Value at, int64_t lanes) { return e.createLoad(type, lanes, address(keys.memory, at, type)); };
  // One step for each bit that is set.
  auto take = [&](OpBuilder &b, Location loc, Value position, Value bits, ValueRange state) {
    return scf::WhileOp::create(
        b, loc, TypeRange{i64, i64, i64}, ValueRange{bits, state[0], state[1]},
        [&](OpBuilder &, Location, ValueRange state) {
          scf::ConditionOp::create(b, loc, compare(arith::CmpIPredicate::ne, state[0], e.constant(0)), state);
        },
        [&](OpBuilder &, Location, ValueRange state) {
          Value lane = math::CountTrailingZerosOp::create(b, loc, state[0]);
          Value at = create<arith::AddIOp>(position, lane), key = keyAt(at, 1);
          Value isEqual = compare(arith::CmpIPredicate::eq, key, bound);
          e.createStore(widened(key), address(from, state[1]));
          e.createStore(at, address(fromIndex, state[1]));
          Value rest = create<arith::AndIOp>(state[0], create<arith::SubIOp>(state[0], e.constant(1)));
          Value equal = arith::ExtUIOp::create(b, loc, i64, isEqual);
          scf::YieldOp::create(
              b, loc,
              ValueRange{rest, create<arith::AddIOp>(state[1], e.constant(1)), create<arith::SubIOp>(state[2], equal)});
        });
  };
  // Carried: how many points, and how many more may equal the bound.
  return e.createLoop(
      e.constant(0), length, comparedLanes, {e.constant(0), kept},
      [&](Value position, ValueRange state) -> SmallVector<Value> {
        Value limit = select(compare(arith::CmpIPredicate::sgt, state[1], e.constant(0)), bound, below);
        Value passes =
            compare(arith::CmpIPredicate::sle, keyAt(position, comparedLanes), e.splat(limit, comparedLanes));
        Value bits = bitsOf(passes);
        auto choice = scf::IfOp::create(
            e.builder, e.loc, compare(arith::CmpIPredicate::ne, bits, e.constant(0)),
            [&](OpBuilder &b, Location loc) {
              scf::YieldOp::create(b, loc, take(b, loc, position, bits, state).getResults().drop_front());
            },
            [&](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, state); });
        return SmallVector<Value>(choice.getResults());
      })[0];
}

/// The least and the greatest of the minima at `to`, in vectors.
SmallVector<Value> RowSort::endsOfMinima(IntegerType type, Value groups) const {
  auto filled = [&](int64_t key) { return e.splat(e.invariants.constant(IntegerAttr::get(type, key)), comparedLanes); };
  Value most = filled(llvm::maxIntN(type.getWidth())), fewest = filled(llvm::minIntN(type.getWidth()));
  return e.createLoop(e.constant(0), groups, comparedLanes, {most, fewest},
                      [&](Value group, ValueRange ends) -> SmallVector<Value> {
                        Value minima = e.createLoad(type, comparedLanes, address(to, group, type));
                        return {create<arith::MinSIOp>(ends[0], minima), create<arith::MaxSIOp>(ends[1], minima)};
                      });
}

/// Makes a point of the first key that is the least of the minima at `to`.
void RowSort::collectFirst(const Keys &keys, Value groups) {
  Value least = LLVM::vector_reduce_smin::create(e.builder, e.loc, keys.type, endsOfMinima(keys.type, groups)[0]);
  Value wanted = vector::BroadcastOp::create(e.builder, e.loc, VectorType::get({comparedLanes}, keys.type), least);
  auto bitsAt = [&](Value position) {
    Value vector = e.createLoad(keys.type, comparedLanes, address(keys.memory, position, keys.type));
    return bitsOf(compare(arith::CmpIPredicate::eq, vector, wanted));
  };
  Value start = e.constant(0), none = e.constant(0);
  auto search = scf::WhileOp::create(
      e.builder, e.loc, TypeRange{i64, i64}, ValueRange{start, bitsAt(start)},
      [&](OpBuilder &b, Location loc, ValueRange state) {
        scf::ConditionOp::create(b, loc, compare(arith::CmpIPredicate::eq, state[1], none), state);
      },
      [&](OpBuilder &b, Location loc, ValueRange state) {
        Value next = create<arith::AddIOp>(state[0], e.constant(comparedLanes));
        scf::YieldOp::create(b, loc, ValueRange{next, bitsAt(next)});
      });
  Value lane = math::CountTrailingZerosOp::create(e.builder, e.loc, search.getResult(1));
  e.createStore(widened(least), address(from, e.constant(0)));
  e.createStore(create<arith::AddIOp>(search.getResult(0), lane), address(from, length));
  lowest = widened(least);
  range = none;
  count = e.constant(1);
}

/// A bound that at least `kept` of the minima at `to` do not pass, and an eighth more at most unless many are equal;
/// sets how far it is from the lowest key.
Value RowSort::findBound(IntegerType type, Value groups, Value kept) {
  auto vector = VectorType::get({comparedLanes}, type);
  auto literal = [&](int64_t value) { return e.invariants.constant(IntegerAttr::get(type, value)); };
  auto load = [&](Value group) { return e.createLoad(type, comparedLanes, address(to, group, type)); };
  SmallVector<Value> ends = endsOfMinima(type, groups);
  Value first = LLVM::vector_reduce_smin::create(e.builder, e.loc, type, ends[0]);
  Value last = LLVM::vector_reduce_smax::create(e.builder, e.loc, type, ends[1]);
  auto countUpTo = [&](Value bound) {
    Value limit = vector::BroadcastOp::create(e.builder, e.loc, vector, bound);
    return e.createLoop(e.constant(0), groups, comparedLanes, {e.constant(0)},
                        [&](Value group, ValueRange count) -> SmallVector<Value> {
                          Value bits = bitsOf(compare(arith::CmpIPredicate::sle, load(group), limit));
                          return {create<arith::AddIOp>(count[0], math::CtPopOp::create(e.builder, e.loc, bits))};
                        })[0];
  };
  Value enough = create<arith::AddIOp>(kept, create<arith::ShRUIOp>(kept, e.constant(3)));
  // Between what is too low, but for the lowest, and what is enough.
  auto halving = scf::WhileOp::create(
      e.builder, e.loc, TypeRange{type, type}, ValueRange{first, last},
      [&](OpBuilder &b, Location loc, ValueRange state) {
        scf::ConditionOp::create(b, loc, compare(arith::CmpIPredicate::slt, state[0], state[1]), state);
      },
      [&](OpBuilder &b, Location loc, ValueRange state) {
        Value half = create<arith::ShRUIOp>(create<arith::SubIOp>(state[1], state[0]), literal(1));
        Value middle = create<arith::AddIOp>(state[0], half), reached = countUpTo(middle);
        Value isLow = compare(arith::CmpIPredicate::slt, reached, kept);
        Value isClose = compare(arith::CmpIPredicate::sle, reached, enough);
        Value low = select(isLow, create<arith::AddIOp>(middle, literal(1)), select(isClose, middle, state[0]));
        scf::YieldOp::create(b, loc, ValueRange{low, select(isLow, state[1], middle)});
      });
  Value bound = halving.getResult(1);
  lowest = widened(first);
  range = create<arith::SubIOp>(widened(bound), lowest);
  return bound;
}

void RowSort::collectFew(const Keys &keys, Value kept) {
  InvariantBuilder &in = e.invariants;
  // What does not depend on the row stands in front of the branch: no division by 0 where nothing is kept.
  Value wanted = in.max(in.mul(kept, e.constant(groupsEach)), e.constant(leastGroups));
  Value blocks = in.floorDiv(in.add(wanted, e.constant(leastGroups - 1)), e.constant(leastGroups), true);
  Value groups = in.mul(blocks, e.constant(leastGroups));
  minimaOf(keys, groups);
  if (in.asConstant(kept) == 1)
    return collectFirst(keys, groups);
  count = collectUpTo(keys, findBound(keys.type, groups, kept), kept);
}
