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

namespace {
struct Chain {
  SmallVector<FusedOp> groups;
  SmallVector<Value> read, written;

  /// Buffers by one name for all that a state is.
  Chain(FusedOp group, const DenseMap<Value, Value> &states) : groups{group} {
    collectAccesses(group, read, written);
    for (SmallVector<Value> *list : {&read, &written})
      for (Value &buffer : *list)
        if (Value state = states.lookup(buffer))
          buffer = state;
  }
  bool writesFor(const Chain &other) const {
    return llvm::any_of(written, [&](Value buffer) {
      return llvm::is_contained(other.read, buffer) || llvm::is_contained(other.written, buffer);
    });
  }
  void join(const Chain &other) {
    groups.append(other.groups);
    read.append(other.read);
    written.append(other.written);
  }
};
} // namespace

SmallVector<SmallVector<FusedOp>> loop::findChains(RecurrenceOp op) {
  DenseMap<Value, Value> states;
  for (unsigned state = 0; state < op.getInitial().size(); ++state)
    for (Value buffer : {Value(op.getNow(state)), op.getSpare()[state], op.getFinals()[state]})
      states[buffer] = op.getNext(state);
  SmallVector<Chain> chains;
  for (FusedOp group : op.getBody().front().getOps<FusedOp>()) {
    SmallVector<Chain> apart;
    Chain own(group, states), joined = own;
    joined.groups.clear();
    for (Chain &chain : chains)
      if (own.writesFor(chain) || chain.writesFor(own))
        joined.join(chain);
      else
        apart.push_back(std::move(chain));
    joined.groups.push_back(group);
    apart.push_back(std::move(joined));
    chains = std::move(apart);
  }
  SmallVector<SmallVector<FusedOp>> groups;
  for (Chain &chain : chains) {
    llvm::sort(chain.groups, [](FusedOp a, FusedOp b) { return a->isBeforeInBlock(b); });
    groups.push_back(std::move(chain.groups));
  }
  return groups;
}

bool loop::isInRecurrence(Operation *op) { return op->getParentOfType<RecurrenceOp>() != nullptr; }

Expr loop::getPhase(KernelOp kernel) { return kernel->getAttrOfType<ExprAttr>(phaseAttr); }
