//===- PlaceBlocks.cpp - rectangles in a strip of least height -------------===//
//
// Greedy placement takes the blocks one by one; each takes the lowest or the smallest gap
// that fits among those placed before it whose lives overlap its own. What comes out
// depends on the order and on the choice of gaps, so several are tried: by size, by bytes x life,
// by time. The best is then mended: the block that reaches the top came too late,
// so it moves before the first block that it conflicts with, and all are placed again. Each round
// costs a placement; rounds end at the lower bound or when their number is used up. At last single blocks of the best
// order change their places in it, as long as nothing gets worse.
//
// Sources: greedy by size, Pisarchyk and Lee, "Efficient memory management for deep neural
// net inference" (2020), section 4; moving what reaches the top: hill climbing as in
// TVM's unified static memory planner.
//
//===----------------------------------------------------------------------===//

#include "compiler/memory/PlaceBlocks.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>
#include <numeric>
#include <random>

using namespace ptc;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {

/// Pairs of blocks looked at while mending, and while changing: about 0.1 s each.
constexpr int64_t mendingBudget = 20'000'000;

enum class GapChoice { Smallest, Lowest };

class Placer {
public:
  explicit Placer(ArrayRef<SizedLife> blocks) : blocks(blocks), conflicts(blocks.size()), bound(getLowerBound(blocks)) {
    for (size_t i = 0; i < blocks.size(); ++i)
      for (size_t j = 0; j < blocks.size(); ++j)
        if (i != j && blocks[i].life.overlaps(blocks[j].life))
          conflicts[i].push_back(j);
  }

  Placement run() {
    for (auto isBefore : {bySize, byArea, byBegin}) {
      SmallVector<unsigned> order(blocks.size());
      std::iota(order.begin(), order.end(), 0);
      llvm::stable_sort(order, [&](unsigned a, unsigned b) { return isBefore(blocks[a], blocks[b]); });
      for (GapChoice choice : {GapChoice::Smallest, GapChoice::Lowest})
        mend(order, choice);
    }
    change();
    return best;
  }

private:
  static bool bySize(const SizedLife &a, const SizedLife &b) { return a.size > b.size; }
  static bool byBegin(const SizedLife &a, const SizedLife &b) { return a.life.begin < b.life.begin; }
  static bool byArea(const SizedLife &a, const SizedLife &b) { return getArea(a) > getArea(b); }
  static int64_t getArea(const SizedLife &block) { return block.size * (block.life.end - block.life.begin + 1); }

  bool isDone() const { return !best.offsets.empty() && best.height <= bound; }

  /// How many placements look at so many pairs.
  int64_t countRounds(int64_t budget) const {
    int64_t pairs = 0;
    for (const auto &list : conflicts)
      pairs += list.size() + 1;
    return budget / std::max<int64_t>(pairs, 1);
  }

  /// Keeps the placement if none is lower; of equal ones the last.
  void consider(Placement placement, ArrayRef<unsigned> order, GapChoice choice) {
    if (!best.offsets.empty() && placement.height > best.height)
      return;
    best = std::move(placement);
    bestOrder.assign(order.begin(), order.end());
    bestChoice = choice;
  }

  void change() {
    if (blocks.size() < 2 || best.height <= bound + bound / 64) // near enough
      return;
    std::minstd_rand random; // the same numbers everywhere
    for (int64_t round = countRounds(mendingBudget); round > 0 && !isDone(); --round) {
      SmallVector<unsigned> order = bestOrder;
      size_t from = random() % order.size(), to = random() % order.size();
      unsigned moved = order[from];
      order.erase(order.begin() + from);
      order.insert(order.begin() + to, moved);
      consider(place(order, bestChoice), order, bestChoice);
    }
  }

  /// Places in `order`, then again and again with the top block moved forward.
  void mend(SmallVector<unsigned> order, GapChoice choice) {
    int64_t rounds = countRounds(mendingBudget / 6);
    for (int64_t round = 0; round <= rounds && !isDone(); ++round) {
      Placement placement = place(order, choice);
      consider(placement, order, choice);
      if (!moveTopForward(order, placement))
        return;
    }
  }

  /// Whether a block at the top could move before one that it conflicts with.
  bool moveTopForward(SmallVector<unsigned> &order, const Placement &placement) const {
    auto isTop = [&](unsigned block) { return placement.offsets[block] + blocks[block].size == placement.height; };
    auto top = llvm::find_if(order, isTop);
    auto first = std::find_if(order.begin(), top,
                              [&](unsigned block) { return blocks[block].life.overlaps(blocks[*top].life); });
    if (first == top)
      return false;
    std::rotate(first, top, top + 1);
    return true;
  }

  Placement place(ArrayRef<unsigned> order, GapChoice choice) const {
    Placement result;
    result.offsets.assign(blocks.size(), -1);
    SmallVector<unsigned> placed;
    for (unsigned block : order) {
      placed.clear();
      llvm::copy_if(conflicts[block], std::back_inserter(placed),
                    [&](unsigned other) { return result.offsets[other] >= 0; });
      llvm::sort(placed, [&](unsigned a, unsigned b) { return result.offsets[a] < result.offsets[b]; });
      result.offsets[block] = findGap(blocks[block].size, placed, result, choice);
      result.height = std::max(result.height, result.offsets[block] + blocks[block].size);
    }
    return result;
  }

  /// The start of the gap among `placed`, in the order of their offsets, that `choice` takes, or their end.
  int64_t findGap(int64_t size, ArrayRef<unsigned> placed, const Placement &placement, GapChoice choice) const {
    int64_t found = -1, smallest = std::numeric_limits<int64_t>::max(), end = 0;
    for (unsigned other : placed) {
      int64_t gap = placement.offsets[other] - end;
      if (gap >= size && gap < smallest) {
        found = end;
        smallest = gap;
        if (choice == GapChoice::Lowest)
          return found;
      }
      end = std::max(end, placement.offsets[other] + blocks[other].size);
    }
    return found >= 0 ? found : end;
  }

  ArrayRef<SizedLife> blocks;
  std::vector<SmallVector<unsigned>> conflicts;
  int64_t bound;
  Placement best;
  SmallVector<unsigned> bestOrder;
  GapChoice bestChoice = GapChoice::Smallest;
};

} // namespace

int64_t ptc::getLowerBound(ArrayRef<SizedLife> blocks) {
  int64_t largest = 0;
  for (const SizedLife &moment : blocks) {
    int64_t sum = 0;
    for (const SizedLife &block : blocks)
      if (block.life.begin <= moment.life.begin && block.life.end >= moment.life.begin)
        sum += block.size;
    largest = std::max(largest, sum);
  }
  return largest;
}

Placement ptc::placeBlocks(ArrayRef<SizedLife> blocks) { return Placer(blocks).run(); }
