//===- LowerRecurrence.cpp - loops that become one kernel -----------------===//
//
// A prim.loop whose number of rounds is known at entry and whose body holds no control flow and keeps all shapes
// becomes a loop.recurrence: the nodes of its body run one after another within one kernel, for all rounds. It is a
// property of the body, not of the operator that the loop came from; LSTM and a Scan over a cell written by hand look
// alike.
//
// A state is read from the block argument `now` and written to `next`, which are different memory: no order among
// the nodes of a round matters to it. Element i of what is scanned is an index with the step; so is row i of a stack.
//
//===----------------------------------------------------------------------===//

#include "ir/loop/Recurrence.h"
#include "lowering/prim_to_loop/FunctionLowering.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

/// The code of a kernel grows with its nodes; loops over larger bodies stay loops of launches.
static constexpr size_t mostOps = 512;

/// Whether the type has a dim that changes from round to round.
static bool changes(Type type, StringRef counter) {
  return isa<RankedTensorType>(type) && llvm::any_of(prim::getDims(type), [&](Expr dim) { return dim.uses(counter); });
}

bool FunctionLowering::isRecurrence(prim::LoopOp loop) {
  bool isCounted = loop.getTrips() && !loop.getLimit() && !loop.getCondition();
  bool carriesSizes = loop.getCarried() && !loop.getCarried()->empty();
  if (!isCounted || carriesSizes || loop.getRounds() || loop.getStateCount() == 0)
    return false;
  size_t ops = 0;
  for (Operation &op : loop.getBlock().without_terminator()) {
    bool isFixed = llvm::none_of(op.getResultTypes(), [&](Type type) { return changes(type, loop.getCounter()); });
    bool isKernelCode = !op.getNumRegions() && op.getNumResults() && isPure(&op) && !isa<prim::CallOp>(op);
    if (!isKernelCode || !isFixed || ++ops > mostOps)
      return false;
  }
  return true;
}

/// The buffer of a value as a kernel can take it as a state: all of it, in the order of its dims.
Value FunctionLowering::getRowMajor(Value value, Location loc) {
  Tensor &tensor = get(value);
  BufferOp made = tensor.buffer ? tensor.buffer.getDefiningOp<BufferOp>() : BufferOp();
  bool isPlain = tensor.buffer && !made;
  if (!isPlain && !(made && made.getResult().getType().getLayout())) {
    Value buffer = createRowMajorBuffer(tensor.dims, tensor.elementType, loc);
    store(tensor, buffer, [](ArrayRef<Expr> d) { return SmallVector<Expr>(d); }, loc);
    tensor = readOf(buffer, tensor.elementType);
  }
  return tensor.buffer;
}

LogicalResult FunctionLowering::lowerRecurrence(prim::LoopOp op) {
  Location loc = op.getLoc();
  realizeCaptured(op.getBody(), loc);
  Expr trips = *op.getTrips(), step = Expr::symbol(context, RecurrenceOp::stepSymbol);
  SmallVector<Value> initial, spare, finals, stacks;
  for (Value state : op.getInitial()) {
    SmallVector<Expr> dims = prim::getDims(state);
    initial.push_back(getRowMajor(state, loc));
    spare.push_back(createRowMajorBuffer(dims, prim::getElementType(state), loc));
    finals.push_back(createRowMajorBuffer(dims, prim::getElementType(state), loc));
  }
  for (Value stack : op.getStacks())
    stacks.push_back(createRowMajorBuffer(prim::getDims(stack), prim::getElementType(stack), loc));

  auto recurrence = RecurrenceOp::create(builder, loc, ExprAttr(trips), initial, spare, finals);
  Block &body = recurrence.getBody().emplaceBlock();
  auto whole = [](ArrayRef<Expr> d) { return SmallVector<Expr>(d); };
  auto atStep = [&](ArrayRef<Expr> d) {
    SmallVector<Expr> index{step};
    index.append(d.begin(), d.end());
    return index;
  };
  for (auto [argument, buffer] : llvm::zip_equal(op.getStateArgs(), finals)) {
    Value now = body.addArgument(buffer.getType(), loc);
    body.addArgument(buffer.getType(), loc);
    set(argument, readOf(now, prim::getElementType(argument)));
  }
  for (auto [argument, scanned] : llvm::zip_equal(op.getElementArgs(), op.getScanned()))
    set(argument, viewOf(get(scanned), prim::getDims(argument), [=](Body &, ArrayRef<Expr> d) { return atStep(d); }));
  LogicalResult lowered = lowerRegion(op.getBody(), recurrence.getBody(), [&](Operation *) {
    for (auto [number, next] : llvm::enumerate(op.getNextStates()))
      store(get(next), recurrence.getNext(number), whole, loc);
    for (auto [row, stack] : llvm::zip_equal(op.getRows(), stacks))
      store(get(row), stack, atStep, loc);
    return success();
  });
  if (failed(lowered))
    return failure();
  substituteExprs(recurrence, [&](StringRef name) { return name == op.getCounter() ? step : Expr(); });
  for (Operation &inner : llvm::make_early_inc_range(body))
    if (isa<WeightOp, ConstantOp>(inner))
      inner.moveBefore(recurrence);

  if (trips.range(symbolRanges).min < 1) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&recurrence.getOtherwise().emplaceBlock());
    for (auto [state, buffer] : llvm::zip_equal(op.getInitial(), finals))
      store(get(state), buffer, whole, loc);
  }
  for (auto [result, buffer] : llvm::zip_equal(op.getFinalStates(), finals))
    set(result, readOf(buffer, prim::getElementType(result)));
  for (auto [result, buffer] : llvm::zip_equal(op.getStacks(), stacks))
    set(result, readOf(buffer, prim::getElementType(result)));
  return success();
}
