//===- GroupOrder.h - what must run before what -----------------*- C++ -*-===//
//
// A graph of groups under fusion. Each has a rank, higher than those of what must run before it: a path between two
// groups is looked for between their ranks alone. A fusion ranks only those groups anew that lie between its two and
// depend on one of them (Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2007:
// the two become one, as if each had to run before the other). So both cost what they touch, not what there is.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_COMPILER_SCHEDULE_GROUPORDER_H
#define PTC_COMPILER_SCHEDULE_GROUPORDER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

namespace ptc::loop {

class GroupOrder {
public:
  using Numbers = llvm::SmallDenseSet<unsigned>;

  explicit GroupOrder(unsigned count);

  /// Group `number` must run after these. All that come first are of lower numbers.
  void addEarlier(unsigned number, llvm::ArrayRef<unsigned> earlier);
  /// Direct dependences.
  const Numbers &getEarlier(unsigned number) const { return nodes[number].earlier; }
  const Numbers &getLater(unsigned number) const { return nodes[number].later; }

  /// Whether `from` must run before `to` by way of a third group.
  bool hasPathAround(unsigned from, unsigned to) const;
  /// Whether `a` has the lower rank: then it does not depend on `b`.
  bool isRankedBefore(unsigned a, unsigned b) const { return nodes[a].rank < nodes[b].rank; }
  /// `gone` becomes part of `kept`, which is ranked before it and which it depends on directly, if at all.
  void fuse(unsigned kept, unsigned gone);
  /// The group that what began as group `number` is in.
  unsigned getKept(unsigned number);
  /// All groups, the lowest number first that may run.
  llvm::SmallVector<unsigned> getOrder() const;

private:
  struct Node {
    Numbers earlier, later;
    unsigned rank, keptIn;
  };
  llvm::SmallVector<unsigned> collectBetween(unsigned number, unsigned other, bool isLater) const;
  void rankFused(unsigned kept, unsigned gone);

  llvm::SmallVector<Node> nodes;
};

} // namespace ptc::loop

#endif // PTC_COMPILER_SCHEDULE_GROUPORDER_H
