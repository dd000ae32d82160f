//===- PlaceInSlots.cpp - blocks of symbolic sizes in shared slots ---------===//
//
// Which of two symbolic sizes is larger is not known, so there are no gaps to look for. Memory is cut into slots that
// lie one behind the other. A block takes all of a slot, or a lane of it:
//
//   slot                 | A                |  B            |     size: max(A, B, lanes)
//                        | C    | D   |     |               |     lanes: max(C, E) + D
//                        | E  |       |                     |
//
// Blocks that are alive at one time are in different slots or in different lanes of one. Offsets are sums of maxima of
// sizes, and stay small. (Stacking each block on all that it conflicts with packs tighter, but its offsets are nested
// maxima: 74 MB of text for a detector with free height and width.)
//
// Greedy, from the largest block at the hint to the smallest: each goes where the whole grows least; of such places to
// blocks of its very size, which grow with it, else where least is left over.
//
//===----------------------------------------------------------------------===//

#include "compiler/memory/PlaceInSlots.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <tuple>

using namespace ptc;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {

/// Blocks at the same offset, by their numbers.
struct Lane {
  SmallVector<unsigned> members;
  int64_t atHint = 0; // the largest of them
};

struct Slot {
  Lane whole; // blocks that nothing is beside
  SmallVector<Lane> lanes;

  int64_t lanesAtHint() const {
    int64_t sum = 0;
    for (const Lane &lane : lanes)
      sum += lane.atHint;
    return sum;
  }
  int64_t atHint() const { return std::max(whole.atHint, lanesAtHint()); }
};

class SlotPlacer {
public:
  SlotPlacer(ArrayRef<SymbolicLife> blocks, const SymbolRanges &symbols) : blocks(blocks), symbols(symbols) {}

  SymbolicPlacement run() {
    auto order = llvm::to_vector(llvm::seq<unsigned>(0, blocks.size()));
    llvm::stable_sort(order, [&](unsigned a, unsigned b) { return blocks[a].sizeAtHint > blocks[b].sizeAtHint; });
    for (unsigned block : order)
      place(block);
    return getPlacement();
  }

private:
  /// Where a block may go: lane -1 is the whole slot, the number of lanes a new one.
  struct Choice {
    unsigned slot;
    int lane;
    int64_t growth, left; // at the hint: bytes in all; bytes of the place that the block does not use
    bool holdsSize;
    auto rank() const { return std::tuple(growth, !holdsSize, left); }
  };

  bool isFree(const Lane &lane, unsigned block) const {
    return llvm::none_of(lane.members, [&](unsigned other) { return blocks[other].life.overlaps(blocks[block].life); });
  }
  bool holdsSize(const Lane &lane, unsigned block) const {
    return llvm::any_of(lane.members, [&](unsigned other) { return blocks[other].size == blocks[block].size; });
  }

  void place(unsigned block) {
    int64_t size = blocks[block].sizeAtHint;
    Choice best{unsigned(slots.size()), -1, size, 0, false};
    auto consider = [&](Choice choice) {
      if (choice.rank() < best.rank())
        best = choice;
    };
    for (auto [number, slot] : llvm::enumerate(slots)) {
      if (!isFree(slot.whole, block))
        continue;
      int64_t height = slot.atHint(), lanes = slot.lanesAtHint();
      auto growthTo = [&](int64_t wanted) { return std::max<int64_t>(0, wanted - height); };
      if (llvm::all_of(slot.lanes, [&](const Lane &lane) { return isFree(lane, block); }))
        consider(
            {unsigned(number), -1, growthTo(size), std::max<int64_t>(0, height - size), holdsSize(slot.whole, block)});
      for (auto [index, lane] : llvm::enumerate(slot.lanes))
        if (isFree(lane, block))
          consider({unsigned(number), int(index), growthTo(lanes - lane.atHint + std::max(lane.atHint, size)),
                    std::max<int64_t>(0, lane.atHint - size), holdsSize(lane, block)});
      consider({unsigned(number), int(slot.lanes.size()), growthTo(lanes + size), 0, false});
    }
    if (best.slot == slots.size())
      slots.emplace_back();
    Slot &slot = slots[best.slot];
    if (best.lane == int(slot.lanes.size()))
      slot.lanes.emplace_back();
    Lane &lane = best.lane < 0 ? slot.whole : slot.lanes[best.lane];
    lane.members.push_back(block);
    lane.atHint = std::max(lane.atHint, size);
  }

  Expr sizeOf(const Lane &lane) const {
    Expr size = blocks[lane.members.front()].size;
    for (unsigned member : ArrayRef(lane.members).drop_front())
      size = Expr::max(size, blocks[member].size);
    return size.simplify(symbols);
  }

  SymbolicPlacement getPlacement() const {
    Expr end = Expr::constant(blocks.front().size.getContext(), 0);
    SymbolicPlacement result{SmallVector<Expr>(blocks.size()), end};
    for (const Slot &slot : slots) {
      for (unsigned member : slot.whole.members)
        result.offsets[member] = result.size;
      Expr lanes = Expr::constant(result.size.getContext(), 0);
      for (const Lane &lane : slot.lanes) {
        for (unsigned member : lane.members)
          result.offsets[member] = (result.size + lanes).simplify(symbols);
        lanes = (lanes + sizeOf(lane)).simplify(symbols);
      }
      Expr size = slot.lanes.empty() ? sizeOf(slot.whole) : Expr::max(sizeOf(slot.whole), lanes).simplify(symbols);
      result.size = (result.size + size).simplify(symbols);
    }
    return result;
  }

  ArrayRef<SymbolicLife> blocks;
  const SymbolRanges &symbols;
  SmallVector<Slot> slots;
};

} // namespace

SymbolicPlacement ptc::placeInSlots(ArrayRef<SymbolicLife> blocks, const SymbolRanges &symbols) {
  return SlotPlacer(blocks, symbols).run();
}
