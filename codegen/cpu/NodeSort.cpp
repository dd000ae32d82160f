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
// Where less is kept than a long row has, that is picked out before (RowSelection.cpp). The body reads the key region
// again at each index, so that values keep their bits.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/SortKeys.h"
#include "codegen/cpu/RowSort.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

// Two arrays of (key, index) for one row, counts of its buckets or digits, and the keys that few are taken of.
Expr cpu::getSortBytes(loop::SortOp op) {
  Expr length = loop::getDomain(op).back(), bytes = length * (4 * wordBytes);
  if (!mayHaveMany(length))
    return bytes;
  bytes = bytes + digits * wordBytes;
  return Expr(op.getKept()) == length ? bytes : bytes + RowSort::getKeyBytes(length);
}

//===----------------------------------------------------------------------===//
// Digits
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
  e.forEach(e.constant(0), e.constant(digits), 1, [&](Value i) { e.createStore(e.constant(0), address(sizes, i)); });
  e.forEach(e.constant(0), points, 1, [&](Value i) {
    Value size = address(sizes, digitOf(load(from, i), shift));
    e.createStore(create<arith::AddIOp>(e.createLoad(i64, 1, size), e.constant(1)), size);
  });
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
  e.forEach(e.constant(0), count, 1, [&](Value i) {
    Value key = load(from, i), place = address(sizes, digitOf(key, shift));
    Value at = e.createLoad(i64, 1, place);
    e.createStore(create<arith::AddIOp>(at, e.constant(1)), place);
    e.createStore(key, address(to, at));
    e.createStore(load(fromIndex, i), address(toIndex, at));
  });
}

Value RowSort::sortedByDigits() const {
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

Value RowSort::merged() const {
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

void RowSort::setState(ValueRange state) {
  from = state[0], to = state[1], count = state[2], lowest = state[3], range = state[4];
}

void RowSort::choose(Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise) {
  if (auto known = e.invariants.asConstant(condition))
    return *known ? then() : otherwise();
  SmallVector<Type> types{from.getType(), to.getType(), i64, i64, i64};
  auto choice = scf::IfOp::create(e.builder, e.loc, types, condition, /*withElseRegion=*/true);
  SmallVector<Value> before = getState();
  for (auto [block, take] : {std::pair(choice.thenBlock(), then), std::pair(choice.elseBlock(), otherwise)}) {
    OpBuilder::InsertionGuard guard(e.builder);
    e.builder.setInsertionPointToStart(block);
    setState(before);
    take();
    scf::YieldOp::create(e.builder, e.loc, getState());
  }
  setState(choice.getResults());
}

void RowSort::fill(Value points, llvm::function_ref<Value(Value)> keyAt) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  SmallVector<Value> ends =
      e.createLoop(e.constant(0), points, 1, {e.constant(most), e.constant(least)},
                   [&](Value i, ValueRange ends) -> SmallVector<Value> {
                     Value key = keyAt(i);
                     e.createStore(key, address(from, i));
                     e.createStore(i, address(address(from, length), i));
                     return {create<arith::MinSIOp>(ends[0], key), create<arith::MaxSIOp>(ends[1], key)};
                   });
  count = points;
  lowest = ends[0];
  range = create<arith::SubIOp>(ends[1], ends[0]);
}

Value RowSort::sorted(bool mayBeMany) const {
  if (!mayBeMany)
    return merged();
  auto branch = [&](Value (RowSort::*sort)() const) {
    return [this, sort](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, (this->*sort)()); };
  };
  Value areMany = compare(arith::CmpIPredicate::sge, count, e.constant(manyPoints));
  return scf::IfOp::create(e.builder, e.loc, areMany, branch(&RowSort::sortedByDigits), branch(&RowSort::merged))
      .getResult(0);
}

void NodeEmitter::emitSort(loop::SortOp op, const Points &points, int64_t shared, int64_t vectorDim) {
  int64_t last = int64_t(domain.size()) - 1;
  SmallVector<int64_t> outer;
  for (int64_t dim = shared; dim < last; ++dim)
    if (dim != vectorDim)
      outer.push_back(dim);
  auto rows = [&](const Points &at, ValueRange) {
    for (const EmissionPoint &point : at)
      point.isVector() ? emitLaneSelection(e, op, point) : emitRowSort(op, point);
    return SmallVector<Value>();
  };
  emitLoops(e, domain, outer, points, {}, [&](const Points &at, ValueRange) {
    if (vectorDim < 0)
      return rows(at, {});
    Expr extent = domain[size_t(vectorDim)];
    return emitVectorLoop(e, at.front(), vectorDim, e.constant(0), e.emitExpr(extent, at.front()),
                          cpu::chooseLanes(e, op, extent), 1, hasMasks(op, e.level), {}, rows);
  });
}

void NodeEmitter::emitRowSort(loop::SortOp op, const EmissionPoint &row) {
  size_t last = domain.size() - 1;
  EmissionPoint point = row;
  auto keyAt = [&](Value position) {
    point.dims[last] = position;
    return e.emitRegion(op.getKey(), point);
  };
  Expr extent = domain[last];
  Value length = e.emitExpr(extent, point), kept = e.emitExpr(op.getKept(), row);
  RowSort sort{.e = e, .length = length, .i64 = e.builder.getI64Type(), .from = e.getLocalMemory(op)};
  Value both = sort.create<arith::AddIOp>(length, length);
  sort.to = sort.address(sort.from, both);
  sort.sizes = sort.address(sort.to, both);
  auto fill = [&] {
    sort.fill(length,
              [&](Value i) { return codegen::orderedKey(e, keyAt(i), op.getIsUnsigned(), op.getDescending()); });
  };
  if (Expr(op.getKept()) == extent || !mayHaveMany(extent)) {
    fill();
  } else {
    IntegerType keyType = codegen::narrowKeyType(op.getKey().front().getTerminator()->getOperand(0).getType());
    RowSort::Keys keys{.op = op, .row = row, .type = keyType, .memory = sort.address(sort.sizes, e.constant(digits))};
    sort.choose(
        sort.areVeryFew(kept), [&] { sort.collectFew(keys, kept); },
        [&] {
          fill();
          sort.pickFew(kept);
        });
  }
  Value result = sort.sorted(mayHaveMany(extent));
  e.forEach(e.constant(0), kept, 1, [&](Value rank) {
    Value index = sort.load(sort.address(result, length), rank);
    Value value = keyAt(index);
    point.dims[last] = rank;
    e.emitRegion(op.getBody(), point, {value, index});
  });
}
