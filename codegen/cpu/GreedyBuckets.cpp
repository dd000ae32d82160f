//===- GreedyBuckets.cpp - chosen points by where they lie ----------------===//
//
// Where nothing excludes most of a long row (boxes of many classes, moved apart so that they do not meet), comparing
// every candidate with every chosen point is all there is to do, and nearly all of it is for points that lie elsewhere.
// If a conflict says that intervals of the two meet (ConflictInterval.h), the chosen points are kept by their lower
// bounds in buckets, and a candidate is compared with some neighbouring buckets:
//
//   - A bound's bucket is f(x) = (x - origin) * factor, cut off to [0, buckets). Rounding keeps f monotone, which is
//     all that is asked of it: origin and factor may come from any points, be infinite or of no use (f is 0 then).
//   - A chosen point [lower, upper) that conflicts with a candidate [a, b) has lower < b, hence f(lower) <= f(b), and
//     a < upper, hence f(a) <= f(upper). So the buckets from `first[f(a)]` to f(b) hold it, where `first[t]` is the
//     lowest bucket of a point whose upper bound is in bucket t or above.
//   - A lower bound that is NaN is in bucket 0, an upper one in the last: such points and candidates miss nothing.
//
// Buckets are ranges of the arrays of remembered values: a counting sort puts them in order when an eighth of them has
// come since the last time. Those that came since lie behind and are compared with all candidates; so a row of n costs
// about n log n moves, and n/16 comparisons a candidate beside those with its neighbours. Any order of comparisons
// gives the same choice. Refused: lists of blocks in each bucket (no late points, but a branch for each block, and
// more room), and counting all candidates first (most rows end early, at their limit).
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/GreedyBuckets.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;
using arith::CmpFPredicate;
using codegen::ConflictInterval;
using codegen::ConflictParts;

static constexpr int64_t buckets = 512;
static constexpr int64_t fewLate = 256; // points that are compared faster than put in order
static constexpr int64_t lateShare = 8; // of those in order, points that come before they are put in order again
static constexpr int64_t wordBytes = 8;
static constexpr int64_t tableBytes = (buckets + 8) * wordBytes;

std::optional<ConflictInterval> GreedyBuckets::findInterval(const ConflictParts &parts, Expr count) {
  if (count.asConstant().value_or(2 * fewLate) < 2 * fewLate)
    return std::nullopt;
  std::optional<ConflictInterval> interval = codegen::findConflictInterval(parts);
  bool holdsNumbers = interval && interval->lower.getType().getIntOrFloatBitWidth() >= 32; // of all buckets
  return holdsNumbers ? interval : std::nullopt;
}

Expr GreedyBuckets::getBytes(const ConflictParts &parts, Expr count) {
  return parts.getBytes(count) * int64_t(2) + 2 * tableBytes;
}

GreedyBuckets::GreedyBuckets(KernelEmitter &e, const ConflictParts &parts, const ConflictInterval &interval,
                             Value memory, Expr count, const EmissionPoint &row)
    : e(e), parts(parts), interval(interval), type(cast<FloatType>(interval.lower.getType())) {
  auto at = [&](Expr offset) { return e.getAddress(memory, e.builder.getI8Type(), e.emitExpr(offset, row)); };
  Expr bytes = parts.getBytes(count);
  for (size_t i = 0; i < parts.remembered.size(); ++i) {
    arrays.push_back(at(parts.getOffset(i, count)));
    copies.push_back(at(bytes + parts.getOffset(i, count)));
  }
  starts = at(bytes * int64_t(2));
  first = at(bytes * int64_t(2) + tableBytes);
}

//===----------------------------------------------------------------------===//
// Small words
//===----------------------------------------------------------------------===//

Value GreedyBuckets::number(double value) const { return e.invariants.constant(e.builder.getFloatAttr(type, value)); }

Value GreedyBuckets::isOrdered(CmpFPredicate predicate, Value a, Value b) const {
  return arith::CmpFOp::create(e.builder, e.loc, predicate, a, b);
}

Value GreedyBuckets::select(Value condition, Value a, Value b) const {
  return arith::SelectOp::create(e.builder, e.loc, condition, a, b);
}

Value GreedyBuckets::entry(Value table, Value index) const {
  return LLVM::GEPOp::create(e.builder, e.loc, table.getType(), e.builder.getI64Type(), table,
                             ArrayRef<LLVM::GEPArg>{index});
}

Value GreedyBuckets::loadEntry(Value table, Value index) const {
  return e.createLoad(e.builder.getI64Type(), 1, entry(table, index));
}

static Value elementAt(KernelEmitter &e, Value array, Type type, Value index) {
  Type memory = KernelEmitter::getMemoryType(type);
  return LLVM::GEPOp::create(e.builder, e.loc, array.getType(), memory, array, ArrayRef<LLVM::GEPArg>{index});
}

/// One of the two bounds of the remembered point at `index`.
Value GreedyBuckets::loadBound(Value bound, Value index) const {
  auto number = size_t(llvm::find(parts.remembered, bound) - parts.remembered.begin());
  return e.createLoad(type, 1, elementAt(e, arrays[number], type, index));
}

//===----------------------------------------------------------------------===//
// Buckets
//===----------------------------------------------------------------------===//

Value GreedyBuckets::lowerBucket(Value bound, Scale scale) const {
  Value at = make<arith::MulFOp>(make<arith::SubFOp>(bound, scale.origin), scale.factor);
  Value zero = number(0), last = number(buckets - 1);
  at = select(isOrdered(CmpFPredicate::OGT, at, zero), at, zero); // of a NaN, too
  at = select(isOrdered(CmpFPredicate::OLT, at, last), at, last);
  return arith::FPToSIOp::create(e.builder, e.loc, e.builder.getI64Type(), at);
}

Value GreedyBuckets::upperBucket(Value bound, Scale scale) const {
  return select(isOrdered(CmpFPredicate::UNO, bound, bound), e.constant(buckets - 1), lowerBucket(bound, scale));
}

/// Spreads the remembered points over the buckets.
GreedyBuckets::Scale GreedyBuckets::measure(Value count) const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  SmallVector<Value> ends = e.createLoop(
      e.constant(0), count, 1, {number(infinity), number(-infinity)}, [&](Value i, ValueRange ends) -> Values {
        Value lower = loadBound(interval.lower, i);
        Value upper = loadBound(interval.upper, i);
        return {select(isOrdered(CmpFPredicate::OLT, lower, ends[0]), lower, ends[0]),
                select(isOrdered(CmpFPredicate::OGT, upper, ends[1]), upper, ends[1])};
      });
  Value length = make<arith::SubFOp>(ends[1], ends[0]);
  Value factor = make<arith::DivFOp>(number(buckets), length);
  return {ends[0], select(isOrdered(CmpFPredicate::OGT, length, number(0)), factor, number(0))};
}

/// starts[b + 2] = points in bucket b; first[t] = lowest bucket of a point whose upper bound is in bucket t.
void GreedyBuckets::countBuckets(Value count, Scale scale) const {
  Value zero = e.constant(0), one = e.constant(1);
  e.createLoop(zero, e.constant(buckets + 2), 1, {}, [&](Value i, ValueRange) -> Values {
    e.createStore(zero, entry(starts, i));
    e.createStore(e.constant(buckets), entry(first, i));
    return {};
  });
  e.createLoop(zero, count, 1, {}, [&](Value i, ValueRange) -> Values {
    Value bucket = lowerBucket(loadBound(interval.lower, i), scale);
    Value reached = entry(first, upperBucket(loadBound(interval.upper, i), scale));
    Value size = entry(starts, make<arith::AddIOp>(bucket, e.constant(2)));
    e.createStore(make<arith::AddIOp>(e.createLoad(one.getType(), 1, size), one), size);
    e.createStore(make<arith::MinSIOp>(e.createLoad(one.getType(), 1, reached), bucket), reached);
    return {};
  });
}

/// starts[b + 1] = where bucket b begins; first[t] = lowest bucket of a point whose upper bound is in t or above.
void GreedyBuckets::addUp() const {
  Value zero = e.constant(0);
  e.createLoop(zero, e.constant(buckets), 1, {zero, e.constant(buckets)}, [&](Value i, ValueRange sums) -> Values {
    Value size = entry(starts, make<arith::AddIOp>(i, e.constant(1)));
    Value begin = make<arith::AddIOp>(sums[0], e.createLoad(zero.getType(), 1, size));
    e.createStore(begin, size);
    Value reached = entry(first, make<arith::SubIOp>(e.constant(buckets - 1), i));
    Value lowest = make<arith::MinSIOp>(sums[1], e.createLoad(zero.getType(), 1, reached));
    e.createStore(lowest, reached);
    return {begin, lowest};
  });
}

/// Puts the points in order; then starts[b] = where bucket b begins, and starts[b + 1] where it ends.
void GreedyBuckets::move(Value count, Scale scale) const {
  Value zero = e.constant(0), one = e.constant(1);
  e.createLoop(zero, count, 1, {}, [&](Value i, ValueRange) -> Values {
    Value bucket = lowerBucket(loadBound(interval.lower, i), scale);
    Value end = entry(starts, make<arith::AddIOp>(bucket, one));
    Value to = e.createLoad(one.getType(), 1, end);
    e.createStore(make<arith::AddIOp>(to, one), end);
    for (auto [value, array, copy] : llvm::zip_equal(parts.remembered, arrays, copies)) {
      Value kept = e.createLoad(value.getType(), 1, elementAt(e, array, value.getType(), i));
      e.createStore(kept, elementAt(e, copy, value.getType(), to));
    }
    return {};
  });
  for (auto [value, array, copy] : llvm::zip_equal(parts.remembered, arrays, copies)) {
    Type type = value.getType();
    int64_t lanes = e.traits.vectorBits / int64_t(KernelEmitter::getMemoryType(type).getIntOrFloatBitWidth());
    e.createLoop(zero, count, lanes, {}, [&](Value i, ValueRange) -> Values {
      e.createStore(e.createLoad(type, lanes, elementAt(e, copy, type, i)), elementAt(e, array, type, i));
      return {};
    });
  }
}

//===----------------------------------------------------------------------===//
// The row
//===----------------------------------------------------------------------===//

SmallVector<Value> GreedyBuckets::createState() { return {e.constant(0), number(0), number(0)}; }

std::pair<Value, Value> GreedyBuckets::findRange(Value ownLower, Value ownUpper, ValueRange state) {
  Value zero = e.constant(0), one = e.constant(1);
  Value isSome = arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::ne, state[0], zero);
  auto choice = scf::IfOp::create(e.builder, e.loc, TypeRange{zero.getType(), zero.getType()}, isSome, true);
  OpBuilder::InsertionGuard guard(e.builder);
  e.builder.setInsertionPointToStart(&choice.getElseRegion().front());
  scf::YieldOp::create(e.builder, e.loc, ValueRange{zero, zero});
  e.builder.setInsertionPointToStart(&choice.getThenRegion().front());
  Scale scale{state[1], state[2]};
  Value last = upperBucket(ownUpper, scale);
  Value from = loadEntry(starts, loadEntry(first, lowerBucket(ownLower, scale)));
  Value to = loadEntry(starts, make<arith::AddIOp>(last, one));
  scf::YieldOp::create(e.builder, e.loc, ValueRange{make<arith::MinSIOp>(from, to), to});
  return {choice.getResult(0), choice.getResult(1)};
}

SmallVector<Value> GreedyBuckets::extend(Value count, ValueRange state) {
  Value late = make<arith::SubIOp>(count, state[0]);
  Value most = make<arith::DivUIOp>(state[0], e.constant(lateShare));
  most = make<arith::MaxSIOp>(most, e.constant(fewLate));
  Value isDue = arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::sgt, late, most);
  auto choice = scf::IfOp::create(e.builder, e.loc, state.getTypes(), isDue, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(e.builder);
  e.builder.setInsertionPointToStart(&choice.getElseRegion().front());
  scf::YieldOp::create(e.builder, e.loc, state);
  e.builder.setInsertionPointToStart(&choice.getThenRegion().front());
  Scale scale = measure(count);
  countBuckets(count, scale);
  addUp();
  move(count, scale);
  scf::YieldOp::create(e.builder, e.loc, ValueRange{count, scale.origin, scale.factor});
  return SmallVector<Value>(choice.getResults());
}
