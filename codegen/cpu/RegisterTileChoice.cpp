//===- RegisterTileChoice.cpp - how large a tile is -------------------------===//
//
// Choice of the tile. A register file of R vectors holds rows * width accumulators, width of B and one broadcast:
// 28 + 2 + 1 of 32 never spills, more does. Among the sizes that fit, the cost of covering m x n is the sum over tiles
// of max(multiply-adds / 2, loads / 2, latency bound) a k, plus what a tile costs once (entry, epilogue) and a little
// for columns of B that do not wait in the first-level cache: 8 rows take 4 x 2 vectors, not 2 x 4. Heights and widths
// are balanced: 49 rows in tiles of at most 6 are four of 6 and five of 5, not eight of 6 and one of 1.
//
// A few more rows than of a matrix times a vector are one tile, too, if B streams from memory; where k is so long that
// a column tile of B leaves the second-level cache before the next row tile, even if it is a vector wide.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/RegisterTile.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static int64_t vectorsOfPanel(const CpuLevel &level, Type accumulator) {
  return std::max<int64_t>(1, panelWidth / level.lanesOf(accumulator.getIntOrFloatBitWidth()));
}

/// Parts of `extent` in pieces of at most `most`: `count` of them, the first `larger` one bigger than the others.
static double coverCost(int64_t extent, int64_t most, llvm::function_ref<double(int64_t)> cost) {
  int64_t count = llvm::divideCeil(extent, most), part = extent / count, larger = extent - part * count;
  double sum = larger ? larger * cost(part + 1) : 0;
  return sum + (count - larger) * cost(part);
}

/// Rows of a product of many rows, how many is not known: tiles of all heights are compared by what a row costs, so it
/// is a multiple of all of them and shows no remainders.
static constexpr int64_t manyRows = 840;
static constexpr int64_t tallestOfUnknown = 8;    // rows: there is code for each height up to it
static constexpr int64_t fewRows = 4;             // that wait for memory, not for the multiply-add units
static constexpr int64_t streamedTerms = 1 << 17; // of B, of which a run finds none in the second-level cache

/// Terms of B that stay in a first-level cache beside rows of A; what a vector of those costs that every row tile
/// fetches again, in cycles that are not hidden behind multiply-adds: it decides between tiles that are equal
/// otherwise. Where rows are so few that the second-level cache takes lines from memory in most cycles, it costs more.
static constexpr int64_t firstLevelTerms = 6 << 10;
static constexpr double fromSecondLevel = 0.01, fromBusyLevel = 0.25;

/// The cost of the width that balances best what a tile takes from the caches: four panels where B waits in the
/// first-level cache, else three. Panels lie a multiple of 4 KB apart where 64 divides k, in the same sets of that
/// cache, as rows often do: four such streams side by side take 4 to 6 % longer on Intel's processors, 14 rows as much.
static constexpr double ofPreferred = 0.985;
static constexpr int64_t manyPanels = 32; // of which a few narrower tiles are no matter

/// Registers for accumulators, a row of B and what multiplies them: beside the B row, a broadcast and, without fused
/// multiply-add, a product.
static int64_t roomOf(const CpuLevel &level) { return level.vectorRegisters - (level.hasFma ? 2 : 3); }

/// One or two streams are fetched 2 KB ahead: half as far hides less, twice as far comes too early. Three and more, of
/// lines that are a 512-bit vector each, have more underway, and half as far is best. A processor that reads on by
/// itself is disturbed by what comes further behind (1.3 times as long): there four lines for each row are best.
int64_t cpu::aheadOfStreams(const CpuLevel &level, bool isFollowed, int64_t rows, int64_t panels) {
  constexpr int64_t ofRow = 256;
  if (isFollowed)
    return std::min(rows * ofRow, streamAhead / 2);
  return level.vectorBits == 512 && panels >= 3 ? streamAhead / 2 : streamAhead;
}

int64_t cpu::unrollOfTile(const CpuLevel &level, int64_t accumulators) {
  int64_t unroll = 1;
  while (accumulators * unroll * 2 <= std::min<int64_t>(roomOf(level) - 4, 16) && unroll < 8)
    unroll *= 2;
  return unroll;
}

/// The tile as it divides the product: of equal parts.
static TileSplit balanced(const CpuLevel &level, TileSplit most, int64_t m, int64_t panels, int64_t vectors) {
  TileSplit split = most;
  if (m > 0)
    split.height = llvm::divideCeil(m, llvm::divideCeil(m, most.height));
  split.width = llvm::divideCeil(panels, llvm::divideCeil(panels, most.width));
  if (m > 0 && m <= fewRows) // the latency of a multiply-add shows
    split.unroll = unrollOfTile(level, split.height * split.width * vectors);
  return split;
}

TileSplit cpu::limitTile(const CpuLevel &level, Type accumulator, const TiledExtents &extents, TileSplit wanted) {
  int64_t m = extents.m, panels = extents.panels, most = m > 0 && m <= tallestAlone ? tallestAlone : tallestTile;
  wanted.height = std::clamp<int64_t>(wanted.height, 1, most);
  if (m <= 0 && extents.rowUnit % wanted.height)
    wanted.height = std::min(wanted.height, tallestOfUnknown);
  wanted.width = std::clamp<int64_t>(wanted.width, 1, std::min<int64_t>(panels, widestTile));
  return balanced(level, wanted, m, panels, vectorsOfPanel(level, accumulator));
}

/// The largest divisor of `unit` that is not above `most`; 0 where that is 1.
static int64_t largestDivisor(int64_t unit, int64_t most) {
  while (most > 1 && unit % most)
    --most;
  return most > 1 ? most : 0;
}

/// Whether all tiles, or nearly all, can have so many panels, and give each block about as many of them.
static bool spreadsEvenly(int64_t panels, int64_t width, int64_t blocks) {
  if (panels % width && panels < manyPanels)
    return false;
  int64_t ofBlock = llvm::divideCeil(llvm::divideCeil(panels, width), blocks) * width;
  return ofBlock * blocks * 8 <= panels * 9;
}

/// Panels of a tile that waits for memory. Narrow ones have sums enough to take turns. Of a weight that streams several
/// panels are read at once: a lone row's as four vectors, which processors follow best, more rows' as far as registers
/// hold the sums.
static int64_t widthOfFewRows(const CpuLevel &level, const TiledExtents &extents, int64_t vectors, bool splitsGroups) {
  int64_t m = extents.m;
  if (splitsGroups)
    return vectors == 1 && m <= 2 ? 4 / m : 1; // more columns for each sum over the sets
  if (vectors > 2 || extents.k <= 0 || extents.panels * panelWidth * extents.k < streamedTerms)
    return m == 1 && vectors == 1 ? 2 : 1;
  return m == 1 ? 4 / vectors : std::clamp<int64_t>(level.vectorRegisters * 3 / 4 / (m * vectors), 1, 4);
}

SmallVector<TileSplit> cpu::listTiles(const CpuLevel &level, Type accumulator, const TiledExtents &extents,
                                      const TileReads &reads) {
  int64_t m = extents.m, panels = extents.panels, k = extents.k;
  bool splitsGroups = reads.splitsGroups;
  int64_t vectors = vectorsOfPanel(level, accumulator);
  if (panels == 1) // no more than the columns fill
    vectors = llvm::divideCeil(extents.lastColumns * vectors, panelWidth);
  // Where a panel alone fills the registers (128-bit levels) B is read as a memory operand.
  int64_t room = roomOf(level) - splitsGroups;
  double once = k > 0 ? 24.0 / double(k) : 0.03; // entry and epilogue of a vector, in multiply-adds a k
  auto heightAt = [&](int64_t vectorWidth) {
    int64_t beside = vectors >= 4 && level.vectorRegisters < 32 ? 1 : std::min<int64_t>(vectorWidth, 4);
    return (room - beside * (splitsGroups ? 2 : 1)) / vectorWidth;
  };
  bool isFew = reads.streams && m > 0 && m <= tallestAlone, mayBeFew = m <= 0 && reads.mostAlone;
  double ofVector = isFew ? fromBusyLevel : fromSecondLevel;
  // Others must be clearly better, but where rows are few, or may be, and B streams from memory: fewer tiles read it
  // then.
  bool isWide = reads.wide || 4 * panelWidth * k <= firstLevelTerms || !spreadsEvenly(panels, 3, reads.blocks);
  int64_t preferred = isFew || mayBeFew ? 0 : isWide ? 4 : 3;
  SmallVector<std::pair<double, TileSplit>> found;
  for (int64_t width : {4, 3, 2, 5, 1}) {
    int64_t vectorWidth = width * vectors;
    if (width > 1 && vectorWidth > 5)
      continue;
    // A height that is not known takes code for each that there may be.
    int64_t most = std::min<int64_t>(heightAt(vectorWidth), tallestTile);
    if (vectorWidth == 4 && level.vectorRegisters == 32 && !splitsGroups)
      most = std::min<int64_t>(most, 6);
    int64_t height = m > 0 ? most : std::min(most, tallestOfUnknown);
    if (width > panels || height < 1)
      continue;
    auto tileCost = [&](int64_t h, int64_t w) {
      double v = double(w * vectors), again = w * panelWidth * k > firstLevelTerms ? ofVector * v : 0;
      return std::max({h * v / 2, (h + v) / 2, 4.0 / 2}) + once * (h * v + 4) + again;
    };
    double cost = coverCost(panels, width, [&](int64_t w) {
      return coverCost(m > 0 ? m : manyRows, height, [&](int64_t h) { return tileCost(h, w); });
    });
    // Tiles of one height that are whole in any case take code for that one.
    if (int64_t whole = m > 0 ? 0 : largestDivisor(extents.rowUnit, most); whole > 0) {
      double ofWhole =
          coverCost(panels, width, [&](int64_t w) { return tileCost(whole, w) * double(manyRows) / double(whole); });
      if (ofWhole <= cost) {
        cost = ofWhole;
        height = whole;
      }
    }
    if (width == preferred)
      cost *= ofPreferred;
    found.push_back({cost, {.height = height, .width = width}});
  }
  llvm::stable_sort(found, [](const auto &a, const auto &b) { return a.first < b.first; });
  if (m > 0 && m <= fewRows) {
    int64_t wanted = widthOfFewRows(level, extents, vectors, splitsGroups);
    std::pair<double, TileSplit> narrow = found.front();
    narrow.second.width = std::min(panels, wanted);
    found.insert(found.begin(), narrow);
  } else if (m > 0 && m <= reads.mostAlone) { // all rows at once, in the widest tile that has room for them
    for (int64_t width : {4, 3, 2, 1})
      if (width <= panels && m <= heightAt(width * vectors)) {
        found.insert(found.begin(), {0, {.height = m, .width = width}});
        break;
      }
  }
  SmallVector<TileSplit> tiles;
  for (const auto &[cost, tile] : found)
    tiles.push_back(balanced(level, tile, m, panels, vectors));
  return tiles;
}
