//===- NodeSort.cpp - stable sort of rows ---------------------------------===//
//
// Keys become signed 64-bit integers in the order wanted (codegen/common/SortKeys.h), each with its index, and are
// sorted bottom-up by merging runs of 1, 2, 4, ... between two arrays: n log n steps without unpredictable branches
// (the merge selects), stable because the left run wins ties. The body then reads the key region again at each index,
// so that values keep their bits.
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

static constexpr int64_t bucketBits = 10;
static constexpr int64_t buckets = 1 << bucketBits;
static constexpr int64_t longRow = 256; // for which picking pays
static constexpr int64_t wordBytes = 8;

// Two arrays of (key, index) for one row, and the counts of its buckets.
Expr cpu::getSortBytes(loop::SortOp op) {
  Expr length = loop::getDomain(op).back();
  return length * (4 * wordBytes) + (Expr(op.getKept()) == length ? 0 : buckets * wordBytes);
}

namespace {
struct RowSort {
  KernelEmitter &e;
  Value length; // i64; an array is that many keys, then as many indices
  Type i64;
  Value count; // of points that are sorted

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

  Value sorted(Value from, Value to) const;
  Value bucketOf(Value key, Value lowest, Value shift) const;
  Value findBucket(Value sizes, Value kept) const;
  Value pick(Value from, Value to, Value sizes, Value kept, ValueRange ends) const;
  void pickFew(Value &from, Value &to, Value sizes, Value kept, ValueRange ends);
  void mergeRuns(Value from, Value to, Value low, Value width) const;
};
} // namespace

/// Buckets are of 2^shift keys each, and so few that all keys have one.
Value RowSort::bucketOf(Value key, Value lowest, Value shift) const {
  return create<arith::ShRUIOp>(create<arith::SubIOp>(key, lowest), shift);
}

/// The bucket that the first `kept` points end in.
Value RowSort::findBucket(Value sizes, Value kept) const {
  OpBuilder &b = e.builder;
  auto loop = scf::WhileOp::create(
      b, e.loc, TypeRange{i64, i64}, ValueRange{e.constant(0), load(sizes, e.constant(0))},
      [&](OpBuilder &, Location loc, ValueRange state) {
        Value isFew = compare(arith::CmpIPredicate::slt, state[1], kept);
        Value isLeft = compare(arith::CmpIPredicate::slt, state[0], e.constant(buckets - 1));
        scf::ConditionOp::create(b, loc, create<arith::AndIOp>(isFew, isLeft), state);
      },
      [&](OpBuilder &, Location loc, ValueRange state) {
        Value next = create<arith::AddIOp>(state[0], e.constant(1));
        scf::YieldOp::create(b, loc, ValueRange{next, create<arith::AddIOp>(state[1], load(sizes, next))});
      });
  return loop.getResult(0);
}

/// Copies the points of the buckets that hold the first `kept`; returns how many they are. `ends`: the lowest and the
/// highest key.
Value RowSort::pick(Value from, Value to, Value sizes, Value kept, ValueRange ends) const {
  Value one = e.constant(1);
  Value range = create<arith::SubIOp>(ends[1], ends[0]);
  Value bits = create<arith::SubIOp>(e.constant(64), math::CountLeadingZerosOp::create(e.builder, e.loc, range));
  Value shift = create<arith::MaxSIOp>(create<arith::SubIOp>(bits, e.constant(bucketBits)), e.constant(0));
  e.createLoop(e.constant(0), e.constant(buckets), 1, {}, [&](Value i, ValueRange) -> SmallVector<Value> {
    e.createStore(e.constant(0), address(sizes, i));
    return {};
  });
  e.createLoop(e.constant(0), length, 1, {}, [&](Value i, ValueRange) -> SmallVector<Value> {
    Value size = address(sizes, bucketOf(load(from, i), ends[0], shift));
    e.createStore(create<arith::AddIOp>(e.createLoad(i64, 1, size), one), size);
    return {};
  });
  Value last = findBucket(sizes, kept), fromIndex = address(from, length), toIndex = address(to, length);
  // What is not picked is written over by the next one.
  return e.createLoop(e.constant(0), length, 1, {e.constant(0)}, [&](Value i, ValueRange picked) -> SmallVector<Value> {
    Value key = load(from, i);
    Value isIn = compare(arith::CmpIPredicate::ule, bucketOf(key, ends[0], shift), last);
    e.createStore(key, address(to, picked[0]));
    e.createStore(load(fromIndex, i), address(toIndex, picked[0]));
    return {create<arith::AddIOp>(picked[0], arith::ExtUIOp::create(e.builder, e.loc, i64, isIn))};
  })[0];
}

/// Leaves in `from` what is to be sorted, where that is much less.
void RowSort::pickFew(Value &from, Value &to, Value sizes, Value kept, ValueRange ends) {
  OpBuilder &b = e.builder;
  Value isLong = compare(arith::CmpIPredicate::sge, length, e.constant(longRow));
  Value isFew = compare(arith::CmpIPredicate::sle, create<arith::AddIOp>(kept, kept), length);
  auto choice = scf::IfOp::create(b, e.loc, TypeRange{from.getType(), to.getType(), i64},
                                  create<arith::AndIOp>(isLong, isFew), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&choice.getElseRegion().front());
  scf::YieldOp::create(b, e.loc, ValueRange{from, to, length});
  b.setInsertionPointToStart(&choice.getThenRegion().front());
  scf::YieldOp::create(b, e.loc, ValueRange{to, from, pick(from, to, sizes, kept, ends)});
  from = choice.getResult(0), to = choice.getResult(1), count = choice.getResult(2);
}

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

// Sorts what lies at `from`; returns the array, of the two, that holds the result.
Value RowSort::sorted(Value from, Value to) const {
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
    Value length = e.emitExpr(domain[size_t(last)], point), kept = e.emitExpr(op.getKept(), at.front());
    RowSort row{e, length, e.builder.getI64Type(), length};
    Value first = e.getLocalMemory(op);
    Value second = row.address(first, row.create<arith::AddIOp>(length, length));
    SmallVector<Value> ends{e.constant(std::numeric_limits<int64_t>::max()),
                            e.constant(std::numeric_limits<int64_t>::min())};
    ends = e.createLoop(e.constant(0), length, 1, ends, [&](Value i, ValueRange ends) -> SmallVector<Value> {
      Value key = codegen::orderedKey(e, keyAt(i), op.getIsUnsigned(), op.getDescending());
      e.createStore(key, row.address(first, i));
      e.createStore(i, row.address(row.address(first, length), i));
      return {row.create<arith::MinSIOp>(ends[0], key), row.create<arith::MaxSIOp>(ends[1], key)};
    });
    Value from = first, to = second;
    if (Expr(op.getKept()) != domain[size_t(last)])
      row.pickFew(from, to, row.address(second, row.create<arith::AddIOp>(length, length)), kept, ends);
    Value result = row.sorted(from, to);
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
