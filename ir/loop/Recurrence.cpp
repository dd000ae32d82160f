//===- Recurrence.cpp - loops as one kernel: the op -----------------------===//

#include "ir/loop/Recurrence.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

#define GET_OP_CLASSES
#include "ir/loop/RecurrenceOps.cpp.inc"

LogicalResult RecurrenceOp::verify() {
  size_t states = getInitial().size();
  if (getSpare().size() != states || getFinals().size() != states || getBody().getNumArguments() != 2 * states)
    return emitOpError("has ") << states << " states; each needs a spare, a result and two block arguments";
  for (size_t state = 0; state < states; ++state) {
    auto element = cast<BufferType>(getInitial()[state].getType()).getElementType();
    for (Value buffer : {getSpare()[state], getFinals()[state], Value(getNow(state)), Value(getNext(state))}) {
      auto type = dyn_cast<BufferType>(buffer.getType());
      if (!type || type.getElementType() != element)
        return emitOpError("has buffers of different element types for state ") << state;
    }
    for (Operation *user : getNow(state).getUsers())
      if (isa<StoreOp>(user))
        return emitOpError("writes what state ") << state << " is now";
  }
  return success();
}

bool loop::isInRecurrence(Operation *op) { return op->getParentOfType<RecurrenceOp>() != nullptr; }

Expr loop::getPhase(KernelOp kernel) { return kernel->getAttrOfType<ExprAttr>(phaseAttr); }
