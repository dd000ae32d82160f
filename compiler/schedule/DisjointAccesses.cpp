//===- DisjointAccesses.cpp - nodes that use parts of a buffer ------------===//
//
// Who writes a part of a combined buffer (a concat) has nothing to do with who reads another one. Each pixel of an
// image has its channels side by side, so that the parts are strided:
//
//   store A[116 * pixel + channel]             channel < 58
//   load  A[116 * pixel + channel + 58]        channel < 58
//
// Two addresses that differ modulo some number differ. So the numbers that count in what a node's addresses are made of
// (116) are tried: modulo one of them what the one node writes, and what the other one reads or writes, lie in ranges
// that do not meet. What both read keeps them in no order: copies of one part to others, each of which reads the same,
// are independent.
//
// Cost: a simplification for each node, buffer and number, kept for all others that ask.
//
//===----------------------------------------------------------------------===//
#include "compiler/schedule/DisjointAccesses.h"
#include "compiler/schedule/MergeNodes.h"
#include "ir/expr/DimName.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ptc::loop {

ArrayRef<int64_t> DisjointAccesses::getStrides(Operation *node, Value buffer) {
  auto [found, isNew] = strides.try_emplace({node, buffer});
  SmallVector<int64_t> &list = found->second;
  if (!isNew)
    return list;
  unsigned count = getDomain(node).size();
  for (Operation *user : buffer.getUsers()) {
    if (!node->isAncestor(user))
      continue;
    if (!isa<LoadOp, StoreOp>(user)) // whole
      return list = {};
    Expr address = getAddress(user);
    for (unsigned dim = 0; dim < count; ++dim)
      if (Expr step = address.coefficientOf(dimName(dim)); step && step.isConstant())
        if (int64_t stride = std::abs(step.getValue()); stride > 1 && !is_contained(list, stride))
          list.push_back(stride);
  }
  return list;
}

DisjointAccesses::Residues DisjointAccesses::getResidues(Operation *node, Value buffer, int64_t stride) {
  const Range none = {stride, -1}, all = {0, stride - 1};
  auto [found, isNew] = residues.try_emplace({{node, buffer}, stride}, Residues{none, none});
  Residues &known = found->second;
  if (!isNew)
    return known;
  SymbolRanges ranges = getNodeRanges(node, symbols);
  for (Operation *user : buffer.getUsers()) {
    if (!node->isAncestor(user))
      continue;
    if (!isa<LoadOp, StoreOp>(user))
      return known = {all, all};
    ExprRange range = getAddress(user).mod(stride).simplify(ranges).range(ranges);
    Range &own = isa<StoreOp>(user) ? known.written : known.read;
    own = {std::min(own.min, range.min), std::max(own.max, range.max)};
  }
  if (known.read.max < 0 && known.written.max < 0) // by way of another part of the same memory
    known = {all, all};
  return known;
}

bool DisjointAccesses::areDisjoint(Operation *a, Operation *b, Value buffer) {
  if (!isNode(a) || !isNode(b)) // control flow, a recurrence: all that their regions access
    return false;
  return any_of(getStrides(a, buffer), [&](int64_t stride) {
    Residues first = getResidues(a, buffer, stride), second = getResidues(b, buffer, stride);
    auto meet = [](Range x, Range y) { return x.min <= y.max && y.min <= x.max; };
    return !meet(first.written, second.written) && !meet(first.written, second.read) &&
           !meet(first.read, second.written);
  });
}

} // namespace ptc::loop
