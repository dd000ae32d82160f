//===- SplitReduction.cpp - long reductions of few results ----------------===//
//
// A sum of millions of elements has one result, and a sum over the lines of a matrix as many as that has columns: too
// few for a device of a hundred thousand threads, which are given parts of what is reduced instead.
//
//   row      a block has one result. Its threads take 16 bytes of neighbours each, where memory runs along the row
//   columns  a warp has up to 32 results (times lanes) side by side, so that it reads whole lines; the warps of a block
//            take turns, and are added up through shared memory
//
// Where that is not enough, `splits` blocks share what is reduced, in contiguous parts. Each leaves its values in the
// launch's scratch and counts itself; the block that comes last merges all in the order of the parts. No block waits
// for another, and the order of steps follows from shapes alone: which block comes last changes nothing.
//
// A thread has several steps under way: the loads of all, then what is stored, then the reductions. Between points
// nothing has to be in order.
//
// How many parts: each should have 4,096 points, and about four blocks a multiprocessor fill a device. With symbols the
// number is an expression, and where it is 1 at run time nothing is counted; of many rows each is a block's.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/SplitReduction.h"
#include "codegen/gpu/DeviceShape.h"
#include "codegen/gpu/GpuInstructions.h"
#include "codegen/gpu/LaneAnalysis.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;
using codegen::BodyParts;

static constexpr int64_t fullDevice = 4 * multiprocessors; // blocks; no more counters than these are used
static constexpr int64_t mostShared = fullDevice / 2;      // rows; of more each is a block's own
static constexpr int64_t fewestPoints = 4096;              // of a block that shares a row
static constexpr int64_t longRow = 2 * fewestPoints;
static constexpr int64_t fewestLines = 32;                               // of columns
static constexpr int64_t linesOfThread = 16;                             // at least, where blocks share columns
static constexpr int64_t manyColumns = 1 << 15;                          // a thread each occupies the device
static constexpr int64_t mostValues = 16;                                // of a thread: lanes times slots
static constexpr int64_t longBody = 48;                                  // ops, of which fewer steps are taken at once
static constexpr int64_t shortBody = 16;                                 // ops, which need few registers
static constexpr int64_t fullMultiprocessor = 2048 / SplitTile::threads; // blocks

DenseI64ArrayAttr SplitTile::toAttribute(MLIRContext *context) const {
  return DenseI64ArrayAttr::get(context, {across, lanes, together, isRow});
}

SplitTile SplitTile::fromAttribute(DictionaryAttr config) {
  ArrayRef<int64_t> values = config.getAs<DenseI64ArrayAttr>("reduction").asArrayRef();
  return {values[0], values[1], values[2], values[3] != 0};
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

namespace {
struct Sizes {
  int64_t rank, kept;
  Expr results, points; // in all; of each result
};
} // namespace

static Sizes sizesOf(loop::ReductionOp op) {
  SmallVector<Expr> domain = loop::getDomain(op);
  int64_t rank = int64_t(domain.size()), kept = rank - int64_t(op.getReduced());
  MLIRContext *context = op.getContext();
  return {rank, kept, product(context, ArrayRef(domain).take_front(size_t(kept))),
          product(context, ArrayRef(domain).drop_front(size_t(kept)))};
}

static int64_t chooseLanes(loop::ReductionOp op, int64_t dim, int64_t slots) {
  int64_t lanes = LaneAnalysis(op, dim).chooseLanes();
  Expr extent = loop::getDomain(op)[size_t(dim)];
  while (lanes > 1 && (lanes * slots > mostValues || extent.range(SymbolRanges()).divisor % lanes != 0))
    lanes /= 2;
  return lanes;
}

// So many parts that the device is full, but each of at least `fewest` points.
static Expr countSplits(Expr points, Expr blocks, int64_t fewest) {
  MLIRContext *context = points.getContext();
  auto number = [&](int64_t value) { return Expr::constant(context, value); };
  return Expr::max(Expr::min(points.ceilDiv(fewest), number(fullDevice).floorDiv(blocks)), number(1));
}

// Columns as wide as lanes allow, unless narrower blocks are wanted to fill the device.
static SplitTile chooseColumns(loop::ReductionOp op, const Sizes &sizes, int64_t slots) {
  SplitTile tile{.across = warpSize, .lanes = chooseLanes(op, sizes.kept - 1, slots), .together = 4, .isRow = false};
  std::optional<int64_t> results = sizes.results.asConstant(), points = sizes.points.asConstant();
  auto blocksOf = [&] {
    int64_t columns = llvm::divideCeil(*results, tile.columns());
    return columns * llvm::divideCeil(points.value_or(fewestPoints), linesOfThread * tile.down());
  };
  if (!results)
    return tile;
  while (tile.lanes > 1 && blocksOf() < multiprocessors)
    tile.lanes /= 2;
  int64_t groups = llvm::divideCeil(std::max<int64_t>(*results, 1), tile.lanes);
  tile.across = std::min<int64_t>(warpSize, int64_t(llvm::PowerOf2Ceil(uint64_t(groups))));
  return tile;
}

static bool readsMemory(loop::ReductionOp op) {
  return op.getBody().walk([](loop::LoadOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

// Nothing where threads for each result, or a block for it, do as well.
static std::optional<SplitTile> chooseTile(loop::ReductionOp op, const Sizes &sizes, int64_t slots) {
  std::optional<int64_t> results = sizes.results.asConstant(), points = sizes.points.asConstant();
  bool isRow = sizes.kept == 0 || LaneAnalysis(op, sizes.rank - 1).anyContiguous();
  if (isRow) {
    if ((points && *points < longRow) || (results && *results > mostShared))
      return std::nullopt;
    int64_t lanes = chooseLanes(op, sizes.rank - 1, slots);
    return SplitTile{.across = 1, .lanes = lanes, .together = lanes == 1 ? 8 : 4, .isRow = true};
  }
  if ((points && *points < fewestLines) || (results && *results >= manyColumns))
    return std::nullopt;
  return chooseColumns(op, sizes, slots);
}

bool gpu::planSplitReduction(loop::KernelOp kernel, loop::ReductionOp op) {
  MLIRContext *context = kernel.getContext();
  Sizes sizes = sizesOf(op);
  BodyParts parts = codegen::splitBody(op.getBody().front());
  int64_t slots = int64_t(codegen::slotsOf(parts)), ops = 0;
  std::optional<SplitTile> tile =
      slots > mostValues || sizes.kept == sizes.rank || !readsMemory(op) ? std::nullopt : chooseTile(op, sizes, slots);
  if (!tile)
    return false;
  op.getBody().walk([&](Operation *) { ++ops; });
  if (ops > longBody)
    tile->together = 2;
  Expr groups = sizes.results.ceilDiv(tile->columns());
  Expr splits = countSplits(sizes.points, groups, tile->isRow ? fewestPoints : linesOfThread * tile->down());
  if (tile->isRow && splits.isConstant(1))
    return false;
  NamedAttrList attributes(GpuConfig{.threads = SplitTile::threads}.toAttribute(context));
  attributes.set("layout", StringAttr::get(context, "split"));
  attributes.set("reduction", tile->toAttribute(context));
  attributes.set("splits", ExprAttr(splits));
  // Where rows may be many and short, each a block's, it is the number of blocks that hides what one waits for; the
  // code for rows that blocks share must not take the registers for that.
  if (tile->isRow && !sizes.results.isConstant() && slots == 1 && ops <= shortBody)
    attributes.set("resident", IntegerAttr::get(IntegerType::get(context, 64), fullMultiprocessor));
  Expr blocks = groups * splits, scratch = Expr::constant(context, 0);
  if (!splits.isConstant(1)) {
    attributes.set("counters", UnitAttr::get(context));
    scratch = blocks * (tile->columns() * slots * 8);
  }
  kernel.setIterationsAttr(blocks);
  kernel.setGrainAttr(Expr::constant(context, 1));
  kernel.setScratchAttr(scratch);
  kernel.setConfigAttr(attributes.getDictionary(context));
  return true;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

namespace {

class SplitEmitter {
public:
  SplitEmitter(GpuEmitter &e, loop::ReductionOp op);
  void emit();

private:
  using Values = SmallVector<Value>; // of a thread's results, each reduction's slots one after the other

  void emitAlone();
  void emitShared();
  Value less(Value x, Value y) { return e.invariants.compare(arith::CmpIPredicate::slt, x, y); }
  void findPlace();
  int64_t results() const { return tile.isRow ? 1 : tile.lanes; }
  Values identities(int64_t count);
  void merge(MutableArrayRef<Value> into, ArrayRef<Value> from);
  Values takeSteps(Value first, int64_t count, ValueRange carried, Value end = {});
  Values takeRest(Value from, Value end, const Values &carried);
  Values reducePart();
  Values joinBlock(Values values);
  Value partAddress(Value part, int64_t value);
  void storePart(ValueRange values);
  Values loadParts();
  void finish(ValueRange values);
  void meet(const Values &values);

  GpuEmitter &e;
  OpBuilder &b;
  loop::ReductionOp op;
  const SplitTile tile;
  const BodyParts parts;
  const Expr splitsExpr;
  SmallVector<Expr> domain;
  int64_t kept, vectorDim;
  bool readsBack = false;  // the body what it wrote: all is done in order
  SmallVector<Type> types; // of a result's slots
  Value thread, x, y, group, split, splits, exists, memory;
  EmissionPoint point;
};

} // namespace

SplitEmitter::SplitEmitter(GpuEmitter &e, loop::ReductionOp op)
    : e(e), b(e.builder), op(op), tile(SplitTile::fromAttribute(e.kernel.getConfigAttr())),
      parts(codegen::splitBody(op.getBody().front())), splitsExpr(e.kernel.getConfigAttr().getAs<ExprAttr>("splits")),
      domain(loop::getDomain(op)), kept(int64_t(domain.size()) - int64_t(op.getReduced())),
      vectorDim(tile.isRow ? int64_t(domain.size()) - 1 : kept - 1) {
  e.setDomain(domain);
  for (Value value : identities(1))
    types.push_back(value.getType());
  thread = e.getRegister("tid.x");
  e.row = {thread, SplitTile::threads};
  llvm::DenseSet<Value> written;
  for (Operation *inner : parts.before)
    if (auto store = dyn_cast<loop::StoreOp>(inner))
      written.insert(store.getBuffer());
    else
      inner->walk([&](loop::LoadOp load) { readsBack |= written.contains(load.getBuffer()); });
}

/// Which results are the thread's, and which part of what they reduce is the block's.
void SplitEmitter::findPlace() {
  x = e.invariants.mod(thread, e.constant(tile.across), true);
  y = e.invariants.floorDiv(thread, e.constant(tile.across), true);
  splits = e.emitExpr(splitsExpr, {});
  Value block = e.getRegister("ctaid.x");
  group = e.invariants.floorDiv(block, splits, true);
  split = e.invariants.sub(block, e.invariants.mul(group, splits));
  SmallVector<Value> sizes;
  Value total = e.constant(1);
  for (Expr extent : ArrayRef(domain).take_front(size_t(kept))) {
    bool isLast = int64_t(sizes.size()) + 1 == kept;
    sizes.push_back(e.emitExpr(isLast && !tile.isRow ? extent.ceilDiv(tile.lanes) : extent, {}));
    total = e.invariants.mul(total, sizes.back());
  }
  Value number = e.invariants.add(e.invariants.mul(group, e.constant(tile.across)), x);
  exists = less(number, total);
  point.dims = e.createDigits(e.invariants.min(number, e.invariants.sub(total, e.constant(1))), sizes);
  if (!tile.isRow)
    point.dims.back() = e.invariants.mul(point.dims.back(), e.constant(tile.lanes));
  point.dims.resize(domain.size());
}

SplitEmitter::Values SplitEmitter::identities(int64_t count) {
  Values values;
  for (int64_t i = 0; i < count; ++i)
    for (Operation *reduction : parts.reductions) {
      values.push_back(e.invariants.constant(codegen::identityOf(reduction)));
      if (auto arg = dyn_cast<loop::ArgReduceOp>(reduction)) // an index that loses where values are equal
        values.push_back(e.constant(arg.getSelectLast() ? -1 : std::numeric_limits<int64_t>::max()));
    }
  return values;
}

/// The slots of one result.
void SplitEmitter::merge(MutableArrayRef<Value> into, ArrayRef<Value> from) {
  size_t slot = 0;
  for (Operation *reduction : parts.reductions) {
    size_t count = codegen::slotsOf(reduction);
    llvm::copy(codegen::mergeSlots(e, reduction, Values(into.slice(slot, count)), from.slice(slot, count)),
               into.begin() + slot);
    slot += count;
  }
}

/// `count` steps of the thread from number `first` on: loads of all, then arithmetic. Those that are not below `end`
/// (null: there are none) load what the last one does and change nothing.
SplitEmitter::Values SplitEmitter::takeSteps(Value first, int64_t count, ValueRange carried, Value end) {
  SmallVector<Value> sizes;
  for (Expr extent : ArrayRef(domain).drop_front(size_t(kept))) {
    bool isLast = kept + int64_t(sizes.size()) + 1 == int64_t(domain.size());
    sizes.push_back(e.emitExpr(isLast && tile.isRow ? extent.ceilDiv(tile.lanes) : extent, {}));
  }
  std::vector<LaneEmitter> steps;
  Values none = identities(1), exist;
  SmallVector<Operation *> reads, writes;
  for (Operation *inner : parts.before)
    (isa<loop::StoreOp>(inner) && !readsBack ? writes : reads).push_back(inner);
  for (int64_t i = 0; i < count; ++i) {
    EmissionPoint at = point;
    Value number = e.invariants.add(first, e.constant(i * tile.down()));
    if (end) {
      exist.push_back(less(number, end));
      number = e.invariants.min(number, e.invariants.sub(end, e.constant(1)));
    }
    llvm::copy(e.createDigits(number, sizes), at.dims.begin() + kept);
    if (tile.isRow)
      at.dims.back() = e.invariants.mul(at.dims.back(), e.constant(tile.lanes));
    steps.emplace_back(e, op, at, vectorDim, tile.lanes).emitOps(reads);
  }
  for (LaneEmitter &step : steps)
    step.emitOps(writes);
  Values next(carried);
  for (auto [number, step] : llvm::enumerate(steps))
    for (size_t lane = 0; lane < step.size(); ++lane) {
      Values elements;
      for (Operation *reduction : parts.reductions) {
        elements.push_back(step.getBody(lane).lookup(reduction->getOperand(0)));
        if (isa<loop::ArgReduceOp>(reduction))
          elements.push_back(step.getPoint(lane).dims[size_t(kept)]);
      }
      for (size_t slot = 0; end && slot < elements.size(); ++slot)
        elements[slot] = arith::SelectOp::create(b, e.loc, exist[number], elements[slot], none[slot]);
      merge(MutableArrayRef(next).slice(lane * types.size(), types.size()), elements);
    }
  return next;
}

/// Fewer steps than are taken together: at once, unless some store something.
SplitEmitter::Values SplitEmitter::takeRest(Value from, Value end, const Values &carried) {
  if (llvm::any_of(parts.before, [](Operation *inner) { return isa<loop::StoreOp>(inner); }))
    return e.createLoop(from, end, tile.down(), carried,
                        [&](Value first, ValueRange in) { return takeSteps(first, 1, in); });
  return e.createIf(less(from, end), carried, [&] { return takeSteps(from, tile.together, carried, end); });
}

/// What the thread has of the block's part; of a row, its lanes are one.
SplitEmitter::Values SplitEmitter::reducePart() {
  Expr steps = Expr::constant(op.getContext(), 1);
  for (auto [index, extent] : llvm::enumerate(ArrayRef(domain).drop_front(size_t(kept)))) {
    bool isLast = kept + int64_t(index) + 1 == int64_t(domain.size());
    steps = steps * (isLast && tile.isRow ? extent.ceilDiv(tile.lanes) : extent);
  }
  Value count = e.emitExpr(steps, {}), one = e.constant(1);
  Value size = e.invariants.floorDiv(e.invariants.sub(e.invariants.add(count, splits), one), splits, true);
  Value begin = e.invariants.mul(split, size), end = e.invariants.min(e.invariants.add(begin, size), count);
  end = e.invariants.select(exists, end, begin);
  Value from = e.invariants.add(begin, y);
  const int64_t stride = tile.down() * tile.together;
  Value whole = e.invariants.sub(end, e.constant(stride - tile.down())); // a first step before it has all others
  Values values = identities(tile.lanes);
  values = e.createLoop(from, whole, stride, values,
                        [&](Value first, ValueRange in) { return takeSteps(first, tile.together, in); });
  Value rounds = e.invariants.add(e.invariants.sub(whole, from), e.constant(stride - 1));
  rounds = e.invariants.floorDiv(e.invariants.max(rounds, e.constant(0)), e.constant(stride), true);
  from = e.invariants.add(from, e.invariants.mul(rounds, e.constant(stride)));
  values = takeRest(from, end, values);
  if (!tile.isRow)
    return values;
  for (int64_t distance = tile.lanes / 2; distance > 0; distance /= 2)
    for (int64_t lane = 0; lane < distance; ++lane)
      merge(MutableArrayRef(values).slice(size_t(lane) * types.size(), types.size()),
            ArrayRef(values).slice(size_t(lane + distance) * types.size(), types.size()));
  values.truncate(types.size());
  return values;
}

/// Over the block, in the threads whose y is 0.
SplitEmitter::Values SplitEmitter::joinBlock(Values values) {
  if (tile.isRow) {
    size_t slot = 0;
    for (Operation *reduction : parts.reductions) {
      size_t count = codegen::slotsOf(reduction);
      llvm::copy(e.combine(e.row, reduction, Values(ArrayRef(values).slice(slot, count))), values.begin() + slot);
      slot += count;
    }
    return values;
  }
  auto mergeAll = [&](Values &into, ValueRange from) {
    Values others(from);
    for (size_t first = 0; first < into.size(); first += types.size())
      merge(MutableArrayRef(into).slice(first, types.size()), ArrayRef(others).slice(first, types.size()));
  };
  // A warp's lines, so that its first one has all; then over the warps.
  for (int64_t distance = warpSize / 2; distance >= tile.across; distance /= 2)
    mergeAll(values, e.createShuffle(values, distance));
  constexpr int64_t warps = SplitTile::threads / warpSize;
  Value lane = e.invariants.mod(thread, e.constant(warpSize), true);
  Value warp = e.invariants.floorDiv(thread, e.constant(warpSize), true);
  if (!memory)
    memory = e.sharedMemory(int64_t(values.size()) * warps * tile.across * 8);
  auto addressOf = [&](Value line, int64_t value) {
    Value index = e.invariants.add(e.invariants.mul(line, e.constant(tile.across)), x);
    index = e.invariants.add(index, e.constant(value * warps * tile.across));
    return e.getAddress(memory, b.getI64Type(), index);
  };
  e.createIf(less(lane, e.constant(tile.across)), {}, [&] {
    for (auto [index, value] : llvm::enumerate(values))
      e.createStore(value, addressOf(warp, int64_t(index)));
    return Values();
  });
  e.createBlockBarrier();
  return e.createIf(e.invariants.compare(arith::CmpIPredicate::eq, y, e.constant(0)), values, [&] {
    Values all = values;
    for (int64_t line = 1; line < warps; ++line) {
      Values others;
      for (auto [index, value] : llvm::enumerate(values))
        others.push_back(e.createLoad(value.getType(), 1, addressOf(e.constant(line), int64_t(index))));
      mergeAll(all, others);
    }
    return all;
  });
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

Value SplitEmitter::partAddress(Value part, int64_t value) {
  Value line = e.invariants.add(e.invariants.mul(group, splits), part);
  line = e.invariants.add(e.invariants.mul(line, e.constant(results() * int64_t(types.size()))), e.constant(value));
  Value index = e.invariants.add(e.invariants.mul(line, e.constant(tile.across)), x);
  return e.getAddress(e.scratch, b.getI64Type(), index);
}

void SplitEmitter::storePart(ValueRange values) {
  e.createIf(e.invariants.compare(arith::CmpIPredicate::eq, y, e.constant(0)), {}, [&] {
    for (auto [index, value] : llvm::enumerate(values))
      e.createStore(value, partAddress(split, int64_t(index)));
    return Values();
  });
}

/// The parts go round the threads of a result, a few at a time.
SplitEmitter::Values SplitEmitter::loadParts() {
  constexpr int64_t together = 4;
  Value last = e.invariants.sub(splits, e.constant(1));
  Values start = identities(results());
  return e.createLoop(y, splits, together * tile.down(), start, [&](Value first, ValueRange in) {
    SmallVector<Values> loaded;
    for (int64_t i = 0; i < together; ++i) {
      Value part = e.invariants.add(first, e.constant(i * tile.down())), isThere = less(part, splits);
      Value inside = e.invariants.min(part, last);
      Values &values = loaded.emplace_back();
      for (auto [index, none] : llvm::enumerate(start)) {
        Value value = e.createLoad(none.getType(), 1, partAddress(inside, int64_t(index)));
        values.push_back(arith::SelectOp::create(b, e.loc, isThere, value, none));
      }
    }
    Values all(in);
    for (const Values &values : loaded)
      for (size_t from = 0; from < all.size(); from += types.size())
        merge(MutableArrayRef(all).slice(from, types.size()), ArrayRef(values).slice(from, types.size()));
    return all;
  });
}

/// The body behind the reductions.
void SplitEmitter::finish(ValueRange values) {
  Value isOne = e.invariants.compare(arith::CmpIPredicate::eq, y, e.constant(0));
  e.createIf(e.invariants.logicalAnd(isOne, exists), {}, [&] {
    LaneEmitter lanes(e, op, point, vectorDim, results());
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      size_t slot = lane * types.size();
      for (Operation *reduction : parts.reductions) {
        slot += codegen::slotsOf(reduction);
        lanes.getBody(lane).bind(reduction->getResult(0), values[slot - 1]);
      }
    }
    lanes.emitOps(parts.after);
    return Values();
  });
}

void SplitEmitter::meet(const Values &values) {
  storePart(values);
  e.createIf(createLastArrival(e, group, splits), {}, [&] {
    finish(joinBlock(loadParts()));
    return Values();
  });
}

/// Of so many rows that each is a block's.
void SplitEmitter::emitAlone() {
  SmallVector<Value> sizes;
  for (Expr extent : ArrayRef(domain).take_front(size_t(kept)))
    sizes.push_back(e.emitExpr(extent, {}));
  point.dims = e.createDigits(e.getRegister("ctaid.x"), sizes);
  NodeEmitter(e, op, kept).emit(point);
}

void SplitEmitter::emit() {
  Expr results = product(op.getContext(), ArrayRef(domain).take_front(size_t(kept)));
  if (!tile.isRow || results.isConstant())
    return emitShared();
  Value areMany = less(e.constant(mostShared), e.emitExpr(results, {}));
  auto choice = scf::IfOp::create(b, e.loc, TypeRange(), areMany, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  auto emitBranch = [&](Block *block, auto emitCode) {
    codegen::InvariantBuilder::Scope divisions(e.invariants, block); // of the branch's own
    b.setInsertionPointToStart(block);
    emitCode();
  };
  emitBranch(choice.thenBlock(), [&] { emitAlone(); });
  emitBranch(choice.elseBlock(), [&] { emitShared(); });
}

void SplitEmitter::emitShared() {
  findPlace();
  Values values = joinBlock(reducePart());
  if (splitsExpr.isConstant(1))
    return finish(values);
  if (splitsExpr.isConstant())
    return meet(values);
  auto choice =
      scf::IfOp::create(b, e.loc, TypeRange(), e.invariants.compare(arith::CmpIPredicate::eq, splits, e.constant(1)),
                        /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  finish(values);
  b.setInsertionPointToStart(choice.elseBlock());
  meet(values);
}

void gpu::emitSplitReduction(GpuEmitter &e, loop::ReductionOp op) { SplitEmitter(e, op).emit(); }
