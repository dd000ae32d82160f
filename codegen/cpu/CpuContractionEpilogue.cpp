//===- CpuContractionEpilogue.cpp - what happens to the sums --------------===//
//
// The epilogue runs on the accumulators while they are in registers if it is short: every vector of the tile then has a
// copy of its code. A long one (an activation of dozens of operations) would make the code of a kernel dozens of times
// as long; it runs in a loop over tiles that were stored to a few kilobytes of scratch. The detour costs a store and a
// load for each vector, against k multiply-adds. Its operations wait for each other: where vectors are shorter than a
// panel two go side by side. Between products and epilogue the one's last sums and the other's first chain are waited
// for, so two tiles wait together.
//
// What becomes bytes is narrowed from two vectors at once, where registers hold the sums, too.
//
// Where a convolution's result has channels first, its sums wait, too: squares of them are turned in registers, and the
// epilogue sees vectors of neighbouring pixels. Few tiles wait, so that what is stored to as many lines as there are
// channels leaves the core while the next tiles are computed (112 rows at once: 5 to 12 % longer).
//
// What is added to integer sums first and does not depend on the row (zero points times sums of a weight's columns, a
// bias) costs nothing: the sums start there. Sums of floats would be rounded in another order.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionEpilogue.h"
#include "codegen/cpu/CpuContractionEmission.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ToldNumbers.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

// Operations of the unrolled epilogue of a tile; forced by compile time. Sums of bytes and the like take a fraction of
// the multiply-adds, beside which the detour would show, and few registers afterwards.
static constexpr int64_t mostUnrolled = 400, mostUnrolledOnDots = 520;

/// About how many instructions an operation on a vector of such sums is: it rounds, clamps and converts.
static int64_t countInstructions(Operation *op) {
  bool isDead = op->use_empty() && isMemoryEffectFree(op);    // left of a rewritten expression
  if (isDead || loop::isNumber(op) || isa<arith::CmpFOp>(op)) // a comparison and what it selects are one
    return 0;
  bool isInstruction = isa<math::RoundEvenOp, math::FloorOp, math::CeilOp, math::TruncOp, math::AbsFOp>(op);
  return isa<math::MathDialect>(op->getDialect()) && !isInstruction ? 30 : 1;
}

ContractionEpilogue::ContractionEpilogue(ContractionEmission &contraction) : ContractionTechnique(contraction) {
  auto isFlat = [&](int64_t first, int64_t count) {
    for (int64_t d = first; d + 1 < first + count; ++d)
      if (!loop::mergesIn(f.op.getEpilogue(), d, f.domain[d + 1]))
        return false;
    return true;
  };
  isFlatM = isFlat(f.firstM(), f.mDims);
  isFlatN = isFlat(f.firstN(), f.nDims);
}

bool ContractionEpilogue::isLight(int64_t accumulators) const {
  int64_t cost = 0;
  f.op.getEpilogue().walk([&](Operation *op) {
    if (f.isDot())
      cost += countInstructions(op);
    else if (isa<math::MathDialect>(op->getDialect()))
      cost += 30;
    else if (!loop::isNumber(op))
      cost += 1;
  });
  return cost * accumulators <= (f.isDot() ? mostUnrolledOnDots : mostUnrolled);
}

bool ContractionEpilogue::hasVectorColumns(int64_t lanes) const {
  if (f.nDims == 0)
    return false;
  if (isFlatN)
    return true;
  auto last = f.domain[f.firstK() - 1].asConstant();
  return last && *last % lanes == 0;
}

/// The load, and the operation that adds it to the sums or subtracts it from them; null where there is none.
static std::pair<loop::LoadOp, Operation *> findBias(ContractionForm &f) {
  BlockArgument sums = f.op.getEpilogue().getArgument(0);
  Operation *user = sums.hasOneUse() ? *sums.user_begin() : nullptr;
  if (!isa_and_present<arith::AddIOp, arith::SubIOp>(user) || (isa<arith::SubIOp>(user) && user->getOperand(0) != sums))
    return {};
  Value other = user->getOperand(user->getOperand(0) == sums ? 1 : 0);
  auto load = other.getDefiningOp<loop::LoadOp>();
  if (!load || !load.getIndexOperands().empty() || load->getBlock() != user->getBlock())
    return {};
  Expr index = prim::getExprs(load.getIndices())[0];
  for (int64_t d = f.firstM(); d < f.firstN(); ++d)
    if (index.uses(dimName(d)))
      return {};
  return {load, user};
}

void ContractionEpilogue::takeBias() {
  if (!isa<IntegerType>(accumulator) || f.blocks.isSplitK() || !hasVectorColumns(lanes))
    return;
  auto [load, user] = findBias(f);
  if (!load)
    return;
  OpBuilder b(user->getContext());
  b.setInsertionPointToStart(&bias.emplaceBlock());
  Value value = b.clone(*load)->getResult(0);
  if (isa<arith::SubIOp>(user))
    value = arith::SubIOp::create(b, load.getLoc(),
                                  arith::ConstantOp::create(b, load.getLoc(), b.getIntegerAttr(accumulator, 0)), value);
  loop::YieldOp::create(b, load.getLoc(), value);
  user->getResult(0).replaceAllUsesWith(f.op.getEpilogue().getArgument(0));
  user->erase();
}

void ContractionEpilogue::setFlat(EmissionPoint &point, int64_t first, int64_t count, bool isFlat, Value flat) {
  if (!isFlat)
    return c.setDims(point, first, count, flat);
  for (int64_t d = first; d < first + count; ++d)
    point.dims[d] = d + 1 == first + count ? flat : i.constant(0);
}

/// The lanes of a tile's vector that lie inside of n; null: all of them.
static Value maskOfVector(ContractionEmission &c, const ColumnClass &columns, const TileVector &vector, Value first) {
  if (!columns.isMasked)
    return {};
  if (!c.i.asConstant(c.n))
    return c.e.laneMask(c.i.sub(c.n, first), vector.lanes);
  int64_t inside = (columns.panels - 1) * panelWidth + columns.lastColumns - vector.column;
  return inside < vector.lanes ? c.e.laneMask(c.i.constant(inside), vector.lanes) : Value();
}

SmallVector<Value> ContractionEpilogue::initialSums(const ContractionTask &task, const RowClass &rows,
                                                    const ColumnClass &columns, Value panel) {
  if (bias.empty())
    return {};
  EmissionPoint point = c.taskPoint(task);
  point.vectorDim = f.firstK() - 1;
  SmallVector<Value> row, all;
  for (const TileVector &vector : getTileVectors(columns.panels, columns.lastColumns, lanes)) {
    Value first = c.columnOf(columns, panel, vector.column);
    setFlat(point, f.firstN(), f.nDims, isFlatN, first);
    point.lanes = vector.lanes;
    point.mask = maskOfVector(c, columns, vector, first);
    row.push_back(e.splat(e.emitRegion(bias, point), vector.lanes));
  }
  for (int64_t r = 0; r < rows.height; ++r)
    llvm::append_range(all, row);
  return all;
}

bool ContractionEpilogue::waits(const RowClass &rows, const ColumnClass &columns) {
  int64_t width = int64_t(getTileVectors(columns.panels, columns.lastColumns, lanes).size());
  return f.turns || !hasVectorColumns(lanes) || !isLight(rows.height * width);
}

int64_t ContractionEpilogue::tilesTogether(int64_t height) const {
  if (!f.turns)
    return tilesThatWait;
  auto isFull = [&](int64_t rows) { return 8 * rows >= 7 * int64_t(llvm::alignTo(rows, lanes)); };
  int64_t tiles = 1;
  while (!isFull(tiles * height) && (tiles + 1) * height <= rowsThatTurn)
    ++tiles;
  return tiles;
}

void ContractionEpilogue::storeSums(const ColumnClass &columns, ValueRange accumulators) {
  SmallVector<TileVector> vectors = getTileVectors(columns.panels, columns.lastColumns, lanes);
  for (auto [index, accumulated] : llvm::enumerate(accumulators)) {
    Value row = i.add(waitingRows, i.constant(int64_t(index / vectors.size())));
    Value slot = i.add(i.mul(row, c.sumsPitch), i.constant(vectors[index % vectors.size()].column));
    e.createStore(accumulated, e.getAddress(c.sums, accumulator, slot));
  }
}

void ContractionEpilogue::emitOnWaiting(const ContractionTask &task, const ColumnClass &columns, Value row, Value rows,
                                        Value panel) {
  auto emitOn = [&](Value column, Value from, int64_t count) {
    Value end = i.add(column, i.constant(count * panelWidth));
    emitOnSums(task, from, row, rows, column, columns.isMasked || f.nDims == 0 ? i.min(end, c.n) : end);
  };
  if (!columns.apart)
    return emitOn(c.columnOf(columns, panel, 0), c.sums, columns.panels);
  loop(i.constant(0), i.constant(columns.panels), 1, [&](Value number) {
    Value width = i.constant(panelWidth), column = i.mul(i.add(panel, i.mul(number, columns.apart)), width);
    emitOn(column, e.getAddress(c.sums, accumulator, i.mul(number, width)), 1);
  });
}

/// Of two vectors at once the bytes are a vector: half as many instructions narrow them.
static bool storesBytes(Region &epilogue) {
  auto isOfBytes = [](loop::StoreOp store) { return store.getValue().getType().isInteger(8); };
  return llvm::any_of(epilogue.getOps<loop::StoreOp>(), isOfBytes);
}

void ContractionEpilogue::emitOnTile(const ContractionTask &task, const RowClass &rows, const ColumnClass &columns,
                                     Value row, Value panel, ValueRange accumulators) {
  SmallVector<TileVector> vectors = getTileVectors(columns.panels, columns.lastColumns, lanes);
  int64_t width = int64_t(vectors.size());
  EmissionPoint base = c.taskPoint(task);
  base.vectorDim = f.firstK() - 1;
  SmallVector<EmissionPoint> points;
  if (isFlatM) {
    points.assign(rows.height, base);
    for (int64_t r = 0; r < rows.height; ++r)
      setFlat(points[r], f.firstM(), f.mDims, true, i.add(row, i.constant(r)));
  } else {
    points = c.rowPoints(base, row, rows.height);
  }
  bool inPairs = 2 * lanes <= panelWidth && hasVectorColumns(2 * lanes) && storesBytes(f.op.getEpilogue());
  for (int64_t r = 0; r < rows.height; ++r)
    for (int64_t at = 0; at < width; ++at) {
      EmissionPoint &point = points[r];
      TileVector vector = vectors[at];
      Value first = c.columnOf(columns, panel, vector.column), sums = accumulators[r * width + at];
      bool isPair = inPairs && vector.column % (2 * lanes) == 0 && at + 1 < width;
      TileVector both{vector.column, 2 * lanes};
      if (isPair && !maskOfVector(c, columns, both, first)) {
        assert(vectors[at + 1].lanes == lanes && "halves are of vectors as wide as a panel");
        sums = join(e, {sums, accumulators[r * width + at + 1]});
        vector = both;
        ++at;
      }
      setFlat(point, f.firstN(), f.nDims, isFlatN, first);
      point.lanes = vector.lanes;
      point.mask = maskOfVector(c, columns, vector, first);
      e.emitRegion(f.op.getEpilogue(), point, {sums});
    }
}

/// Of which each is a chain of operations.
static bool hasFunctions(Region &epilogue) {
  auto isFunction = [](Operation *op) { return isa<math::MathDialect>(op->getDialect()); };
  return epilogue.walk([&](Operation *op) { return isFunction(op) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

void ContractionEpilogue::emitOnRow(const EmissionPoint &point, Value line, Value column, Value columns) {
  bool isVector = hasVectorColumns(lanes);
  auto emitAt = [&](Value at, int64_t step, Value mask) {
    EmissionPoint here = point;
    if (isVector) {
      here.lanes = step;
      here.vectorDim = f.firstK() - 1;
    }
    here.mask = mask;
    setFlat(here, f.firstN(), f.nDims, isFlatN, i.add(column, at));
    Value acc = e.createLoad(accumulator, step, e.getAddress(line, accumulator, at));
    e.emitRegion(f.op.getEpilogue(), here, {acc});
  };
  if (!isVector)
    return loop(i.constant(0), columns, 1, [&](Value at) { emitAt(at, 1, {}); });
  auto wholesOf = [&](int64_t width) { return i.mul(i.floorDiv(columns, i.constant(width), true), i.constant(width)); };
  int64_t pair = std::min(2 * lanes, panelWidth);
  int64_t wide = hasVectorColumns(pair) && hasFunctions(f.op.getEpilogue()) ? pair : lanes;
  Value pairs = wholesOf(wide), whole = wholesOf(lanes);
  loop(i.constant(0), pairs, wide, [&](Value at) { emitAt(at, wide, {}); });
  if (wide > lanes)
    loop(pairs, whole, lanes, [&](Value at) { emitAt(at, lanes, {}); });
  // Half a vector where the last columns are as few, and known.
  int64_t rest = i.asConstant(c.n).value_or(0) % lanes, half = lanes / 2;
  bool isHalf = lanes == panelWidth && rest > 0 && rest <= half;
  loop(whole, columns, lanes, [&](Value at) {
    Value left = i.sub(columns, at);
    emitAt(at, isHalf ? half : lanes, isHalf && rest == half ? Value() : e.laneMask(left, isHalf ? half : lanes));
  });
}

void ContractionEpilogue::emitOnSquare(const ContractionTask &task, const WaitingSums &waiting, Value row, Value column,
                                       int64_t columns, Value mask) {
  Value last = i.sub(waiting.rows, i.constant(1));
  SmallVector<Value> square;
  for (int64_t r = 0; r < lanes; ++r) {
    Value line = i.add(row, i.constant(r));
    Value slot = i.add(i.mul(mask ? i.min(line, last) : line, c.sumsPitch), column);
    square.push_back(e.createLoad(accumulator, lanes, e.getAddress(waiting.sums, accumulator, slot)));
  }
  transposeSquare(e, square);
  EmissionPoint point = c.taskPoint(task);
  point.vectorDim = f.firstN() - 1;
  point.lanes = lanes;
  point.mask = mask;
  setFlat(point, f.firstM(), f.mDims, isFlatM, i.add(waiting.row, row));
  for (int64_t number = 0; number < columns; ++number) {
    c.setDims(point, f.firstN(), f.nDims, i.add(i.add(waiting.column, column), i.constant(number)));
    e.emitRegion(f.op.getEpilogue(), point, {square[size_t(number)]});
  }
}

void ContractionEpilogue::emitTurned(const ContractionTask &task, const WaitingSums &waiting, Value columns) {
  auto wholesOf = [&](Value count) { return i.mul(i.floorDiv(count, i.constant(lanes), true), i.constant(lanes)); };
  Value wholeRows = wholesOf(waiting.rows), wholeColumns = wholesOf(columns);
  auto emitSquares = [&](Value column, int64_t count) {
    loop(i.constant(0), wholeRows, lanes, [&](Value row) { emitOnSquare(task, waiting, row, column, count, Value()); });
    loop(wholeRows, waiting.rows, lanes, [&](Value row) {
      emitOnSquare(task, waiting, row, column, count, e.laneMask(i.sub(waiting.rows, row), lanes));
    });
  };
  loop(i.constant(0), wholeColumns, lanes, [&](Value column) { emitSquares(column, lanes); });
  std::optional<int64_t> known = i.asConstant(c.n);
  assert(known && "channels are turned where their number is known");
  if (int64_t rest = *known % lanes)
    loop(wholeColumns, columns, lanes, [&](Value column) { emitSquares(column, rest); });
}

void ContractionEpilogue::emitOnSums(const ContractionTask &task, Value sums, Value row, Value rows, Value column,
                                     Value columnEnd, llvm::function_ref<Value(Value row)> placeOf) {
  EmissionPoint point = c.taskPoint(task);
  Value columns = i.sub(columnEnd, column);
  assert(!(f.turns && placeOf) && "rows that are turned lie one behind another");
  if (f.turns)
    return emitTurned(task, {sums, row, rows, column}, columns);
  loop(i.constant(0), rows, 1, [&](Value r) {
    setFlat(point, f.firstM(), f.mDims, isFlatM, i.add(row, r));
    Value place = placeOf ? placeOf(i.add(row, r)) : r;
    emitOnRow(point, e.getAddress(sums, accumulator, i.mul(place, c.sumsPitch)), column, columns);
  });
}

void ContractionEpilogue::zeroSums(const ContractionTask &task) {
  auto type = VectorType::get({lanes}, accumulator);
  Value zero = i.constant(cast<TypedAttr>(e.builder.getZeroAttr(type)));
  Value width = i.mul(i.sub(task.endPanel, task.firstPanel), i.constant(panelWidth));
  loop(i.constant(0), task.rows, 1, [&](Value r) {
    Value line = e.getAddress(c.sums, accumulator, i.mul(r, c.sumsPitch));
    loop(i.constant(0), width, lanes, [&](Value at) { e.createStore(zero, e.getAddress(line, accumulator, at)); });
  });
}
