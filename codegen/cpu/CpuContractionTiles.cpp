//===- CpuContractionTiles.cpp - which tiles a contraction's task has -----===//
//
// A task is a block of rows and of columns, cut between tiles: of B pieces of T tiles number p is [T*p/B, T*(p+1)/B).
//
// Heights are balanced over the whole of m: the first tiles are one row higher than the others, so a static m
// needs at most two heights; likewise widths. Which two a symbolic m needs is known when it runs: there is code for
// every height, and all but two of their loops are empty. Where the pixels of an image divide it, whatever the batch,
// tiles of one height may. No tile computes rows that there are not. Where lines are cut (CpuContractionLines.cpp)
// tiles of one height are a loop over the lines' parts that have it.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionEmission.h"
#include "codegen/cpu/CpuContractionMatrix.h"
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

/// Where groups of channels are read in place a thread has all of some rows, as whoever wrote them: of other groups it
/// would fetch what lies in the other threads' caches. The weight of all groups waits in the second-level cache.
static bool hasRowsOutsideGroups(const ContractionForm &f) {
  auto groups = f.batch.asConstant(), columns = f.n.asConstant(), terms = f.k.asConstant();
  return !f.rhs.isPacked() && f.lhs.form == LhsForm::Redirected && f.rhs.matrices == 0 && groups && *groups > 1 &&
         columns && terms && *groups * *columns * *terms * f.accumulatorBytes() < leastStreamed && ownsTasks(f);
}

/// Of all tiles of c.m, the first `larger` have one row more than `part`.
static ContractionEmission::Parts splitRows(ContractionEmission &c) {
  InvariantBuilder &i = c.i;
  if (c.takesStrassen())
    return c.splitPairs();
  if (!c.lineParts.empty()) // a task has whole lines
    return {i.floorDiv(c.m, i.constant(c.lengthOfLine()), true), i.constant(c.lengthOfLine()), i.constant(0)};
  if (!i.asConstant(c.m) && c.rowUnit % c.split.height == 0)
    return {i.floorDiv(c.m, i.constant(c.split.height), true), i.constant(c.split.height), i.constant(0)};
  Value tiles = i.floorDiv(i.add(c.m, i.constant(c.split.height - 1)), i.constant(c.split.height), true);
  Value part = i.floorDiv(c.m, i.max(tiles, i.constant(1)), true);
  return {tiles, part, i.sub(c.m, i.mul(tiles, part))};
}

namespace {

/// Finds the rows and columns of a task.
class TaskCutter : ContractionTechnique {
public:
  using ContractionTechnique::ContractionTechnique;
  /// The task's blocks; its rows and columns are not set.
  ContractionTask findBlocks(Value index);
  /// What follows from its batch, and from its tiles.
  void setMatrix(ContractionTask &task);
  void setRows(ContractionTask &task);
  void setPanels(ContractionTask &task);
  void cutInMatrixUnits(ContractionTask &task);
  void cutInPatches(ContractionTask &task);
  void cutInTiles(ContractionTask &task);

private:
  /// Begin and end of one of so many pieces of [0, whole), times `unit`.
  std::pair<Value, Value> pieceOf(Value whole, Value pieces, Value number, int64_t unit = 1);
};

} // namespace

ContractionTask TaskCutter::findBlocks(Value index) {
  ContractionTask task;
  if (hasRowsOutsideGroups(f)) {
    Value tasksOfRows = i.mul(value(f.batch), c.nBlocks), rest = i.mod(index, tasksOfRows, true);
    task.mBlock = i.floorDiv(index, tasksOfRows, true);
    task.batch = i.floorDiv(rest, c.nBlocks, true);
    task.nBlock = i.mod(rest, c.nBlocks, true);
  } else {
    // Columns are copied by each task, rows once for tasks that share them.
    bool fixesRows = c.fixedPoint != FixedPoint::None && f.permitsByteRows();
    bool copiesInMatrix = c.matrix && c.matrix->copiesRows();
    bool mFastest = f.blocks.mFastest && !c.copiesRowsOfTasks() && !c.takesPatches() && !copiesInMatrix && !fixesRows;
    Value tasksOfBatch = i.mul(c.mBlocks, c.nBlocks), rest = i.mod(index, tasksOfBatch, true);
    Value fastest = mFastest ? c.mBlocks : c.nBlocks;
    Value slow = i.floorDiv(rest, fastest, true), fast = i.mod(rest, fastest, true);
    task.batch = i.floorDiv(index, tasksOfBatch, true);
    task.mBlock = mFastest ? fast : slow;
    task.nBlock = mFastest ? slow : fast;
  }
  setMatrix(task);
  return task;
}

void TaskCutter::setMatrix(ContractionTask &task) {
  task.matrix = f.rhs.matrices ? i.mod(task.batch, i.constant(f.rhs.matrices), true) : task.batch;
  EmissionPoint point;
  point.dims.assign(f.batchDims, Value());
  c.setDims(point, 0, f.batchDims, task.batch);
  task.batchDims = point.dims;
}

std::pair<Value, Value> TaskCutter::pieceOf(Value whole, Value pieces, Value number, int64_t unit) {
  auto startOf = [&](Value at) { return i.mul(i.floorDiv(i.mul(whole, at), pieces, true), i.constant(unit)); };
  Value begin = startOf(number);
  return {begin, startOf(i.add(number, i.constant(1)))};
}

void TaskCutter::cutInMatrixUnits(ContractionTask &task) {
  auto cut = [&](Value whole, int64_t unit, Value pieces, Value number) {
    Value units = i.floorDiv(i.add(whole, i.constant(unit - 1)), i.constant(unit), true);
    auto [begin, end] = pieceOf(units, pieces, number, unit);
    return std::pair(i.min(begin, whole), i.min(end, whole));
  };
  auto [firstRow, endRow] = cut(c.m, matrixUnitRows, c.mBlocks, task.mBlock);
  task.firstRow = firstRow;
  task.rows = i.sub(endRow, firstRow);
  std::tie(task.firstPanel, task.endPanel) =
      cut(c.panels, std::lcm(matrixUnitPanels, f.behind.panelUnit), c.nBlocks, task.nBlock);
}

void TaskCutter::cutInPatches(ContractionTask &task) {
  auto [firstPatch, endPatch] = pieceOf(value(f.patches.count), c.mBlocks, task.mBlock);
  task.firstRow = firstPatch;
  task.rows = i.sub(endPatch, firstPatch);
  std::tie(task.firstPanel, task.endPanel) = pieceOf(c.panels, c.nBlocks, task.nBlock);
}

/// Where a part begins of which the first `larger` are `more` larger than `part`.
static Value startOf(InvariantBuilder &i, Value number, Value part, Value larger, int64_t more = 1) {
  return i.add(i.mul(number, part), i.mul(i.min(number, larger), i.constant(more)));
}

Value ContractionEmission::startOfTile(Value rowTile) {
  Parts rows = splitRows(*this);
  if (!takesStrassen())
    return startOf(i, rowTile, rows.part, rows.larger);
  return i.min(startOf(i, rowTile, rows.part, rows.larger, /*more=*/2), m); // a last tile has other rows
}

void TaskCutter::setRows(ContractionTask &task) {
  task.firstRow = c.startOfTile(task.firstTile);
  task.rows = i.sub(c.startOfTile(task.endTile), task.firstRow);
}

void TaskCutter::setPanels(ContractionTask &task) {
  int64_t known = *i.asConstant(c.panels), count = c.columnTiles();
  Value part = i.constant(known / count), larger = i.constant(known % count);
  task.firstPanel = startOf(i, task.firstColumnTile, part, larger);
  task.endPanel = startOf(i, task.endColumnTile, part, larger);
}

int64_t ContractionEmission::columnTiles() const { return llvm::divideCeil(*i.asConstant(panels), split.width); }

int64_t ContractionEmission::columnTilesOfUnit() const {
  if (f.behind.hasAllColumns)
    return columnTiles();
  return std::max<int64_t>(f.behind.panelUnit / split.width, 1);
}

void TaskCutter::cutInTiles(ContractionTask &task) {
  std::tie(task.firstTile, task.endTile) = pieceOf(splitRows(c).tiles, c.mBlocks, task.mBlock);
  if (!i.asConstant(c.mBlocks)) { // made of divisions, as rows' addresses are (rowAddresses)
    task.firstTile = hide(e, task.firstTile);
    task.endTile = hide(e, task.endTile);
  }
  setRows(task);
  if (!i.asConstant(c.panels)) {
    std::tie(task.firstPanel, task.endPanel) = pieceOf(c.panels, c.nBlocks, task.nBlock);
    return;
  }
  int64_t tiles = c.columnTilesOfUnit();
  std::tie(task.firstColumnTile, task.endColumnTile) =
      pieceOf(i.constant(c.columnTiles() / tiles), c.nBlocks, task.nBlock, tiles);
  setPanels(task);
}

ContractionTask ContractionEmission::decodeTask(Value index) {
  TaskCutter cutter(*this);
  ContractionTask task = cutter.findBlocks(index);
  if (matrix)
    cutter.cutInMatrixUnits(task);
  else if (takesPatches())
    cutter.cutInPatches(task);
  else
    cutter.cutInTiles(task);
  task.firstHeld = task.firstRow;
  task.firstHeldTile = task.firstTile;
  return task;
}

void ContractionEmission::setExtents(ContractionTask &task) {
  TaskCutter cutter(*this);
  cutter.setMatrix(task);
  cutter.setRows(task);
  cutter.setPanels(task);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

SmallVector<RowClass> ContractionEmission::rowClasses(const ContractionTask &task) {
  Parts rows = splitRows(*this);
  if (takesStrassen())
    return classesOfPairs(task);
  SmallVector<RowClass> classes;
  int64_t before = 0;
  for (const LinePart &part : lineParts) {
    if (llvm::any_of(classes, [&](const RowClass &rows) { return rows.height == part.height; }))
      continue;
    RowClass rows{.height = part.height, .before = before};
    for (const LinePart &each : lineParts)
      if (each.height == part.height)
        rows.firsts.push_back(each.first);
    Value count = i.constant(int64_t(rows.firsts.size()));
    rows.lower = i.mul(task.firstTile, count);
    rows.upper = i.mul(task.endTile, count);
    before += int64_t(rows.firsts.size());
    classes.push_back(rows);
  }
  if (!classes.empty())
    return classes;
  if (auto part = i.asConstant(rows.part)) {
    if (i.asConstant(rows.larger) != 0)
      classes.push_back({*part + 1, i.constant(0), task.firstTile, i.min(task.endTile, rows.larger)});
    classes.push_back({*part, rows.larger, i.max(task.firstTile, rows.larger), task.endTile});
    return classes;
  }
  // Tiles of one height lie together: [0, larger) or [larger, tiles), or there are none.
  for (int64_t height = split.height; height >= 1; --height) {
    Value isPart = i.compare(arith::CmpIPredicate::eq, rows.part, i.constant(height));
    Value isLarger = i.compare(arith::CmpIPredicate::eq, rows.part, i.constant(height - 1));
    Value lower = i.select(isPart, rows.larger, i.constant(0));
    Value upper = i.select(isPart, rows.tiles, i.select(isLarger, rows.larger, i.constant(0)));
    classes.push_back({height, lower, i.max(task.firstTile, lower), i.min(task.endTile, upper)});
  }
  return classes;
}

/// Tiles whose panels lie apart, then single panels.
static SmallVector<ColumnClass> classesApart(ContractionEmission &c, const ContractionTask &task) {
  InvariantBuilder &i = c.i;
  Value zero = i.constant(0), width = i.constant(c.split.width), count = i.sub(task.endPanel, task.firstPanel);
  int64_t lastColumns = *i.asConstant(c.n) % panelWidth;
  Value whole = count;
  if (lastColumns)
    whole = i.sub(i.min(task.endPanel, i.floorDiv(c.n, i.constant(panelWidth), true)), task.firstPanel);
  Value tiles = i.floorDiv(whole, width, true);
  SmallVector<ColumnClass> classes{
      {.panels = c.split.width, .offset = 0, .lower = zero, .upper = tiles, .apart = tiles},
      {.panels = 1, .offset = 0, .lower = i.mul(tiles, width), .upper = whole}};
  if (lastColumns)
    classes.push_back({1, 0, whole, count, /*isMasked=*/true, lastColumns});
  return classes;
}

Value ContractionEmission::columnOf(const ColumnClass &columns, Value panel, int64_t column) {
  Value width = i.constant(panelWidth);
  if (!columns.apart)
    return i.add(i.mul(panel, width), i.constant(column));
  Value own = i.add(panel, i.mul(columns.apart, i.constant(column / panelWidth)));
  return i.add(i.mul(own, width), i.constant(column % panelWidth));
}

static SmallVector<ColumnClass> columnClasses(ContractionEmission &c, const ContractionTask &task) {
  InvariantBuilder &i = c.i;
  if (c.hasLongStreams)
    return classesApart(c, task);
  auto known = i.asConstant(c.n);
  int64_t width = c.split.width;
  if (!known) {
    // Whole tiles of whole panels, then single panels, of which the last may end before n does.
    Value whole = i.sub(i.min(task.endPanel, i.floorDiv(c.n, i.constant(panelWidth), true)), task.firstPanel);
    Value full = i.floorDiv(i.max(whole, i.constant(0)), i.constant(width), true);
    Value count = i.sub(task.endPanel, task.firstPanel);
    return {{width, 0, i.constant(0), full}, {1, 0, i.mul(full, i.constant(width)), count, true}};
  }
  int64_t all = llvm::divideCeil(*known, panelWidth);
  int64_t count = llvm::divideCeil(all, width), part = all / count, larger = all % count;
  SmallVector<ColumnClass> classes;
  if (larger)
    classes.push_back({part + 1, 0, task.firstColumnTile, i.min(task.endColumnTile, i.constant(larger))});
  Value firstPart = i.max(task.firstColumnTile, i.constant(larger));
  int64_t lastColumns = *known % panelWidth;
  if (!lastColumns) {
    classes.push_back({part, larger, firstPart, task.endColumnTile});
    return classes;
  }
  // The last tile is a class of its own: it alone has masks, and leaves out the vectors that are all outside.
  Value last = i.constant(count - 1);
  if (count - larger > 1)
    classes.push_back({part, larger, firstPart, i.min(task.endColumnTile, last)});
  classes.push_back({part, larger, i.max(firstPart, last), task.endColumnTile, true, lastColumns});
  return classes;
}

void ContractionEmission::forEachColumnTile(const ContractionTask &task, ColumnBody body) {
  for (const ColumnClass &columns : columnClasses(*this, task))
    loop(columns.lower, columns.upper, 1, [&](Value at) {
      Value tile = inTurn(columns.lower, columns.upper, at);
      Value panel = columns.apart ? tile : i.mul(tile, i.constant(columns.panels));
      panel = i.add(panel, i.constant(columns.offset));
      if (!i.asConstant(n) || hasLongStreams)
        panel = i.add(panel, task.firstPanel);
      body(columns, panel);
    });
}

Value ContractionEmission::firstRowOf(const RowClass &rows, Value rowTile) {
  if (rows.firsts.empty())
    return i.add(i.mul(rowTile, i.constant(rows.height)), rows.offset);
  Value count = i.constant(int64_t(rows.firsts.size())), part = i.mod(rowTile, count, true);
  Value first = i.constant(rows.firsts[0]);
  for (auto [number, each] : llvm::enumerate(rows.firsts))
    if (number)
      first = i.select(i.compare(arith::CmpIPredicate::eq, part, i.constant(int64_t(number))), i.constant(each), first);
  return i.add(i.mul(i.floorDiv(rowTile, count, true), i.constant(lengthOfLine())), first);
}

Value ContractionEmission::numberOf(const ContractionTask &task, const RowClass &rows, Value rowTile) {
  if (rows.firsts.empty())
    return rowTile;
  Value count = i.constant(int64_t(rows.firsts.size())), all = i.constant(int64_t(lineParts.size()));
  Value lines = i.sub(i.floorDiv(rowTile, count, true), task.firstTile);
  Value within = i.add(i.mod(rowTile, count, true), i.constant(rows.before));
  return i.add(task.firstTile, i.add(i.mul(lines, all), within));
}

void ContractionEmission::forEachTile(const ContractionTask &task, TileBody body) {
  forEachColumnTile(task, [&](const ColumnClass &columns, Value panel) {
    for (const RowClass &rows : rowClasses(task))
      loop(rows.lower, rows.upper, 1,
           [&](Value rowTile) { body(rows, columns, rowTile, firstRowOf(rows, rowTile), panel); });
  });
}
