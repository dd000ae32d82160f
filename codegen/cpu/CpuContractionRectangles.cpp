//===- CpuContractionRectangles.cpp - the tiles of a call, by rectangles --===//
//
// Problem. Where tiles need copies of their rows of A, or sums of their columns, a thread should have few rows and few
// columns, and threads as many tiles each. Tasks of all rows copy all of them, and 12 column tiles are no even share
// for 8 or 16 threads.
//
// Idea. A call's tasks of the plan are taken as a share of all tiles, numbered so that any share is a few rectangles:
// in a block of rows, groups of neighbouring column tiles follow each other, of each its strips, which are row tiles.
// A rectangle is computed column by column. A whole block is one: the order of a single thread.
//
//   column tiles   0 1 2 3   4 5 6 7   8 9 10 11      Of 8 threads the first one has strip 0, the next ones 1 and 2,
//   strips         0         5         10             3 and 4; one has 9 and 10, which are in two groups. Of two
//                  1         6         11             threads the first one has 0 to 6: a whole group and two strips
//                  2         7         12             of the next.
//                  3         8         13
//                  4         9         14
//
// Rows are copied when the first rectangle needs them, and serve those that follow in the same block.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionEmission.h"
#include "ir/expr/DimName.h"

#include <limits>

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t manyThreads = 16; // with which, and with half as many, the widths of groups are chosen

namespace {

/// Tiles in the same rows and columns, as a task: of how many strips; the number of the block of rows whose copies
/// scratch has, and how many row tiles these are.
struct Rectangle {
  ContractionTask task;
  Value strips, held, tilesHeld;
};

/// A row of the plan's is a row tile, or all of a block where rows are not cut; a column is as many column tiles as no
/// task cuts.
class RectangleCutter : ContractionTechnique {
public:
  explicit RectangleCutter(ContractionEmission &contraction);
  /// The first strip of a task of the plan; of the number of tasks, that of strips.
  Value stripOf(Value task) {
    return i.floorDiv(i.mul(task, i.constant(rows * groups)), i.constant(blocks * blocksOfColumns), true);
  }
  /// Of a call, at most: each block of rows but the first and the last is one.
  Value mostRectangles() { return i.add(i.mul(value(f.batch), i.constant(blocks)), i.constant(2)); }
  /// The largest that begins with the strip and ends before `end`. One strip at least, also behind the end: what is
  /// divided by its extents may be computed whether the rectangle is emitted or not.
  Rectangle cut(Value strip, Value end);

private:
  double workOf(int64_t threads, int64_t count) const;
  int64_t chooseGroups();
  /// Sets the matrix, and the block of rows; returns the strip's number in the part of the block that the matrix has.
  Value findBlock(Rectangle &rectangle, Value strip);
  Value startOfBlock(Value block) { return i.floorDiv(i.mul(block, i.constant(rows)), i.constant(blocks), true); }

  int64_t rows, columns, blocks, blocksOfColumns, tilesOfRow, groups;
  bool sharesRows;     // hasSameRows
  Value matricesOfRow; // of the batch, that are multiplied with the same rows
};

} // namespace

/// Whether all matrices of the batch are multiplied with the same rows of A, one behind the other: nodes of the same
/// kernel ask for the tasks of one matrix (an attention, those of its head).
static bool hasSameRows(const ContractionForm &f) {
  if (f.lhs.form != LhsForm::InPlace || !ownsTasks(f))
    return false;
  for (int64_t dim = 0; dim < f.batchDims; ++dim)
    if (f.lhs.index().uses(dimName(dim)))
      return false;
  return true;
}

RectangleCutter::RectangleCutter(ContractionEmission &contraction) : ContractionTechnique(contraction) {
  int64_t tiles = *i.asConstant(c.splitPairs().tiles);
  blocks = *i.asConstant(c.mBlocks);
  blocksOfColumns = *i.asConstant(c.nBlocks);
  tilesOfRow = f.behind.hasAllRows ? tiles : 1;
  rows = tiles / tilesOfRow;
  columns = c.columnTiles() / c.columnTilesOfUnit();
  sharesRows = hasSameRows(f);
  groups = chooseGroups();
  matricesOfRow = sharesRows ? value(f.batch) : i.constant(1);
}

/// What the thread that has the most does, in products of a tile, times the threads: what their time is worth. Blocks
/// are taken for as high as each other.
double RectangleCutter::workOf(int64_t threads, int64_t count) const {
  SidesOfTile sides = sidesOfStrassen(e.level);
  int64_t matrices = f.batch.asConstant().value_or(1), height = std::max<int64_t>(rows / blocks, 1);
  int64_t strips = matrices * rows * count, stripsOfBlock = height * count * (sharesRows ? matrices : 1);
  int64_t across = columns / count * c.columnTilesOfUnit();
  double most = 0;
  for (int64_t thread = 0; thread < threads; ++thread) {
    int64_t first = strips * thread / threads, end = strips * (thread + 1) / threads, rowTiles = 0, columnTiles = 0;
    for (int64_t at = first, endOfBlock; at < end; at = endOfBlock) {
      endOfBlock = std::min(end, (at / stripsOfBlock + 1) * stripsOfBlock);
      rowTiles += std::min(endOfBlock - at, height) * tilesOfRow;
      columnTiles += ((endOfBlock - 1) / height - at / height + 1) * across;
    }
    most = std::max(most, double((end - first) * tilesOfRow * across) + sides.rows * double(rowTiles) +
                              sides.columns * double(columnTiles));
  }
  return most * double(threads);
}

/// Those with which many threads have the least work; results are the same with any.
int64_t RectangleCutter::chooseGroups() {
  int64_t best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t count = 1; count <= columns; ++count) {
    if (columns % count)
      continue;
    double work = workOf(manyThreads / 2, count) + workOf(manyThreads, count);
    if (work < least) {
      least = work;
      best = count;
    }
  }
  return best;
}

Value RectangleCutter::findBlock(Rectangle &rectangle, Value strip) {
  Value ofRow = i.mul(i.constant(groups), matricesOfRow), ofAllRows = i.mul(i.constant(rows), ofRow);
  Value matrix = i.floorDiv(strip, ofAllRows, true), within = i.mod(strip, ofAllRows, true), block = i.constant(0);
  if (blocks > 1) { // the last one that begins in this row or before
    Value nextRow = i.add(i.floorDiv(within, ofRow, true), i.constant(1));
    block = i.floorDiv(i.sub(i.mul(nextRow, i.constant(blocks)), i.constant(1)), i.constant(rows), true);
  }
  Value first = startOfBlock(block), end = startOfBlock(i.add(block, i.constant(1)));
  rectangle.held = i.add(i.mul(matrix, i.constant(blocks)), block);
  rectangle.tilesHeld = i.mul(i.sub(end, first), i.constant(tilesOfRow));
  rectangle.task.firstHeldTile = i.mul(first, i.constant(tilesOfRow));
  rectangle.task.firstHeld = c.startOfTile(rectangle.task.firstHeldTile);
  within = i.sub(within, i.mul(first, ofRow));
  if (i.asConstant(matricesOfRow) == 1) {
    rectangle.task.batch = matrix;
    return within;
  }
  Value ofMatrix = i.mul(i.sub(end, first), i.constant(groups));
  rectangle.task.batch = i.floorDiv(within, ofMatrix, true);
  return i.mod(within, ofMatrix, true);
}

Rectangle RectangleCutter::cut(Value strip, Value end) {
  Rectangle result;
  Value within = findBlock(result, strip), left = i.max(i.sub(end, strip), i.constant(1));
  Value height = i.floorDiv(result.tilesHeld, i.constant(tilesOfRow), true);
  Value group = i.floorDiv(within, height, true), row = i.mod(within, height, true);
  // Whole groups, or rows of one.
  Value whole = i.min(i.floorDiv(left, height, true), i.sub(i.constant(groups), group));
  Value isFirstRow = i.compare(arith::CmpIPredicate::eq, row, i.constant(0));
  Value takesWhole = i.logicalAnd(isFirstRow, i.compare(arith::CmpIPredicate::sge, whole, i.constant(1)));
  Value count = i.select(takesWhole, height, i.min(left, i.sub(height, row)));
  Value across = i.select(takesWhole, whole, i.constant(1));
  result.strips = i.mul(count, across);
  // Made of divisions, as rows' addresses are (rowAddresses).
  ContractionTask &task = result.task;
  task.firstTile = hide(e, i.add(task.firstHeldTile, i.mul(row, i.constant(tilesOfRow))));
  task.endTile = hide(e, i.add(task.firstTile, i.mul(count, i.constant(tilesOfRow))));
  Value columnTiles = i.constant(columns / groups * c.columnTilesOfUnit());
  task.firstColumnTile = hide(e, i.mul(group, columnTiles));
  task.endColumnTile = hide(e, i.add(task.firstColumnTile, i.mul(across, columnTiles)));
  c.setExtents(task);
  return result;
}

void ContractionEmission::emitRectangles(Value begin, Value end) {
  RectangleCutter cutter(*this);
  Value endStrip = cutter.stripOf(end);
  SmallVector<Value> firstAndHeld{cutter.stripOf(begin), i.constant(-1)};
  auto emitNext = [&](Value, ValueRange carried) -> SmallVector<Value> {
    Value strip = carried[0];
    Rectangle next = cutter.cut(strip, endStrip);
    emitIf(i.compare(arith::CmpIPredicate::slt, strip, endStrip), [&] {
      emitIf(i.compare(arith::CmpIPredicate::ne, next.held, carried[1]), [&] { forgetCopies(next.tilesHeld); });
      copyForStrassen(next.task);
      loop(next.task.firstColumnTile, next.task.endColumnTile, columnTilesOfUnit(), [&](Value columnTile) {
        ContractionTask task = next.task;
        task.firstColumnTile = columnTile;
        task.endColumnTile = i.add(columnTile, i.constant(columnTilesOfUnit()));
        setExtents(task);
        emitTask(task);
        if (afterTask)
          afterTask(task);
      });
    });
    return {i.add(strip, next.strips), next.held};
  };
  e.createLoop(i.constant(0), cutter.mostRectangles(), 1, firstAndHeld, emitNext);
}
