//===- MergeSums.cpp - reductions of the same elements as one node --------===//
//
// Reductions that do not depend on each other and read the same elements at the same points become one loop, which
// reads each element once:
//
//   a = min over i of x[i];  b = max over i of x[i]      the range of a tensor that is quantised
//   m = sum of x[i];  s = sum of x[i] * x[i]             as far as these are not fused with what reads them
//
// They need not follow each other: their results are less than what they read, which is dead sooner. Refused: those
// that read anything else, since a product of rows has a blocking of its own, and what is read under a mask.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/MergeNodes.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

/// More accumulators would not stay in registers.
static constexpr size_t mostSums = 4;

/// The one reduction of a group, if all that it does is reduce numbers of one type; else null.
static ReductionOp getOnlySum(const Group &group, Type &type) {
  auto sum = group.nodes.size() == 1 ? dyn_cast<ReductionOp>(group.nodes[0]) : ReductionOp();
  if (!sum || group.isOpaque)
    return {};
  for (Operation &op : sum.getBody().front()) {
    auto reduce = dyn_cast<ReduceOp>(op);
    bool isOther = reduce && type && reduce.getType() != type;
    if (isOther || op.getNumRegions() != 0 || isa<ArgReduceOp>(op))
      return {};
    type = reduce ? reduce.getType() : type;
  }
  return type ? sum : ReductionOp();
}

static size_t countSums(ReductionOp node) { return size_t(llvm::range_size(node.getBody().getOps<ReduceOp>())); }

static bool readSame(LoadOp a, LoadOp b) {
  return a.getBuffer() == b.getBuffer() && a.getIndices() == b.getIndices() && a.getType() == b.getType() &&
         !isIndirect(a) && !isIndirect(b);
}

static LoadOp findSame(LoadOp load, ReductionOp node) {
  for (LoadOp other : node.getBody().getOps<LoadOp>())
    if (readSame(load, other))
      return other;
  return {};
}

static bool readsAllOf(ReductionOp node, ReductionOp other) {
  return llvm::all_of(other.getBody().getOps<LoadOp>(), [&](LoadOp load) { return bool(findSame(load, node)); });
}

bool loop::canMergeSums(const Group &first, const Group &second) {
  Type type; // of the sums of both
  ReductionOp a = getOnlySum(first, type), b = getOnlySum(second, type);
  return a && b && getDomain(a) == getDomain(b) && a.getReduced() == b.getReduced() && readsAllOf(a, b) &&
         readsAllOf(b, a) && countSums(a) + countSums(b) <= mostSums && countBodyOps(a) + countBodyOps(b) <= maxBodyOps;
}

void loop::mergeSums(Group &first, const Group &second) {
  auto into = cast<ReductionOp>(first.nodes[0]), from = cast<ReductionOp>(second.nodes[0]);
  Block &body = into.getBody().front();
  for (LoadOp load : llvm::make_early_inc_range(from.getBody().getOps<LoadOp>())) {
    LoadOp same = findSame(load, into);
    same->moveBefore(&body, body.begin());
    load.replaceAllUsesWith(same.getResult());
    load.erase();
  }
  body.getOperations().splice(body.end(), from.getBody().front().getOperations());
  into->setLoc(fuseLocations(into, from));
  from->erase();
}
