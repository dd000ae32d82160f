//===- GpuBarriers.cpp - where the threads of a row must wait -------------===//
//
// Two accesses of one memory, one of them a write, by different threads need a barrier between them. Whose thread an
// access belongs to says RowBuffers.cpp; what threads keep in registers is no memory.
//
// Arguments may share memory (buffers are reused in place), so different arguments count as one unless they are
// accessed at equal indices.
//
// A reduction over several warps has a barrier inside, behind everything but its outer part.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/GpuBarriers.h"
#include "codegen/common/ReductionSteps.h"
#include "codegen/gpu/RowBuffers.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

void Barriers::collect(Operation *node, ArrayRef<Operation *> ops, bool isOwn, SmallVectorImpl<Access> &into) const {
  auto add = [&](Value buffer, ArrayAttr indices, ValueRange operands, bool isWrite) {
    auto local = buffer.getDefiningOp<loop::BufferOp>();
    if (!local || (!isRowValue(local, config) && !countKept(local, config)))
      into.push_back({node, buffer, isOwn && operands.empty() ? indices[0] : Attribute(), isWrite});
  };
  for (Operation *op : ops)
    op->walk([&](Operation *inner) {
      if (auto load = dyn_cast<loop::LoadOp>(inner))
        add(load.getBuffer(), load.getIndices(), load.getIndexOperands(), false);
      else if (auto store = dyn_cast<loop::StoreOp>(inner))
        add(store.getBuffer(), store.getIndices(), store.getIndexOperands(), true);
    });
}

bool Barriers::conflict(const Access &a, const Access &b) const {
  if (!a.isWrite && !b.isWrite)
    return false;
  bool areArguments = isa<BlockArgument>(a.buffer) && isa<BlockArgument>(b.buffer);
  if (a.buffer != b.buffer && !areArguments)
    return false;
  bool isSameElement = a.index && a.index == b.index && a.buffer.getType() == b.buffer.getType();
  return !isSameElement || !sharesPoints(a.node, b.node, config);
}

bool Barriers::enter(Operation *node) {
  SmallVector<Access> early, late;
  SmallVector<Operation *> all;
  for (Region &region : node->getRegions())
    for (Operation &op : region.front())
      all.push_back(&op);
  if (isWholeRow(node, config)) {
    codegen::BodyParts parts = codegen::splitBody(node->getRegion(0).front());
    collect(node, parts.before, true, early);
    collect(node, parts.after, false, late);
  } else {
    collect(node, all, isa<loop::PointwiseOp>(node), early);
  }
  auto conflicts = [&](ArrayRef<Access> accesses) {
    return llvm::any_of(
        accesses, [&](const Access &b) { return llvm::any_of(open, [&](const Access &a) { return conflict(a, b); }); });
  };
  bool hasInner = isWholeRow(node, config) && config.threads > warpSize;
  bool isNeeded = conflicts(early) || (!hasInner && conflicts(late));
  if (isNeeded || hasInner)
    open.clear();
  if (!hasInner)
    open.append(early);
  open.append(late);
  return isNeeded;
}
