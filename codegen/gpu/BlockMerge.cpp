//===- BlockMerge.cpp - a block sorts and merges in shared memory ---------===//
//
// A thread sorts eight items in registers (Batcher's network of 19 comparisons); then runs are merged pairwise, log2 of
// the threads times. In a round each thread makes eight neighbours of the result: where these begin in either run says
// a search (merge path; Green, McColl, Bader 2012), and from there on it takes the smaller of two items eight times.
// No two items are equal, so that order needs no more than a comparison.
//
// Items lie in shared memory with a gap behind each eighth, so that the threads' first items lie in different banks.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/BlockMerge.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

using Items = SmallVector<SortItem>;

static Value isBelow(GpuEmitter &e, Value a, Value b) {
  return arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::slt, a, b);
}

SmallVector<Value> gpu::createWhile(GpuEmitter &e, ValueRange start, llvm::function_ref<Value(ValueRange)> condition,
                                    llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
  OpBuilder &b = e.builder;
  SmallVector<Location> locations(start.size(), e.loc);
  auto loop = scf::WhileOp::create(b, e.loc, start.getTypes(), start);
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&loop.getBefore(), {}, start.getTypes(), locations);
  scf::ConditionOp::create(b, e.loc, condition(before->getArguments()), before->getArguments());
  Block *after = b.createBlock(&loop.getAfter(), {}, start.getTypes(), locations);
  scf::YieldOp::create(b, e.loc, body(after->getArguments()));
  return loop.getResults();
}

Value gpu::createSearch(GpuEmitter &e, Value low, Value high, llvm::function_ref<Value(Value)> isBefore) {
  Value start[] = {low, high};
  return createWhile(
      e, start, [&](ValueRange range) { return isBelow(e, range[0], range[1]); },
      [&](ValueRange range) {
        Value middle = e.invariants.floorDiv(e.invariants.add(range[0], range[1]), e.constant(2), true);
        Value holds = isBefore(middle);
        auto select = [&](Value a, Value b) {
          return arith::SelectOp::create(e.builder, e.loc, holds, a, b).getResult();
        };
        return SmallVector<Value>{select(e.invariants.add(middle, e.constant(1)), range[0]), select(range[1], middle)};
      })[0];
}

Value gpu::createWarpSearch(GpuEmitter &e, Value lane, Value low, Value high,
                            llvm::function_ref<Value(Value)> isBefore) {
  auto &in = e.invariants;
  Value start[] = {low, high}, one = e.constant(1);
  return createWhile(
      e, start, [&](ValueRange range) { return isBelow(e, range[0], range[1]); },
      [&](ValueRange range) {
        Value step =
            in.floorDiv(in.add(in.sub(range[1], range[0]), e.constant(warpSize - 1)), e.constant(warpSize), true);
        Value number = in.add(range[0], in.mul(lane, step));
        Value holds = isBefore(in.min(number, in.sub(range[1], one)));
        Value bits = e.createBallot(in.logicalAnd(holds, isBelow(e, number, range[1])));
        Value count = arith::ExtUIOp::create(e.builder, e.loc, e.builder.getI64Type(),
                                             math::CtPopOp::create(e.builder, e.loc, bits).getResult());
        Value above = in.add(range[0], in.mul(in.sub(count, one), step)); // the last that it holds of
        Value none = in.compare(arith::CmpIPredicate::eq, count, e.constant(0));
        return SmallVector<Value>{in.select(none, range[0], in.add(above, one)),
                                  in.select(none, range[0], in.min(in.add(above, step), range[1]))};
      })[0];
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

BlockMerge::BlockMerge(GpuEmitter &e, int64_t threads, int64_t words)
    : e(e), b(e.builder), threads(threads), words(words), thread(e.getRegister("tid.x")) {
  memory = e.sharedMemory((size() + threads) * words * 8);
}

Value BlockMerge::isLess(GpuEmitter &e, const SortItem &a, const SortItem &b) {
  Value less = isBelow(e, a[0], b[0]);
  if (a.size() == 1)
    return less;
  Value isEqual = arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::eq, a[0], b[0]);
  return arith::SelectOp::create(e.builder, e.loc, isEqual, isBelow(e, a[1], b[1]), less);
}

SortItem BlockMerge::last() { return SortItem(size_t(words), e.constant(std::numeric_limits<int64_t>::max())); }

static SortItem select(GpuEmitter &e, Value condition, const SortItem &a, const SortItem &b) {
  SortItem item;
  for (auto [yes, no] : llvm::zip_equal(a, b))
    item.push_back(arith::SelectOp::create(e.builder, e.loc, condition, yes, no));
  return item;
}

void BlockMerge::put(Value place, const SortItem &item) {
  Value index = e.invariants.add(place, e.invariants.floorDiv(place, e.constant(perThread), true));
  for (auto [word, value] : llvm::enumerate(item))
    e.createStore(value, e.getAddress(memory, b.getI64Type(),
                                      e.invariants.add(index, e.constant(int64_t(word) * (size() + threads)))));
}

SortItem BlockMerge::get(Value place) {
  Value index = e.invariants.add(place, e.invariants.floorDiv(place, e.constant(perThread), true));
  SortItem item;
  for (int64_t word = 0; word < words; ++word) {
    Value at = e.invariants.add(index, e.constant(word * (size() + threads)));
    item.push_back(e.createLoad(b.getI64Type(), 1, e.getAddress(memory, b.getI64Type(), at)));
  }
  return item;
}

void BlockMerge::putAll(ArrayRef<SortItem> items) {
  Value first = e.invariants.mul(thread, e.constant(perThread));
  for (auto [i, item] : llvm::enumerate(items))
    put(e.invariants.add(first, e.constant(int64_t(i))), item);
  e.createBlockBarrier();
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

void BlockMerge::sortThread(MutableArrayRef<SortItem> items) {
  static_assert(perThread == 8, "the network's");
  static constexpr std::pair<int, int> network[] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {0, 2}, {1, 3}, {4, 6},
                                                    {5, 7}, {1, 2}, {5, 6}, {0, 4}, {1, 5}, {2, 6}, {3, 7},
                                                    {2, 4}, {3, 5}, {1, 2}, {3, 4}, {5, 6}};
  for (auto [low, high] : network) {
    SortItem first = items[size_t(low)], second = items[size_t(high)];
    Value inOrder = isLess(e, first, second);
    items[size_t(low)] = select(e, inOrder, first, second);
    items[size_t(high)] = select(e, inOrder, second, first);
  }
}

/// The thread's of what [begin, middle) and [middle, end) become: from number `from` of it on.
Items BlockMerge::mergeRuns(Value begin, Value middle, Value end, Value from) {
  auto &in = e.invariants;
  Value first = in.sub(middle, begin), second = in.sub(end, middle);
  from = in.min(from, in.add(first, second)); // nothing is left for the last threads
  Value low = in.max(in.sub(from, second), e.constant(0));
  Value taken = createSearch(e, low, in.min(from, first), [&](Value number) {
    Value other = in.sub(in.sub(from, e.constant(1)), number);
    return isLess(e, get(in.add(begin, number)), get(in.add(middle, other)));
  });
  auto getIn = [&](Value place, Value limit) {
    Value inside = in.min(place, e.constant(size() - 1));
    return select(e, isBelow(e, place, limit), get(inside), last());
  };
  Value a = in.add(begin, taken), c = in.add(middle, in.sub(from, taken));
  SortItem left = getIn(a, middle), right = getIn(c, end);
  Items items;
  for (int64_t i = 0; i < perThread; ++i) {
    Value isLeft = isLess(e, left, right);
    items.push_back(select(e, isLeft, left, right));
    if (i + 1 == perThread)
      break;
    auto choose = [&](Value x, Value y) { return arith::SelectOp::create(b, e.loc, isLeft, x, y).getResult(); };
    Value next = in.add(choose(a, c), e.constant(1));
    SortItem item = getIn(next, choose(middle, end));
    a = choose(next, a);
    c = choose(c, next);
    left = select(e, isLeft, item, left);
    right = select(e, isLeft, right, item);
  }
  return items;
}

Items BlockMerge::merge(Value middle, Value end) {
  return mergeRuns(e.constant(0), middle, end, e.invariants.mul(thread, e.constant(perThread)));
}

Items BlockMerge::sort(Items items) {
  sortThread(items);
  SmallVector<Value> flat;
  for (const SortItem &item : items)
    llvm::append_range(flat, item);
  auto unflatten = [&](ValueRange values) {
    Items all;
    for (size_t first = 0; first < values.size(); first += size_t(words))
      all.emplace_back(values.slice(first, size_t(words)));
    return all;
  };
  Value one = e.constant(1);
  flat = e.createLoop(
      e.constant(0), e.constant(llvm::Log2_64(uint64_t(threads))), 1, flat, [&](Value round, ValueRange carried) {
        putAll(unflatten(carried));
        auto shift = [&](Value value) { return arith::ShLIOp::create(b, e.loc, value, round).getResult(); };
        Value width = shift(e.constant(perThread)), both = e.invariants.add(width, width);
        Value number = e.invariants.mul(thread, e.constant(perThread));
        Value from = arith::AndIOp::create(b, e.loc, number, e.invariants.sub(both, one));
        Value begin = e.invariants.sub(number, from), middle = e.invariants.add(begin, width);
        Items merged = mergeRuns(begin, middle, e.invariants.add(middle, width), from);
        e.createBlockBarrier();
        SmallVector<Value> next;
        for (const SortItem &item : merged)
          llvm::append_range(next, item);
        return next;
      });
  return unflatten(flat);
}
