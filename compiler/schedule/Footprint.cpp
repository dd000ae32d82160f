//===- Footprint.cpp - which elements of a buffer somebody uses -----------===//
//
// Parts of a combined buffer (a concat, a padded image) are strided where each pixel has its channels side by side:
//
//   store A[116 * pixel + channel]             channel < 58
//   load  A[116 * pixel + channel + 58]        channel < 58
//
// Two addresses that differ modulo some number differ. So the numbers that count in what addresses are made of (116)
// are tried: modulo one of them what the one writes, and what the other one uses, lie in ranges that do not meet.
// Modulo a number larger than all addresses these are themselves told apart: rows of an image, its channels where they
// lie outermost. What both read keeps them in no order: copies of one part to others, each of which reads the same, are
// independent.
//
// Cost: a simplification for each access and number, kept for all others that ask.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Footprint.h"
#include "ir/expr/DimName.h"
#include "llvm/ADT/STLExtras.h"

namespace ptc::loop {

constexpr int64_t beyondAll = int64_t(1) << 48; // elements: more than a buffer has

void Footprint::add(Expr address, bool writes, std::shared_ptr<const SymbolRanges> ranges, unsigned dims) {
  for (unsigned dim = 0; dim < dims; ++dim)
    if (Expr step = address.coefficientOf(dimName(dim)); step && step.isConstant())
      if (int64_t stride = std::abs(step.getValue()); stride > 1 && !llvm::is_contained(strides, stride))
        strides.push_back(stride);
  accesses.push_back({address, writes, std::move(ranges)});
}

Footprint::Residues Footprint::getResidues(int64_t stride) {
  const Range none = {stride, -1};
  auto [found, isNew] = residues.try_emplace(stride, Residues{none, none});
  Residues &known = found->second;
  if (!isNew)
    return known;
  for (const Access &access : accesses) {
    Expr address = stride == beyondAll ? access.address : access.address.mod(stride);
    ExprRange range = address.simplify(*access.ranges).range(*access.ranges);
    Range &own = access.writes ? known.written : known.read;
    own = {std::min(own.min, range.min), std::max(own.max, range.max)};
  }
  return known;
}

bool Footprint::isApartFrom(Footprint &other) {
  if (isWhole || other.isWhole || accesses.empty() || other.accesses.empty())
    return false;
  llvm::SmallVector<int64_t> tried(strides);
  llvm::append_range(tried, other.strides);
  tried.push_back(beyondAll);
  auto areApart = [](Range x, Range y) { return x.max < y.min || y.max < x.min; };
  bool writeApart = false, readsApart = false, writesApart = false;
  return llvm::any_of(tried, [&](int64_t stride) {
    Residues a = getResidues(stride), b = other.getResidues(stride);
    writeApart |= areApart(a.written, b.written);
    readsApart |= areApart(a.read, b.written);
    writesApart |= areApart(a.written, b.read);
    return writeApart && readsApart && writesApart;
  });
}

} // namespace ptc::loop
