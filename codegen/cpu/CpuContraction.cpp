//===- CpuContraction.cpp - tasks of a contraction ------------------------===//
//
// The loop nest of a task, from the outside in:
//
//   [pack A's rows, copy bytes]            unless the task before used the same
//   for k block                           where k is long
//     [pack B's columns]
//     for column tile (1-5 panels)        B's tile stays in the second-level cache
//       [copy its bytes]
//       for row tile (up to 14 rows)      A's tile stays in the first-level cache
//         for k: the register tile        meanwhile the next column tile is fetched into the second-level cache
//         epilogue on the accumulators, or partial sums to scratch
//   [epilogue on the sums]                where k runs in blocks
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionBytes.h"
#include "codegen/cpu/CpuContractionConvert.h"
#include "codegen/cpu/CpuContractionEmission.h"
#include "codegen/cpu/CpuContractionEpilogue.h"
#include "codegen/cpu/CpuContractionFixedPoint.h"
#include "codegen/cpu/CpuContractionMatrix.h"
#include "codegen/cpu/CpuContractionPatches.h"
#include "codegen/cpu/CpuTemplates.h"
#include "codegen/cpu/CpuTuning.h"
#include "codegen/cpu/CpuWinograd.h"
#include "ir/expr/DimName.h"
#include "ir/loop/Recurrence.h"
#include "ir/loop/Strassen.h"
#include "ir/loop/Winograd.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t longK = 64;            // terms that are worth turns between sets of accumulators
static constexpr int64_t fewestSkipped = 32;    // terms that are worth the question whether they are all zeros
static constexpr int64_t longestInside = 4;     // tiles' heights of a window, most of which lies inside for each tile
static constexpr int64_t leastTurned = 1 << 13; // elements of a weight that does not wait in the first-level cache

//===----------------------------------------------------------------------===//
// Small emitters
//===----------------------------------------------------------------------===//

Value ContractionEmission::inTurn(Value lower, Value upper, Value at) {
  return isBackwards ? i.select(isBackwards, i.sub(i.sub(i.add(lower, upper), i.constant(1)), at), at) : at;
}

Value ContractionEmission::scratchAt(Expr offset) {
  return e.getAddress(e.getScratch(), e.builder.getI8Type(), value(offset));
}

Value ContractionEmission::widened(Value value) {
  Type from = getElementTypeOrSelf(value.getType());
  if (from == accumulator)
    return value;
  Type to = accumulator;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    to = vector.clone(accumulator);
  if (isa<FloatType>(accumulator))
    return arith::ExtFOp::create(e.builder, e.loc, to, value);
  return arith::ExtSIOp::create(e.builder, e.loc, to, value);
}

EmissionPoint ContractionEmission::taskPoint(const ContractionTask &task) {
  EmissionPoint point;
  point.dims.assign(f.domain.size(), Value());
  llvm::copy(task.batchDims, point.dims.begin());
  return point;
}

EmissionPoint ContractionEmission::rowPoint(const ContractionTask &task, Value row) {
  EmissionPoint point = taskPoint(task);
  setDims(point, f.firstM(), f.mDims, row);
  for (int64_t dim = f.firstK(); dim < int64_t(f.domain.size()); ++dim)
    point.dims[dim] = i.constant(0);
  return point;
}

void ContractionEmission::setDims(EmissionPoint &point, ArrayRef<Expr> domain, int64_t first, int64_t count,
                                  Value flat) {
  for (int64_t d = first + count - 1; d > first; --d) {
    Value extent = value(domain[d]);
    point.dims[d] = i.mod(flat, extent, /*nonNegative=*/true);
    flat = i.floorDiv(flat, extent, /*nonNegative=*/true);
  }
  if (count)
    point.dims[first] = flat;
}

/// Every `step`-th row from `row` on; `step` divides the last dim where there are several.
SmallVector<EmissionPoint> ContractionEmission::rowPoints(const EmissionPoint &base, Value row, int64_t rows,
                                                          int64_t step) {
  SmallVector<EmissionPoint> points(rows, base);
  int64_t first = f.firstM(), lastDim = f.firstN() - 1;
  for (int64_t r = 0; r < rows; ++r) {
    if (f.mDims <= 1 || r == 0) {
      setDims(points[r], first, f.mDims, i.add(row, i.constant(r * step)));
      continue;
    }
    // One step more than the row before, with carries.
    Value carry;
    for (int64_t d = lastDim; d >= first; --d) {
      Value before = points[r - 1].dims[d];
      Value one = carry ? carry : i.constant(step);
      Value next = i.add(before, one);
      if (d > first) {
        Value wraps = i.compare(arith::CmpIPredicate::eq, next, value(f.domain[d]));
        points[r].dims[d] = i.select(wraps, i.constant(0), next);
        carry = i.get<arith::ExtUIOp>(e.builder.getI64Type(), wraps);
      } else {
        points[r].dims[d] = next;
      }
    }
  }
  return points;
}

//===----------------------------------------------------------------------===//
// Rows of A
//===----------------------------------------------------------------------===//

Value ContractionEmission::addressInPlace(const EmissionPoint &point) {
  return e.getAddress(e.getPointer(f.lhs.load.getBuffer()), f.lhs.element, e.emitExpr(f.lhs.index(), point));
}

/// The row's address, or that of the run of constants where the mask fails.
Value ContractionEmission::redirectedAddress(const EmissionPoint &point) {
  Value at = addressInPlace(point), holds;
  for (Expr condition : f.lhs.conditions())
    holds = i.logicalAnd(holds, i.compare(arith::CmpIPredicate::sge, e.emitExpr(condition, point), i.constant(0)));
  return i.get<arith::SelectOp>(holds, at, fill);
}

bool ContractionEmission::mayLeaveOut() const {
  auto isZero = [](TypedAttr other) {
    auto number = dyn_cast<FloatAttr>(other);
    return number ? number.getValue().isPosZero() : cast<IntegerAttr>(other).getValue().isZero();
  };
  return !e.isStrict && isZero(f.lhs.other) && f.kLoops.back().extent.asConstant().value_or(0) >= fewestSkipped;
}

/// Whether a window often reads zeros alone for all rows of a tile: one that is dilated, transposed or longer than
/// tiles are high, or where tiles lie in lines.
bool ContractionEmission::meetsZeros() const {
  if (!mayLeaveOut())
    return false;
  auto leavesOften = [&](Expr condition, const KLoop &loop) {
    if (loop.dim < 0 || !condition.uses(dimName(loop.dim)))
      return false;
    Expr step = condition.coefficientOf(dimName(loop.dim));
    bool isLong = loop.extent.asConstant().value_or(0) >= longestInside * split.height;
    return isLong || !step || !step.isConstant() || std::abs(step.getValue()) > 1;
  };
  return asksForZeros || llvm::any_of(f.lhs.conditions(), [&](Expr condition) {
           return llvm::any_of(f.kLoops, [&](const KLoop &loop) { return leavesOften(condition, loop); });
         });
}

Value ContractionEmission::addressOf(const EmissionPoint &point) {
  return f.lhs.form == LhsForm::Redirected ? redirectedAddress(point) : addressInPlace(point);
}

SmallVector<Value> ContractionEmission::addressesApart(Value first, Type element, int64_t count, Value stride) {
  SmallVector<Value> addresses;
  for (int64_t r = 0; r < count; ++r)
    addresses.push_back(e.getAddress(first, element, i.mul(i.constant(r), stride)));
  return addresses;
}

Value ContractionEmission::movedBy(Value base, ValueRange outer) {
  Value offset = i.constant(0);
  for (auto [at, loop] : llvm::zip(outer, f.kLoops))
    offset = i.add(offset, i.mul(at, value(loop.aStride)));
  return e.getAddress(base, f.lhs.element, offset);
}

RowAddresses ContractionEmission::rowAddresses(const ContractionTask &task, const RowClass &rows, Value row) {
  Value local = i.sub(row, task.firstHeld);
  auto inScratch = [&](Value pitch, bool hasRows) -> RowAddresses {
    Value base = e.getAddress(lhsPack, f.lhs.element, i.mul(local, pitch));
    return [=, this, count = rows.height](ValueRange outer) {
      return addressesApart(hasRows ? movedBy(base, outer) : base, f.lhs.element, count, pitch);
    };
  };
  switch (f.lhs.form) {
  case LhsForm::PackedRows:
    return inScratch(value(f.scratch.lhsPitch), /*hasRows=*/true);
  case LhsForm::PackedColumns:
    return inScratch(i.constant(1), /*hasRows=*/false);
  case LhsForm::Panels:
    return addressesInPanels(task, rows.height, row);
  case LhsForm::InPlace:
  case LhsForm::Redirected:
    return addressesInMemory(task, rows.height, row);
  }
  llvm_unreachable("a form of the lhs");
}

/// Row r of a weight in panels: panel r / 16, lane r % 16.
RowAddresses ContractionEmission::addressesInPanels(const ContractionTask &task, int64_t height, Value row) {
  Value weights = e.getPointer(f.lhs.panels.getBuffer()), width = i.constant(panelWidth);
  Value panelSize = i.mul(k, width);
  Value batchSize = i.mul(panelSize, i.floorDiv(i.add(m, i.constant(panelWidth - 1)), width, true));
  Value base = e.getAddress(weights, f.lhs.element, i.mul(task.matrix, batchSize));
  return [=, this](ValueRange outer) {
    Value inner = movedBy(base, outer);
    SmallVector<Value> addresses;
    for (int64_t r = 0; r < height; ++r) {
      Value at = i.add(row, i.constant(r));
      Value panel = i.floorDiv(at, width, true), lane = i.mod(at, width, true);
      addresses.push_back(e.getAddress(inner, f.lhs.element, i.add(i.mul(panel, panelSize), lane)));
    }
    return addresses;
  };
}

RowAddresses ContractionEmission::addressesInMemory(const ContractionTask &task, int64_t height, Value row) {
  Value firstOutput = i.mul(row, i.constant(outputs));
  EmissionPoint base = rowPoint(task, firstOutput);
  if (std::optional<int64_t> step = stepInPlace(f)) {
    Value first = addressInPlace(base);
    return [=, this](ValueRange outer) {
      return addressesApart(movedBy(first, outer), f.lhs.element, height, i.constant(*step * outputs));
    };
  }
  SmallVector<EmissionPoint> points = rowPoints(base, firstOutput, height, outputs);
  // Loop strength reduction takes addresses that are made of divisions apart, and divides in each step of k.
  bool hasDivisions = false;
  for (int64_t dim = f.firstM(); dim < f.firstN(); ++dim)
    hasDivisions |= !loop::strideOf(f.lhs.index(), dim);
  return [=, this](ValueRange outer) {
    SmallVector<Value> addresses;
    for (EmissionPoint point : points) {
      for (auto [at, loop] : llvm::zip(outer, f.kLoops))
        if (loop.dim >= 0)
          point.dims[loop.dim] = at;
      Value address = addressOf(point);
      addresses.push_back(hasDivisions ? hide(e, address) : address);
    }
    return addresses;
  };
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value ContractionEmission::panelWords() {
  Value rows = f.rhs.isPacked() ? value(f.scratch.rhsRows) : i.floorDiv(k, i.constant(f.group), true);
  return i.mul(rows, i.constant(panelWidth));
}

Value ContractionEmission::panelAddress(const ContractionTask &task, Value panel, Value kLower) {
  if (!f.rhs.isPacked()) {
    Value flat = i.add(i.mul(task.matrix, panels), panel);
    return e.getAddress(e.getPointer(f.rhs.buffer), elementOfB(), i.mul(flat, panelWords()));
  }
  Value address = e.getAddress(rhsPack, accumulator, i.mul(i.sub(panel, task.firstPanel), panelWords()));
  if (!f.blocks.isSplitK())
    return address; // else the copy starts at kLower
  Value start = i.mul(i.mul(kLower, value(f.kLoops[0].bStride)), i.constant(-panelWidth));
  return e.getAddress(address, accumulator, start);
}

Type ContractionEmission::elementOfB() {
  if (f.rhs.isPacked() || (f.group > 1 && !f.bits))
    return accumulator;
  return f.bits ? e.builder.getI32Type() : cast<loop::BufferType>(f.rhs.buffer.getType()).getElementType();
}

TileShape ContractionEmission::shapeOf(const ContractionTile &tile) {
  int64_t height = tile.rows.height, unroll = split.unroll;
  if (outputs > 1)
    return {.rows = height, .panels = int64_t(llvm::divideCeil(outputs * outputColumns, panelWidth))};
  const ColumnClass &columns = tile.columns;
  if (!i.asConstant(m) && i.asConstant(k).value_or(longK) >= longK) // a low tile has few accumulators
    unroll = unrollOfTile(e.level, height * int64_t(getTileVectors(columns.panels, columns.lastColumns, lanes).size()));
  return {height, columns.panels, unroll, columns.lastColumns};
}

TileOperands ContractionEmission::operandsOf(const ContractionTask &task, const ContractionTile &tile,
                                             const TileShape &shape, const Fetching &fetching) {
  TileOperands operands{
      .accumulator = accumulator, .aElement = f.lhs.element, .bElement = elementOfB(), .group = f.group};
  operands.panelStride = tile.columns.apart ? i.mul(panelWords(), tile.columns.apart) : panelWords();
  operands.panels = panelAddress(task, tile.panel, tile.kLower);
  operands.fetchedAhead = fetching.ahead;
  if (fetching.nextColumns) {
    Value rowsOfStep = value(f.kLoops[0].bStride);
    fetchNextPanels(operands, task, tile.number, tile.columns.panels, i.mul(tile.kLower, rowsOfStep),
                    i.mul(tile.kUpper, rowsOfStep), nextPanels(task, tile));
  }
  if (!f.rhs.isPacked())
    WeightConverter(*this, task).convertIn(operands, shape, tile);
  for (auto [index, kLoop] : llvm::enumerate(f.kLoops))
    operands.loops.push_back({.lower = index ? i.constant(0) : tile.kLower,
                              .upper = index ? value(kLoop.extent) : tile.kUpper,
                              .aStride = value(kLoop.aStride),
                              .bStride = i.mul(value(kLoop.bStride), i.constant(panelWidth))});
  operands.rowAddresses = rowAddresses(task, tile.rows, tile.row);
  if (f.lhs.form == LhsForm::Redirected && meetsZeros())
    operands.zeros = fill;
  return sharedPixels.empty() ? operands : sharingOperands(task, operands, tile.row);
}

void ContractionEmission::forEachKind(const ContractionTask &task, llvm::function_ref<void(TileKind)> body) {
  if (fixedPoint == FixedPoint::All)
    return body(TileKind::FixedPoint);
  if (copying == ByteCopying::All)
    return body(TileKind::Bytes);
  bool mayBeFew = fixedPoint == FixedPoint::FewRows;
  if (!mayBeFew && copying == ByteCopying::None)
    return body(TileKind::Plain);
  Value fewest = i.constant(mayBeFew ? mostInFixedPoint + 1 : fewestCopied);
  emitIf(i.compare(arith::CmpIPredicate::sge, task.rows, fewest),
         [&] { body(mayBeFew ? TileKind::Plain : TileKind::Bytes); });
  emitIf(i.compare(arith::CmpIPredicate::slt, task.rows, fewest),
         [&] { body(mayBeFew ? TileKind::FixedPoint : TileKind::Plain); });
}

void ContractionEmission::emitTile(const ContractionTask &task, const ContractionTile &tile, TileKind kind) {
  TileShape shape = shapeOf(tile);
  if (kind == TileKind::FixedPoint)
    return finishTile(task, tile, [&](ValueRange init) { return fixedRows->multiply(task, tile, init); });
  if (kind == TileKind::Bytes)
    return finishTile(task, tile, [&](ValueRange init) { return bytes->multiply(task, tile, init); });
  Fetching fetching = chooseFetching(tile);
  TileOperands operands = operandsOf(task, tile, shape, fetching);
  auto multiply = [&](const TileOperands &own, ValueRange init) {
    return outputs > 1 ? separateOutputs(shape, multiplyOutputs(shape, own, init))
                       : emitRegisterTile(e, shape, own, init);
  };
  ContractionTile finished = tileWithOutputs(tile);
  SmallVector<KLoop> insideLoops;
  if (!convertsWeight() && operands.bElement == accumulator) // a conversion may ask where each loop stands
    insideLoops = getInsideLoops(tile.rows.height);
  if (insideLoops.empty())
    return finishTile(task, finished, [&](ValueRange init) { return multiply(operands, init); });
  TileOperands inside = insideOperands(task, operands, insideLoops, tile.rows.height, tile.row);
  Value isInside = liesInside(task, tile.rows.height, tile.row);
  finishTile(task, finished, [&](ValueRange init) {
    auto multiplyOwn = [&](bool isTrue) { return multiply(isTrue ? inside : operands, init); };
    return e.emitChoice(isInside, sumTypes(finished), multiplyOwn);
  });
}

SmallVector<Type> ContractionEmission::sumTypes(const ContractionTile &tile) {
  SmallVector<Type> types;
  for (int64_t r = 0; r < tile.rows.height; ++r)
    for (const TileVector &vector : getTileVectors(tile.columns.panels, tile.columns.lastColumns, lanes))
      types.push_back(VectorType::get(vector.lanes, accumulator));
  return types;
}

void ContractionEmission::finishTile(const ContractionTask &task, const ContractionTile &tile, TileProducts products) {
  const RowClass &rows = tile.rows;
  const ColumnClass &columns = tile.columns;
  if (!f.blocks.isSplitK()) {
    SmallVector<Value> accumulators = products(epilogue->initialSums(task, rows, columns, tile.panel));
    return epilogue->waits(rows, columns)
               ? epilogue->storeSums(columns, accumulators)
               : epilogue->emitOnTile(task, rows, columns, tile.row, tile.panel, accumulators);
  }
  SmallVector<TileVector> vectors = getTileVectors(columns.panels, columns.lastColumns, lanes);
  SmallVector<Value> slots, init;
  Value local = i.sub(tile.row, task.firstRow);
  Value column = i.mul(i.sub(tile.panel, task.firstPanel), i.constant(panelWidth));
  for (int64_t r = 0; r < rows.height; ++r) {
    // Rows that do not exist have a place of their own: rowsMost has room for whole tiles.
    Value line = i.add(i.mul(i.add(local, i.constant(r)), sumsPitch), column);
    for (const TileVector &vector : vectors) {
      slots.push_back(e.getAddress(sums, accumulator, i.add(line, i.constant(vector.column))));
      init.push_back(e.createLoad(accumulator, vector.lanes, slots.back()));
    }
  }
  for (auto [sum, slot] : llvm::zip_equal(products(init), slots))
    e.createStore(sum, slot);
}

void ContractionEmission::emitBlock(const ContractionTask &task, Value kLower, Value kUpper) {
  if (matrix)
    return matrix->emitBlock(task, kLower, kUpper);
  auto emitRows = [&](const ColumnClass &columns, Value panel, TileKind kind) {
    if (takesStrassen())
      return emitStrassenTiles(task, columns, panel, kLower, kUpper);
    if (kind == TileKind::Bytes)
      bytes->copyColumns(task, columns, panel, kLower, kUpper);
    for (const RowClass &rows : rowClasses(task)) {
      if (kind == TileKind::Bytes && !i.asConstant(m) && isLoneRowTile(rows.height))
        continue; // many rows have no such tile
      if (fixedPoint == FixedPoint::FewRows && kind == TileKind::FixedPoint && rows.height > mostInFixedPoint)
        continue; // nor do few
      auto emitOne = [&](Value rowTile) {
        Value number = numberOf(task, rows, rowTile), row = firstRowOf(rows, rowTile);
        emitTile(task, withNeededTerms({rows, columns, number, row, panel, kLower, kUpper}), kind);
      };
      RowClass finished = rowsOfOutputs(rows);
      if (f.blocks.isSplitK() || !epilogue->waits(finished, columns)) {
        loop(rows.lower, rows.upper, 1, emitOne);
        continue;
      }
      int64_t together = rows.firsts.empty() ? epilogue->tilesTogether(finished.height) : 1; // rows follow each other
      loop(rows.lower, rows.upper, together, [&](Value first) {
        Value last = i.min(i.add(first, i.constant(together)), rows.upper);
        loop(first, last, 1, [&](Value rowTile) {
          epilogue->setWaitingRows(i.mul(i.sub(rowTile, first), i.constant(finished.height)));
          emitOne(rowTile);
        });
        epilogue->emitOnWaiting(task, columns, i.mul(firstRowOf(rows, first), i.constant(outputs)),
                                i.mul(i.sub(last, first), i.constant(finished.height)), panel);
      });
    }
  };
  forEachColumnTile(task, [&](const ColumnClass &columns, Value panel) {
    forEachKind(task, [&](TileKind kind) { emitRows(columns, panel, kind); });
  });
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

SmallVector<TileSplit> cpu::listTiles(const ContractionForm &form, const CpuLevel &level, const TiledExtents &extents) {
  bool splitsGroups = form.bits || (form.group > 1 && isa<FloatType>(form.accumulator) && !level.hasBf16Dot) ||
                      (form.bytes.rowsAt && level.multipliesPairs() && level.vectorBits == 256);
  bool readsWeight = !form.rhs.isPacked() && form.group == 1 && !form.bits;
  TileReads reads{.splitsGroups = splitsGroups,
                  .streams = form.rhs.streams,
                  .wide = !readsWeight || loop::getWinogradTile(form.op),
                  .mostAlone = form.mostAlone,
                  .blocks = form.blocks.n ? form.blocks.n.asConstant().value_or(1) : 1};
  SmallVector<TileSplit> tiles = listTiles(level, form.accumulator, extents, reads);
  if (form.behind.panelUnit == 1)
    return tiles;
  TileSplit narrow{.height = tiles.front().height, .width = 1, .unroll = tiles.front().unroll};
  llvm::erase_if(tiles, [&](const TileSplit &tile) { return form.behind.panelUnit % tile.width; });
  if (tiles.empty())
    tiles.push_back(narrow);
  return tiles;
}

/// A tile as wide as the outputs of a row, which have the columns of one panel.
static TileSplit tileOfOutputs(const ContractionForm &form, const CpuLevel &level, const TiledExtents &extents) {
  for (TileSplit tile : listTiles(form, level, extents))
    if (tile.width == extents.panels)
      return {.height = tile.height, .width = 1};
  llvm_unreachable("so many vectors are a tile's row");
}

ContractionEmission::ContractionEmission(KernelEmitter &emitter, ContractionForm &form)
    : e(emitter), f(form), i(emitter.invariants), accumulator(form.accumulator) {
  lanes = std::min(panelWidth, e.level.lanesOf(accumulator.getIntOrFloatBitWidth()));
  outputs = chooseOutputs(f, e.level);
  m = value(f.m.floorDiv(outputs));
  n = value(f.n);
  k = value(f.k);
  mBlocks = value(f.blocks.m);
  nBlocks = value(f.blocks.n);
  panels = i.floorDiv(i.add(n, i.constant(panelWidth - 1)), i.constant(panelWidth), true);
  rowUnit = std::max<int64_t>(f.rowUnit() / outputs, 1);
  auto known = [&](Value v) { return i.asConstant(v).value_or(-1); };
  TiledExtents extents(known(m), outputs > 1 ? outputs * outputColumns : known(n), known(k), rowUnit);
  fixedPoint = chooseFixedPoint();
  chooseSplit(extents);
  findScratch();
  takeBlocksOfCopies();
  copying = chooseCopying();
  hasLongStreams = wantsLongStreams();
  sumsPitch = takesPatches() ? i.constant(panelWidth) : value(f.scratch.sumsPitch);
  if (e.isStage && !f.rhs.isPacked() && extents.panels * panelWidth * extents.k >= leastTurned)
    isBackwards = i.compare(arith::CmpIPredicate::eq,
                            i.mod(e.symbolValue(loop::RecurrenceOp::stepSymbol), i.constant(2), true), i.constant(1));
  epilogue = std::make_unique<ContractionEpilogue>(*this);
}

ContractionEmission::~ContractionEmission() = default;

ContractionTechnique::ContractionTechnique(ContractionEmission &contraction)
    : c(contraction), e(c.e), f(c.f), i(c.i), accumulator(c.accumulator), lanes(c.lanes) {}

/// The tile that tuning asks for; none where it asks for none, or for one that cuts parts.
static std::optional<TileSplit> findTunedTile(const ContractionForm &form, const CpuLevel &level,
                                              const TiledExtents &extents) {
  auto height = loop::getTuned(form.op, tuned::tileRows, level.name);
  auto width = loop::getTuned(form.op, tuned::tilePanels, level.name);
  if (!height || !width)
    return std::nullopt;
  TileSplit tile = limitTile(level, form.accumulator, extents, {.height = *height, .width = *width});
  bool cutsParts = form.behind.panelUnit > 1 && form.behind.panelUnit % tile.width;
  return cutsParts ? std::nullopt : std::optional(tile);
}

void ContractionEmission::chooseSplit(const TiledExtents &extents) {
  if (takesStrassen()) {
    split = {.height = tallestTile, .width = panelsOfStrassen(e.level)};
    return;
  }
  if (outputs > 1) {
    split = tileOfOutputs(f, e.level, extents);
    return;
  }
  std::optional<TileSplit> tunedTile = findTunedTile(f, e.level, extents);
  bool isOfBytes = fixedPoint != FixedPoint::None && f.permitsByteRows();
  split = tunedTile   ? *tunedTile
          : isOfBytes ? chooseTileOfBytes(f, e.level, extents)
                      : listTiles(f, e.level, extents).front();
  findSharedPixels(/*isTuned=*/tunedTile.has_value());
  cutLines();
}

void ContractionEmission::findScratch() {
  auto at = [&](Expr offset) { return offset ? scratchAt(offset) : Value(); };
  lhsPack = at(f.scratch.lhsAt);
  rhsPack = at(f.scratch.rhsAt);
  sums = at(f.scratch.sumsAt);
  fill = at(f.scratch.fillAt);
  if (f.bytes.rowsAt)
    bytes = std::make_unique<ByteEmission>(*this);
  if (f.patches.pixelsAt)
    patches = std::make_unique<PatchEmission>(*this);
  if (f.fixedPoint.at)
    fixedRows = std::make_unique<FixedPointEmission>(*this);
}

void ContractionEmission::emitTask(const ContractionTask &task) {
  if (takesPatches())
    return patches->emit(task);
  if (!f.blocks.isSplitK()) {
    emitBlock(task, i.constant(0), value(f.kLoops[0].extent));
    return;
  }
  epilogue->zeroSums(task);
  Value size = value(f.blocks.kSize), extent = value(f.kLoops[0].extent), blocks = value(f.blocks.k);
  if (fixedPoint == FixedPoint::FewRows) { // which are one tile
    Value isFew = i.compare(arith::CmpIPredicate::sle, task.rows, i.constant(mostInFixedPoint));
    size = i.select(isFew, extent, size);
    blocks = i.select(isFew, i.constant(1), blocks);
  }
  if (int64_t together = takesStrassen() ? blocksOfStrassen(e.level) : 1; together > 1) {
    size = i.mul(size, i.constant(together));
    blocks = i.floorDiv(i.add(blocks, i.constant(together - 1)), i.constant(together), true);
  }
  loop(i.constant(0), blocks, 1, [&](Value block) {
    Value lower = i.mul(block, size), upper = i.min(i.add(lower, size), extent);
    if (f.rhs.isPacked())
      packRhs(task, lower, upper);
    if (copying != ByteCopying::None)
      bytes->copyRows(task, lower, upper);
    emitBlock(task, lower, upper);
  });
  Value columnEnd = i.min(i.mul(task.endPanel, i.constant(panelWidth)), n);
  epilogue->emitOnSums(task, sums, task.firstRow, task.rows, i.mul(task.firstPanel, i.constant(panelWidth)), columnEnd);
}

void ContractionEmission::emit(Value begin, Value end) {
  if (f.lhs.form == LhsForm::Redirected)
    fillRedirected();
  auto emitInVectors = [&] {
    epilogue->takeBias();
    emitTasks(begin, end);
  };
  if (!sumsInMatrix())
    return emitInVectors();
  auto emitInMatrix = [&] {
    matrix = std::make_unique<MatrixEmission>(*this);
    emitTasks(begin, end);
    matrix->release();
    matrix.reset();
  };
  if (i.asConstant(m))
    return emitInMatrix();
  Value fewest = i.constant(fewestInMatrix);
  emitIf(i.compare(arith::CmpIPredicate::sge, m, fewest), emitInMatrix);
  emitIf(i.compare(arith::CmpIPredicate::slt, m, fewest), [&] {
    hasFewRows = true;
    auto known = [&](Value v) { return i.asConstant(v).value_or(-1); };
    split = listTiles(f, e.level, TiledExtents(fewestInMatrix - 1, known(n), known(k))).front();
    emitInVectors();
  });
}

void ContractionEmission::emitTogether(Value begin, Value end) {
  ContractionTask task = decodeTask(begin), last = decodeTask(i.sub(end, i.constant(1)));
  task.endPanel = last.endPanel;
  task.endColumnTile = last.endColumnTile;
  if (f.lhs.isPacked())
    packLhs(task);
  emitTask(task);
  if (afterTask)
    afterTask(task);
}

void ContractionEmission::emitTasks(Value begin, Value end) {
  if (endOfTasks)
    end = i.min(end, endOfTasks);
  if (takesStrassen())
    return emitRectangles(begin, end);
  if (hasLongStreams)
    return emitTogether(begin, end);
  bool packsA = f.lhs.isPacked();
  bool packsB = f.rhs.isPacked() && !f.blocks.isSplitK();
  bool copiesA = copiesRowsOfTasks(), fixesA = fixedPoint != FixedPoint::None;
  bool copiesInMatrix = matrix && matrix->copiesRows();
  // What the copies in scratch hold, as a number of (batch, block).
  SmallVector<Value> held(2, i.constant(-1));
  e.createLoop(begin, end, 1, held, [&](Value at, ValueRange carried) -> SmallVector<Value> {
    ContractionTask task = decodeTask(inTurn(begin, end, at));
    Value lhsKey = i.add(i.mul(task.batch, mBlocks), task.mBlock);
    Value rhsKey = i.add(i.mul(task.batch, nBlocks), task.nBlock);
    if (packsA || copiesA || fixesA || takesPatches() || copiesInMatrix)
      emitIf(i.compare(arith::CmpIPredicate::ne, lhsKey, carried[0]), [&] {
        if (packsA)
          packLhs(task);
        if (takesPatches())
          patches->transformPixels(task);
        if (copiesA)
          bytes->copyRows(task, i.constant(0), value(f.kLoops[0].extent));
        if (fixesA)
          fixedRows->copyRows(task);
        if (copiesInMatrix)
          matrix->copyRows(task);
      });
    if (packsB)
      emitIf(i.compare(arith::CmpIPredicate::ne, rhsKey, carried[1]),
             [&] { packRhs(task, i.constant(0), value(f.kLoops[0].extent)); });
    emitTask(task);
    if (afterTask)
      afterTask(task);
    return {lhsKey, rhsKey};
  });
}
