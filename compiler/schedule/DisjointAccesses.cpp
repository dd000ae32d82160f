//===- DisjointAccesses.cpp - nodes that use parts of a buffer ------------===//
//
// Who writes a part of a combined buffer (a concat, what lies inside of borders) has nothing to do with who reads
// another one.
//
//===----------------------------------------------------------------------===//
#include "compiler/schedule/DisjointAccesses.h"
#include "compiler/schedule/MergeNodes.h"

using namespace mlir;

namespace ptc::loop {

Footprint &DisjointAccesses::getFootprint(Operation *node, Value buffer) {
  std::unique_ptr<Footprint> &footprint = footprints[{node, buffer}];
  if (footprint)
    return *footprint;
  footprint = std::make_unique<Footprint>();
  auto ranges = std::make_shared<const SymbolRanges>(getNodeRanges(node, symbols));
  for (Operation *user : buffer.getUsers()) {
    if (!node->isAncestor(user))
      continue;
    if (isa<LoadOp, StoreOp>(user))
      footprint->add(getAddress(user), isa<StoreOp>(user), ranges, unsigned(getDomain(node).size()));
    else
      footprint->addAll();
  }
  return *footprint; // empty: by way of another part of the same memory
}

bool DisjointAccesses::areDisjoint(Operation *a, Operation *b, Value buffer) {
  if (!isNode(a) || !isNode(b)) // control flow, a recurrence: all that their regions access
    return false;
  Footprint &first = getFootprint(a, buffer); // which stays where it is
  return first.isApartFrom(getFootprint(b, buffer));
}

} // namespace ptc::loop
