//===- NodeSort.cpp - stable sort of rows ---------------------------------===//
//
// Keys become signed 64-bit integers in the order wanted (codegen/common/SortKeys.h), each with its index, and are
// sorted between two arrays, in one of two ways, both stable:
//
//   Few points: bottom-up, by merging runs of 1, 2, 4, ...: n log n steps without unpredictable branches (the merge
//   selects); the left run wins ties.
//   Many: by digits of their distance from the lowest key, the last digit first. Each pass counts the digits and moves
//   the points to where those of their digit begin. Keys of 32 bits take 3 passes at most, fewer if they lie close.
//
// Where less is kept than a long row has, that is picked out before: keys are counted in buckets of equal width between
// the lowest and the highest, buckets are added up until they hold enough, and the points of these buckets move
// together in their order. What is sorted then is little more than what is kept (at worst all, where most keys are in
// one bucket). The body reads the key region again at each index, so that values keep their bits.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/SortKeys.h"
#include "codegen/cpu/NodeEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t digitBits = 11;
static constexpr int64_t digits = 1 << digitBits; // also the number of buckets
static constexpr int64_t manyPoints = 256;        // for which a table of counts pays
static constexpr int64_t wordBytes = 8;

static bool mayHaveMany(Expr length) { return length.asConstant().value_or(manyPoints) >= manyPoints; }

// Two arrays of (key, index) for one row, and counts of its buckets or digits.
Expr cpu::getSortBytes(loop::SortOp op) {
  Expr length = loop::getDomain(op).back();
  return length * (4 * wordBytes) + (mayHaveMany(length) ? digits * wordBytes : 0);
}

namespace {
struct RowSort {
  KernelEmitter &e;
  Value length; // i64; an array is that many keys, then as many indices
  Type i64;
  Value sizes;         // a table of counts
  Value count;         // of points that are sorted
  Value lowest, range; // of keys: the first one, and how far the last one is from it

  template <typename OpTy> Value create(Value a, Value b) const { return OpTy::create(e.builder, e.loc, a, b); }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) const {
    return arith::CmpIOp::create(e.builder, e.loc, predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) const {
    return arith::SelectOp::create(e.builder, e.loc, condition, a, b);
  }
  Value address(Value base, Value index) const {
    return LLVM::GEPOp::create(e.builder, e.loc, base.getType(), i64, base, ArrayRef<LLVM::GEPArg>{index});
  }
  Value load(Value base, Value index) const { return e.createLoad(i64, 1, address(base, index)); }

  SmallVector<Value> choose(Value condition, llvm::function_ref<SmallVector<Value>()> then,
                            llvm::function_ref<SmallVector<Value>()> otherwise) const;

  void fill(loop::SortOp op, Value to, llvm::function_ref<Value(Value)> keyAt);
  void pickFew(Value &from, Value &to, Value kept);
  Value sorted(Value from, Value to, bool mayBeMany) const;

  Value rangeBits() const;
  Value digitOf(Value key, Value shift) const;
  void countDigits(Value from, Value points, Value shift) const;
  Value findBucket(Value kept) const;
  Value pick(Value from, Value to, Value kept) const;
  void moveByDigit(Value from, Value to, Value shift) const;
  Value sortedByDigits(Value from, Value to) const;
  void mergeRuns(Value from, Value to, Value low, Value width) const;
  Value merged(Value from, Value to) const;
};
} // namespace

SmallVector<Value> RowSort::choose(Value condition, llvm::function_ref<SmallVector<Value>()> then,
                                   llvm::function_ref<SmallVector<Value>()> otherwise) const {
  auto choice = scf::IfOp::create(
      e.builder, e.loc, condition, [&](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, then()); },
      [&](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, otherwise()); });
  return SmallVector<Value>(choice.getResults());
}

//===----------------------------------------------------------------------===//
// Digits and buckets
//===----------------------------------------------------------------------===//

/// How many bits tell the keys apart.
Value RowSort::rangeBits() const {
  return create<arith::SubIOp>(e.constant(64), math::CountLeadingZerosOp::create(e.builder, e.loc, range));
}

/// The digit of the key's distance from the lowest that begins at bit `shift`.
Value RowSort::digitOf(Value key, Value shift) const {
  Value from = create<arith::ShRUIOp>(create<arith::SubIOp>(key, lowest), shift);
  return create<arith::AndIOp>(from, e.constant(digits - 1));
}

/// sizes[d] = how many of the first `points` have the digit d.
void RowSort::countDigits(Value from, Value points, Value shift) const {
  e.createLoop(e.constant(0), e.constant(digits), 1, {}, [&](Value i, ValueRange) -> SmallVector<Value> {
    e.createStore(e.constant(0), address(sizes, i));
    return {};
  });
  e.createLoop(e.constant(0), points, 1, {}, [&](Value i, ValueRange) -> SmallVector<Value> {
    Value size = address(sizes, digitOf(load(from, i), shift));
    e.createStore(create<arith::AddIOp>(e.createLoad(i64, 1, size), e.constant(1)), size);
    return {};
  });
}

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
Value RowSort::pick(Value from, Value to, Value kept) const {
  Value shift = create<arith::MaxSIOp>(create<arith::SubIOp>(rangeBits(), e.constant(digitBits)), e.constant(0));
  countDigits(from, length, shift);
  Value last = findBucket(kept), fromIndex = address(from, length), toIndex = address(to, length);
  // What is not picked is written over by the next one.
  return e.createLoop(e.constant(0), length, 1, {e.constant(0)}, [&](Value i, ValueRange picked) -> SmallVector<Value> {
    Value key = load(from, i);
    Value isIn = compare(arith::CmpIPredicate::ule, digitOf(key, shift), last);
    e.createStore(key, address(to, picked[0]));
    e.createStore(load(fromIndex, i), address(toIndex, picked[0]));
    return {create<arith::AddIOp>(picked[0], arith::ExtUIOp::create(e.builder, e.loc, i64, isIn))};
  })[0];
}

/// Leaves in `from` what is to be sorted, where that is much less.
void RowSort::pickFew(Value &from, Value &to, Value kept) {
  Value isLong = compare(arith::CmpIPredicate::sge, length, e.constant(manyPoints));
  Value isFew = compare(arith::CmpIPredicate::sle, create<arith::AddIOp>(kept, kept), length);
  SmallVector<Value> next = choose(
      create<arith::AndIOp>(isLong, isFew), [&]() -> SmallVector<Value> { return {to, from, pick(from, to, kept)}; },
      [&]() -> SmallVector<Value> { return {from, to, length}; });
  from = next[0], to = next[1], count = next[2];
}

void RowSort::moveByDigit(Value from, Value to, Value shift) const {
  countDigits(from, count, shift);
  e.createLoop(e.constant(0), e.constant(digits), 1, {e.constant(0)},
               [&](Value i, ValueRange begin) -> SmallVector<Value> {
                 Value size = load(sizes, i);
                 e.createStore(begin[0], address(sizes, i));
                 return {create<arith::AddIOp>(begin[0], size)};
               });
  Value fromIndex = address(from, length), toIndex = address(to, length);
  e.createLoop(e.constant(0), count, 1, {}, [&](Value i, ValueRange) -> SmallVector<Value> {
    Value key = load(from, i), place = address(sizes, digitOf(key, shift));
    Value at = e.createLoad(i64, 1, place);
    e.createStore(create<arith::AddIOp>(at, e.constant(1)), place);
    e.createStore(key, address(to, at));
    e.createStore(load(fromIndex, i), address(toIndex, at));
    return {};
  });
}

Value RowSort::sortedByDigits(Value from, Value to) const {
  OpBuilder &b = e.builder;
  Value bits = rangeBits();
  SmallVector<Value> init{e.constant(0), from, to};
  SmallVector<Type> types(ValueRange(init).getTypes());
  auto loop = scf::WhileOp::create(
      b, e.loc, types, init,
      [&](OpBuilder &, Location loc, ValueRange state) {
        scf::ConditionOp::create(b, loc, compare(arith::CmpIPredicate::slt, state[0], bits), state);
      },
      [&](OpBuilder &, Location loc, ValueRange state) {
        moveByDigit(state[1], state[2], state[0]);
        Value next = create<arith::AddIOp>(state[0], e.constant(digitBits));
        scf::YieldOp::create(b, loc, ValueRange{next, state[2], state[1]});
      });
  return loop.getResult(1);
}

//===----------------------------------------------------------------------===//
// Merging
//===----------------------------------------------------------------------===//

// Merges [low, low+width) and the run behind it into `to`.
void RowSort::mergeRuns(Value from, Value to, Value low, Value width) const {
  Value middle = create<arith::MinSIOp>(create<arith::AddIOp>(low, width), count);
  Value high = create<arith::MinSIOp>(create<arith::AddIOp>(middle, width), count);
  Value last = create<arith::SubIOp>(count, e.constant(1));
  Value fromIndex = address(from, length), toIndex = address(to, length);
  e.createLoop(low, high, 1, {low, middle}, [&](Value out, ValueRange carried) -> SmallVector<Value> {
    Value left = carried[0], right = carried[1];
    Value leftKey = load(from, create<arith::MinSIOp>(left, last));
    Value rightKey = load(from, create<arith::MinSIOp>(right, last));
    Value hasRight = compare(arith::CmpIPredicate::slt, right, high);
    Value leftEmpty = compare(arith::CmpIPredicate::sge, left, middle);
    Value smaller = compare(arith::CmpIPredicate::slt, rightKey, leftKey);
    Value takeRight = create<arith::AndIOp>(hasRight, create<arith::OrIOp>(leftEmpty, smaller));
    Value index = load(fromIndex, select(takeRight, right, left));
    e.createStore(select(takeRight, rightKey, leftKey), address(to, out));
    e.createStore(index, address(toIndex, out));
    Value step = arith::ExtUIOp::create(e.builder, e.loc, i64, takeRight);
    Value other = create<arith::SubIOp>(e.constant(1), step);
    return {create<arith::AddIOp>(left, other), create<arith::AddIOp>(right, step)};
  });
}

Value RowSort::merged(Value from, Value to) const {
  OpBuilder &builder = e.builder;
  SmallVector<Value> init{e.constant(1), from, to};
  SmallVector<Type> types(ValueRange(init).getTypes());
  auto loop = scf::WhileOp::create(
      builder, e.loc, types, init,
      [&](OpBuilder &, Location loc, ValueRange state) {
        Value isShort = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, state[0], count);
        scf::ConditionOp::create(builder, loc, isShort, state);
      },
      [&](OpBuilder &, Location loc, ValueRange state) {
        Value width = state[0];
        Value twice = create<arith::AddIOp>(width, width);
        auto runs = scf::ForOp::create(builder, loc, e.constant(0), count, twice);
        {
          OpBuilder::InsertionGuard guard(builder);
          builder.setInsertionPointToStart(runs.getBody());
          mergeRuns(state[1], state[2], runs.getInductionVar(), width);
        }
        scf::YieldOp::create(builder, loc, ValueRange{twice, state[2], state[1]});
      });
  return loop.getResult(1);
}

//===----------------------------------------------------------------------===//
// The row
//===----------------------------------------------------------------------===//

/// Writes all points of the row.
void RowSort::fill(loop::SortOp op, Value to, llvm::function_ref<Value(Value)> keyAt) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  SmallVector<Value> ends =
      e.createLoop(e.constant(0), length, 1, {e.constant(most), e.constant(least)},
                   [&](Value i, ValueRange ends) -> SmallVector<Value> {
                     Value key = codegen::orderedKey(e, keyAt(i), op.getIsUnsigned(), op.getDescending());
                     e.createStore(key, address(to, i));
                     e.createStore(i, address(address(to, length), i));
                     return {create<arith::MinSIOp>(ends[0], key), create<arith::MaxSIOp>(ends[1], key)};
                   });
  lowest = ends[0];
  range = create<arith::SubIOp>(ends[1], ends[0]);
}

/// Sorts what lies at `from`; returns the array, of the two, that holds the result.
Value RowSort::sorted(Value from, Value to, bool mayBeMany) const {
  if (!mayBeMany)
    return merged(from, to);
  return choose(
      compare(arith::CmpIPredicate::sge, count, e.constant(manyPoints)),
      [&]() -> SmallVector<Value> { return {sortedByDigits(from, to)}; },
      [&]() -> SmallVector<Value> { return {merged(from, to)}; })[0];
}

void NodeEmitter::emitSort(loop::SortOp op, const EmissionPoint &shared, int64_t sharedDims) {
  int64_t last = int64_t(domain.size()) - 1;
  SmallVector<int64_t> outer;
  for (int64_t dim = sharedDims; dim < last; ++dim)
    outer.push_back(dim);
  Points points{shared};
  emitLoops(e, domain, outer, points, {}, [&](const Points &at, ValueRange) -> SmallVector<Value> {
    EmissionPoint point = at.front();
    auto keyAt = [&](Value position) {
      point.dims[size_t(last)] = position;
      return e.emitRegion(op.getKey(), point);
    };
    Expr extent = domain[size_t(last)];
    Value length = e.emitExpr(extent, point), kept = e.emitExpr(op.getKept(), at.front());
    RowSort row{.e = e, .length = length, .i64 = e.builder.getI64Type(), .count = length};
    Value from = e.getLocalMemory(op), both = row.create<arith::AddIOp>(length, length);
    Value to = row.address(from, both);
    row.sizes = row.address(to, both);
    row.fill(op, from, keyAt);
    if (Expr(op.getKept()) != extent && mayHaveMany(extent))
      row.pickFew(from, to, kept);
    Value result = row.sorted(from, to, mayHaveMany(extent));
    e.createLoop(e.constant(0), kept, 1, {}, [&](Value rank, ValueRange) -> SmallVector<Value> {
      Value index = row.load(row.address(result, length), rank);
      Value value = keyAt(index);
      point.dims[size_t(last)] = rank;
      e.emitRegion(op.getBody(), point, {value, index});
      return {};
    });
    return {};
  });
}
