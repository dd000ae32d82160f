//===- DigitSort.cpp - rows sorted digit by digit -------------------------===//
//
// Words are sorted by the lowest digit of their keys, then, stably, by the next one, and so on. Each pass has three
// phases of one launch (TicketLoop.cpp):
//
//   count   how often a tile of 2,048 words has each digit; in the first pass words are made, and kept
//   sum     for each digit what the tiles in front of each have of it, and all; a warp a digit
//   place   a tile's words go where its digits begin: what smaller digits have, what tiles in front have of its own
//
// Within a tile, order is that of warps, of their steps, and of lanes. In a step, lanes leave their bits in a word of
// the digit, which says who has the same one: that gives each its rank among them, and the first of them adds their
// number to what the warp has of it. The tile is put in order in shared memory, from where neighbours go to neighbours.
// Of few tiles there is no phase of sums: whoever places adds up counts himself.
//
// Nothing depends on timing; two copies of the words, and a count for each digit and tile, are in scratch. All is read
// twice a pass and written once, mostly in L2.
//
// Source: Merrill, Grimshaw: High performance and scalable radix sorting (2011). Refused: prefixes of tiles that look
// back at each other (Adinets, Merrill 2022), which read once: where all tiles begin together, each waits for half of
// those in front, one after the other.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/DigitSort.h"
#include "codegen/gpu/TicketLoop.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t tilesOfLane = 8; // under way together
static constexpr int64_t fewTiles = 16;   // of a row

Expr DigitSorter::getBytes(Expr rows, Expr length, int64_t digitBits) {
  Expr counts = rows * (length.ceilDiv(tileSize) + 1) * (int64_t(1) << digitBits);
  return rows * length * 16 + counts * 4;
}

void DigitSorter::limitRegisters(NamedAttrList &attributes, MLIRContext *context) {
  attributes.set("resident", IntegerAttr::get(IntegerType::get(context, 64), 4));
}

DigitSorter::DigitSorter(GpuEmitter &e, int64_t digitBits, Value scratch, Value rows, Value length, Value firstBit,
                         Value passes)
    : e(e), b(e.builder), digitBits(digitBits), digits(int64_t(1) << digitBits), scratch(scratch), rows(rows),
      length(length), firstBit(firstBit), passes(passes), thread(e.getRegister("tid.x")) {
  assert(digits <= threads && digits % warps == 0 && "a thread, or a warp, has a digit");
  auto &in = e.invariants;
  lane = in.mod(thread, e.constant(warpSize), true);
  warp = in.floorDiv(thread, e.constant(warpSize), true);
  tiles = in.floorDiv(in.add(length, e.constant(tileSize - 1)), e.constant(tileSize), true);
  counts = e.getAddress(scratch, b.getI64Type(), in.mul(in.mul(rows, length), e.constant(2)));
  words = e.sharedMemory(tileSize * 8);
  warpCounts = e.sharedMemory(warps * digits * 2);
  peers = e.sharedMemory(2 * warps * digits * 4);
  offsets = e.sharedMemory(digits * 4);
  sums = e.sharedMemory(warps * 2 * 4);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static Value isBelow(GpuEmitter &e, Value a, Value b) { return e.invariants.compare(arith::CmpIPredicate::slt, a, b); }

static Value number32(GpuEmitter &e, int64_t value) {
  return e.invariants.constant(e.builder.getI32IntegerAttr(int32_t(value)));
}

static Value narrow(GpuEmitter &e, Value value) {
  return arith::TruncIOp::create(e.builder, e.loc, e.builder.getI32Type(), value);
}

static Value widen(GpuEmitter &e, Value value) {
  return arith::ExtUIOp::create(e.builder, e.loc, e.builder.getI64Type(), value);
}

static Value add32(GpuEmitter &e, Value a, Value c) { return arith::AddIOp::create(e.builder, e.loc, a, c); }

DigitSorter::Tile DigitSorter::tileOf(Value number) {
  auto &in = e.invariants;
  Value row = in.floorDiv(number, tiles, true), own = in.sub(number, in.mul(row, tiles));
  return {row, own, in.mul(own, e.constant(tileSize))};
}

/// `buffer`: 0 or 1.
Value DigitSorter::wordAddress(Value buffer, Value row, Value position) {
  auto &in = e.invariants;
  Value index = in.add(in.mul(in.add(in.mul(buffer, rows), row), length), position);
  return e.getAddress(scratch, b.getI64Type(), index);
}

Value DigitSorter::countAddress(Value row, Value digit, Value tile) {
  auto &in = e.invariants;
  Value index = in.add(in.mul(in.add(in.mul(row, e.constant(digits)), digit), tiles), tile);
  return e.getAddress(counts, b.getI32Type(), index);
}

Value DigitSorter::totalAddress(Value row, Value digit) {
  auto &in = e.invariants;
  Value index = in.add(in.mul(rows, in.mul(e.constant(digits), tiles)), in.add(in.mul(row, e.constant(digits)), digit));
  return e.getAddress(counts, b.getI32Type(), index);
}

Value DigitSorter::warpCount(Value ofWarp, Value digit) {
  Value index = e.invariants.add(e.invariants.mul(ofWarp, e.constant(digits)), digit);
  return e.getAddress(warpCounts, b.getIntegerType(16), index);
}

/// Which lanes of the warp have the digit, in even steps or in odd ones.
Value DigitSorter::peersOf(int64_t odd, Value digit) {
  Value index = e.invariants.add(e.invariants.mul(warp, e.constant(2 * digits)), e.constant(odd * digits));
  return e.getAddress(peers, b.getI32Type(), e.invariants.add(index, digit));
}

Value DigitSorter::load(Value row, Value rank) {
  Value last = e.invariants.mod(e.invariants.add(passes, e.constant(1)), e.constant(2), true);
  return e.createLoad(b.getI64Type(), 1, wordAddress(last, row, rank));
}

/// i64.
Value DigitSorter::digitOf(Value word, Value pass) {
  Value shift = e.invariants.add(firstBit, e.invariants.mul(pass, e.constant(digitBits)));
  Value shifted = arith::ShRUIOp::create(b, e.loc, word, shift);
  return arith::AndIOp::create(b, e.loc, shifted, e.constant(digits - 1));
}

/// The thread's digits, in turn.
void DigitSorter::forDigits(llvm::function_ref<void(Value)> body) {
  e.createStrided({thread, threads}, e.constant(digits), {}, [&](Value digit, ValueRange) {
    body(digit);
    return Values();
  });
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Of the lanes up to this one (i32).
Value DigitSorter::sumWarp(Value value) {
  for (int64_t distance = 1; distance < warpSize; distance *= 2) {
    Value before = e.createShuffleFrom({value}, e.invariants.add(lane, e.constant(warpSize - distance)))[0];
    Value isThere = e.invariants.compare(arith::CmpIPredicate::sge, lane, e.constant(distance));
    before = arith::SelectOp::create(b, e.loc, isThere, before, number32(e, 0));
    value = add32(e, value, before);
  }
  return value;
}

/// Of the threads in front of this one, two values (i32).
DigitSorter::Values DigitSorter::sumBlock(Values values) {
  Value isLast = e.invariants.compare(arith::CmpIPredicate::eq, lane, e.constant(warpSize - 1));
  auto slot = [&](Value ofWarp, size_t value) {
    Value index = e.invariants.add(ofWarp, e.constant(int64_t(value) * warps));
    return e.getAddress(sums, b.getI32Type(), index);
  };
  Values own = values;
  for (Value &value : values)
    value = sumWarp(value);
  e.createIf(isLast, {}, [&] {
    for (auto [index, value] : llvm::enumerate(values))
      e.createStore(value, slot(warp, index));
    return Values();
  });
  e.createBlockBarrier();
  for (auto [index, value] : llvm::enumerate(values)) {
    value = arith::SubIOp::create(b, e.loc, value, own[index]);
    for (int64_t of = 0; of + 1 < warps; ++of) {
      Value sum = e.createLoad(b.getI32Type(), 1, slot(e.constant(of), index));
      sum = arith::SelectOp::create(b, e.loc, isBelow(e, e.constant(of), warp), sum, number32(e, 0));
      value = add32(e, value, sum);
    }
  }
  return values;
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

void DigitSorter::countTile(Value pass, Value number, ReadWord read) {
  auto &in = e.invariants;
  Tile tile = tileOf(number);
  Value last = in.sub(length, e.constant(1)), other = in.mod(in.add(pass, e.constant(1)), e.constant(2), true);
  auto countOf = [&](Value digit) { return e.getAddress(offsets, b.getI32Type(), digit); };
  forDigits([&](Value digit) { e.createStore(number32(e, 0), countOf(digit)); });
  e.createBlockBarrier();
  Values positions, exist, all;
  for (int64_t i = 0; i < perThread; ++i) {
    positions.push_back(in.add(tile.start, in.add(thread, e.constant(i * threads))));
    exist.push_back(isBelow(e, positions.back(), length));
  }
  Value isFirst = in.compare(arith::CmpIPredicate::eq, pass, e.constant(0));
  SmallVector<Type> types(perThread, b.getI64Type());
  auto choice = scf::IfOp::create(b, e.loc, types, isFirst, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.thenBlock());
    for (Value position : positions)
      all.push_back(read(tile.row, in.min(position, last)));
    for (auto [word, position, isThere] : llvm::zip_equal(all, positions, exist))
      e.createIf(isThere, {}, [&, word = word, position = position] {
        e.createStore(word, wordAddress(other, tile.row, position));
        return Values();
      });
    scf::YieldOp::create(b, e.loc, all);
    b.setInsertionPointToStart(choice.elseBlock());
    for (auto [word, position] : llvm::zip_equal(all, positions))
      word = e.createLoad(b.getI64Type(), 1, wordAddress(other, tile.row, in.min(position, last)));
    scf::YieldOp::create(b, e.loc, all);
  }
  for (auto [word, isThere] : llvm::zip_equal(choice.getResults(), exist))
    e.createIf(isThere, {}, [&, word = word] {
      LLVM::AtomicRMWOp::create(b, e.loc, LLVM::AtomicBinOp::add, countOf(digitOf(word, pass)), number32(e, 1),
                                LLVM::AtomicOrdering::monotonic, "block");
      return Values();
    });
  e.createBlockBarrier();
  forDigits([&](Value digit) {
    e.createStore(e.createLoad(b.getI32Type(), 1, countOf(digit)), countAddress(tile.row, digit, tile.number));
  });
}

/// A warp for each digit of a row, of which the ticket has so many as a block has warps.
void DigitSorter::sumTiles(Value number) {
  auto &in = e.invariants;
  Value own = in.add(in.mul(number, e.constant(warps)), warp);
  Value row = in.floorDiv(own, e.constant(digits), true), digit = in.mod(own, e.constant(digits), true);
  Value end = e.constant(warpSize - 1), none = number32(e, 0);
  Value total =
      e.createLoop(e.constant(0), tiles, warpSize * tilesOfLane, {none}, [&](Value first, ValueRange carried) {
        Values values, exist, tile;
        for (int64_t i = 0; i < tilesOfLane; ++i) {
          tile.push_back(in.add(first, in.add(lane, e.constant(i * warpSize))));
          exist.push_back(isBelow(e, tile.back(), tiles));
          Value inside = in.min(tile.back(), in.sub(tiles, e.constant(1)));
          Value count = e.createLoad(b.getI32Type(), 1, countAddress(row, digit, inside));
          values.push_back(arith::SelectOp::create(b, e.loc, exist.back(), count, none));
        }
        Value sum = carried[0];
        for (auto [value, at, isThere] : llvm::zip_equal(values, tile, exist)) {
          Value inclusive = sumWarp(value);
          Value before = add32(e, sum, arith::SubIOp::create(b, e.loc, inclusive, value).getResult());
          e.createIf(isThere, {}, [&, at = at] {
            e.createStore(before, countAddress(row, digit, at));
            return Values();
          });
          sum = add32(e, sum, e.createShuffleFrom({inclusive}, end)[0]);
        }
        return Values{sum};
      })[0];
  e.createIf(in.compare(arith::CmpIPredicate::eq, lane, e.constant(0)), {}, [&] {
    e.createStore(total, totalAddress(row, digit));
    return Values();
  });
}

/// Among the warp's words of the same digit, each step's.
DigitSorter::Values DigitSorter::rankInWarp(ArrayRef<Value> digitsOfSteps, ArrayRef<Value> exist) {
  llvm::SaveAndRestore outer(e.row, Team{lane, warpSize}); // whose barriers these are
  Value one = number32(e, 1);
  Value bit = arith::ShLIOp::create(b, e.loc, one, narrow(e, lane)), below = arith::SubIOp::create(b, e.loc, bit, one);
  Values ranks;
  for (auto [step, digit, isThere] : llvm::enumerate(digitsOfSteps, exist)) {
    // Words of two steps in turn, so that one is empty again in time.
    Value word = peersOf(int64_t(step % 2), digit);
    e.createIf(isThere, {}, [&] {
      LLVM::AtomicRMWOp::create(b, e.loc, LLVM::AtomicBinOp::_or, word, bit, LLVM::AtomicOrdering::monotonic, "block");
      return Values();
    });
    e.createBarrier();
    Value all = e.createLoad(b.getI32Type(), 1, word);
    Value before = math::CtPopOp::create(b, e.loc, arith::AndIOp::create(b, e.loc, all, below).getResult());
    Value stored = e.createLoad(b.getIntegerType(16), 1, warpCount(warp, digit));
    Value count = arith::ExtUIOp::create(b, e.loc, b.getI32Type(), stored);
    ranks.push_back(add32(e, count, before));
    e.createBarrier();
    Value isFirst = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::eq, before, number32(e, 0));
    e.createIf(arith::AndIOp::create(b, e.loc, isFirst, isThere), {}, [&, digit = digit] {
      Value now = add32(e, count, math::CtPopOp::create(b, e.loc, all).getResult());
      e.createStore(arith::TruncIOp::create(b, e.loc, b.getIntegerType(16), now), warpCount(warp, digit));
      e.createStore(number32(e, 0), word);
      return Values();
    });
  }
  return ranks;
}

/// What the row has of a digit, and the tiles in front.
std::pair<Value, Value> DigitSorter::countInFront(const Tile &tile, Value digit) {
  auto &in = e.invariants;
  Type i32 = b.getI32Type(), types[] = {i32, i32};
  auto summed = [&] {
    return Values{e.createLoad(i32, 1, totalAddress(tile.row, digit)),
                  e.createLoad(i32, 1, countAddress(tile.row, digit, tile.number))};
  };
  auto choice = scf::IfOp::create(b, e.loc, TypeRange(types), areFew(), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  Value total = number32(e, 0), front = total, none = total, last = in.sub(tiles, e.constant(1));
  Values counts;
  for (int64_t i = 0; i < fewTiles; ++i)
    counts.push_back(e.createLoad(i32, 1, countAddress(tile.row, digit, in.min(e.constant(i), last))));
  for (auto [i, count] : llvm::enumerate(counts)) {
    Value number = e.constant(int64_t(i));
    total = add32(e, total, arith::SelectOp::create(b, e.loc, isBelow(e, number, tiles), count, none).getResult());
    front =
        add32(e, front, arith::SelectOp::create(b, e.loc, isBelow(e, number, tile.number), count, none).getResult());
  }
  scf::YieldOp::create(b, e.loc, ValueRange{total, front});
  b.setInsertionPointToStart(choice.elseBlock());
  scf::YieldOp::create(b, e.loc, summed());
  return {choice.getResult(0), choice.getResult(1)};
}

/// Of what warps have of each digit makes where theirs begins in the tile, and `offsets`: how much farther its words
/// go in the row. A thread a digit.
void DigitSorter::placeDigits(const Tile &tile) {
  Value isOwner = isBelow(e, thread, e.constant(digits)), none = number32(e, 0);
  Value digit = e.invariants.min(thread, e.constant(digits - 1));
  auto [total, front] = countInFront(tile, digit);
  Values ofWarps;
  Value sum = none;
  for (int64_t of = 0; of < warps; ++of) {
    ofWarps.push_back(sum);
    Value stored = e.createLoad(b.getIntegerType(16), 1, warpCount(e.constant(of), digit));
    sum = add32(e, sum, arith::ExtUIOp::create(b, e.loc, b.getI32Type(), stored).getResult());
  }
  sum = arith::SelectOp::create(b, e.loc, isOwner, sum, none);
  total = arith::SelectOp::create(b, e.loc, isOwner, total, none);
  Values before = sumBlock({sum, total});
  e.createIf(isOwner, {}, [&, front = front] {
    for (int64_t of = 0; of < warps; ++of) {
      Value first = add32(e, before[0], ofWarps[size_t(of)]);
      e.createStore(arith::TruncIOp::create(b, e.loc, b.getIntegerType(16), first), warpCount(e.constant(of), digit));
    }
    Value there = add32(e, before[1], front);
    e.createStore(arith::SubIOp::create(b, e.loc, there, before[0]), e.getAddress(offsets, b.getI32Type(), digit));
    return Values();
  });
}

void DigitSorter::placeTile(Value pass, Value number, Visit visit) {
  auto &in = e.invariants;
  Tile tile = tileOf(number);
  Value source = in.mod(in.add(pass, e.constant(1)), e.constant(2), true), last = in.sub(length, e.constant(1));
  Value firstOfWarp = in.add(tile.start, in.mul(warp, e.constant(warpSize * perThread)));
  Values all, digitsOf, exist;
  for (int64_t i = 0; i < perThread; ++i) {
    Value position = in.add(firstOfWarp, in.add(lane, e.constant(i * warpSize)));
    exist.push_back(isBelow(e, position, length));
    all.push_back(e.createLoad(b.getI64Type(), 1, wordAddress(source, tile.row, in.min(position, last))));
    digitsOf.push_back(digitOf(all.back(), pass));
  }
  auto clear = [&](Value memory, int64_t count) {
    e.createStrided({thread, threads}, e.constant(count), {}, [&](Value word, ValueRange) {
      e.createStore(number32(e, 0), e.getAddress(memory, b.getI32Type(), word));
      return Values();
    });
  };
  clear(warpCounts, warps * digits / 2);
  clear(peers, 2 * warps * digits);
  e.createBlockBarrier();
  Values ranks = rankInWarp(digitsOf, exist);
  e.createBlockBarrier();
  placeDigits(tile);
  e.createBlockBarrier();
  for (int64_t i = 0; i < perThread; ++i)
    e.createIf(exist[size_t(i)], {}, [&] {
      Value stored = e.createLoad(b.getIntegerType(16), 1, warpCount(warp, digitsOf[size_t(i)]));
      Value first = arith::ExtUIOp::create(b, e.loc, b.getI32Type(), stored);
      Value place = widen(e, add32(e, first, ranks[size_t(i)]));
      e.createStore(all[size_t(i)], e.getAddress(words, b.getI64Type(), place));
      return Values();
    });
  e.createBlockBarrier();
  Value target = in.mod(pass, e.constant(2), true), there = in.sub(length, tile.start);
  Value isLast = in.compare(arith::CmpIPredicate::eq, pass, in.sub(passes, e.constant(1)));
  for (int64_t i = 0; i < perThread; ++i) {
    Value place = in.add(thread, e.constant(i * threads));
    e.createIf(isBelow(e, place, there), {}, [&] {
      Value word = e.createLoad(b.getI64Type(), 1, e.getAddress(words, b.getI64Type(), place));
      Value offset = e.createLoad(b.getI32Type(), 1, e.getAddress(offsets, b.getI32Type(), digitOf(word, pass)));
      Value rank = widen(e, add32(e, offset, narrow(e, place)));
      auto store = [&] { e.createStore(word, wordAddress(target, tile.row, rank)); };
      if (!visit) {
        store();
        return Values();
      }
      auto choice = scf::IfOp::create(b, e.loc, TypeRange(), isLast, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(choice.thenBlock());
      visit(tile.row, rank, word);
      b.setInsertionPointToStart(choice.elseBlock());
      store();
      return Values();
    });
  }
}

/// Of few tiles blocks add up themselves what others have, which is sooner done than a phase.
Value DigitSorter::areFew() { return isBelow(e, tiles, e.constant(fewTiles + 1)); }

Value DigitSorter::countSums() {
  auto &in = e.invariants;
  Value count = in.mul(rows, e.constant(digits / warps));
  return in.select(areFew(), e.constant(0), count);
}

Value DigitSorter::countTickets() {
  auto &in = e.invariants;
  Value sumsOfPass = countSums(), all = in.mul(rows, tiles);
  Value some = in.compare(arith::CmpIPredicate::sgt, all, e.constant(0));
  Value ofPass = in.add(in.add(all, all), sumsOfPass);
  return in.select(some, in.mul(passes, ofPass), e.constant(0));
}

void DigitSorter::emit(TicketLoop &tickets, Value ticket, ReadWord read, Visit visit) {
  auto &in = e.invariants;
  Value all = in.mul(rows, tiles), counted = in.add(all, countSums());
  Value ofPass = in.add(counted, all);
  Value pass = in.floorDiv(ticket, ofPass, true), first = in.mul(pass, ofPass), number = in.sub(ticket, first);
  auto choice = scf::IfOp::create(b, e.loc, TypeRange(), isBelow(e, number, all), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  tickets.createWait(first);
  countTile(pass, number, read);
  b.setInsertionPointToStart(choice.elseBlock());
  auto second = scf::IfOp::create(b, e.loc, TypeRange(), isBelow(e, number, counted), /*withElseRegion=*/true);
  b.setInsertionPointToStart(second.thenBlock());
  tickets.createWait(in.add(first, all));
  sumTiles(in.sub(number, all));
  b.setInsertionPointToStart(second.elseBlock());
  tickets.createWait(in.add(first, counted));
  placeTile(pass, in.sub(number, counted), visit);
}
