#include "compiler/memory/BufferUses.h"

using namespace mlir;

namespace ptc::loop {

/// The last operation inside, in program order.
static Operation *getLastInside(Operation *op) {
  Operation *last = op;
  op->walk<WalkOrder::PreOrder>([&](Operation *inner) { last = inner; });
  return last;
}

/// The outermost loop around `op` that is inside of `block`; `op` itself may be it.
static RepeatOp getLoopInside(Block *block, Operation *op) {
  RepeatOp found;
  for (; op && op->getBlock() != block; op = op->getParentOp())
    if (auto repeat = dyn_cast<RepeatOp>(op))
      found = repeat;
  if (auto repeat = dyn_cast_or_null<RepeatOp>(op))
    found = repeat;
  return found;
}

static void collectUses(Value buffer, Block *block, SmallVectorImpl<UseSpan> &uses) {
  for (Operation *user : buffer.getUsers()) {
    if (isa<FlattenOp, PartOp>(user)) {
      collectUses(user->getResult(0), block, uses);
      continue;
    }
    RepeatOp repeat = getLoopInside(block, user);
    if (repeat)
      uses.push_back({repeat, getLastInside(repeat)});
    else if (auto launch = dyn_cast<LaunchOp>(user))
      uses.push_back({getFirstJoined(launch), getLastJoined(launch)});
    else
      uses.push_back({user, user});
  }
}

SmallVector<UseSpan> getUses(Value buffer) {
  SmallVector<UseSpan> uses;
  collectUses(buffer, buffer.getParentBlock(), uses);
  return uses;
}

} // namespace ptc::loop
