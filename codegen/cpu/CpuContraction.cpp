//===- CpuContraction.cpp - tasks of a contraction ------------------------===//
//
// The loop nest of a task, from the outside in:
//
//   [pack A's rows, take bytes apart]     unless the task before used the same
//   for k block                           where k is long
//     [pack B's columns]
//     for column tile (1-5 panels)        B's tile stays in the second-level cache
//       [take its bytes apart]
//       for row tile (up to 14 rows)      A's tile stays in the first-level cache
//         for k: the register tile        meanwhile the next column tile is fetched into the second-level cache
//         epilogue on the accumulators, or partial sums to scratch
//   [epilogue on the sums]                where k runs in blocks
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionEmission.h"
#include "codegen/cpu/CpuTemplates.h"
#include "codegen/cpu/CpuTuning.h"
#include "codegen/cpu/CpuWinograd.h"
#include "ir/expr/DimName.h"
#include "ir/loop/Recurrence.h"
#include "ir/loop/Winograd.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t longK = 64;             // terms that are worth turns between sets of accumulators
static constexpr int64_t fewestSkipped = 32;     // terms that are worth the question whether they are all zeros
static constexpr int64_t longestInside = 4;      // tiles' heights of a window, most of which lies inside for each tile
static constexpr int64_t leastTurned = 1 << 13;  // elements of a weight that does not wait in the first-level cache
static constexpr int64_t leastStarted = 1 << 14; // bytes of a stream whose start shows
static constexpr int64_t startedLines = 2;       // of a stream, of so many bytes; more delay the tile that is read
static constexpr int64_t fewestFetching = 8;     // multiply-adds of a line that is fetched a tile ahead for a lone one
static constexpr int64_t mostFetched = 1 << 19;  // bytes of a column tile that stays until it is read
static constexpr int64_t lineBytes = 64;

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

void ContractionEmission::setDims(EmissionPoint &point, int64_t first, int64_t count, Value flat) {
  for (int64_t d = first + count - 1; d > first; --d) {
    Value extent = value(f.domain[d]);
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

static Expr indexOf(loop::LoadOp load) { return cast<ExprAttr>(load.getIndices()[0]); }

/// The row's address, or that of the run of constants where the mask fails.
Value ContractionEmission::redirectedAddress(const EmissionPoint &point) {
  Value at = e.getAddress(e.getPointer(f.lhs.load.getBuffer()), f.lhs.element, e.emitExpr(indexOf(f.lhs.load), point));
  Value holds;
  for (Attribute condition : f.lhs.mask.getConditions()) {
    Value v = e.emitExpr(cast<ExprAttr>(condition), point);
    holds = i.logicalAnd(holds, i.compare(arith::CmpIPredicate::sge, v, i.constant(0)));
  }
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
  return asksForZeros || llvm::any_of(f.lhs.mask.getConditions(), [&](Attribute condition) {
           return llvm::any_of(f.kLoops, [&](const KLoop &loop) {
             std::string dim = dimName(loop.dim);
             if (loop.dim < 0 || !Expr(cast<ExprAttr>(condition)).uses(dim))
               return false;
             Expr step = Expr(cast<ExprAttr>(condition)).coefficientOf(dim);
             bool isLong = loop.extent.asConstant().value_or(0) >= longestInside * split.height;
             return isLong || !step || !step.isConstant() || std::abs(step.getValue()) > 1;
           });
         });
}

Value ContractionEmission::addressOf(const EmissionPoint &point) {
  if (f.lhs.form == LhsForm::Redirected)
    return redirectedAddress(point);
  return e.getAddress(e.getPointer(f.lhs.load.getBuffer()), f.lhs.element, e.emitExpr(indexOf(f.lhs.load), point));
}

std::optional<int64_t> cpu::stepInPlace(const ContractionForm &f) {
  Expr stride =
      f.lhs.form == LhsForm::InPlace && f.mDims == 1 ? loop::strideOf(indexOf(f.lhs.load), f.firstM()) : Expr();
  return stride ? stride.asConstant() : std::nullopt;
}

Value ContractionEmission::fixedRowStride() {
  Value bytes = i.constant(f.lhs.elementBytes());
  if (f.lhs.form == LhsForm::PackedRows)
    return i.mul(value(f.scratch.lhsPitch), bytes);
  std::optional<int64_t> step = stepInPlace(f);
  return step ? i.mul(i.constant(*step), bytes) : Value();
}

std::function<SmallVector<Value>(ValueRange)> ContractionEmission::rowAddresses(const ContractionTask &task,
                                                                                const RowClass &rows, Value row) {
  Value local = i.sub(row, task.firstRow);
  auto spaced = [=, this, count = rows.height](Value base, Value stride) {
    SmallVector<Value> addresses;
    for (int64_t r = 0; r < count; ++r)
      addresses.push_back(e.getAddress(base, f.lhs.element, i.mul(i.constant(r), stride)));
    return addresses;
  };
  auto moved = [=, this](Value base, ValueRange outer) { // to where the outer loops of k stand
    Value offset = i.constant(0);
    for (auto [at, loop] : llvm::zip(outer, f.kLoops))
      offset = i.add(offset, i.mul(at, value(loop.aStride)));
    return e.getAddress(base, f.lhs.element, offset);
  };
  switch (f.lhs.form) {
  case LhsForm::PackedRows: {
    Value pitch = value(f.scratch.lhsPitch);
    Value base = e.getAddress(lhsPack, f.lhs.element, i.mul(local, pitch));
    return [=](ValueRange outer) { return spaced(moved(base, outer), pitch); };
  }
  case LhsForm::PackedColumns: {
    Value base = e.getAddress(lhsPack, f.lhs.element, local);
    return [=, this](ValueRange) { return spaced(base, i.constant(1)); };
  }
  case LhsForm::Panels: {
    // Row r of a weight in panels: panel r / 16, lane r % 16.
    Value weights = e.getPointer(f.lhs.panels.getBuffer());
    Value panelSize = i.mul(k, i.constant(panelWidth));
    Value batchSize = i.mul(panelSize, i.floorDiv(i.add(m, i.constant(panelWidth - 1)), i.constant(panelWidth), true));
    Value base = e.getAddress(weights, f.lhs.element, i.mul(task.matrix, batchSize));
    return [=, this, count = rows.height](ValueRange outer) {
      Value inner = moved(base, outer);
      SmallVector<Value> addresses;
      for (int64_t r = 0; r < count; ++r) {
        Value at = i.add(row, i.constant(r));
        Value panel = i.floorDiv(at, i.constant(panelWidth), true), lane = i.mod(at, i.constant(panelWidth), true);
        addresses.push_back(e.getAddress(inner, f.lhs.element, i.add(i.mul(panel, panelSize), lane)));
      }
      return addresses;
    };
  }
  case LhsForm::InPlace:
  case LhsForm::Redirected:
    break;
  }
  EmissionPoint base = taskPoint(task);
  for (int64_t d = f.firstK(); d < int64_t(f.domain.size()); ++d)
    base.dims[d] = i.constant(0);
  Expr index = indexOf(f.lhs.load);
  if (std::optional<int64_t> step = stepInPlace(f)) {
    setDims(base, f.firstM(), f.mDims, i.mul(row, i.constant(outputs)));
    Value first = e.getAddress(e.getPointer(f.lhs.load.getBuffer()), f.lhs.element, e.emitExpr(index, base));
    return [=, this](ValueRange outer) { return spaced(moved(first, outer), i.constant(*step * outputs)); };
  }
  SmallVector<EmissionPoint> points = rowPoints(base, i.mul(row, i.constant(outputs)), rows.height, outputs);
  // Loop strength reduction takes addresses that are made of divisions apart, and divides in each step of k.
  bool hasDivisions = false;
  for (int64_t dim = f.firstM(); dim < f.firstN(); ++dim)
    hasDivisions |= !loop::strideOf(index, dim);
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

/// Balanced tiles are lower than half of the largest only where there is one.
bool ContractionEmission::isLoneRowTile(int64_t height) {
  if (hasFewRows)
    return true;
  std::optional<int64_t> known = i.asConstant(m);
  return known ? *known <= split.height : height < (split.height + 1) / 2;
}

/// In a block of k that is not the last, a task's first column tile comes behind its last one, with the next block.
ContractionEmission::PanelStep ContractionEmission::nextPanels(const ContractionTask &task, const ColumnClass &columns,
                                                               Value panel, Value kLower, Value kUpper) {
  if (isBackwards || !f.blocks.isSplitK())
    return {};
  Value width = i.constant(columns.panels), zero = i.constant(0);
  Value isLast = i.compare(arith::CmpIPredicate::sge, i.add(panel, width), task.endPanel);
  Value hasMore = i.compare(arith::CmpIPredicate::slt, kUpper, value(f.kLoops[0].extent));
  Value back = i.select(hasMore, i.sub(task.firstPanel, panel), width);
  Value row = i.select(isLast, i.select(hasMore, kUpper, zero), kLower);
  return {i.select(isLast, back, width), i.mul(i.sub(row, kLower), value(f.kLoops[0].bStride))};
}

/// Tile t of a task fetches from panel t mod `panels` of the next column tile: its share of each row's bytes. The
/// share's bytes follow each other, so as many are fetched in each step of k. If the first tiles fetched a line in each
/// step, they would wait for memory, which had nothing to do for the others. Of fewer tiles than panels each fetches
/// from several in every step: all that memory can give is underway then, and no tile waits for more than the others.
void ContractionEmission::fetchNextPanels(TileOperands &operands, const ContractionTask &task, Value rowTile,
                                          int64_t panels, Value lower, Value upper, const PanelStep &step) {
  int64_t elementBytes = loop::getElementBytes(operands.bElement), rowBytes = panelWidth * elementBytes;
  Value panelBytes = i.mul(operands.panelStride, i.constant(elementBytes)), width = i.constant(panels);
  Value next = i.mul(isBackwards ? i.select(isBackwards, i.constant(-panels), width) : width, panelBytes);
  if (step.panels)
    next = i.add(i.mul(step.panels, panelBytes), i.mul(step.rows, i.constant(rowBytes)));
  Value local = i.sub(rowTile, task.firstTile), row = i.constant(rowBytes);
  auto shareOf = [&](int64_t sharers) { return i.constant(llvm::divideCeil(rowBytes, sharers)); };
  std::optional<int64_t> known = i.asConstant(m), blocks = i.asConstant(mBlocks);
  // The first panel that is fetched from, how many others, how far apart; of each row `bytes`, number `share`.
  Value bytes, panel = i.mod(local, width, true), share = i.floorDiv(local, width, true), apart = panelBytes;
  int64_t fetches = 1;
  if (known && blocks) {
    int64_t all = lineParts.empty() ? llvm::divideCeil(*known, split.height)
                                    : *known / lengthOfLine() * int64_t(lineParts.size());
    int64_t tiles = std::max<int64_t>(all / *blocks, 1);
    if (tiles < panels) {
      int64_t groups = std::gcd(tiles, panels), sharers = tiles / groups;
      fetches = panels / groups;
      bytes = shareOf(sharers);
      panel = i.mod(i.mul(i.floorDiv(local, i.constant(sharers), true), i.constant(fetches)), width, true);
      share = i.mod(local, i.constant(sharers), true);
    } else {
      Value hasMore = i.compare(arith::CmpIPredicate::slt, panel, i.constant(tiles % panels));
      int64_t sharers = tiles / panels;
      bytes = tiles % panels ? i.select(hasMore, shareOf(sharers + 1), shareOf(sharers)) : shareOf(sharers);
    }
  } else {
    // What is asked for more than once is fetched once.
    Value tiles = i.max(i.sub(task.endTile, task.firstTile), i.constant(1)), zero = i.constant(0);
    Value isFew = i.compare(arith::CmpIPredicate::slt, tiles, width);
    Value sharers = i.select(isFew, tiles, i.floorDiv(tiles, width, true));
    fetches = panels;
    bytes = hide(e, i.floorDiv(i.add(row, i.sub(sharers, i.constant(1))), sharers, true));
    panel = i.select(isFew, zero, panel);
    share = i.select(isFew, local, share);
    apart = hide(e, i.select(isFew, panelBytes, zero));
  }
  // The share of rows [lower, upper), from where it would start if it were as long in the rows before.
  Value others = i.sub(row, bytes), before = i.min(i.mul(share, bytes), others);
  Value offset = i.add(i.mul(lower, others), i.mul(i.sub(upper, lower), before));
  Value distance = i.add(next, i.add(i.mul(panel, panelBytes), offset));
  // Made of divisions, as rows' addresses are (rowAddresses).
  Value first = hide(e, e.getAddress(operands.panels, e.builder.getI8Type(), distance));
  operands.fetchedBytes = bytes;
  for (int64_t number = 0; number < fetches; ++number)
    operands.fetched.push_back(e.getAddress(first, e.builder.getI8Type(), i.mul(apart, i.constant(number))));
}

/// The processor follows several streams by itself once it has met their first lines, which are fetched a tile ahead.
/// The last tile fetches what lies behind the weight, which may be the next one.
void ContractionEmission::startNextTile(const TileOperands &operands, int64_t panels) {
  Value panelBytes = i.mul(operands.panelStride, i.constant(loop::getElementBytes(operands.bElement)));
  for (int64_t panel = 0; panel < panels; ++panel)
    for (int64_t line = 0; line < startedLines; ++line) {
      Value distance = i.add(i.mul(panelBytes, i.constant(panels + panel)), i.constant(line * lineBytes));
      createPrefetch(e, e.getAddress(operands.panels, e.builder.getI8Type(), distance));
    }
}

Value ContractionEmission::panelWords() {
  Value rows = f.rhs.isPacked() ? value(f.scratch.rhsRows) : i.floorDiv(k, i.constant(f.group), true);
  return i.mul(rows, i.constant(panelWidth));
}

Value ContractionEmission::panelAddress(const ContractionTask &task, Value panel, Value kLower) {
  if (!f.rhs.isPacked()) {
    Value flat = i.add(i.mul(task.matrix, panels), panel);
    return e.getAddress(e.getPointer(f.rhs.buffer), accumulator, i.mul(flat, panelWords()));
  }
  Value address = e.getAddress(rhsPack, accumulator, i.mul(i.sub(panel, task.firstPanel), panelWords()));
  if (!f.blocks.isSplitK())
    return address; // else the copy starts at kLower
  Value start = i.mul(i.mul(kLower, value(f.kLoops[0].bStride)), i.constant(-panelWidth));
  return e.getAddress(address, accumulator, start);
}

void ContractionEmission::emitTile(const ContractionTask &task, const RowClass &rows, const ColumnClass &columns,
                                   Value rowTile, Value row, Value panel, Value kLower, Value kUpper, bool isWide) {
  SmallVector<TileVector> vectors = getTileVectors(columns.panels, columns.lastColumns, lanes);
  int64_t unroll = split.unroll;
  if (!i.asConstant(m) && i.asConstant(k).value_or(longK) >= longK) // a low tile has few accumulators
    unroll = unrollOfTile(e.level, rows.height * int64_t(vectors.size()));
  TileShape shape{rows.height, columns.panels, unroll, columns.lastColumns};
  if (outputs > 1)
    shape = {.rows = rows.height, .panels = int64_t(llvm::divideCeil(outputs * outputColumns, panelWidth))};
  if (isWide) {
    TileOperands wide = wideOperands(task, rows, row, kLower, kUpper);
    return finishTile(task, rows, columns, row, panel, [&](ValueRange init) {
      Value rowSums = e.getAddress(wideRowSums, accumulator, i.sub(row, task.firstRow));
      return emitRegisterTile(e, shape, wide, startOfSums(shape, rowSums, 1, wideColumnSums, init));
    });
  }
  Type bElement = accumulator;
  bool startsNext = false;
  TileOperands operands{.accumulator = accumulator, .aElement = f.lhs.element, .group = f.group};
  if (!f.rhs.isPacked()) {
    if (f.bits)
      bElement = e.builder.getI32Type();
    else if (f.group == 1)
      bElement = cast<loop::BufferType>(f.rhs.buffer.getType()).getElementType();
    operands.panelStride = i.mul(i.floorDiv(k, i.constant(f.group), true), i.constant(panelWidth));
    Value flat = i.add(i.mul(task.matrix, panels), panel);
    operands.panels = e.getAddress(e.getPointer(f.rhs.buffer), bElement, i.mul(flat, operands.panelStride));
    operands.bElement = bElement;
    bool isLone = isLoneRowTile(rows.height);
    bool isOnly = f.batch.isConstant(1) && i.asConstant(panels).value_or(-1) == columns.panels;
    // A weight that one row tile reads streams from memory. Of several streams of lines that are a vector each the
    // processor has enough underway by itself: to fetch them ahead as well takes 1 to 6 % longer.
    std::optional<int64_t> rowsOfB = i.asConstant(k), columnsOfB = i.asConstant(n);
    bool runsAhead = !f.bits && e.level.lanesOf(32) == panelWidth && columns.panels >= 3;
    bool fetchesNext = !isLone;
    if (isLone && !e.isStage && rowsOfB && columnsOfB) {
      int64_t columnBytes = *rowsOfB * loop::getElementBytes(bElement) / f.group;
      bool streams = *columnsOfB * columnBytes >= leastStreamed;
      // Where a few rows' multiply-adds take as long as memory, those of one line wait for the next.
      fetchesNext = streams && !f.bits && rows.height * panelWidth / lanes >= fewestFetching &&
                    columns.panels * panelWidth * columnBytes <= mostFetched;
      operands.prefetchesB = streams && !runsAhead && !fetchesNext;
      startsNext =
          streams && runsAhead && !fetchesNext && !f.blocks.isSplitK() && panelWidth * columnBytes >= leastStarted;
    }
    if (fetchesNext && !isOnly && loop::getTuned(f.op, tuned::prefetch, e.level.name).value_or(1)) {
      Value rowsOfStep = value(f.kLoops[0].bStride);
      fetchNextPanels(operands, task, rowTile, columns.panels, i.mul(kLower, rowsOfStep), i.mul(kUpper, rowsOfStep),
                      nextPanels(task, columns, panel, kLower, kUpper));
    }
    convertOperand(operands, shape, task, panel);
  } else {
    operands.panelStride = panelWords();
    operands.panels = panelAddress(task, panel, kLower);
  }
  operands.bElement = bElement;
  for (auto [index, kLoop] : llvm::enumerate(f.kLoops))
    operands.loops.push_back({.lower = index ? i.constant(0) : kLower,
                              .upper = index ? value(kLoop.extent) : kUpper,
                              .aStride = value(kLoop.aStride),
                              .bStride = i.mul(value(kLoop.bStride), i.constant(panelWidth))});
  operands.rowAddresses = rowAddresses(task, rows, row);
  if (f.lhs.form == LhsForm::Redirected && meetsZeros())
    operands.zeros = fill;

  if (!sharedPixels.empty())
    operands = sharingOperands(task, operands, row);

  auto multiply = [&](const TileOperands &own, ValueRange init) {
    return outputs > 1 ? separateOutputs(shape, multiplyOutputs(shape, own, init))
                       : emitRegisterTile(e, shape, own, init);
  };
  auto products = [&](ValueRange init) {
    if (startsNext)
      startNextTile(operands, columns.panels);
    return multiply(operands, init);
  };
  RowClass finished = rowsOfOutputs(rows);
  Value firstFinished = i.mul(row, i.constant(outputs));
  SmallVector<KLoop> insideLoops;
  bool isConverted = f.op.getRhs().front().getOperations().size() > 1 || bElement != accumulator;
  if (f.rhs.isPacked() || !isConverted) // a conversion may ask where each loop stands
    insideLoops = getInsideLoops(rows.height);
  if (insideLoops.empty())
    return finishTile(task, finished, columns, firstFinished, panel, products);
  TileOperands inside = insideOperands(task, operands, insideLoops, rows.height, row);
  Value isInside = liesInside(task, rows.height, row);
  finishTile(task, finished, columns, firstFinished, panel, [&](ValueRange init) {
    SmallVector<Type> types;
    for (int64_t r = 0; r < finished.height; ++r)
      for (const TileVector &vector : vectors)
        types.push_back(VectorType::get(vector.lanes, accumulator));
    auto choice = scf::IfOp::create(e.builder, e.loc, types, isInside, /*withElseRegion=*/true);
    for (auto [block, own] : {std::pair(choice.thenBlock(), &inside), std::pair(choice.elseBlock(), &operands)}) {
      OpBuilder::InsertionGuard guard(e.builder);
      e.builder.setInsertionPointToStart(block);
      scf::YieldOp::create(e.builder, e.loc, multiply(*own, init));
    }
    return SmallVector<Value>(choice.getResults());
  });
}

void ContractionEmission::finishTile(const ContractionTask &task, const RowClass &rows, const ColumnClass &columns,
                                     Value row, Value panel, TileProducts products) {
  if (!f.blocks.isSplitK()) {
    SmallVector<Value> accumulators = products(initialSums(task, rows, columns, panel));
    return waits(task, rows, columns) ? storeSums(rows, columns, accumulators)
                                      : emitEpilogueOnTile(task, rows, columns, row, panel, accumulators);
  }
  SmallVector<TileVector> vectors = getTileVectors(columns.panels, columns.lastColumns, lanes);
  SmallVector<Value> slots, init;
  Value local = i.sub(row, task.firstRow);
  Value column = i.mul(i.sub(panel, task.firstPanel), i.constant(panelWidth));
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

/// Tiles of so many rows that wait together: where they are turned, few, of which squares are nearly full.
int64_t ContractionEmission::tilesTogether(int64_t height) const {
  if (!f.turns)
    return tilesThatWait;
  auto isFull = [&](int64_t rows) { return 8 * rows >= 7 * int64_t(llvm::alignTo(rows, lanes)); };
  int64_t tiles = 1;
  while (!isFull(tiles * height) && (tiles + 1) * height <= rowsThatTurn)
    ++tiles;
  return tiles;
}

void ContractionEmission::emitBlock(const ContractionTask &task, Value kLower, Value kUpper) {
  if (matrixSlots)
    return emitMatrixBlock(task, kLower, kUpper);
  auto emitRows = [&](const ColumnClass &columns, Value panel, bool isWide) {
    if (isWide)
      widenColumns(task, columns, panel, kLower, kUpper);
    for (const RowClass &rows : rowClasses(task)) {
      if (isWide && !i.asConstant(m) && isLoneRowTile(rows.height))
        continue; // many rows have no such tile
      auto emitOne = [&](Value rowTile) {
        emitTile(task, rows, columns, numberOf(task, rows, rowTile), firstRowOf(rows, rowTile), panel, kLower, kUpper,
                 isWide);
      };
      RowClass finished = rowsOfOutputs(rows);
      if (f.blocks.isSplitK() || !waits(task, finished, columns)) {
        loop(rows.lower, rows.upper, 1, emitOne);
        continue;
      }
      int64_t together = rows.firsts.empty() ? tilesTogether(finished.height) : 1; // rows follow each other
      loop(rows.lower, rows.upper, together, [&](Value first) {
        Value last = i.min(i.add(first, i.constant(together)), rows.upper);
        loop(first, last, 1, [&](Value rowTile) {
          waitingRows = i.mul(i.sub(rowTile, first), i.constant(finished.height));
          emitOne(rowTile);
        });
        emitWaitingEpilogue(task, columns, i.mul(firstRowOf(rows, first), i.constant(outputs)),
                            i.mul(i.sub(last, first), i.constant(finished.height)), panel);
      });
    }
  };
  forEachColumnTile(task, [&](const ColumnClass &columns, Value panel) {
    forEachWidth(task, [&](bool isWide) { emitRows(columns, panel, isWide); });
  });
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

SmallVector<TileSplit> cpu::listTiles(const ContractionForm &form, const CpuLevel &level, const TiledExtents &extents) {
  bool splitsGroups = form.bits || (form.group > 1 && isa<FloatType>(form.accumulator) && !level.hasBf16Dot) ||
                      (form.wide.lhsAt && multipliesSums(form, level));
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
  split = outputs > 1 ? tileOfOutputs(f, e.level, extents) : listTiles(f, e.level, extents).front();
  auto height = loop::getTuned(f.op, tuned::tileRows, e.level.name);
  auto width = loop::getTuned(f.op, tuned::tilePanels, e.level.name);
  if (outputs == 1 && height && width) {
    TileSplit asked{.height = *height, .width = *width};
    TileSplit wanted = limitTile(e.level, accumulator, extents, asked);
    if (f.behind.panelUnit == 1 || f.behind.panelUnit % wanted.width == 0)
      split = wanted;
  } else {
    findSharedPixels();
    cutLines();
  }
  auto at = [&](Expr offset) { return offset ? scratchAt(offset) : Value(); };
  lhsPack = at(f.scratch.lhsAt);
  rhsPack = at(f.scratch.rhsAt);
  line = at(f.scratch.lineAt);
  sums = at(f.scratch.sumsAt);
  fill = at(f.scratch.fillAt);
  wideLhs = at(f.wide.lhsAt);
  wideRhs = at(f.wide.rhsAt);
  wideRowSums = at(f.wide.rowSumsAt);
  wideColumnSums = at(f.wide.columnSumsAt);
  quadPixels = at(f.quads.pixelsAt);
  quadWeights = at(f.quads.weightsAt);
  quadProducts = at(f.quads.productsAt);
  quadRowSums = at(f.quads.rowSumsAt);
  quadColumnSums = at(f.quads.columnSumsAt);
  cutForCopies();
  widening = chooseWidening();
  sumsPitch = value(f.scratch.sumsPitch);
  if (e.isStage && !f.rhs.isPacked() && extents.panels * panelWidth * extents.k >= leastTurned)
    isBackwards = i.compare(arith::CmpIPredicate::eq,
                            i.mod(e.symbolValue(loop::RecurrenceOp::stepSymbol), i.constant(2), true), i.constant(1));
  auto isFlat = [&](int64_t first, int64_t count) {
    for (int64_t d = first; d + 1 < first + count; ++d)
      if (!loop::mergesIn(f.op.getEpilogue(), d, f.domain[d + 1]))
        return false;
    return true;
  };
  isFlatM = isFlat(f.firstM(), f.mDims);
  isFlatN = isFlat(f.firstN(), f.nDims);
}

/// Where groups of channels are read in place a thread has all of some rows, as whoever wrote them: of other groups it
/// would fetch what lies in the other threads' caches. The weight of all groups waits in the second-level cache.
static bool hasRowsOutsideGroups(const ContractionForm &f) {
  auto groups = f.batch.asConstant(), columns = f.n.asConstant(), terms = f.k.asConstant();
  return !f.rhs.isPacked() && f.lhs.form == LhsForm::Redirected && f.rhs.matrices == 0 && groups && *groups > 1 &&
         columns && terms && *groups * *columns * *terms * f.accumulatorBytes() < leastStreamed && ownsTasks(f);
}

ContractionTask ContractionEmission::decodeTask(Value index) {
  ContractionTask task;
  bool hasRowsOutside = hasRowsOutsideGroups(f);
  Value tasksOfBatch = i.mul(mBlocks, nBlocks), tasksOfRows = i.mul(value(f.batch), nBlocks);
  if (hasRowsOutside) {
    Value rest = i.mod(index, tasksOfRows, true);
    task.mBlock = i.floorDiv(index, tasksOfRows, true);
    task.batch = i.floorDiv(rest, nBlocks, true);
    task.nBlock = i.mod(rest, nBlocks, true);
  } else {
    // Columns are taken apart by each task, rows once for tasks that share them.
    bool mFastest = f.blocks.mFastest && !widensTasks() && !takesQuads() && !copied;
    Value rest = i.mod(index, tasksOfBatch, true), fastest = mFastest ? mBlocks : nBlocks;
    Value slow = i.floorDiv(rest, fastest, true), fast = i.mod(rest, fastest, true);
    task.batch = i.floorDiv(index, tasksOfBatch, true);
    task.mBlock = mFastest ? fast : slow;
    task.nBlock = mFastest ? slow : fast;
  }
  task.matrix = f.rhs.matrices ? i.mod(task.batch, i.constant(f.rhs.matrices), true) : task.batch;
  EmissionPoint point;
  point.dims.assign(f.batchDims, Value());
  setDims(point, 0, f.batchDims, task.batch);
  task.batchDims = point.dims;

  // Piece p of c pieces of x: [x*p/c, x*(p+1)/c).
  auto piece = [&](Value whole, Value pieces, Value at) { return i.floorDiv(i.mul(whole, at), pieces, true); };
  Value one = i.constant(1);
  if (matrixSlots) {
    auto cut = [&](Value whole, int64_t unit, Value pieces, Value number) { // [begin, end) of a piece in whole units
      Value units = i.floorDiv(i.add(whole, i.constant(unit - 1)), i.constant(unit), true);
      Value begin = i.mul(piece(units, pieces, number), i.constant(unit));
      Value end = i.mul(piece(units, pieces, i.add(number, one)), i.constant(unit));
      return std::pair(i.min(begin, whole), i.min(end, whole));
    };
    auto [firstRow, endRow] = cut(m, matrixUnitRows, mBlocks, task.mBlock);
    task.firstRow = firstRow;
    task.rows = i.sub(endRow, firstRow);
    std::tie(task.firstPanel, task.endPanel) =
        cut(panels, std::lcm(matrixUnitPanels, f.behind.panelUnit), nBlocks, task.nBlock);
    return task;
  }
  if (takesQuads()) {
    task.firstRow = piece(value(f.quads.count), mBlocks, task.mBlock);
    task.rows = i.sub(piece(value(f.quads.count), mBlocks, i.add(task.mBlock, one)), task.firstRow);
    task.firstPanel = piece(panels, nBlocks, task.nBlock);
    task.endPanel = piece(panels, nBlocks, i.add(task.nBlock, one));
    return task;
  }
  Parts rows = splitRows();
  task.firstTile = piece(rows.tiles, mBlocks, task.mBlock);
  task.endTile = piece(rows.tiles, mBlocks, i.add(task.mBlock, one));
  if (!i.asConstant(mBlocks)) { // made of divisions, as rows' addresses are (rowAddresses)
    task.firstTile = hide(e, task.firstTile);
    task.endTile = hide(e, task.endTile);
  }
  auto startOf = [&](Value tile, Value part, Value larger) { return i.add(i.mul(tile, part), i.min(tile, larger)); };
  task.firstRow = startOf(task.firstTile, rows.part, rows.larger);
  task.rows = i.sub(startOf(task.endTile, rows.part, rows.larger), task.firstRow);
  if (auto known = i.asConstant(panels)) {
    int64_t count = llvm::divideCeil(*known, split.width);
    // Whole units, of which each is as many tiles.
    int64_t tilesOfUnit = std::max<int64_t>(f.behind.panelUnit / split.width, 1);
    Value units = i.constant(count / tilesOfUnit);
    task.firstColumnTile = i.mul(piece(units, nBlocks, task.nBlock), i.constant(tilesOfUnit));
    task.endColumnTile = i.mul(piece(units, nBlocks, i.add(task.nBlock, one)), i.constant(tilesOfUnit));
    Value part = i.constant(*known / count), larger = i.constant(*known % count);
    task.firstPanel = startOf(task.firstColumnTile, part, larger);
    task.endPanel = startOf(task.endColumnTile, part, larger);
  } else {
    task.firstPanel = piece(panels, nBlocks, task.nBlock);
    task.endPanel = piece(panels, nBlocks, i.add(task.nBlock, one));
  }
  return task;
}

void ContractionEmission::emitTask(const ContractionTask &task) {
  if (takesQuads())
    return emitQuads(task);
  if (!f.blocks.isSplitK()) {
    emitBlock(task, i.constant(0), value(f.kLoops[0].extent));
    return;
  }
  zeroSums(task);
  Value size = value(f.blocks.kSize), extent = value(f.kLoops[0].extent);
  loop(i.constant(0), value(f.blocks.k), 1, [&](Value block) {
    Value lower = i.mul(block, size), upper = i.min(i.add(lower, size), extent);
    if (f.rhs.isPacked())
      packRhs(task, lower, upper);
    if (widening != Widening::None)
      widenRows(task, lower, upper);
    emitBlock(task, lower, upper);
  });
  Value columnEnd = i.min(i.mul(task.endPanel, i.constant(panelWidth)), n);
  emitEpilogueOnSums(task, sums, task.firstRow, task.rows, i.mul(task.firstPanel, i.constant(panelWidth)), columnEnd);
}

void ContractionEmission::emit(Value begin, Value end) {
  if (f.lhs.form == LhsForm::Redirected)
    fillRedirected();
  auto emitInVectors = [&] {
    takeBias();
    emitTasks(begin, end);
  };
  if (!sumsInMatrix())
    return emitInVectors();
  auto emitInMatrix = [&] {
    prepareMatrix();
    emitTasks(begin, end);
    releaseMatrix();
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

void ContractionEmission::emitTasks(Value begin, Value end) {
  bool packsA = f.lhs.isPacked();
  bool packsB = f.rhs.isPacked() && !f.blocks.isSplitK();
  bool widensA = widensTasks();
  // What the copies in scratch hold, as a number of (batch, block).
  SmallVector<Value> held(2, i.constant(-1));
  e.createLoop(begin, end, 1, held, [&](Value at, ValueRange carried) -> SmallVector<Value> {
    ContractionTask task = decodeTask(inTurn(begin, end, at));
    Value lhsKey = i.add(i.mul(task.batch, mBlocks), task.mBlock);
    Value rhsKey = i.add(i.mul(task.batch, nBlocks), task.nBlock);
    if (packsA || widensA || takesQuads() || copied)
      emitIf(i.compare(arith::CmpIPredicate::ne, lhsKey, carried[0]), [&] {
        if (packsA)
          packLhs(task);
        if (takesQuads())
          transformPixels(task);
        if (widensA)
          widenRows(task, i.constant(0), value(f.kLoops[0].extent));
        if (copied)
          copyForMatrix(task);
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
