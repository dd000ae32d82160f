//===- PlaceInSlots.cpp - blocks of symbolic sizes in shared slots ---------===//
//
// Which of two symbolic sizes is larger is not known, so there are no gaps to look for. Memory is cut into slots that
// lie one behind the other. A block takes all of a slot, or of a slot inside of it (Slots.h):
//
//   slot                 | A                |  B            |     size: max(A, B, parts)
//                        | C    | D   |     |               |     parts: max(C, E) + D
//                        | E  |       |                     |
//
// Blocks that are alive at one time are in different slots, of which neither is inside of the other. Offsets are sums
// of maxima of sizes, a few deep, and stay small. (Stacking each block on all that it conflicts with packs tighter, but
// its offsets are nested maxima: 74 MB of text for a detector with free height and width.)
//
// Such a column of slots has room for the largest block of each at one time, though they may be alive at different
// ones. Where that is more than the lower bound, slots of short lives at both ends of memory are tried as well:
//
//   time  | A     .   B |     size: max(A + B, C + B, C + D), of those that are alive at one time
//     |   | C     .   B |     B and D end where memory does: their offsets are its size less their own
//     v   | C   . D     |
//
// Of a chain of layers, where each result is alive until the next one is there, that is the lower bound whatever the
// sizes. A block that is alive with several slots of an end makes them one, cut into rows at different times.
//
// Greedy: each block goes where the whole grows least at the hint; of such places to blocks of its very size, which
// grow with it, else where least is left over. What comes out depends on the order, so several are tried, by size, by
// bytes x life and by time, and the best is changed, one block at a time, as long as nothing gets worse.
//
//===----------------------------------------------------------------------===//

#include "compiler/memory/PlaceInSlots.h"
#include "compiler/memory/Slots.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <array>
#include <limits>
#include <random>

using namespace ptc;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {

/// Pairs of blocks looked at while the order is changed: about 0.1 s in a column, up to three times that at two ends.
constexpr int64_t columnBudget = 10'000'000, endsBudget = 5'000'000;
/// Blocks at two ends. With 300 a second goes by, with 1000 eleven, and offsets of the upper end, each of which is made
/// of the whole size, become megabytes of text.
constexpr size_t mostAtTwoEnds = 160;

/// How deep slots lie in each other.
constexpr unsigned deepest = 4;

/// One slot of which no block takes all.
class Column {
public:
  explicit Column(ArrayRef<SymbolicLife> blocks) : cutter(blocks, /*areRowsMany=*/false) {}

  void place(unsigned block) { cutter.insert(memory, block, *cutter.choose(memory, block, 0, deepest)); }
  int64_t atHint() const { return memory.atHint(); }
  void lay(const SymbolRanges &symbols, SymbolicPlacement &result) const {
    result.size = cutter.getSize(memory, symbols);
    cutter.lay(memory, Expr::constant(result.size.getContext(), 0), symbols, result.offsets);
  }

private:
  SlotCutter cutter;
  Slot memory;
};

/// Slots at both ends, those of one end alive at different times.
class TwoEnds {
public:
  explicit TwoEnds(ArrayRef<SymbolicLife> blocks) : blocks(blocks), cutter(blocks, /*areRowsMany=*/true) {}

  void place(unsigned block) {
    std::optional<Candidate> best;
    // Deeper slots where nothing else is left.
    for (unsigned limit = deepest; !best; ++limit)
      for (unsigned end : {0, 1}) {
        auto candidate = choose(end, block, limit);
        if (candidate && (!best || candidate->rank < best->rank))
          best = std::move(candidate);
      }
    auto &slots = ends[best->end];
    EndSlot slot = takeOverlapping(slots, block);
    cutter.insert(slot.slot, block, best->choice);
    slot.members.push_back(block);
    slot.height += best->choice.growth;
    slots.push_back(std::move(slot));
    height += std::get<0>(best->rank);
  }

  int64_t atHint() const { return height; }

  void lay(const SymbolRanges &symbols, SymbolicPlacement &result) const {
    std::array<SmallVector<Expr>, 2> sizes;
    for (unsigned end : {0, 1})
      for (const EndSlot &slot : ends[end])
        sizes[end].push_back(cutter.getSize(slot.slot, symbols));
    Expr zero = Expr::constant(result.size.getContext(), 0);
    result.size = zero;
    auto hold = [&](Expr size) { result.size = Expr::max(result.size, size.simplify(symbols)).simplify(symbols); };
    for (auto [low, lowSize] : llvm::zip_equal(ends[0], sizes[0])) {
      hold(lowSize);
      for (auto [high, highSize] : llvm::zip_equal(ends[1], sizes[1]))
        if (overlaps(low, high))
          hold(lowSize + highSize);
    }
    llvm::for_each(sizes[1], hold);
    for (auto [low, lowSize] : llvm::zip_equal(ends[0], sizes[0]))
      cutter.lay(low.slot, zero, symbols, result.offsets);
    for (auto [high, highSize] : llvm::zip_equal(ends[1], sizes[1]))
      cutter.lay(high.slot, (result.size - highSize).simplify(symbols), symbols, result.offsets);
  }

private:
  struct EndSlot {
    Slot slot;
    SmallVector<unsigned> members;
    int64_t height = 0; // at the hint
  };
  struct Candidate {
    unsigned end;
    SlotChoice choice; // in what is alive with the block there, as one slot
    std::tuple<int64_t, int64_t, size_t, int64_t>
        rank; // growth of memory and of the slot, blocks in it, bytes left over
  };

  bool overlaps(const EndSlot &slot, unsigned block) const {
    return llvm::any_of(slot.members, [&](unsigned other) { return blocks[other].life.overlaps(blocks[block].life); });
  }
  bool overlaps(const EndSlot &slot, const EndSlot &other) const {
    return llvm::any_of(slot.members, [&](unsigned block) { return overlaps(other, block); });
  }

  static void append(Slot &slot, const Slot &other) {
    llvm::append_range(slot.whole, other.whole);
    slot.wholeAtHint = std::max(slot.wholeAtHint, other.wholeAtHint);
    llvm::append_range(slot.rows, other.rows);
  }

  /// What is alive with `block` as one slot, out of an end's.
  EndSlot takeOverlapping(std::vector<EndSlot> &slots, unsigned block) const {
    EndSlot taken;
    std::vector<EndSlot> others;
    for (EndSlot &slot : slots) {
      if (!overlaps(slot, block)) {
        others.push_back(std::move(slot));
      } else if (taken.members.empty()) {
        taken = std::move(slot);
      } else {
        append(taken.slot, slot.slot);
        llvm::append_range(taken.members, slot.members);
        taken.height = std::max(taken.height, slot.height);
      }
    }
    slots = std::move(others);
    return taken;
  }

  std::optional<Candidate> choose(unsigned end, unsigned block, unsigned limit) const {
    SmallVector<const EndSlot *> parts;
    for (const EndSlot &slot : ends[end])
      if (overlaps(slot, block))
        parts.push_back(&slot);
    Slot all; // where they are several
    int64_t slotHeight = 0;
    size_t members = 1;
    for (const EndSlot *part : parts) {
      if (parts.size() > 1)
        append(all, part->slot);
      slotHeight = std::max(slotHeight, part->height);
      members += part->members.size();
    }
    auto choice = cutter.choose(parts.size() == 1 ? parts.front()->slot : all, block, 1, limit);
    if (!choice)
      return std::nullopt;
    int64_t beside = 0;
    for (const EndSlot &other : ends[1 - end])
      if (other.height > beside &&
          (overlaps(other, block) || llvm::any_of(parts, [&](const EndSlot *part) { return overlaps(other, *part); })))
        beside = other.height;
    int64_t growth = std::max<int64_t>(0, slotHeight + choice->growth + beside - height);
    return Candidate{end, *choice, {growth, choice->growth, members, choice->left}};
  }

  ArrayRef<SymbolicLife> blocks;
  SlotCutter cutter;
  std::array<std::vector<EndSlot>, 2> ends;
  int64_t height = 0; // of all at the hint
};

bool isLarger(const SymbolicLife &a, const SymbolicLife &b) { return a.sizeAtHint > b.sizeAtHint; }
bool isEarlier(const SymbolicLife &a, const SymbolicLife &b) { return a.life.begin < b.life.begin; }
int64_t getArea(const SymbolicLife &block) { return block.sizeAtHint * (block.life.end - block.life.begin + 1); }
bool hasLargerArea(const SymbolicLife &a, const SymbolicLife &b) { return getArea(a) > getArea(b); }

/// The best memory of one form that the orders tried give.
template <typename Memory> Memory search(ArrayRef<SymbolicLife> blocks, int64_t nearEnough, int64_t budget) {
  Memory best(blocks);
  SmallVector<unsigned> bestOrder;
  int64_t least = std::numeric_limits<int64_t>::max();
  auto consider = [&](SmallVector<unsigned> order) {
    Memory memory(blocks);
    for (unsigned block : order)
      memory.place(block);
    if (memory.atHint() > least)
      return;
    least = memory.atHint();
    best = std::move(memory);
    bestOrder = std::move(order);
  };
  for (auto isBefore : {isEarlier, hasLargerArea, isLarger}) {
    auto order = llvm::to_vector(llvm::seq<unsigned>(0, blocks.size()));
    llvm::stable_sort(order, [&](unsigned a, unsigned b) { return isBefore(blocks[a], blocks[b]); });
    consider(std::move(order));
  }
  std::minstd_rand random; // the same numbers everywhere
  int64_t lives = int64_t(blocks.size() * blocks.size()), rounds = lives ? budget / lives : 0;
  for (int64_t round = 0; round < rounds && least > nearEnough; ++round) {
    SmallVector<unsigned> order = bestOrder;
    size_t from = random() % order.size(), to = random() % order.size();
    unsigned moved = order[from];
    order.erase(order.begin() + from);
    order.insert(order.begin() + to, moved);
    consider(std::move(order));
  }
  return best;
}

} // namespace

SymbolicPlacement ptc::placeInSlots(ArrayRef<SymbolicLife> blocks, const SymbolRanges &symbols) {
  int64_t lowerBound = getLowerBound(
      llvm::map_to_vector(blocks, [](const SymbolicLife &block) { return SizedLife{block.life, block.sizeAtHint}; }));
  int64_t nearEnough = lowerBound + lowerBound / 64;
  SymbolicPlacement result{SmallVector<Expr>(blocks.size()), Expr::constant(blocks.front().size.getContext(), 0)};
  auto column = search<Column>(blocks, nearEnough, columnBudget);
  if (column.atHint() > nearEnough && blocks.size() <= mostAtTwoEnds)
    if (auto ends = search<TwoEnds>(blocks, nearEnough, endsBudget); ends.atHint() < column.atHint()) {
      ends.lay(symbols, result);
      return result;
    }
  column.lay(symbols, result);
  return result;
}
