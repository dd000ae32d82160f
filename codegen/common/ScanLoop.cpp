//===- ScanLoop.cpp - running values along a scan's last dim --------------===//
#include "codegen/common/ScanLoop.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::codegen;

// One step: the states, one for each point and loop.running, enter and leave.
static SmallVector<Value> emitScanStep(KernelEmitter &e, Block &block, ArrayRef<EmissionPoint> points,
                                       ValueRange states) {
  SmallVector<Value> next(states);
  size_t slot = 0;
  for (const EmissionPoint &point : points) {
    BodyEmitter body(e, point);
    SmallVector<Operation *> ops; // up to the next loop.running
    for (Operation &op : block) {
      auto running = dyn_cast<loop::RunningOp>(op);
      if (!running) {
        ops.push_back(&op);
        continue;
      }
      body.emitOps(ops);
      ops.clear();
      Value value = e.splat(body.lookup(running.getValue()), point.lanes);
      Value before = states[slot];
      Value after = emitCombine(e, running.getKind(), before, value, running.getIsUnsigned());
      next[slot++] = after;
      body.bind(running.getResult(), running.getExclusive() ? before : after);
    }
    body.emitOps(ops);
  }
  return next;
}

void codegen::emitScanLoop(KernelEmitter &e, loop::ScanOp op, ArrayRef<EmissionPoint> points) {
  Block &block = op.getBody().front();
  SmallVector<Expr> domain = loop::getDomain(op);
  SmallVector<Value> states;
  for (const EmissionPoint &point : points)
    for (auto running : block.getOps<loop::RunningOp>()) {
      TypedAttr identity = getIdentity(running.getKind(), running.getType(), running.getIsUnsigned());
      states.push_back(e.splat(e.invariants.constant(identity), point.lanes));
    }
  Value extent = e.emitExpr(domain.back(), points.front());
  e.createLoop(e.constant(0), extent, 1, states, [&](Value iv, ValueRange carried) {
    Value position = op.getReverse() ? e.invariants.sub(e.invariants.sub(extent, e.constant(1)), iv) : iv;
    SmallVector<EmissionPoint> here(points);
    for (EmissionPoint &point : here)
      point.dims[domain.size() - 1] = position;
    return emitScanStep(e, block, here, carried);
  });
}
