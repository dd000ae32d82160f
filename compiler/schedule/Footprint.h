//===- Footprint.h - which elements of a buffer somebody uses ---*- C++ -*-===//
#ifndef PTC_COMPILER_SCHEDULE_FOOTPRINT_H
#define PTC_COMPILER_SCHEDULE_FOOTPRINT_H

#include "ir/loop/Loop.h"
#include "llvm/ADT/DenseMap.h"
#include <memory>

namespace ptc::loop {

/// The elements of one buffer that a node or a launch reads and writes, as far as addresses tell.
class Footprint {
public:
  /// An access at an address over dims d0 ... d<dims - 1> and symbols of these ranges.
  void add(Expr address, bool writes, std::shared_ptr<const SymbolRanges> ranges, unsigned dims);
  /// It may be any element.
  void addAll() { isWhole = true; }

  /// Whether neither of the two writes an element that the other one uses, for certain.
  bool isApartFrom(Footprint &other);

private:
  struct Range {
    int64_t min, max; // of none: min > max
  };
  /// Between which values addresses lie, modulo a stride.
  struct Residues {
    Range read, written;
  };
  struct Access {
    Expr address;
    bool writes;
    std::shared_ptr<const SymbolRanges> ranges;
  };
  Residues getResidues(int64_t stride);

  llvm::SmallVector<Access> accesses;
  llvm::SmallVector<int64_t> strides; // that addresses are made of
  llvm::DenseMap<int64_t, Residues> residues;
  bool isWhole = false;
};

} // namespace ptc::loop

#endif // PTC_COMPILER_SCHEDULE_FOOTPRINT_H
