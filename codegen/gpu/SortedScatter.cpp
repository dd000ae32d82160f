//===- SortedScatter.cpp - scatters by sorted updates ---------------------===//
//
// Sums of floats depend on their order, so that updates of one place must be taken as they come. A stable sort brings
// them together: words of a place and an update's number, sorted by the digits of the place (DigitSort.cpp). Then each
// run of equal places is a team's: lanes along the row that an update is, one lane where it is an element. It reads
// what is there, combines its updates one after the other, several of which it has asked for together, and writes once.
// A team looks at ranks of the sorted words; where one begins a run it takes that, however long.
//
// All this is phases of one launch. Places take as many digits as there are of them. Results are those of a loop, bit
// by bit.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/SortedScatter.h"
#include "codegen/gpu/BlockMerge.h"
#include "codegen/gpu/DeviceShape.h"
#include "codegen/gpu/DigitSort.h"
#include "codegen/gpu/OwnedScatter.h"
#include "codegen/gpu/TicketLoop.h"
#include "ir/loop/UnsignedStores.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

using Values = SmallVector<Value>;

static constexpr int64_t fullDevice = 4 * multiprocessors; // blocks
static constexpr int64_t digitBitsOfUnknown = 8;
static constexpr int64_t fewestDigitBits = 3; // a digit for each warp
static constexpr int64_t stepsTogether = 4;   // of a warp that takes a run

DenseI64ArrayAttr SortedTile::toAttribute(MLIRContext *context) const {
  return DenseI64ArrayAttr::get(context, {digitBits, passes, lanes, columns, isFlat});
}

SortedTile SortedTile::fromAttribute(DictionaryAttr config) {
  ArrayRef<int64_t> values = config.getAs<DenseI64ArrayAttr>("sorted").asArrayRef();
  return {values[0], values[1], values[2], values[3], values[4] != 0};
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

static void chooseDigits(SortedTile &tile, std::optional<Expr> count) {
  tile.digitBits = digitBitsOfUnknown;
  tile.passes = 0;
  std::optional<int64_t> quotients = count ? count->asConstant() : std::nullopt;
  if (!quotients)
    return;
  int64_t bits = std::max<int64_t>(llvm::Log2_64_Ceil(uint64_t(std::max<int64_t>(*quotients, 1))), fewestDigitBits);
  tile.passes = llvm::divideCeil(bits, DigitSorter::mostDigitBits);
  tile.digitBits = std::max(int64_t(llvm::divideCeil(bits, tile.passes)), fewestDigitBits);
}

// Told points along lanes; of few an update is a lane's.
static void chooseTeam(SortedTile &tile, int64_t toldPoints) {
  tile.lanes = std::min(int64_t(llvm::PowerOf2Ceil(uint64_t(toldPoints))), warpSize);
  tile.columns = std::min<int64_t>(llvm::divideCeil(toldPoints, tile.lanes), SortedTile::mostColumns);
}

// Nanoseconds: a launch in phases, and what each million of words takes.
static double estimateSorted(int64_t words) { return 2e4 + 0.04 * double(words); }

bool gpu::planSortedScatter(loop::KernelOp kernel, loop::ScatterOp op) {
  if (!hasPlaces(op) || !ScatterPlaces(op).store.getCombine())
    return false;
  MLIRContext *context = kernel.getContext();
  ScatterPlaces told(op);
  SortedTile tile{.isFlat = !told.isUniform};
  ScatterPlaces places(op, tile.isFlat);
  Expr updates = places.countUpdates(), one = Expr::constant(context, 1);
  std::optional<int64_t> ownedUpdates = told.countUpdates().asConstant();
  if (ownedUpdates && estimateOwned(told, *ownedUpdates) <= estimateSorted(updates.asConstant().value_or(0)))
    return false;
  chooseDigits(tile, places.countQuotients());
  chooseTeam(tile, places.toldPoints);
  int64_t chunks = llvm::divideCeil(places.toldPoints, tile.toldOfTeam());
  NamedAttrList attributes(GpuConfig{.threads = SortedTile::threads}.toAttribute(context));
  attributes.set("layout", StringAttr::get(context, "updates"));
  attributes.set("sorted", tile.toAttribute(context));
  attributes.set("counters", UnitAttr::get(context));
  DigitSorter::limitRegisters(attributes, context);
  Expr tickets = Expr::max(updates.ceilDiv(DigitSorter::tileSize), updates.ceilDiv(tile.ranksOfTicket()) * chunks);
  kernel.setIterationsAttr(Expr::min(tickets, Expr::constant(context, fullDevice)));
  kernel.setGrainAttr(one);
  kernel.setScratchAttr(DigitSorter::getBytes(one, updates, tile.digitBits));
  kernel.setConfigAttr(attributes.getDictionary(context));
  return true;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

namespace {

class SortedEmitter {
public:
  SortedEmitter(GpuEmitter &e, loop::ScatterOp op);
  void emit();

private:
  Value isLess(Value x, Value y) { return e.invariants.compare(arith::CmpIPredicate::slt, x, y); }
  Value isEqual(Value x, Value y) { return arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::eq, x, y); }
  Value placeOf(Value word) { return arith::ShRUIOp::create(b, e.loc, word, updateBits); }
  Value updateOf(Value word);
  Value wordAt(Value rank);
  Value word(int64_t value) { return e.invariants.constant(b.getI32IntegerAttr(int32_t(value))); }
  Value zero();

  struct Window {
    Value word, place, exists, begins;
  };
  Window readWindow(Value rank);
  Value lanesOfRun(Value begins, Value lane);
  Values combineSome(ArrayRef<Value> words, ArrayRef<Value> own, ArrayRef<Value> columns, ValueRange sums);
  void takeRows(Value number);
  void takeRun(const Window &window, Value first, Value begins, Value lane, ArrayRef<Value> columns);
  void takeElements(Value number);
  Value combineNeighbours(Value sum, Value here, Value behind, Value length);
  Value finishTogether(Value goesOn, Value rank, Value place, Value sum);
  Values readTogether(Value rank, Value place);
  Value takeTogether(Value rank, Value place, Value sum);

  GpuEmitter &e;
  OpBuilder &b;
  const SortedTile tile;
  const ScatterPlaces places;
  PlaceEmitter emitter;
  Value lane, warp, updateBits; // updateBits: of a word, below its place
  std::optional<DigitSorter> sorter;
};

} // namespace

// Bits that numbers below `count` have, one at least.
static Value bitsFor(GpuEmitter &e, Value count) {
  auto &in = e.invariants;
  Value last = in.max(in.sub(count, e.constant(1)), e.constant(1));
  return in.sub(e.constant(64), in.get<math::CountLeadingZerosOp>(last));
}

SortedEmitter::SortedEmitter(GpuEmitter &e, loop::ScatterOp op)
    : e(e), b(e.builder), tile(SortedTile::fromAttribute(e.kernel.getConfigAttr())), places(op, tile.isFlat),
      emitter(e, places) {
  auto &in = e.invariants;
  Value thread = e.getRegister("tid.x");
  lane = in.mod(thread, e.constant(warpSize), true);
  warp = in.floorDiv(thread, e.constant(warpSize), true);
  updateBits = bitsFor(e, emitter.updates);
  Value passes = e.constant(tile.passes), digitBits = e.constant(tile.digitBits);
  if (tile.passes == 0) {
    // Of a target of unknown size places have all bits that updates leave.
    std::optional<Expr> quotients = places.countQuotients();
    Value bits = quotients ? bitsFor(e, e.emitExpr(*quotients, {})) : in.sub(e.constant(64), updateBits);
    passes = in.floorDiv(in.add(bits, e.constant(tile.digitBits - 1)), digitBits, true);
  }
  sorter.emplace(e, tile.digitBits, e.scratch, e.constant(1), emitter.updates, updateBits, passes);
}

Value SortedEmitter::updateOf(Value word) {
  Value mask = arith::ShLIOp::create(b, e.loc, e.constant(-1), updateBits);
  mask = arith::XOrIOp::create(b, e.loc, mask, e.constant(-1));
  return arith::AndIOp::create(b, e.loc, word, mask);
}

Value SortedEmitter::zero() {
  return e.invariants.constant(cast<TypedAttr>(b.getZeroAttr(loop::StoreOp(places.store).getValue().getType())));
}

Value SortedEmitter::wordAt(Value rank) {
  return sorter->load(e.constant(0), e.invariants.min(rank, e.invariants.sub(emitter.updates, e.constant(1))));
}

/// Of words of neighbouring ranks, and of those that are `own`: the updates' values, combined with `sums`.
Values SortedEmitter::combineSome(ArrayRef<Value> words, ArrayRef<Value> own, ArrayRef<Value> columns,
                                  ValueRange sums) {
  loop::StoreOp store = places.store;
  Values values, next(sums), nothing(columns.size(), zero());
  for (auto [word, isOwn] : llvm::zip_equal(words, own))
    llvm::append_range(values, e.createIf(isOwn, nothing, [&, word = word] {
      return llvm::map_to_vector(
          columns, [&](Value column) { return emitter.valueOf(emitter.pointAt(column, updateOf(word))); });
    }));
  for (auto [number, isOwn] : llvm::enumerate(own))
    for (size_t column = 0; column < columns.size(); ++column) {
      Value value = values[number * columns.size() + column];
      Value sum = codegen::emitCombine(e, *store.getCombine(), next[column], value, loop::isUnsigned(store));
      next[column] = arith::SelectOp::create(b, e.loc, isOwn, sum, next[column]);
    }
  return next;
}

/// A lane each for ranks from `first` on (`lanes` for each told point of one): the word, and whether it begins a run; a
/// rank that there is not does.
SortedEmitter::Window SortedEmitter::readWindow(Value rank) {
  auto &in = e.invariants;
  Window window{wordAt(rank), {}, isLess(rank, emitter.updates), {}};
  window.place = placeOf(window.word);
  Value before = placeOf(wordAt(in.max(in.sub(rank, e.constant(1)), e.constant(0))));
  Value isFirst = in.compare(arith::CmpIPredicate::eq, rank, e.constant(0));
  Value differs = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::ne, window.place, before);
  Value none = arith::XOrIOp::create(b, e.loc, window.exists, in.constant(b.getBoolAttr(true)));
  window.begins = arith::OrIOp::create(b, e.loc, arith::OrIOp::create(b, e.loc, isFirst, differs), none);
  return window;
}

/// How many lanes from `lane` on (i64), a team's first, are in front of the first team behind that begins something, as
/// `begins` says, or of the warp's end.
Value SortedEmitter::lanesOfRun(Value begins, Value lane) {
  Value next = e.invariants.add(lane, e.constant(tile.lanes < warpSize ? tile.lanes : 1));
  Type i64 = b.getI64Type();
  Value all = arith::OrIOp::create(b, e.loc, arith::ExtUIOp::create(b, e.loc, i64, begins).getResult(),
                                   e.constant(int64_t(1) << warpSize)); // the end
  Value left = arith::ShRUIOp::create(b, e.loc, all, next);
  Value count = math::CountTrailingZerosOp::create(b, e.loc, left);
  return e.invariants.add(e.invariants.sub(next, lane), count);
}

//===----------------------------------------------------------------------===//
// A warp for each run
//===----------------------------------------------------------------------===//

/// The run that begins at lane `lane` of the warp's window, at this lane's told points.
void SortedEmitter::takeRun(const Window &window, Value first, Value begins, Value lane, ArrayRef<Value> columns) {
  auto &in = e.invariants;
  const int64_t together = tile.together();
  Value place = e.createShuffleFrom({window.place}, lane)[0], some = e.constant(together);
  Type type = loop::StoreOp(places.store).getValue().getType();
  Values addresses, start, inside, own; // lanes behind the row's end do as its last point does, but write nothing
  for (Value column : columns) {
    inside.push_back(isLess(column, e.constant(places.toldPoints)));
    own.push_back(in.min(column, e.constant(places.toldPoints - 1)));
    addresses.push_back(emitter.addressOf(own.back(), place));
    start.push_back(e.createLoad(type, 1, addresses.back()));
  }
  Value end = in.add(lane, lanesOfRun(begins, lane));
  Values sums = e.createLoop(lane, end, together, start, [&](Value from, ValueRange carried) {
    Values words, exist;
    for (int64_t i = 0; i < together; ++i) {
      Value at = in.add(from, e.constant(i));
      exist.push_back(isLess(at, end));
      words.push_back(e.createShuffleFrom({window.word}, at)[0]);
    }
    return combineSome(words, exist, own, carried);
  });
  // What lies behind the window.
  Value goesOn = in.compare(arith::CmpIPredicate::eq, end, e.constant(warpSize));
  sums.insert(sums.begin(), {goesOn, in.add(first, e.constant(warpSize))});
  sums = createWhile(
      e, sums, [&](ValueRange state) { return state[0]; },
      [&](ValueRange state) {
        Values words, exist;
        for (int64_t i = 0; i < together; ++i) {
          Value at = in.add(state[1], e.constant(i));
          words.push_back(wordAt(at));
          Value isThere = isLess(at, emitter.updates);
          exist.push_back(arith::AndIOp::create(b, e.loc, isThere, isEqual(placeOf(words.back()), place)));
        }
        Values next = combineSome(words, exist, own, state.drop_front(2));
        next.insert(next.begin(), {exist.back(), in.add(state[1], some)});
        return next;
      });
  for (auto [address, sum, isInside] : llvm::zip_equal(addresses, ArrayRef(sums).drop_front(2), inside))
    e.createIf(isInside, {}, [&, address = address, sum = sum] {
      e.createStore(sum, address);
      return Values();
    });
}

/// The ticket's ranks, of which a warp has neighbours.
void SortedEmitter::takeRows(Value number) {
  auto &in = e.invariants;
  int64_t chunks = llvm::divideCeil(places.toldPoints, tile.toldOfTeam());
  Value group = in.floorDiv(number, e.constant(chunks), true);
  Value firstTold = in.mul(in.sub(number, in.mul(group, e.constant(chunks))), e.constant(tile.toldOfTeam()));
  Value first = in.add(in.mul(group, e.constant(tile.ranksOfTicket())), in.mul(warp, e.constant(SortedTile::steps)));
  Window window = readWindow(in.add(first, lane));
  Value begins = e.createBallot(window.begins), exist = e.createBallot(window.exists);
  Value runs = arith::AndIOp::create(b, e.loc, begins, exist);
  Values columns;
  for (int64_t i = 0; i < tile.columns; ++i)
    columns.push_back(in.add(firstTold, in.add(lane, e.constant(i * tile.lanes))));
  e.createLoop(e.constant(0), e.constant(SortedTile::steps), 1, {}, [&](Value step, ValueRange) {
    Value bit = arith::ShLIOp::create(b, e.loc, word(1), arith::TruncIOp::create(b, e.loc, b.getI32Type(), step));
    Value isRun = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::ne,
                                        arith::AndIOp::create(b, e.loc, runs, bit).getResult(), word(0));
    e.createIf(isRun, {}, [&] {
      takeRun(window, first, begins, step, columns);
      return Values();
    });
    return Values();
  });
}

//===----------------------------------------------------------------------===//
// Teams of less than a warp
//===----------------------------------------------------------------------===//

/// The updates of some ranks of a run, a lane each (for each told point): their values, then words that say which lanes
/// have one.
Values SortedEmitter::readTogether(Value rank, Value place) {
  auto &in = e.invariants;
  Value lanes = e.constant(tile.lanes), own = in.floorDiv(lane, lanes, true);
  Value column = in.min(in.mod(lane, lanes, true), e.constant(places.toldPoints - 1));
  Values words, values, exist;
  for (int64_t i = 0; i < stepsTogether; ++i) {
    Value at = in.add(rank, in.add(own, e.constant(i * (warpSize / tile.lanes))));
    words.push_back(wordAt(at));
    exist.push_back(
        arith::AndIOp::create(b, e.loc, isLess(at, emitter.updates), isEqual(placeOf(words.back()), place)));
  }
  for (auto [word, isThere] : llvm::zip_equal(words, exist))
    values.push_back(e.createIf(isThere, {zero()}, [&, word = word] {
      return Values{emitter.valueOf(emitter.pointAt(column, updateOf(word)))};
    })[0]);
  for (Value isThere : exist)
    values.push_back(e.createBallot(isThere));
  return values;
}

/// The rest of a run, which is the same for all lanes of the warp; what follows is asked for before this is combined.
Value SortedEmitter::takeTogether(Value rank, Value place, Value sum) {
  auto &in = e.invariants;
  const int64_t steps = warpSize / tile.lanes;
  Value column = in.mod(lane, e.constant(tile.lanes), true), some = e.constant(steps * stepsTogether);
  loop::StoreOp store = places.store;
  Values start = readTogether(rank, place);
  start.insert(start.begin(), {in.constant(b.getBoolAttr(true)), rank, sum});
  return createWhile(
      e, start, [&](ValueRange state) { return state[0]; },
      [&](ValueRange state) {
        Value next = in.add(state[1], some), all = state[2];
        Values following = readTogether(next, place);
        ValueRange values = state.drop_front(3).take_front(stepsTogether), bits = state.drop_front(3 + stepsTogether);
        for (auto [value, exist] : llvm::zip_equal(values, bits))
          for (int64_t step = 0; step < steps; ++step) {
            Value own = e.createShuffleFrom({value}, in.add(column, e.constant(step * tile.lanes)))[0];
            Value bit = arith::AndIOp::create(b, e.loc, exist, word(int64_t(1) << (step * tile.lanes)));
            Value isThere = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::ne, bit, word(0));
            Value with = codegen::emitCombine(e, *store.getCombine(), all, own, loop::isUnsigned(store));
            all = arith::SelectOp::create(b, e.loc, isThere, with, all);
          }
        following.insert(following.begin(), {isEqual(bits.back(), word(-1)), next, all});
        return following;
      })[2];
}

/// What of their runs is left to teams, which goesOn (i1) says, the whole warp does, one after the other.
Value SortedEmitter::finishTogether(Value goesOn, Value rank, Value place, Value sum) {
  auto &in = e.invariants;
  Value lanes = e.constant(tile.lanes), team = in.floorDiv(lane, lanes, true), column = in.mod(lane, lanes, true);
  Type i32 = b.getI32Type();
  Value start[] = {e.createBallot(goesOn), sum};
  return createWhile(
      e, start,
      [&](ValueRange state) {
        return arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::ne, state[0], word(0)).getResult();
      },
      [&](ValueRange state) {
        Value lowest = math::CountTrailingZerosOp::create(b, e.loc, state[0]);
        Value leader = arith::ExtUIOp::create(b, e.loc, b.getI64Type(), lowest);
        Value ofTeam = in.floorDiv(leader, lanes, true), first = in.mul(ofTeam, lanes);
        Values run = e.createShuffleFrom({rank, place}, leader);
        Value begun = e.createShuffleFrom({state[1]}, in.add(first, column))[0];
        Value whole = takeTogether(run[0], run[1], begun);
        Value mine = arith::SelectOp::create(b, e.loc, isEqual(team, ofTeam), whole, state[1]);
        Value done = arith::ShLIOp::create(b, e.loc, word((int64_t(1) << tile.lanes) - 1),
                                           arith::TruncIOp::create(b, e.loc, i32, first).getResult());
        Value left =
            arith::AndIOp::create(b, e.loc, state[0], arith::XOrIOp::create(b, e.loc, done, word(-1)).getResult());
        return Values{left, mine};
      })[1];
}

/// The ticket's ranks, where teams are lanes of one warp. A warp has some windows of neighbours, all under way
/// together, and the one behind; long runs are all lanes' work.
void SortedEmitter::takeElements(Value number) {
  auto &in = e.invariants;
  const int64_t ranks = warpSize / tile.lanes; // of a window
  Value lanes = e.constant(tile.lanes), team = in.floorDiv(lane, lanes, true), own = in.mod(lane, lanes, true);
  Value begin = in.sub(lane, own); // of the team
  Value column = in.min(own, e.constant(places.toldPoints - 1)),
        first = in.mul(number, e.constant(tile.ranksOfTicket()));
  first = in.add(in.add(first, in.mul(warp, e.constant(SortedTile::steps * ranks))), team);
  Type type = loop::StoreOp(places.store).getValue().getType();
  SmallVector<Window> windows;
  Values values, sums, follows;
  for (int64_t i = 0; i <= SortedTile::steps; ++i)
    windows.push_back(readWindow(in.add(first, e.constant(i * ranks))));
  for (int64_t i = 0; i <= SortedTile::steps; ++i) {
    const Window &window = windows[size_t(i)];
    Value isWanted = window.exists;
    if (i > 0) { // whether it is the run in which the window in front ends
      Value last = e.createShuffleFrom({windows[size_t(i) - 1].place}, e.constant(warpSize - 1))[0];
      follows.push_back(arith::AndIOp::create(b, e.loc, window.exists, isEqual(window.place, last)));
    }
    if (i == SortedTile::steps)
      isWanted = follows.back();
    values.push_back(e.createIf(isWanted, {zero()}, [&] {
      return Values{emitter.valueOf(emitter.pointAt(column, updateOf(window.word)))};
    })[0]);
  }
  for (int64_t i = 0; i < SortedTile::steps; ++i) {
    const Window &window = windows[size_t(i)];
    sums.push_back(e.createIf(arith::AndIOp::create(b, e.loc, window.begins, window.exists), {zero()}, [&] {
      return Values{e.createLoad(type, 1, emitter.addressOf(column, window.place))};
    })[0]);
  }
  Values runs, longRuns;
  for (int64_t i = 0; i < SortedTile::steps; ++i) {
    size_t at = size_t(i);
    const Window &window = windows[at];
    runs.push_back(arith::AndIOp::create(b, e.loc, window.begins, window.exists));
    Value bits = e.createBallot(window.begins), behind = e.createBallot(follows[at]);
    Value length = lanesOfRun(bits, begin), reaches = isEqual(in.add(begin, length), e.constant(warpSize));
    Value more = arith::ExtUIOp::create(b, e.loc, b.getI64Type(), math::CtPopOp::create(b, e.loc, behind).getResult());
    length = in.add(length, arith::SelectOp::create(b, e.loc, reaches, more, e.constant(0)));
    length = arith::SelectOp::create(b, e.loc, runs.back(), length, e.constant(0));
    sums[at] = combineNeighbours(sums[at], values[at], values[at + 1], length);
    Value goesOn = arith::AndIOp::create(b, e.loc, reaches, isEqual(behind, word(-1)));
    longRuns.push_back(arith::AndIOp::create(b, e.loc, runs.back(), goesOn));
  }
  e.createLoop(e.constant(0), e.constant(SortedTile::steps), 1, {}, [&](Value step, ValueRange) {
    auto choose = [&](llvm::function_ref<Value(size_t)> of) {
      Value chosen = of(0);
      for (size_t i = 1; i < SortedTile::steps; ++i)
        chosen = arith::SelectOp::create(b, e.loc, isEqual(step, e.constant(int64_t(i))), of(i), chosen);
      return chosen;
    };
    Value place = choose([&](size_t i) { return windows[i].place; });
    Value next = in.add(in.sub(first, team), in.mul(in.add(step, e.constant(2)), e.constant(ranks)));
    Value sum = finishTogether(choose([&](size_t i) { return longRuns[i]; }), next, place,
                               choose([&](size_t i) { return sums[i]; }));
    Value isRun = choose([&](size_t i) { return runs[i]; });
    e.createIf(arith::AndIOp::create(b, e.loc, isRun, isLess(own, e.constant(places.toldPoints))), {}, [&] {
      e.createStore(sum, emitter.addressOf(column, place));
      return Values();
    });
    return Values();
  });
}

/// With `sum` the values of as many lanes from this one on as `length` says, in steps of a team, first of this window,
/// then of the one behind.
Value SortedEmitter::combineNeighbours(Value sum, Value here, Value behind, Value length) {
  auto &in = e.invariants;
  loop::StoreOp store = places.store;
  Value start[] = {e.constant(0), sum};
  auto isOwn = [&](Value distance) { return isLess(distance, length); };
  return createWhile(
      e, start,
      [&](ValueRange state) {
        Value any = e.createBallot(isOwn(state[0]));
        return arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::ne, any, word(0)).getResult();
      },
      [&](ValueRange state) {
        Value from = in.add(lane, state[0]);
        Value value =
            arith::SelectOp::create(b, e.loc, isLess(from, e.constant(warpSize)), e.createShuffleFrom({here}, from)[0],
                                    e.createShuffleFrom({behind}, from)[0]);
        Value with = codegen::emitCombine(e, *store.getCombine(), state[1], value, loop::isUnsigned(store));
        return Values{in.add(state[0], e.constant(tile.lanes)),
                      arith::SelectOp::create(b, e.loc, isOwn(state[0]), with, state[1])};
      })[1];
}

void SortedEmitter::emit() {
  auto &in = e.invariants;
  int64_t chunks = llvm::divideCeil(places.toldPoints, tile.toldOfTeam()), ranks = tile.ranksOfTicket();
  TicketLoop tickets(e);
  Value sorted = sorter->countTickets();
  Value groups = in.floorDiv(in.add(emitter.updates, e.constant(ranks - 1)), e.constant(ranks), true);
  Value blocks = e.emitExpr(Expr(e.kernel.getIterationsAttr()), {});
  tickets.emit(in.add(sorted, in.mul(groups, e.constant(chunks))), blocks, [&](Value ticket) {
    Value isSort = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::slt, ticket, sorted);
    auto choice = scf::IfOp::create(b, e.loc, TypeRange(), isSort, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.thenBlock());
    sorter->emit(tickets, ticket, [&](Value, Value update) {
      Value place = emitter.quotientOf(e.constant(0), update);
      Value high = arith::ShLIOp::create(b, e.loc, place, updateBits);
      return arith::OrIOp::create(b, e.loc, high, update).getResult();
    });
    b.setInsertionPointToStart(choice.elseBlock());
    tickets.createWait(sorted);
    Value number = in.sub(ticket, sorted);
    tile.lanes < warpSize ? takeElements(number) : takeRows(number);
  });
}

void gpu::emitSortedScatter(GpuEmitter &e, loop::ScatterOp op) {
  e.setDomain(loop::getDomain(op));
  SortedEmitter(e, op).emit();
}
