//===- PlaceInSlots.cpp - blocks of symbolic sizes in shared slots ---------===//
//
// Which of two symbolic sizes is larger is not known, so there are no gaps to look for. Memory is cut into slots that
// lie one behind the other. A block takes all of a slot, or of a slot inside of it:
//
//   slot                 | A                |  B            |     size: max(A, B, parts)
//                        | C    | D   |     |               |     parts: max(C, E) + D
//                        | E  |       |                     |
//
// Blocks that are alive at one time are in different slots, of which neither is inside of the other. Offsets are sums
// of maxima of sizes, a few deep, and stay small. (Stacking each block on all that it conflicts with packs tighter, but
// its offsets are nested maxima: 74 MB of text for a detector with free height and width.)
//
// Greedy: each block goes where the whole grows least at the hint; of such places to blocks of its very size, which
// grow with it, else where least is left over. What comes out depends on the order, so several are tried, by size, by
// bytes x life and by time, and the best is changed, one block at a time, as long as nothing gets worse.
//
//===----------------------------------------------------------------------===//

#include "compiler/memory/PlaceInSlots.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <limits>
#include <numeric>
#include <random>
#include <tuple>

using namespace ptc;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {

/// Pairs of blocks looked at while the order is changed: about 0.1 s.
constexpr int64_t changingBudget = 10'000'000;

/// How deep slots lie in each other.
constexpr unsigned deepest = 4;

struct Slot {
  SmallVector<unsigned> whole; // blocks that nothing is beside, by their numbers
  int64_t wholeAtHint = 0;     // the largest of them
  std::vector<Slot> parts;

  int64_t partsAtHint() const {
    return std::accumulate(parts.begin(), parts.end(), int64_t(0),
                           [](int64_t sum, const Slot &part) { return sum + part.atHint(); });
  }
  int64_t atHint() const { return std::max(wholeAtHint, partsAtHint()); }
};

class SlotPlacer {
public:
  SlotPlacer(ArrayRef<SymbolicLife> blocks, const SymbolRanges &symbols)
      : blocks(blocks), symbols(symbols),
        lowerBound(getLowerBound(llvm::map_to_vector(
            blocks, [](const SymbolicLife &block) { return SizedLife{block.life, block.sizeAtHint}; }))) {}

  SymbolicPlacement run() {
    SmallVector<unsigned> best;
    int64_t least = std::numeric_limits<int64_t>::max();
    auto consider = [&](SmallVector<unsigned> order) {
      int64_t height = placeAll(order);
      if (height > least)
        return;
      least = height;
      best = std::move(order);
    };
    for (auto isBefore : {byBegin, byArea, bySize}) {
      auto order = llvm::to_vector(llvm::seq<unsigned>(0, blocks.size()));
      llvm::stable_sort(order, [&](unsigned a, unsigned b) { return isBefore(blocks[a], blocks[b]); });
      consider(std::move(order));
    }
    std::minstd_rand random; // the same numbers everywhere
    int64_t lives = int64_t(blocks.size() * blocks.size()), rounds = lives ? changingBudget / lives : 0;
    for (int64_t round = 0; round < rounds && least > lowerBound + lowerBound / 64; ++round) {
      SmallVector<unsigned> order = best;
      size_t from = random() % order.size(), to = random() % order.size();
      unsigned moved = order[from];
      order.erase(order.begin() + from);
      order.insert(order.begin() + to, moved);
      consider(std::move(order));
    }
    placeAll(best);
    return getPlacement();
  }

private:
  static bool bySize(const SymbolicLife &a, const SymbolicLife &b) { return a.sizeAtHint > b.sizeAtHint; }
  static bool byBegin(const SymbolicLife &a, const SymbolicLife &b) { return a.life.begin < b.life.begin; }
  static bool byArea(const SymbolicLife &a, const SymbolicLife &b) { return getArea(a) > getArea(b); }
  static int64_t getArea(const SymbolicLife &block) {
    return block.sizeAtHint * (block.life.end - block.life.begin + 1);
  }

  /// The bytes in all at the hint.
  int64_t placeAll(ArrayRef<unsigned> order) {
    memory = Slot();
    for (unsigned block : order)
      place(block);
    return memory.atHint();
  }

  /// Where a block may go inside of a slot: from part to part; behind the last part is a new one.
  struct Choice {
    SmallVector<unsigned, deepest> path;
    int64_t growth, left; // at the hint: bytes of the slot; bytes of the place that the block does not use
    bool holdsSize;
    auto rank() const { return std::tuple(growth, !holdsSize, left); }
  };

  bool isFree(ArrayRef<unsigned> members, unsigned block) const {
    return llvm::none_of(members, [&](unsigned other) { return blocks[other].life.overlaps(blocks[block].life); });
  }
  bool isAllFree(const Slot &slot, unsigned block) const {
    return isFree(slot.whole, block) &&
           llvm::all_of(slot.parts, [&](const Slot &part) { return isAllFree(part, block); });
  }
  bool holdsSize(const Slot &slot, unsigned block) const {
    return llvm::any_of(slot.whole, [&](unsigned other) { return blocks[other].size == blocks[block].size; });
  }

  /// The best place in a slot of which no block takes all at that time; `depth`: how deep the slot lies, 0 is memory.
  std::optional<Choice> choose(const Slot &slot, unsigned block, unsigned depth) const {
    int64_t size = blocks[block].sizeAtHint, parts = slot.partsAtHint(), height = std::max(slot.wholeAtHint, parts);
    std::optional<Choice> best;
    auto consider = [&](Choice choice) {
      if (!best || choice.rank() < best->rank())
        best = std::move(choice);
    };
    auto growthTo = [&](int64_t wanted) { return std::max<int64_t>(0, wanted - height); };
    if (depth > 0 && isAllFree(slot, block))
      consider({{}, growthTo(size), std::max<int64_t>(0, height - size), holdsSize(slot, block)});
    if (depth == deepest)
      return best;
    for (auto [number, part] : llvm::enumerate(slot.parts)) {
      auto choice = isFree(part.whole, block) ? choose(part, block, depth + 1) : std::nullopt;
      if (!choice)
        continue;
      choice->path.insert(choice->path.begin(), unsigned(number));
      choice->growth = growthTo(parts + choice->growth);
      consider(*choice);
    }
    consider({{unsigned(slot.parts.size())}, growthTo(parts + size), 0, false});
    return best;
  }

  void place(unsigned block) {
    Slot *slot = &memory;
    for (unsigned part : choose(memory, block, 0)->path) {
      if (part == slot->parts.size())
        slot->parts.emplace_back();
      slot = &slot->parts[part];
    }
    slot->whole.push_back(block);
    slot->wholeAtHint = std::max(slot->wholeAtHint, blocks[block].sizeAtHint);
  }

  /// Gives the slot's blocks their offsets, from `begin` on; returns its size.
  Expr lay(const Slot &slot, Expr begin, SymbolicPlacement &result) const {
    Expr size = Expr::constant(begin.getContext(), 0);
    for (const Slot &part : slot.parts)
      size = (size + lay(part, (begin + size).simplify(symbols), result)).simplify(symbols);
    for (unsigned member : slot.whole) {
      result.offsets[member] = begin;
      size = Expr::max(size, blocks[member].size);
    }
    return size.simplify(symbols);
  }

  SymbolicPlacement getPlacement() const {
    Expr begin = Expr::constant(blocks.front().size.getContext(), 0);
    SymbolicPlacement result{SmallVector<Expr>(blocks.size()), begin};
    result.size = lay(memory, begin, result);
    return result;
  }

  ArrayRef<SymbolicLife> blocks;
  const SymbolRanges &symbols;
  int64_t lowerBound; // bytes, at the hint
  Slot memory;
};

} // namespace

SymbolicPlacement ptc::placeInSlots(ArrayRef<SymbolicLife> blocks, const SymbolRanges &symbols) {
  return SlotPlacer(blocks, symbols).run();
}
