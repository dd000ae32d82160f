//===- CpuContractionFetch.cpp - what a tile fetches meanwhile ------------===//
//
// Problem. Row tiles that share a column tile find it in the second-level cache; the first of them would wait for
// memory. A weight that one row tile reads streams from memory altogether.
//
// Idea. While a column tile is used, its row tiles share out the panels of the next one (fetchNextPanels). A lone row
// tile fetches its own streams further on, which go on from tile to tile (wantsLongStreams), or, where its
// multiply-adds take as long as memory, the next tile as others do (chooseFetching).
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionEmission.h"
#include "codegen/cpu/CpuTuning.h"
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t fewestFetching = 8;    // multiply-adds of a line that is fetched a tile ahead for a lone one
static constexpr int64_t mostFetched = 1 << 19; // bytes of a column tile that stays until it is read

/// Balanced tiles are lower than half of the largest only where there is one.
bool ContractionEmission::isLoneRowTile(int64_t height) {
  if (hasFewRows)
    return true;
  std::optional<int64_t> known = i.asConstant(m);
  return known ? *known <= split.height : height < (split.height + 1) / 2;
}

ContractionEmission::Fetching ContractionEmission::chooseFetching(const ContractionTile &tile) {
  if (f.rhs.isPacked())
    return {}; // the task has just written it
  int64_t width = tile.columns.panels, height = tile.rows.height;
  bool isLone = isLoneRowTile(height);
  Fetching fetching{.nextColumns = !isLone};
  std::optional<int64_t> rowsOfB = i.asConstant(k), columnsOfB = i.asConstant(n);
  if (isLone && !e.isStage && rowsOfB && columnsOfB) {
    int64_t columnBytes = *rowsOfB * loop::getElementBytes(elementOfB()) / f.group;
    bool streams = *columnsOfB * columnBytes >= leastStreamed;
    bool isFollowed = e.level.followsStreams && f.rhs.streams;
    // Where a few rows' multiply-adds take as long as memory, those of one line wait for the next, unless the processor
    // reads on by itself; what converts elements as well has time to fetch.
    fetching.nextColumns = streams && !f.bits && !(isFollowed && elementOfB() == f.accumulator) &&
                           height * panelWidth / lanes >= fewestFetching &&
                           width * panelWidth * columnBytes <= mostFetched;
    if (streams && !fetching.nextColumns)
      fetching.ahead = f.bits ? streamAhead : aheadOfStreams(e.level, isFollowed, height, width);
  }
  bool isOnly = f.batch.isConstant(1) && i.asConstant(panels).value_or(-1) == width;
  fetching.nextColumns &= !isOnly && loop::getTuned(f.op, tuned::prefetch, e.level.name).value_or(1);
  return fetching;
}

/// A stream that ends with its panel is fetched beyond it in vain, and the next tile's begin unfetched. Where a tile's
/// panels lie as far apart as there are tiles, each of its streams begins where one of the tile before has ended.
bool ContractionEmission::wantsLongStreams() {
  std::optional<int64_t> rows = i.asConstant(m);
  bool isPlain = outputs == 1 && sharedPixels.empty() && copying == ByteCopying::None &&
                 fixedPoint == FixedPoint::None && !takesPatches() && !f.turns;
  bool isOneBlock = f.batch.isConstant(1) && f.blocks.m.isConstant(1) && !f.blocks.isSplitK();
  if (!rows || *rows > split.height || !isPlain || !isOneBlock || sumsInMatrix())
    return false;
  Fetching fetching = chooseFetching({.rows = {.height = *rows}, .columns = {.panels = split.width}});
  return fetching.ahead > 0;
}

/// In a block of k that is not the last, a task's first column tile comes behind its last one, with the next block.
ContractionEmission::PanelStep ContractionEmission::nextPanels(const ContractionTask &task,
                                                               const ContractionTile &tile) {
  if (isBackwards || !f.blocks.isSplitK())
    return {};
  Value width = i.constant(tile.columns.panels), zero = i.constant(0);
  Value isLast = i.compare(arith::CmpIPredicate::sge, i.add(tile.panel, width), task.endPanel);
  Value hasMore = i.compare(arith::CmpIPredicate::slt, tile.kUpper, value(f.kLoops[0].extent));
  Value back = i.select(hasMore, i.sub(task.firstPanel, tile.panel), width);
  Value row = i.select(isLast, i.select(hasMore, tile.kUpper, zero), tile.kLower);
  return {i.select(isLast, back, width), i.mul(i.sub(row, tile.kLower), value(f.kLoops[0].bStride))};
}

/// Row tiles of a task where m and its blocks are known, the same for all tasks but for one.
static std::optional<int64_t> rowTilesOfTask(const ContractionEmission &c) {
  const InvariantBuilder &i = c.i;
  std::optional<int64_t> known = i.asConstant(c.m), blocks = i.asConstant(c.mBlocks);
  if (!known || !blocks)
    return std::nullopt;
  int64_t all = c.lineParts.empty() ? llvm::divideCeil(*known, c.split.height)
                                    : *known / c.lengthOfLine() * int64_t(c.lineParts.size());
  return std::max<int64_t>(all / *blocks, 1);
}

namespace {
/// Of the next column tile: so many panels, `apart` bytes from one to the next, from number `panel` on. Of each row
/// `bytes` bytes, which are share `number`.
struct FetchedShare {
  int64_t panels = 1;
  Value panel, number, apart, bytes;
};
} // namespace

/// Tile t of a task fetches from panel t mod `panels` of the next column tile: its share of each row's bytes. Of fewer
/// tiles than panels each fetches from several in every step: all that memory can give is underway then, and no tile
/// waits for more than the others.
static FetchedShare shareOf(ContractionEmission &c, const ContractionTask &task, Value rowTile, int64_t panels,
                            int64_t rowBytes, Value panelBytes) {
  InvariantBuilder &i = c.i;
  Value local = i.sub(rowTile, task.firstTile), row = i.constant(rowBytes), width = i.constant(panels);
  auto bytesOf = [&](int64_t sharers) { return i.constant(llvm::divideCeil(rowBytes, sharers)); };
  FetchedShare share{.panel = i.mod(local, width, true), .number = i.floorDiv(local, width, true), .apart = panelBytes};
  if (std::optional<int64_t> tiles = rowTilesOfTask(c); tiles && *tiles < panels) {
    int64_t groups = std::gcd(*tiles, panels), sharers = *tiles / groups;
    share.panels = panels / groups;
    share.bytes = bytesOf(sharers);
    share.panel = i.mod(i.mul(i.floorDiv(local, i.constant(sharers), true), i.constant(share.panels)), width, true);
    share.number = i.mod(local, i.constant(sharers), true);
  } else if (tiles) {
    Value hasMore = i.compare(arith::CmpIPredicate::slt, share.panel, i.constant(*tiles % panels));
    int64_t sharers = *tiles / panels;
    share.bytes = *tiles % panels ? i.select(hasMore, bytesOf(sharers + 1), bytesOf(sharers)) : bytesOf(sharers);
  } else {
    // What is asked for more than once is fetched once.
    Value count = i.max(i.sub(task.endTile, task.firstTile), i.constant(1)), zero = i.constant(0);
    Value isFew = i.compare(arith::CmpIPredicate::slt, count, width);
    Value sharers = i.select(isFew, count, i.floorDiv(count, width, true));
    share.panels = panels;
    share.bytes = hide(c.e, i.floorDiv(i.add(row, i.sub(sharers, i.constant(1))), sharers, true));
    share.panel = i.select(isFew, zero, share.panel);
    share.number = i.select(isFew, local, share.number);
    share.apart = hide(c.e, i.select(isFew, panelBytes, zero));
  }
  return share;
}

/// The share's bytes follow each other, so as many are fetched in each step of k. If the first tiles fetched a line in
/// each step, they would wait for memory, which had nothing to do for the others.
void ContractionEmission::fetchNextPanels(TileOperands &operands, const ContractionTask &task, Value rowTile,
                                          int64_t panels, Value lower, Value upper, const PanelStep &step) {
  int64_t elementBytes = loop::getElementBytes(operands.bElement), rowBytes = panelWidth * elementBytes;
  Value panelBytes = i.mul(operands.panelStride, i.constant(elementBytes)), width = i.constant(panels);
  Value next = i.mul(isBackwards ? i.select(isBackwards, i.constant(-panels), width) : width, panelBytes);
  if (step.panels)
    next = i.add(i.mul(step.panels, panelBytes), i.mul(step.rows, i.constant(rowBytes)));
  FetchedShare share = shareOf(*this, task, rowTile, panels, rowBytes, panelBytes);
  // The share of rows [lower, upper), from where it would start if it were as long in the rows before.
  Value others = i.sub(i.constant(rowBytes), share.bytes), before = i.min(i.mul(share.number, share.bytes), others);
  Value offset = i.add(i.mul(lower, others), i.mul(i.sub(upper, lower), before));
  Value distance = i.add(next, i.add(i.mul(share.panel, panelBytes), offset));
  // Made of divisions, as rows' addresses are (rowAddresses).
  Value first = hide(e, e.getAddress(operands.panels, e.builder.getI8Type(), distance));
  operands.fetchedBytes = share.bytes;
  for (int64_t number = 0; number < share.panels; ++number)
    operands.fetched.push_back(e.getAddress(first, e.builder.getI8Type(), i.mul(share.apart, i.constant(number))));
}
