//===- TeamScan.cpp - scans whose dim threads and blocks share ------------===//
//
// A scan's line is taken in tiles: each thread has a few neighbouring points of one, and scans them by itself. What the
// threads in front of it have comes from a scan over the lanes of a warp (log2 steps of exchanges; Hillis, Steele
// 1986), and of the warps' sums through shared memory; what is in front of the tile is carried.
//
//   row      memory runs along the line: a thread has 16 bytes of neighbours; several such chunks of a tile are loaded
//            before the first is scanned
//   columns  up to 32 lines side by side, so that a warp reads whole lines of memory; a thread has eight points of one
//
// Where lines are too few for the device, blocks share each, in contiguous parts (TicketLoop.cpp): first all parts are
// summed up, then each is scanned, from the sum of those in front of it. So a line is read twice, mostly from L2 the
// second time. Reading once (Merrill, Garland 2016: sums are passed on as soon as they are there) would let timing
// decide in which order floats are added up. Here shapes alone do, and errors grow with the logarithm of a part's
// length, not with the line's.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/TeamScan.h"
#include "codegen/gpu/DeviceShape.h"
#include "codegen/gpu/RowBuffers.h"
#include "codegen/gpu/TicketLoop.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;
using codegen::BodyParts;

static constexpr int64_t fullDevice = 4 * multiprocessors; // blocks
static constexpr int64_t fewestPoints = 4096;              // of a block that shares a row
static constexpr int64_t longRow = 2 * fewestPoints;
static constexpr int64_t pointsOfColumn = 8;    // of a thread, in a tile
static constexpr int64_t fewestColumn = 32;     // points, that threads share
static constexpr int64_t manyColumns = 1 << 15; // a thread each occupies the device
static constexpr int64_t mostValues = 16;       // of a thread: points times running values
static constexpr int64_t mostRunning = 4;

DenseI64ArrayAttr ScanTile::toAttribute(MLIRContext *context) const {
  return DenseI64ArrayAttr::get(context, {across, lanes, isRow});
}

ScanTile ScanTile::fromAttribute(DictionaryAttr config) {
  ArrayRef<int64_t> values = config.getAs<DenseI64ArrayAttr>("scan").asArrayRef();
  return {values[0], values[1], values[2] != 0};
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

// No running value needs another one, and nothing is read that the body stores.
bool gpu::mayShareLine(loop::ScanOp op) {
  llvm::DenseSet<Value> stored, running; // buffers; values that depend on a running one
  int64_t slots = 0;
  bool isFree = true;
  for (Operation &inner : op.getBody().front()) {
    bool depends = inner
                       .walk([&](Operation *each) {
                         return llvm::any_of(each->getOperands(), [&](Value v) { return running.contains(v); })
                                    ? WalkResult::interrupt()
                                    : WalkResult::advance();
                       })
                       .wasInterrupted();
    if (isa<loop::RunningOp>(inner)) {
      isFree &= !depends;
      ++slots;
    }
    if (depends || isa<loop::RunningOp>(inner))
      running.insert(inner.result_begin(), inner.result_end());
    if (auto store = dyn_cast<loop::StoreOp>(inner))
      stored.insert(store.getBuffer());
  }
  op.getBody().walk([&](loop::LoadOp load) { isFree &= !stored.contains(load.getBuffer()); });
  return isFree && slots > 0 && slots <= mostRunning;
}

static int64_t chooseLanes(loop::ScanOp op, int64_t slots) {
  SmallVector<Expr> domain = loop::getDomain(op);
  int64_t lanes = lanesOfRow(op);
  while (lanes > 1 && (lanes * slots > mostValues || domain.back().range(SymbolRanges()).divisor % lanes != 0))
    lanes /= 2;
  return lanes;
}

static int64_t countRunning(loop::ScanOp op) { return llvm::range_size(op.getBody().getOps<loop::RunningOp>()); }

// Nothing where a thread for each line, or a block for it, does as well.
static std::optional<ScanTile> chooseTile(loop::ScanOp op, Expr lines) {
  Expr length = loop::getDomain(op).back();
  std::optional<int64_t> count = lines.asConstant(), points = length.asConstant();
  int64_t rank = int64_t(loop::getDomain(op).size());
  if (rank == 1 || LaneAnalysis(op, rank - 1).anyContiguous()) {
    if ((points && *points < longRow) || (count && *count > fullDevice / 2))
      return std::nullopt;
    return ScanTile{.across = 1, .lanes = chooseLanes(op, countRunning(op)), .isRow = true};
  }
  if ((points && *points < fewestColumn) || (count && *count >= manyColumns))
    return std::nullopt;
  int64_t across = int64_t(llvm::PowerOf2Ceil(uint64_t(std::max<int64_t>(count.value_or(warpSize), 1))));
  return ScanTile{.across = std::min(across, warpSize), .lanes = pointsOfColumn, .isRow = false};
}

bool gpu::planSplitScan(loop::KernelOp kernel, loop::ScanOp op) {
  if (!mayShareLine(op))
    return false;
  MLIRContext *context = kernel.getContext();
  SmallVector<Expr> domain = loop::getDomain(op);
  Expr lines = product(context, ArrayRef(domain).drop_back()), points = domain.back();
  std::optional<ScanTile> tile = chooseTile(op, lines);
  if (!tile)
    return false;
  auto number = [&](int64_t value) { return Expr::constant(context, value); };
  Expr groups = lines.ceilDiv(tile->across);
  int64_t fewest = std::max(fewestPoints / tile->across, tile->lanes);
  Expr splits = Expr::max(Expr::min(points.ceilDiv(fewest), number(fullDevice).floorDiv(groups)), number(1));
  NamedAttrList attributes(GpuConfig{.threads = ScanTile::threads}.toAttribute(context));
  attributes.set("layout", StringAttr::get(context, "split"));
  attributes.set("scan", tile->toAttribute(context));
  attributes.set("splits", ExprAttr(splits));
  Expr blocks = groups * splits, scratch = number(0);
  if (!splits.isConstant(1)) {
    attributes.set("counters", UnitAttr::get(context));
    scratch = blocks * (tile->across * countRunning(op) * 8);
  }
  kernel.setIterationsAttr(blocks);
  kernel.setGrainAttr(number(1));
  kernel.setScratchAttr(scratch);
  kernel.setConfigAttr(attributes.getDictionary(context));
  return true;
}

//===----------------------------------------------------------------------===//
// A team's tiles
//===----------------------------------------------------------------------===//

namespace {

using Values = SmallVector<Value>; // one for each running value

class LineScan {
public:
  LineScan(GpuEmitter &e, loop::ScanOp op, const ScanTile &tile, const Team &team, const EmissionPoint &point);

  /// All points of the line; multiples of what a chunk has.
  Value getLength();
  /// In all threads of a line: the running values behind [begin, end).
  Values sum(Value begin, Value end);
  void scan(Value begin, Value end, Values carry);
  Values identities();
  void merge(Values &into, ArrayRef<Value> other); // that is behind it
  /// Of one value a thread: what those in front of it have, and what all have.
  std::pair<Values, Values> join(const Values &own);

  int64_t across() const { return tile.across; }
  Value x, y; // of the thread: its line, its place along it
  Value exists;

private:
  struct Chunk {
    Value first; // of its points, in order of the scan
    std::vector<LaneEmitter> steps;
    Values exist; // of the steps
  };
  Chunk readChunk(Value first, Value end);
  SmallVector<Values> elementsOf(Chunk &chunk);
  Values scanWarp(Values values);
  Values select(Value condition, const Values &a, const Values &b);
  SmallVector<Values> joinChunks(ArrayRef<Values> own, Values &total);
  SmallVector<Values> joinRow(ArrayRef<Values> inclusive, Values &total);
  SmallVector<Values> joinColumns(ArrayRef<Values> inclusive, Values &total);
  Value slotOf(size_t value, Value index);
  void storeChunk(Chunk &chunk, const Values &before, ArrayRef<Values> local);

  GpuEmitter &e;
  OpBuilder &b;
  loop::ScanOp op;
  const ScanTile tile;
  const Team team;
  const EmissionPoint point; // of the line
  const BodyParts parts;
  SmallVector<Operation *> reads, writes;
  int64_t together; // chunks of a tile
  Value lane, warp, memory;
};

} // namespace

LineScan::LineScan(GpuEmitter &e, loop::ScanOp op, const ScanTile &tile, const Team &team, const EmissionPoint &point)
    : e(e), b(e.builder), op(op), tile(tile), team(team), point(point),
      parts(codegen::splitBody(op.getBody().front())) {
  for (Operation *inner : parts.before)
    (isa<loop::StoreOp>(inner) ? writes : reads).push_back(inner);
  for (Operation *inner : parts.after)
    if (!llvm::is_contained(parts.before, inner))
      writes.push_back(inner);
  int64_t warps = team.size / warpSize, slots = int64_t(parts.reductions.size());
  together = tile.isRow ? std::min(warpSize / warps, std::max<int64_t>(mostValues / (tile.lanes * slots), 1)) : 1;
  together = std::min<int64_t>(together, 4);
  x = e.invariants.mod(team.rank, e.constant(tile.across), true);
  y = e.invariants.floorDiv(team.rank, e.constant(tile.across), true);
  lane = e.invariants.mod(team.rank, e.constant(warpSize), true);
  warp = e.invariants.floorDiv(team.rank, e.constant(warpSize), true);
  if (warps > 1)
    memory = e.sharedMemory(slots * 8 * (tile.isRow ? together * warps : warps * tile.across));
}

Value LineScan::getLength() { return e.emitExpr(loop::getDomain(op).back(), point); }

Values LineScan::identities() {
  return llvm::map_to_vector(parts.reductions,
                             [&](Operation *running) { return e.invariants.constant(codegen::identityOf(running)); });
}

void LineScan::merge(Values &into, ArrayRef<Value> other) {
  for (auto [running, value, behind] : llvm::zip_equal(parts.reductions, into, other))
    value = codegen::mergeSlots(e, running, value, behind)[0];
}

Values LineScan::select(Value condition, const Values &a, const Values &b) {
  Values values;
  for (auto [yes, no] : llvm::zip_equal(a, b))
    values.push_back(arith::SelectOp::create(this->b, e.loc, condition, yes, no));
  return values;
}

/// The thread's points from `first` on; what is not below `end` is read at the last one.
LineScan::Chunk LineScan::readChunk(Value first, Value end) {
  Chunk chunk{first, {}, {}};
  const int64_t width = tile.isRow ? tile.lanes : 1, last = int64_t(loop::getDomain(op).size()) - 1;
  for (int64_t step = 0; step < tile.lanes / width; ++step) {
    Value number = e.invariants.add(first, e.constant(step)), inside = e.invariants.sub(end, e.constant(width));
    Value isBelow = e.invariants.compare(arith::CmpIPredicate::slt, number, end);
    chunk.exist.push_back(exists ? e.invariants.logicalAnd(isBelow, exists) : isBelow);
    number = e.invariants.min(number, inside);
    if (op.getReverse())
      number = e.invariants.sub(e.invariants.sub(getLength(), e.constant(width)), number);
    EmissionPoint at = point;
    at.dims[size_t(last)] = number;
    chunk.steps.emplace_back(e, op, at, last, width);
    chunk.steps.back().emitOps(reads);
  }
  return chunk;
}

/// In order of the scan; of points that are not there, what changes nothing.
SmallVector<Values> LineScan::elementsOf(Chunk &chunk) {
  SmallVector<Values> elements;
  for (auto [step, isThere] : llvm::zip_equal(chunk.steps, chunk.exist))
    for (size_t i = 0; i < step.size(); ++i) {
      size_t place = op.getReverse() ? step.size() - 1 - i : i;
      Values own = llvm::map_to_vector(
          parts.reductions, [&](Operation *running) { return step.getBody(place).lookup(running->getOperand(0)); });
      elements.push_back(select(isThere, own, identities()));
    }
  return elements;
}

/// With those of the same line in lanes in front of it.
Values LineScan::scanWarp(Values values) {
  for (int64_t distance = tile.across; distance < warpSize; distance *= 2) {
    Values before = e.createShuffleFrom(values, e.invariants.add(lane, e.constant(warpSize - distance)));
    merge(before, values);
    values = select(e.invariants.compare(arith::CmpIPredicate::sge, lane, e.constant(distance)), before, values);
  }
  return values;
}

Value LineScan::slotOf(size_t value, Value index) {
  int64_t count = (tile.isRow ? together : tile.across) * (team.size / warpSize);
  return e.getAddress(memory, b.getI64Type(), e.invariants.add(index, e.constant(int64_t(value) * count)));
}

/// What the warps and chunks in front of each chunk have.
SmallVector<Values> LineScan::joinRow(ArrayRef<Values> inclusive, Values &total) {
  SmallVector<Values> before;
  int64_t warps = team.size / warpSize, slots = int64_t(inclusive.size()) * warps;
  Value last = e.constant(warpSize - 1);
  if (warps == 1) {
    total = identities();
    for (const Values &chunk : inclusive) {
      before.push_back(total);
      merge(total, e.createShuffleFrom(chunk, last));
    }
    return before;
  }
  e.createIf(e.invariants.compare(arith::CmpIPredicate::eq, lane, last), {}, [&] {
    for (auto [number, chunk] : llvm::enumerate(inclusive))
      for (auto [index, value] : llvm::enumerate(chunk))
        e.createStore(value, slotOf(index, e.invariants.add(warp, e.constant(int64_t(number) * warps))));
    return Values();
  });
  e.createBarrier();
  Values all, none = identities();
  for (auto [index, value] : llvm::enumerate(none))
    all.push_back(e.createLoad(value.getType(), 1, slotOf(index, e.invariants.min(lane, e.constant(slots - 1)))));
  if (slots < warpSize)
    all = select(e.invariants.compare(arith::CmpIPredicate::slt, lane, e.constant(slots)), all, none);
  all = scanWarp(all);
  total = e.createShuffleFrom(all, last);
  Values front = e.createShuffleFrom(all, e.invariants.add(lane, e.constant(warpSize - 1)));
  front = select(e.invariants.compare(arith::CmpIPredicate::eq, lane, e.constant(0)), none, front);
  for (size_t number = 0; number < inclusive.size(); ++number)
    before.push_back(e.createShuffleFrom(front, e.invariants.add(warp, e.constant(int64_t(number) * warps))));
  e.createBarrier();
  return before;
}

SmallVector<Values> LineScan::joinColumns(ArrayRef<Values> inclusive, Values &total) {
  Value isLast = e.invariants.compare(arith::CmpIPredicate::sge, lane, e.constant(warpSize - tile.across));
  auto indexOf = [&](Value ofWarp) { return e.invariants.add(e.invariants.mul(ofWarp, e.constant(tile.across)), x); };
  e.createIf(isLast, {}, [&] {
    for (auto [index, value] : llvm::enumerate(inclusive[0]))
      e.createStore(value, slotOf(index, indexOf(warp)));
    return Values();
  });
  e.createBarrier();
  Values before = identities();
  total = before;
  for (int64_t number = 0; number < team.size / warpSize; ++number) {
    Values own;
    for (auto [index, value] : llvm::enumerate(total))
      own.push_back(e.createLoad(value.getType(), 1, slotOf(index, indexOf(e.constant(number)))));
    merge(total, own);
    before = select(e.invariants.compare(arith::CmpIPredicate::slt, e.constant(number), warp), total, before);
  }
  e.createBarrier();
  return {before};
}

/// Of each chunk's values of the threads: what is in front of this one's.
SmallVector<Values> LineScan::joinChunks(ArrayRef<Values> own, Values &total) {
  SmallVector<Values> inclusive = llvm::map_to_vector(own, [&](const Values &values) { return scanWarp(values); });
  SmallVector<Values> before = tile.isRow ? joinRow(inclusive, total) : joinColumns(inclusive, total);
  Value hasFront = e.invariants.compare(arith::CmpIPredicate::sge, lane, e.constant(tile.across));
  for (auto [values, all] : llvm::zip_equal(before, inclusive)) {
    Values front = e.createShuffleFrom(all, e.invariants.add(lane, e.constant(warpSize - tile.across)));
    merge(values, select(hasFront, front, identities()));
  }
  return before;
}

std::pair<Values, Values> LineScan::join(const Values &own) {
  Values total;
  Values before = joinChunks(own, total)[0];
  return {before, total};
}

Values LineScan::sum(Value begin, Value end) {
  const int64_t size = team.size / tile.across * tile.lanes;
  Value offset = e.invariants.mul(y, e.constant(tile.lanes));
  Values own = e.createLoop(begin, end, size * together, identities(), [&](Value first, ValueRange carried) {
    std::vector<Chunk> chunks;
    for (int64_t i = 0; i < together; ++i)
      chunks.push_back(readChunk(e.invariants.add(first, e.invariants.add(offset, e.constant(i * size))), end));
    Values next(carried);
    for (Chunk &chunk : chunks)
      for (const Values &element : elementsOf(chunk))
        merge(next, element);
    return next;
  });
  return join(own).second;
}

/// What is stored of a chunk, and what else follows from running values: `before` are those in front of it, `local`
/// those of its points from there on.
void LineScan::storeChunk(Chunk &chunk, const Values &before, ArrayRef<Values> local) {
  size_t number = 0;
  for (auto [step, isThere] : llvm::zip_equal(chunk.steps, chunk.exist)) {
    for (size_t i = 0; i < step.size(); ++i, ++number) {
      Values including = before, excluding = before;
      merge(including, local[number]);
      if (number > 0)
        merge(excluding, local[number - 1]);
      codegen::BodyEmitter &body = step.getBody(op.getReverse() ? step.size() - 1 - i : i);
      for (auto [running, with, without] : llvm::zip_equal(parts.reductions, including, excluding))
        body.bind(running->getResult(0), cast<loop::RunningOp>(running).getExclusive() ? without : with);
    }
    e.createIf(isThere, {}, [&, step = &step] {
      step->emitOps(writes);
      return Values();
    });
  }
}

void LineScan::scan(Value begin, Value end, Values carry) {
  const int64_t size = team.size / tile.across * tile.lanes;
  Value offset = e.invariants.mul(y, e.constant(tile.lanes));
  e.createLoop(begin, end, size * together, carry, [&](Value first, ValueRange carried) {
    std::vector<Chunk> chunks;
    for (int64_t i = 0; i < together; ++i)
      chunks.push_back(readChunk(e.invariants.add(first, e.invariants.add(offset, e.constant(i * size))), end));
    SmallVector<SmallVector<Values>> local;
    SmallVector<Values> own;
    for (Chunk &chunk : chunks) {
      SmallVector<Values> elements = elementsOf(chunk);
      for (size_t i = 1; i < elements.size(); ++i) {
        Values until = elements[i - 1];
        merge(until, elements[i]);
        elements[i] = until;
      }
      own.push_back(elements.back());
      local.push_back(std::move(elements));
    }
    Values total, next(carried);
    SmallVector<Values> before = joinChunks(own, total);
    for (auto [chunk, front, points] : llvm::zip_equal(chunks, before, local)) {
      Values all(carried);
      merge(all, front);
      storeChunk(chunk, all, points);
    }
    merge(next, total);
    return next;
  });
}

void gpu::emitTeamScan(GpuEmitter &e, loop::ScanOp op, const Team &team, const EmissionPoint &point) {
  ScanTile tile{.across = 1, .lanes = chooseLanes(op, countRunning(op)), .isRow = true};
  LineScan line(e, op, tile, team, point);
  line.scan(e.constant(0), line.getLength(), line.identities());
}

//===----------------------------------------------------------------------===//
// Blocks that share lines
//===----------------------------------------------------------------------===//

namespace {

class SplitScan {
public:
  SplitScan(GpuEmitter &e, loop::ScanOp op)
      : e(e), op(op), tile(ScanTile::fromAttribute(e.kernel.getConfigAttr())),
        splitsExpr(e.kernel.getConfigAttr().getAs<ExprAttr>("splits")), domain(loop::getDomain(op)) {
    e.setDomain(domain);
    e.row = {e.getRegister("tid.x"), ScanTile::threads};
  }
  void emit();

private:
  LineScan lineOf(Value group);
  std::pair<Value, Value> partOf(LineScan &line, Value split);
  Value partAddress(LineScan &line, Value part, size_t value);
  void emitShared();
  void sumPart(Value number);
  void scanPart(Value number);

  GpuEmitter &e;
  loop::ScanOp op;
  const ScanTile tile;
  const Expr splitsExpr;
  SmallVector<Expr> domain;
  Value splits;
};

} // namespace

/// The thread's of the lines of a group.
LineScan SplitScan::lineOf(Value group) {
  EmissionPoint point;
  Values sizes;
  Value total = e.constant(1);
  for (Expr extent : ArrayRef(domain).drop_back()) {
    sizes.push_back(e.emitExpr(extent, {}));
    total = e.invariants.mul(total, sizes.back());
  }
  Value x = e.invariants.mod(e.row.rank, e.constant(tile.across), true);
  Value number = e.invariants.add(e.invariants.mul(group, e.constant(tile.across)), x);
  Value inside = tile.isRow ? number : e.invariants.min(number, e.invariants.sub(total, e.constant(1)));
  point.dims = e.createDigits(inside, sizes);
  point.dims.resize(domain.size());
  LineScan line(e, op, tile, e.row, point);
  if (!tile.isRow)
    line.exists = e.invariants.compare(arith::CmpIPredicate::slt, number, total);
  return line;
}

std::pair<Value, Value> SplitScan::partOf(LineScan &line, Value split) {
  Value length = line.getLength(), lanes = e.constant(tile.lanes), one = e.constant(1);
  Value count = e.invariants.floorDiv(e.invariants.add(length, e.constant(tile.lanes - 1)), lanes, true);
  Value size = e.invariants.floorDiv(e.invariants.sub(e.invariants.add(count, splits), one), splits, true);
  size = e.invariants.mul(size, lanes);
  Value begin = e.invariants.mul(split, size);
  return {begin, e.invariants.min(e.invariants.add(begin, size), length)};
}

/// Of a part's sums; `part` counts over all groups.
Value SplitScan::partAddress(LineScan &line, Value part, size_t value) {
  size_t slots = line.identities().size();
  Value index = e.invariants.add(e.invariants.mul(part, e.constant(int64_t(slots))), e.constant(int64_t(value)));
  index = e.invariants.add(e.invariants.mul(index, e.constant(tile.across)), line.x);
  return e.getAddress(e.scratch, e.builder.getI64Type(), index);
}

/// Of all parts but a line's last, which nothing is behind of.
void SplitScan::sumPart(Value number) {
  Value group = e.invariants.floorDiv(number, splits, true);
  Value split = e.invariants.sub(number, e.invariants.mul(group, splits));
  Value isInside = e.invariants.compare(arith::CmpIPredicate::slt, split, e.invariants.sub(splits, e.constant(1)));
  LineScan line = lineOf(group);
  auto [begin, end] = partOf(line, split);
  Values total = line.sum(begin, e.invariants.select(isInside, end, begin));
  e.createIf(e.invariants.compare(arith::CmpIPredicate::eq, line.y, e.constant(0)), {}, [&] {
    for (auto [index, value] : llvm::enumerate(total))
      e.createStore(value, partAddress(line, number, index));
    return Values();
  });
}

void SplitScan::scanPart(Value number) {
  Value group = e.invariants.floorDiv(number, splits, true), first = e.invariants.mul(group, splits);
  Value split = e.invariants.sub(number, first);
  LineScan line = lineOf(group);
  Values carry = e.createLoop(
      line.y, split, ScanTile::threads / tile.across, line.identities(), [&](Value part, ValueRange carried) {
        Values next(carried), own;
        for (auto [index, value] : llvm::enumerate(carried))
          own.push_back(e.createLoad(value.getType(), 1, partAddress(line, e.invariants.add(first, part), index)));
        line.merge(next, own);
        return next;
      });
  auto [begin, end] = partOf(line, split);
  line.scan(begin, end, line.join(carry).second);
}

void SplitScan::emitShared() {
  TicketLoop tickets(e);
  Value blocks = e.emitExpr(Expr(e.kernel.getIterationsAttr()), {});
  tickets.emit(e.invariants.add(blocks, blocks), blocks, [&](Value ticket) {
    Value isSum = arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::slt, ticket, blocks);
    auto choice = scf::IfOp::create(e.builder, e.loc, TypeRange(), isSum, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(e.builder);
    e.builder.setInsertionPointToStart(choice.thenBlock());
    sumPart(ticket);
    e.builder.setInsertionPointToStart(choice.elseBlock());
    tickets.createWait(blocks);
    scanPart(e.invariants.sub(ticket, blocks));
  });
}

void SplitScan::emit() {
  splits = e.emitExpr(splitsExpr, {});
  auto alone = [&] {
    LineScan line = lineOf(e.getRegister("ctaid.x"));
    line.scan(e.constant(0), line.getLength(), line.identities());
  };
  if (splitsExpr.isConstant(1))
    return alone();
  if (splitsExpr.isConstant())
    return emitShared();
  Value isAlone = e.invariants.compare(arith::CmpIPredicate::eq, splits, e.constant(1));
  auto choice = scf::IfOp::create(e.builder, e.loc, TypeRange(), isAlone, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(e.builder);
  e.builder.setInsertionPointToStart(choice.thenBlock());
  alone();
  e.builder.setInsertionPointToStart(choice.elseBlock());
  emitShared();
}

void gpu::emitSplitScan(GpuEmitter &e, loop::ScanOp op) { SplitScan(e, op).emit(); }
