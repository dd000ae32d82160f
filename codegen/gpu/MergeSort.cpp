//===- MergeSort.cpp - sorts of rows by blocks that share them ------------===//
//
// Rows are cut into tiles of eight items a thread, which a block each sorts in shared memory (BlockMerge.cpp). Then
// runs are merged pairwise, in phases of one launch (TicketLoop.cpp): a block makes a tile of what two runs become, and
// finds by two searches which of their items that takes. log2 of a row's tiles phases, each of which reads and writes
// all items once, mostly in L2; there are two copies of them.
//
// Of the first k (top-k) runs need no more than k items, so that phases become short; and what is in nobody's first k
// is never written.
//
// An item is the key as an integer of the order wanted (codegen/common/SortKeys.h) and its index, which decides between
// equal keys: so the sort is stable, and no two items are equal. Keys of up to 32 bits are one word together with their
// index. The last phase reads values by their indices: of a key, neither zeros' signs nor NaNs' bits are left.
//
// Long rows of short keys, most of which is kept, take fewer phases if they are sorted by digits (DigitSort.cpp), which
// counts, sums and places in each; for top-k none of those become short.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/MergeSort.h"
#include "codegen/common/SortKeys.h"
#include "codegen/gpu/DeviceShape.h"
#include "codegen/gpu/DigitSort.h"
#include "codegen/gpu/TicketLoop.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

using Items = SmallVector<SortItem>;

static constexpr int64_t fullDevice = 4 * multiprocessors; // blocks
static constexpr int64_t mostThreads = 256;                // of a block
static constexpr int64_t fewestItems = 64;                 // of a row

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

static Type keyType(loop::SortOp op) { return cast<loop::YieldOp>(op.getKey().front().back()).getValue().getType(); }

// A key and its index in one word.
static int64_t wordsOf(loop::SortOp op) { return keyType(op).getIntOrFloatBitWidth() <= 32 ? 1 : 2; }

Expr RunMerger::getBytes(Expr rows, Expr length, int64_t words) { return rows * length * (2 * 8 * words); }

static int64_t threadsFor(std::optional<int64_t> length) {
  int64_t threads =
      int64_t(llvm::PowerOf2Ceil(uint64_t(llvm::divideCeil(length.value_or(1 << 30), BlockMerge::perThread))));
  return std::clamp(threads, warpSize, mostThreads);
}

// By digits: so many passes, each of which is two or three phases, and two copies of the row.
static int64_t passesOf(loop::SortOp op) {
  return llvm::divideCeil(keyType(op).getIntOrFloatBitWidth(), DigitSorter::mostDigitBits);
}

static bool suitsDigits(loop::SortOp op) {
  std::optional<int64_t> length = loop::getDomain(op).back().asConstant(), kept = Expr(op.getKept()).asConstant();
  if (!length || !kept || *kept < *length / 2 || *length >= int64_t(1) << 32 || wordsOf(op) != 1)
    return false;
  int64_t tiles = llvm::divideCeil(*length, mostThreads * BlockMerge::perThread);
  return 2 * passesOf(op) < int64_t(llvm::Log2_64_Ceil(uint64_t(tiles)));
}

bool gpu::planMergeSort(loop::KernelOp kernel, loop::SortOp op) {
  MLIRContext *context = kernel.getContext();
  SmallVector<Expr> domain = loop::getDomain(op);
  std::optional<int64_t> length = domain.back().asConstant();
  if (length && *length < fewestItems)
    return false;
  auto number = [&](int64_t value) { return Expr::constant(context, value); };
  Expr rows = product(context, ArrayRef(domain).drop_back());
  int64_t threads = threadsFor(length), tileSize = threads * BlockMerge::perThread;
  bool isTile = length && *length <= tileSize;
  NamedAttrList attributes(GpuConfig{.threads = threads}.toAttribute(context));
  attributes.set("layout", StringAttr::get(context, "sort"));
  attributes.set("sort", UnitAttr::get(context));
  if (!isTile)
    attributes.set("counters", UnitAttr::get(context));
  kernel.setIterationsAttr(isTile ? rows : Expr::min(rows * domain.back().ceilDiv(tileSize), number(fullDevice)));
  kernel.setGrainAttr(number(1));
  kernel.setScratchAttr(isTile ? number(0) : RunMerger::getBytes(rows, domain.back(), wordsOf(op)));
  if (suitsDigits(op)) {
    attributes.set("digits", UnitAttr::get(context));
    DigitSorter::limitRegisters(attributes, context);
    kernel.setScratchAttr(DigitSorter::getBytes(rows, domain.back(), DigitSorter::mostDigitBits));
  }
  kernel.setConfigAttr(attributes.getDictionary(context));
  return true;
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

RunMerger::RunMerger(GpuEmitter &e, BlockMerge &tile, int64_t words, Value scratch, Value rows, Value length,
                     Value kept)
    : e(e), b(e.builder), tile(tile), words(words), scratch(scratch), rows(rows), length(length), kept(kept),
      thread(e.getRegister("tid.x")) {
  // Phases behind the first: log2 of the tiles, rounded up.
  auto &in = e.invariants;
  Value tiles = in.floorDiv(in.add(length, e.constant(tile.size() - 1)), e.constant(tile.size()), true);
  Value above = in.sub(in.max(tiles, e.constant(1)), e.constant(1));
  phases = in.sub(e.constant(64), in.get<math::CountLeadingZerosOp>(above));
}

static Value shiftLeft(GpuEmitter &e, Value value, Value count) {
  return arith::ShLIOp::create(e.builder, e.loc, value, count);
}

static Value divideUp(GpuEmitter &e, Value value, Value size) {
  auto &in = e.invariants;
  return in.floorDiv(in.sub(in.add(value, size), e.constant(1)), size, true);
}

/// Each phase makes runs of tile.size() << phase items.
Value RunMerger::ticketsOf(Value phase) {
  auto &in = e.invariants;
  Value stride = shiftLeft(e, e.constant(tile.size()), phase), one = e.constant(1);
  auto shiftRight = [&](Value value, Value count) {
    return arith::ShRUIOp::create(b, e.loc, value, count).getResult();
  };
  Value bits = in.add(phase, e.constant(llvm::Log2_64(uint64_t(tile.size()))));
  Value runs = shiftRight(in.sub(in.add(length, stride), one), bits);
  Value tiles = in.floorDiv(in.add(in.min(kept, stride), e.constant(tile.size() - 1)), e.constant(tile.size()), true);
  Value isFirst = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::eq, phase, e.constant(0));
  tiles = in.select(isFirst, one, tiles);
  return in.mul(rows, in.mul(runs, tiles));
}

Value RunMerger::countTickets() {
  return e.createLoop(
      e.constant(0), e.invariants.add(phases, e.constant(1)), 1, {e.constant(0)},
      [&](Value phase, ValueRange sum) { return SmallVector<Value>{e.invariants.add(sum[0], ticketsOf(phase))}; })[0];
}

Value RunMerger::addressOf(Value buffer, Value row, Value position, int64_t word) {
  auto &in = e.invariants;
  Value half = in.mul(in.mul(rows, length), e.constant(words)); // items of one copy
  Value index = in.add(in.mul(row, length), position);
  index = in.add(in.mul(buffer, half), in.add(in.mul(index, e.constant(words)), e.constant(word)));
  return e.getAddress(scratch, b.getI64Type(), index);
}

SortItem RunMerger::load(Value buffer, Value row, Value position) {
  SortItem item;
  for (int64_t word = 0; word < words; ++word)
    item.push_back(e.createLoad(b.getI64Type(), 1, addressOf(buffer, row, position, word)));
  return item;
}

/// What is kept of the run that begins there.
Value RunMerger::lengthOfRun(Value start, Value stride) {
  auto &in = e.invariants;
  Value there = in.max(in.min(in.sub(length, start), stride), e.constant(0));
  return in.min(there, kept);
}

Items RunMerger::sortTile(Value row, Value tileNumber, ReadItem read) {
  auto &in = e.invariants;
  Value start = in.mul(tileNumber, e.constant(tile.size())), last = in.sub(length, e.constant(1));
  Items items;
  int64_t threads = tile.size() / BlockMerge::perThread;
  for (int64_t i = 0; i < BlockMerge::perThread; ++i) {
    Value position = in.add(start, in.add(thread, e.constant(i * threads)));
    Value isThere = in.compare(arith::CmpIPredicate::slt, position, length);
    SortItem item = read(row, in.min(position, last)), none = tile.last();
    for (auto [word, missing] : llvm::zip_equal(item, none))
      word = arith::SelectOp::create(b, e.loc, isThere, word, missing);
    items.push_back(item);
  }
  return tile.sort(items);
}

/// The first `count` of the tile's items, as elements of a run of the buffer from `start` on, or as results.
void RunMerger::writeTile(ArrayRef<SortItem> items, Value row, Value start, Value count, Value buffer, Value isLast,
                          Value firstRank, Visit visit) {
  tile.putAll(items);
  int64_t threads = tile.size() / BlockMerge::perThread;
  auto forOwn = [&](llvm::function_ref<void(Value, const SortItem &)> body) {
    for (int64_t i = 0; i < BlockMerge::perThread; ++i) {
      Value place = e.invariants.add(thread, e.constant(i * threads));
      e.createIf(e.invariants.compare(arith::CmpIPredicate::slt, place, count), {}, [&] {
        body(place, tile.get(place));
        return SmallVector<Value>();
      });
    }
  };
  auto write = [&](Value place, const SortItem &item) {
    for (auto [word, value] : llvm::enumerate(item))
      e.createStore(value, addressOf(buffer, row, e.invariants.add(start, place), int64_t(word)));
  };
  auto show = [&](Value place, const SortItem &item) { visit(row, e.invariants.add(firstRank, place), item); };
  if (!buffer)
    return forOwn(show);
  auto choice = scf::IfOp::create(b, e.loc, TypeRange(), isLast, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  forOwn(show);
  b.setInsertionPointToStart(choice.elseBlock());
  forOwn(write);
}

void RunMerger::emitTile(Value row, ReadItem read, Visit visit) {
  Items items = sortTile(row, e.constant(0), read);
  writeTile(items, row, {}, e.invariants.min(length, kept), {}, {}, e.constant(0), visit);
}

/// Number `number` of a phase's tiles: of what two runs of half the phase's stride become.
void RunMerger::mergeTile(Value phase, Value number, Visit visit) {
  auto &in = e.invariants;
  Value size = e.constant(tile.size()), zero = e.constant(0);
  Value stride = shiftLeft(e, size, phase), half = in.floorDiv(stride, e.constant(2), true);
  Value tilesOfRun = divideUp(e, in.min(kept, stride), size), runs = divideUp(e, length, stride);
  Value run = in.floorDiv(number, tilesOfRun, true);
  Value from = in.mul(in.sub(number, in.mul(run, tilesOfRun)), size);
  Value row = in.floorDiv(run, runs, true), start = in.mul(in.sub(run, in.mul(row, runs)), stride);
  Value second = in.add(start, half), source = in.mod(in.add(phase, e.constant(1)), e.constant(2), true);
  Value lengthA = lengthOfRun(start, half), lengthB = lengthOfRun(second, half), all = in.add(lengthA, lengthB);
  from = in.min(from, all);
  Value end = in.min(in.add(from, size), in.min(all, kept));
  end = in.max(end, from);
  // A warp looks for where the tile begins in the first run, the next one for where it ends.
  Value lane = in.mod(thread, e.constant(warpSize), true), warp = in.floorDiv(thread, e.constant(warpSize), true);
  Value isEnd = in.compare(arith::CmpIPredicate::eq, in.mod(warp, e.constant(2), true), e.constant(1));
  Value border = in.select(isEnd, end, from);
  Value place = createWarpSearch(e, lane, in.max(in.sub(border, lengthB), zero), in.min(border, lengthA), [&](Value i) {
    Value j = in.sub(in.sub(border, e.constant(1)), i);
    return BlockMerge::isLess(e, load(source, row, in.add(start, i)), load(source, row, in.add(second, j)));
  });
  auto borderAddress = [&](Value of) { return e.getAddress(borders, b.getI64Type(), of); };
  Value isFirstLane = in.compare(arith::CmpIPredicate::eq, lane, zero);
  Value isAsked = in.logicalAnd(isFirstLane, in.compare(arith::CmpIPredicate::slt, warp, e.constant(2)));
  e.createIf(isAsked, {}, [&] {
    e.createStore(place, borderAddress(warp));
    return SmallVector<Value>();
  });
  e.createBlockBarrier();
  Value beginA = e.createLoad(b.getI64Type(), 1, borderAddress(zero));
  Value endA = e.createLoad(b.getI64Type(), 1, borderAddress(e.constant(1)));
  Value middle = in.sub(endA, beginA), beginB = in.sub(from, beginA), count = in.sub(end, from);
  int64_t threads = tile.size() / BlockMerge::perThread;
  for (int64_t i = 0; i < BlockMerge::perThread; ++i) {
    Value own = in.add(thread, e.constant(i * threads));
    e.createIf(in.compare(arith::CmpIPredicate::slt, own, count), {}, [&] {
      Value inA = in.add(in.add(start, beginA), own), inB = in.add(in.add(second, beginB), in.sub(own, middle));
      Value position = in.select(in.compare(arith::CmpIPredicate::slt, own, middle), inA, inB);
      tile.put(own, load(source, row, position));
      return SmallVector<Value>();
    });
  }
  e.createBlockBarrier();
  Items items = tile.merge(middle, count);
  e.createBlockBarrier();
  Value target = in.mod(phase, e.constant(2), true);
  Value isLast = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::eq, phase, phases);
  writeTile(items, row, in.add(start, from), count, target, isLast, from, visit);
}

void RunMerger::emit(TicketLoop &tickets, Value first, Value ticket, ReadItem read, Visit visit) {
  auto &in = e.invariants;
  borders = e.sharedMemory(16);
  // Which phase the ticket is of, and the number of the phase's first one.
  Value start[] = {e.constant(0), e.constant(0)};
  SmallVector<Value> found = e.createLoop(e.constant(0), phases, 1, start, [&](Value phase, ValueRange at) {
    Value next = in.add(at[1], ticketsOf(phase));
    Value isBehind = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::sle, next, ticket);
    Value isReached = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::eq, at[0], phase);
    isBehind = arith::AndIOp::create(b, e.loc, isBehind, isReached);
    auto select = [&](Value a, Value c) { return arith::SelectOp::create(b, e.loc, isBehind, a, c).getResult(); };
    return SmallVector<Value>{select(in.add(phase, e.constant(1)), at[0]), select(next, at[1])};
  });
  Value phase = found[0], number = in.sub(ticket, found[1]);
  Value isFirst = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::eq, phase, e.constant(0));
  auto choice = scf::IfOp::create(b, e.loc, TypeRange(), isFirst, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  {
    Value size = e.constant(tile.size()), tiles = divideUp(e, length, size);
    Value row = in.floorDiv(number, tiles, true), own = in.sub(number, in.mul(row, tiles));
    Items items = sortTile(row, own, read);
    Value position = in.mul(own, size);
    Value isLast = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::eq, phases, e.constant(0));
    writeTile(items, row, position, lengthOfRun(position, size), e.constant(0), isLast, e.constant(0), visit);
  }
  b.setInsertionPointToStart(choice.elseBlock());
  tickets.createWait(in.add(first, found[1]));
  mergeTile(phase, number, visit);
}

//===----------------------------------------------------------------------===//
// Sorts
//===----------------------------------------------------------------------===//

// The key as a number of 32 bits (signed), above the index.
static Value packKey(GpuEmitter &e, loop::SortOp op, Value key, Value index) {
  constexpr int64_t half = int64_t(1) << 31;
  bool isWide = keyType(op).isInteger(32) && op.getIsUnsigned();
  if (isWide)
    key = e.invariants.add(key, e.constant(op.getDescending() ? half : -half));
  Value word = arith::ShLIOp::create(e.builder, e.loc, key, e.constant(32));
  return arith::OrIOp::create(e.builder, e.loc, word, index);
}

// The key as a number from 0 on of its type's bits, above the index.
static Value packDigits(GpuEmitter &e, loop::SortOp op, Value key, Value index) {
  Type type = keyType(op);
  bool isUnsigned = (op.getIsUnsigned() || type.isInteger(1)) && !isa<FloatType>(type);
  int64_t numbers = int64_t(1) << type.getIntOrFloatBitWidth();
  int64_t least = !isUnsigned ? -numbers / 2 : op.getDescending() ? -numbers : 0;
  key = e.invariants.sub(key, e.constant(least));
  Value word = arith::ShLIOp::create(e.builder, e.loc, key, e.constant(32));
  return arith::OrIOp::create(e.builder, e.loc, word, index);
}

void gpu::emitMergeSort(GpuEmitter &e, loop::SortOp op) {
  OpBuilder &b = e.builder;
  SmallVector<Expr> domain = loop::getDomain(op);
  e.setDomain(domain);
  e.row = {e.getRegister("tid.x"), e.config.threads};
  const int64_t words = wordsOf(op);
  const bool byDigits = e.kernel.getConfigAttr().contains("digits");
  SmallVector<Value> sizes;
  Value rows = e.constant(1);
  for (Expr extent : ArrayRef(domain).drop_back()) {
    sizes.push_back(e.emitExpr(extent, {}));
    rows = e.invariants.mul(rows, sizes.back());
  }
  Value length = e.emitExpr(domain.back(), {}), kept = e.emitExpr(op.getKept(), {});
  auto pointAt = [&](Value row, Value position) {
    EmissionPoint point;
    point.dims = e.createDigits(row, sizes);
    point.dims.push_back(position);
    return point;
  };
  auto read = [&](Value row, Value position) {
    Value value = e.emitRegion(op.getKey(), pointAt(row, position));
    Value key = codegen::orderedKey(e, value, op.getIsUnsigned(), op.getDescending());
    if (byDigits)
      return SortItem{packDigits(e, op, key, position)};
    return words == 1 ? SortItem{packKey(e, op, key, position)} : SortItem{key, position};
  };
  auto visit = [&](Value row, Value rank, const SortItem &item) {
    Value index = item.back();
    if (words == 1)
      index = arith::AndIOp::create(b, e.loc, index, e.constant((int64_t(1) << 32) - 1));
    Value value = e.emitRegion(op.getKey(), pointAt(row, index));
    e.emitRegion(op.getBody(), pointAt(row, rank), {value, index});
  };
  Value blocks = e.emitExpr(Expr(e.kernel.getIterationsAttr()), {});
  if (byDigits) {
    DigitSorter sorter(e, DigitSorter::mostDigitBits, e.scratch, rows, length, e.constant(32),
                       e.constant(passesOf(op)));
    TicketLoop tickets(e);
    tickets.emit(sorter.countTickets(), blocks, [&](Value ticket) {
      sorter.emit(
          tickets, ticket, [&](Value row, Value position) { return read(row, position)[0]; },
          [&](Value row, Value rank, Value word) {
            e.createIf(e.invariants.compare(arith::CmpIPredicate::slt, rank, kept), {}, [&] {
              visit(row, rank, {word});
              return SmallVector<Value>();
            });
          });
    });
    return;
  }
  BlockMerge tile(e, e.config.threads, words);
  RunMerger merger(e, tile, words, e.scratch, rows, length, kept);
  if (!e.counters)
    return merger.emitTile(e.getRegister("ctaid.x"), read, visit);
  TicketLoop tickets(e);
  tickets.emit(merger.countTickets(), blocks,
               [&](Value ticket) { merger.emit(tickets, e.constant(0), ticket, read, visit); });
}
