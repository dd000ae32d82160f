//===- Slots.cpp - slots of memory in each other ---------------------------===//
//
// A slot is as large as the largest of what takes all of it and of its rows, each the sum of its parts. A block that is
// alive at no time of what is in a slot may take all of it. Else it may go beside what it is alive with: into a part of
// the row that alone it overlaps, behind that row, or, where it overlaps more, into a new row behind a slot for all of
// that:
//
//   time  | A     |        | A     |
//     |   | B     |   ->   | B | X |     X is alive with B and C
//     v   | C | D |        | C D | |     a row of a slot with rows of its own, and X
//
//===----------------------------------------------------------------------===//

#include "compiler/memory/Slots.h"

#include "llvm/ADT/STLExtras.h"

using namespace ptc;

static int64_t atHint(const Slot::Row &row) {
  int64_t sum = 0;
  for (const Slot &part : row)
    sum += part.atHint();
  return sum;
}

int64_t Slot::atHint() const {
  int64_t height = wholeAtHint;
  for (const Row &row : rows)
    height = std::max(height, ::atHint(row));
  return height;
}

unsigned Slot::countLevels() const {
  unsigned levels = 0;
  for (const Row &row : rows)
    for (const Slot &part : row)
      levels = std::max(levels, part.countLevels() + 1);
  return levels;
}

bool SlotCutter::overlaps(const Slot::Row &row, unsigned block) const {
  return llvm::any_of(row, [&](const Slot &part) { return overlaps(part, block); });
}

bool SlotCutter::overlaps(const Slot &slot, unsigned block) const {
  return llvm::any_of(slot.whole, [&](unsigned other) { return overlaps(other, block); }) ||
         llvm::any_of(slot.rows, [&](const Slot::Row &row) { return overlaps(row, block); });
}

void SlotCutter::addWhole(Slot &slot, unsigned block) const {
  slot.whole.push_back(block);
  slot.wholeAtHint = std::max(slot.wholeAtHint, blocks[block].sizeAtHint);
}

/// What is in the slot and alive at a time of the block's, out of it.
Slot SlotCutter::takeOverlapping(Slot &slot, unsigned block) const {
  Slot taken, rest;
  for (unsigned other : slot.whole)
    addWhole(overlaps(other, block) ? taken : rest, other);
  for (Slot::Row &row : slot.rows)
    (overlaps(row, block) ? taken : rest).rows.push_back(std::move(row));
  slot = std::move(rest);
  return taken;
}

std::optional<SlotChoice> SlotCutter::choose(const Slot &slot, unsigned block, unsigned depth, unsigned deepest) const {
  int64_t size = blocks[block].sizeAtHint, height = slot.atHint();
  std::optional<SlotChoice> best;
  auto consider = [&](SlotChoice choice) {
    if (!best || choice.rank() < best->rank())
      best = std::move(choice);
  };
  auto growthTo = [&](int64_t wanted) { return std::max<int64_t>(0, wanted - height); };

  // What is in the way, as high as it is, and cut as deep.
  int64_t inTheWay = 0;
  unsigned levels = 0, rows = 0;
  bool isBesideWhole = false;
  llvm::SmallVector<bool> overlapsRow;
  for (unsigned other : slot.whole)
    if (overlaps(other, block)) {
      inTheWay = std::max(inTheWay, blocks[other].sizeAtHint);
      isBesideWhole = true;
    }
  for (const Slot::Row &row : slot.rows) {
    overlapsRow.push_back(overlaps(row, block));
    if (!overlapsRow.back())
      continue;
    ++rows;
    inTheWay = std::max(inTheWay, atHint(row));
    for (const Slot &part : row)
      levels = std::max(levels, part.countLevels() + 1);
  }

  if (depth > 0 && !isBesideWhole && rows == 0)
    consider({.growth = growthTo(size),
              .left = std::max<int64_t>(0, height - size),
              .holdsSize =
                  llvm::any_of(slot.whole, [&](unsigned other) { return blocks[other].size == blocks[block].size; })});
  if (depth >= deepest)
    return best;
  if (isBesideWhole || rows > 1) {
    if (areRowsMany && depth + 1 + levels <= deepest)
      consider({.place = SlotChoice::NewRow, .growth = growthTo(inTheWay + size)});
    return best;
  }
  for (auto [number, row] : llvm::enumerate(slot.rows)) {
    if (rows == 1 && !overlapsRow[number])
      continue;
    int64_t sum = atHint(row);
    for (auto [part, inner] : llvm::enumerate(row))
      if (auto choice = choose(inner, block, depth + 1, deepest)) {
        choice->path.insert(choice->path.begin(), {unsigned(number), unsigned(part)});
        choice->growth = growthTo(sum + choice->growth);
        consider(*choice);
      }
    consider({.place = SlotChoice::BehindRow, .row = unsigned(number), .growth = growthTo(sum + size)});
  }
  if (slot.rows.empty())
    consider({.place = SlotChoice::NewRow, .growth = growthTo(size)});
  return best;
}

void SlotCutter::insert(Slot &slot, unsigned block, const SlotChoice &choice) const {
  Slot *place = &slot;
  for (auto [row, part] : choice.path)
    place = &place->rows[row][part];
  if (choice.place == SlotChoice::Whole) {
    addWhole(*place, block);
    return;
  }
  Slot own;
  addWhole(own, block);
  if (choice.place == SlotChoice::BehindRow) {
    place->rows[choice.row].push_back(std::move(own));
    return;
  }
  Slot::Row row;
  if (overlaps(*place, block))
    row.push_back(takeOverlapping(*place, block));
  row.push_back(std::move(own));
  place->rows.push_back(std::move(row));
}

Expr SlotCutter::getSize(const Slot &slot, const SymbolRanges &symbols) const {
  Expr size = Expr::constant(blocks.front().size.getContext(), 0);
  for (const Slot::Row &row : slot.rows) {
    Expr sum = Expr::constant(size.getContext(), 0);
    for (const Slot &part : row)
      sum = (sum + getSize(part, symbols)).simplify(symbols);
    size = size.isConstant(0) ? sum : Expr::max(size, sum);
  }
  for (unsigned member : slot.whole)
    size = Expr::max(size, blocks[member].size);
  return size.simplify(symbols);
}

void SlotCutter::lay(const Slot &slot, Expr begin, const SymbolRanges &symbols,
                     llvm::MutableArrayRef<Expr> offsets) const {
  for (const Slot::Row &row : slot.rows) {
    Expr offset = begin;
    for (const Slot &part : row) {
      lay(part, offset, symbols, offsets);
      offset = (offset + getSize(part, symbols)).simplify(symbols);
    }
  }
  for (unsigned member : slot.whole)
    offsets[member] = begin;
}
