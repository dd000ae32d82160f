//===- LowerRegions.cpp - prim.if and prim.loop ----------------------------===//
//
// A region becomes a region of nodes. What flows out of it is written to buffers that are declared around it, so that
// nothing inside is seen outside.
//
// A state of a loop lies in a buffer of two halves: round i reads half i mod 2 and writes half (i + 1) mod 2, and
// behind the loop the value is in half `rounds` mod 2. No round needs a copy, whatever the order in which it
// reads and writes; the halves are views (loop.part), and the host picks them. Refused: one buffer and a copy at
// the end of each round, a launch per state and round; one buffer written in place, right only where every element is
// read at the point that writes it (recurrence kernels keep such states in registers).
//
// Row i of a stack is a part of the whole stack, so the nodes that compute it write it where it stays. A scanned
// element is an index rewrite. What the region captures is computed once, in front of the loop.
//
//===----------------------------------------------------------------------===//

#include "lowering/prim_to_loop/FunctionLowering.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

static SmallVector<Expr> atItself(ArrayRef<Expr> dims) { return SmallVector<Expr>(dims); }

LogicalResult FunctionLowering::lowerRegion(Region &from, Region &to,
                                            function_ref<LogicalResult(Operation *yield)> storeYielded) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&to.front());
  // What is realized inside must not be seen outside.
  llvm::DenseMap<Value, Tensor> outer = values;
  LogicalResult result = lowerBlock(from.front());
  if (succeeded(result))
    result = storeYielded(from.front().getTerminator());
  values = std::move(outer);
  return result;
}

LogicalResult FunctionLowering::lowerIf(prim::IfOp op) {
  Location loc = op.getLoc();
  realize(get(op.getCondition()), loc);
  SmallVector<Value> results;
  for (Value result : op.getResults())
    results.push_back(createBuffer(prim::getDims(result), prim::getElementType(result), loc));
  auto branch = IfOp::create(builder, loc, get(op.getCondition()).buffer);
  for (auto [from, to] : {std::pair(&op.getThenRegion(), &branch.getThenRegion()),
                          std::pair(&op.getElseRegion(), &branch.getElseRegion())}) {
    to->emplaceBlock();
    LogicalResult lowered = lowerRegion(*from, *to, [&](Operation *yield) {
      for (auto [value, buffer] : llvm::zip_equal(yield->getOperands(), results))
        store(get(value), buffer, atItself, loc);
      return success();
    });
    if (failed(lowered))
      return failure();
  }
  for (auto [result, buffer] : llvm::zip(op.getResults(), results))
    set(result, readOf(buffer, prim::getElementType(result)));
  return success();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// What a region of a loop reads from outside again in each round is computed once. A view of a buffer stays a view.
void FunctionLowering::realizeCaptured(Region &region, Location loc) {
  region.walk([&](Operation *op) {
    for (Value operand : op->getOperands()) {
      if (region.isAncestor(operand.getParentRegion()))
        continue;
      Tensor &tensor = get(operand);
      if (!tensor.buffer && tensor.reads > 0 && (tensor.operations > 0 || tensor.reads > 1))
        realizeBelowViews(operand, loc);
    }
  });
}

/// A buffer in the order of its dims, whatever reads and writes it.
Value FunctionLowering::createRowMajorBuffer(ArrayRef<Expr> dims, Type elementType, Location loc) {
  auto layout = LayoutAttr::getRowMajor(context, dims.size());
  return BufferOp::create(builder, loc, BufferType::get(context, dims, prim::getScalarType(elementType), layout));
}

Value FunctionLowering::createPart(Value whole, Expr offset, ArrayRef<Expr> dims, Location loc) {
  Type elementType = cast<BufferType>(whole.getType()).getElementType();
  auto layout = LayoutAttr::getRowMajor(context, dims.size());
  return PartOp::create(builder, loc, BufferType::get(context, dims, elementType, layout), whole,
                        ExprAttr(offset.simplify(symbolRanges)));
}

namespace {
/// The two halves of a state's buffer, each of whole cache lines.
struct StateBuffer {
  Value whole;
  Expr half; // elements
  SmallVector<Expr> dims;

  static Expr getHalf(ArrayRef<Expr> dims, Type elementType, MLIRContext *context) {
    Expr count = product(context, dims);
    int64_t line = std::max<int64_t>(64 / getElementBytes(elementType), 1);
    return count.ceilDiv(line) * line;
  }
};
} // namespace

LogicalResult FunctionLowering::lowerLoop(prim::LoopOp op) {
  Location loc = op.getLoc();
  MLIRContext *context = op.getContext();
  if (op.getCarried() && !op.getCarried()->empty())
    return op.emitOpError("carries sizes, which has no lowering yet");
  realizeCaptured(op.getBody(), loc);

  // What the host reads before each round.
  Value limit, condition;
  if (Value value = op.getLimit()) {
    realize(get(value), loc);
    limit = get(value).buffer;
  }
  if (Value value = op.getCondition()) {
    condition = createBuffer({}, prim::getElementType(value), loc);
    store(get(value), condition, atItself, loc);
  }

  SmallVector<StateBuffer> states;
  for (Value initial : op.getInitial()) {
    StateBuffer state;
    state.dims = prim::getDims(initial);
    Type elementType = prim::getElementType(initial);
    state.half = StateBuffer::getHalf(state.dims, prim::getScalarType(elementType), context);
    state.whole = createRowMajorBuffer({state.half * 2}, elementType, loc);
    store(get(initial), createPart(state.whole, Expr::constant(context, 0), state.dims, loc), atItself, loc);
    states.push_back(state);
  }
  SmallVector<Value> stacks;
  for (Value stack : op.getStacks()) {
    SmallVector<Expr> dims = prim::getDims(stack);
    if (!op.getTrips())
      return op.emitOpError("stacks rows of a number that nothing bounds, which has no lowering yet");
    dims[0] = *op.getTrips();
    stacks.push_back(createRowMajorBuffer(dims, prim::getElementType(stack), loc));
  }

  // A loop behind which nothing needs to know the number of rounds but the parity of its states.
  StringAttr rounds = op.getRoundsAttr();
  if (!op.getRoundCount())
    rounds = builder.getStringAttr(op.getCounter() + "_rounds");
  auto repeat = RepeatOp::create(builder, loc, op.getCounterAttr(), op.getTripsAttr(), rounds, op.getCarriedAttr(),
                                 limit, condition);
  repeat.getBody().emplaceBlock();
  Expr round = Expr::symbol(context, op.getCounter());
  auto inRound = [&](const StateBuffer &state, Expr number) {
    return createPart(state.whole, number.mod(2) * state.half, state.dims, loc);
  };
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&repeat.getBlock());
    for (auto [argument, state] : llvm::zip_equal(op.getStateArgs(), states))
      set(argument, readOf(inRound(state, round), prim::getElementType(argument)));
    for (auto [argument, scanned] : llvm::zip_equal(op.getElementArgs(), op.getScanned()))
      set(argument, viewOf(get(scanned), prim::getDims(argument), [round](Body &, ArrayRef<Expr> at) {
            SmallVector<Expr> whole{round};
            whole.append(at.begin(), at.end());
            return whole;
          }));
  }
  LogicalResult lowered = lowerRegion(op.getBody(), repeat.getBody(), [&](Operation *) {
    for (auto [next, state] : llvm::zip_equal(op.getNextStates(), states))
      store(get(next), inRound(state, round + 1), atItself, loc);
    for (auto [row, stack] : llvm::zip_equal(op.getRows(), stacks)) {
      SmallVector<Expr> dims = prim::getDims(row);
      store(get(row), createPart(stack, round * product(context, dims), dims, loc), atItself, loc);
    }
    if (Value next = op.getNextCondition())
      store(get(next), condition, atItself, loc);
    return success();
  });
  if (failed(lowered))
    return failure();

  Expr count = op.getRoundCount() ? op.getRoundCount() : Expr::symbol(context, rounds.getValue());
  for (auto [result, state] : llvm::zip_equal(op.getFinalStates(), states))
    set(result, readOf(inRound(state, count), prim::getElementType(result)));
  for (auto [result, stack] : llvm::zip_equal(op.getStacks(), stacks)) {
    SmallVector<Expr> dims = prim::getDims(result);
    Value whole = cast<BufferType>(stack.getType()).getShape() == dims
                      ? stack
                      : createPart(stack, Expr::constant(context, 0), dims, loc);
    set(result, readOf(whole, prim::getElementType(result)));
  }
  return success();
}
