//===- MergeMembers.cpp - fewer passes inside a kernel --------------------===//
//
// Nodes that share outer dims run one after the other over the same slice, each in a loop of its own.
// While groups grow a pointwise node merges only with groups of one node; once they are final, a pointwise
// node P of a group moves into a later node T of it that reads what P writes:
//
//   e = exp(x - max);  sum(e)      becomes one loop over the row
//
// Allowed where the two walk the same elements in the same way (canMergeIntoConsumer), and no node between them
// touches what P writes: P's stores move to T's place.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Scheduler.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace {

struct Accesses {
  SmallVector<Value> read, written;
  explicit Accesses(Operation *node) { collectAccesses(node, read, written); }
  bool touchesAny(ArrayRef<Value> buffers) const {
    return llvm::any_of(
        buffers, [&](Value buffer) { return llvm::is_contained(read, buffer) || llvm::is_contained(written, buffer); });
  }
};

/// The buffer that `from` writes and `to` reads, if it is one.
Value getOnlyShared(const Accesses &from, const Accesses &to) {
  Value shared;
  for (Value buffer : from.written)
    if (llvm::is_contained(to.read, buffer)) {
      if (shared)
        return {};
      shared = buffer;
    }
  return shared;
}

/// Merges one pair; true if there was one.
bool mergeOne(Group &group, const FusionContext &context) {
  SmallVector<Operation *> &nodes = group.nodes;
  for (unsigned from = 0; from < nodes.size(); ++from) {
    if (!isa<PointwiseOp>(nodes[from]))
      continue;
    Accesses producer(nodes[from]);
    for (unsigned to = from + 1; to < nodes.size(); ++to) {
      Accesses consumer(nodes[to]);
      Value shared = getOnlyShared(producer, consumer);
      FusionPlan plan;
      if (shared && !llvm::is_contained(consumer.written, shared))
        plan = canMergeIntoConsumer(nodes[from], nodes[to], shared, /*isAlone=*/false, context);
      if (plan) {
        mergeIntoConsumer(nodes[from], nodes[to], plan, context);
        nodes.erase(nodes.begin() + from);
        return true;
      }
      if (consumer.touchesAny(producer.written))
        break;
    }
  }
  return false;
}

} // namespace

void loop::mergeMembers(Group &group, const FusionContext &context) {
  while (group.nodes.size() > 1 && mergeOne(group, context))
    ;
}
