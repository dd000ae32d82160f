//===- Slots.h - slots of memory in each other -----------------------------===//

#ifndef PTC_COMPILER_MEMORY_SLOTS_H
#define PTC_COMPILER_MEMORY_SLOTS_H

#include "compiler/memory/PlaceInSlots.h"

#include <optional>
#include <tuple>
#include <vector>

namespace ptc {

/// Memory that one block takes at a time, or a row of slots that lie one behind the other.
struct Slot {
  using Row = std::vector<Slot>;

  llvm::SmallVector<unsigned> whole; // blocks that nothing is beside, by their numbers; alive at different times
  int64_t wholeAtHint = 0;           // the largest of them, in bytes
  std::vector<Row> rows;             // alive at different times, and at others than `whole`

  /// Bytes at the hint.
  int64_t atHint() const;
  /// How many slots deep it is cut.
  unsigned countLevels() const;
};

/// Where a block may go in a slot. What is in the way there moves into a slot of its own.
struct SlotChoice {
  struct Step {
    unsigned row, part;
  };
  llvm::SmallVector<Step, 4> path; // to the slot inside
  enum { Whole, BehindRow, NewRow } place = Whole;
  unsigned row = 0;       // that it is behind
  int64_t growth = 0;     // of the slot in bytes, at the hint
  int64_t left = 0;       // bytes of the place that the block does not use, at the hint
  bool holdsSize = false; // a block of its very size is there
  auto rank() const { return std::tuple(growth, !holdsSize, left); }
};

/// How blocks go into slots.
class SlotCutter {
public:
  /// `areRowsMany`: a slot may be cut into one row at one time and another at another.
  SlotCutter(llvm::ArrayRef<SymbolicLife> blocks, bool areRowsMany) : blocks(blocks), areRowsMany(areRowsMany) {}

  /// The best place in a slot that lies `depth` deep; 0 is memory, of which no block takes all. Slots inside are at
  /// most `deepest` deep.
  std::optional<SlotChoice> choose(const Slot &slot, unsigned block, unsigned depth, unsigned deepest) const;
  void insert(Slot &slot, unsigned block, const SlotChoice &choice) const;
  void addWhole(Slot &slot, unsigned block) const;

  Expr getSize(const Slot &slot, const SymbolRanges &symbols) const;
  /// Gives the slot's blocks their offsets, from `begin` on.
  void lay(const Slot &slot, Expr begin, const SymbolRanges &symbols, llvm::MutableArrayRef<Expr> offsets) const;

private:
  bool overlaps(unsigned a, unsigned b) const { return blocks[a].life.overlaps(blocks[b].life); }
  bool overlaps(const Slot &slot, unsigned block) const;
  bool overlaps(const Slot::Row &row, unsigned block) const;
  Slot takeOverlapping(Slot &slot, unsigned block) const;

  llvm::ArrayRef<SymbolicLife> blocks;
  bool areRowsMany;
};

} // namespace ptc

#endif // PTC_COMPILER_MEMORY_SLOTS_H
