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
// A result of two branches that give it different dims lies in a buffer for the most that they can be. Where nothing
// bounds them the branch taken makes room for its own (loop.regrow).
//
// A state whose dims change has halves for the most that they can be. Where nothing bounds them, each round writes a
// buffer of its own; then what holds the state grows (loop.regrow) and the value is copied there.
//
// A state that each round makes longer, concat(state, x) along the outermost dim of more than one element, has no
// halves: what is there stays, and x is written behind it. So n rounds write n rows, not n^2 / 2, in any order
// with what reads the state: its elements do not change any more. Without bounds its memory grows first, and keeps what
// it holds. Refused where others read the concat, too: its bytes would be seen both as a whole and as parts, which are
// taken to be disjoint.
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

static Expr getBytes(ArrayRef<Expr> dims, Type elementType) {
  return product(elementType.getContext(), dims) * getElementBytes(prim::getScalarType(elementType));
}

/// Makes room for such a value in the buffer.
static void regrow(OpBuilder &b, Location loc, Value buffer, ArrayRef<Expr> dims, Type elementType, bool keeps) {
  RegrowOp::create(b, loc, buffer, ExprAttr(getBytes(dims, elementType)), keeps);
}

static Expr getUpperBound(Expr expr, const SymbolRanges &ranges, const llvm::StringMap<Expr> &most) {
  return boundExpr(expr, ranges,
                   [&](StringRef name) -> std::optional<ExprBounds> {
                     auto found = most.find(name);
                     if (found == most.end())
                       return std::nullopt;
                     int64_t least = ranges.lookup(name).min;
                     bool isKnown = least != std::numeric_limits<int64_t>::min();
                     return ExprBounds{isKnown ? Expr::constant(expr.getContext(), least) : Expr(), found->second};
                   })
      .upper;
}

LogicalResult FunctionLowering::lowerRegion(Region &from, Region &to,
                                            function_ref<LogicalResult(Operation *yield)> storeYielded) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&to.front());
  values.emplace_back();
  LogicalResult result = lowerBlock(from.front());
  if (succeeded(result))
    result = storeYielded(from.front().getTerminator());
  values.pop_back();
  return result;
}

/// The most that the symbols can be which ops inside `op` and `op` itself bind, over those of the entry.
static void collectUpperBounds(Operation *op, const SymbolRanges &ranges, llvm::StringMap<Expr> &most) {
  auto note = [&](bool wanted) {
    if (auto binder = dyn_cast<prim::SymbolBinderOpInterface>(op))
      binder.forEachBinding([&](StringRef name, Expr upper, bool isInside) {
        if (isInside == wanted)
          most[name] = upper ? getUpperBound(upper, ranges, most) : Expr();
      });
  };
  note(/*wanted=*/true);
  for (Region &region : op->getRegions())
    for (Operation &inner : region.getOps())
      collectUpperBounds(&inner, ranges, most);
  note(/*wanted=*/false);
}

/// Whether the run needs to know more than the entry's symbols to tell how large the value can be.
bool FunctionLowering::isBounded(Value value) {
  if (!upperBounds)
    collectUpperBounds(function, symbolRanges, upperBounds.emplace());
  return llvm::all_of(prim::getDims(value),
                      [&](Expr dim) { return bool(getUpperBound(dim, symbolRanges, *upperBounds)); });
}

LogicalResult FunctionLowering::lowerIf(prim::IfOp op) {
  Location loc = op.getLoc();
  realize(get(op.getCondition()), loc);
  // A result whose dims differ between the branches lies in the order of its dims, which each branch knows for itself.
  auto isJoined = [&](Value result, unsigned number) {
    return op.getThenRegion().front().getTerminator()->getOperand(number).getType() != result.getType() ||
           op.getElseRegion().front().getTerminator()->getOperand(number).getType() != result.getType();
  };
  SmallVector<Value> results;
  SmallVector<bool> grows;
  for (auto [number, result] : llvm::enumerate(op.getResults())) {
    SmallVector<Expr> dims = prim::getDims(result);
    Type elementType = prim::getElementType(result);
    grows.push_back(isJoined(result, number) && !isBounded(result));
    if (grows.back())
      dims = {Expr::constant(context, 0)};
    results.push_back(isJoined(result, number) ? createRowMajorBuffer(dims, elementType, loc)
                                               : createBuffer(dims, elementType, loc));
  }
  auto branch = IfOp::create(builder, loc, get(op.getCondition()).buffer, op.getJoinedAttr());
  for (auto [from, to] : {std::pair(&op.getThenRegion(), &branch.getThenRegion()),
                          std::pair(&op.getElseRegion(), &branch.getElseRegion())}) {
    to->emplaceBlock();
    LogicalResult lowered = lowerRegion(*from, *to, [&](Operation *yield) {
      for (auto [number, value] : llvm::enumerate(yield->getOperands())) {
        Value buffer = results[number];
        if (grows[number])
          regrow(builder, loc, buffer, prim::getDims(value), prim::getElementType(value), /*keeps=*/false);
        if (isJoined(op.getResult(number), number))
          buffer = createPart(buffer, Expr::constant(context, 0), prim::getDims(value), loc);
        store(get(value), buffer, atItself, loc);
      }
      return success();
    });
    if (failed(lowered))
      return failure();
  }
  for (auto [number, result] : llvm::enumerate(op.getResults())) {
    Value buffer = results[number];
    if (grows[number])
      buffer = createPart(buffer, Expr::constant(context, 0), prim::getDims(result), loc);
    set(result, readOf(buffer, prim::getElementType(result)));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// What computes a value carries its own node's name, not the loop's; nothing computes an argument.
static Location getLocOfMaker(Value value, Location loc) {
  Operation *maker = value.getDefiningOp();
  return maker ? maker->getLoc() : loc;
}

/// What a region of a loop reads from outside again in each round is computed once. A view of a buffer stays a view.
void FunctionLowering::realizeCaptured(Region &region, Location loc) {
  region.walk([&](Operation *op) {
    for (Value operand : op->getOperands()) {
      if (region.isAncestor(operand.getParentRegion()))
        continue;
      Tensor &tensor = get(operand);
      if (!tensor.buffer && tensor.reads > 0 && (tensor.operations > 0 || tensor.reads > 1))
        realizeBelowViews(operand, getLocOfMaker(operand, loc));
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

void FunctionLowering::storeBehind(prim::ConcatOp append, Value place) {
  Expr offset = product(context, prim::getDims(append.getInputs()[0]));
  for (Value added : append.getInputs().drop_front()) {
    SmallVector<Expr> dims = prim::getDims(added);
    store(get(added), createPart(place, offset, dims, append.getLoc()), atItself, append.getLoc());
    offset = offset + product(context, dims);
  }
}

namespace {
/// Where a state lies: in one of two halves of whole cache lines, or, if it gets longer in place or grows without
/// bounds, at the beginning.
struct StateBuffer {
  Value whole;
  Expr half;             // elements; null: it has no halves
  prim::ConcatOp append; // null: no round writes behind what is there
  bool grows = false;    // without bounds
};

/// The dims of a state, with the sizes that its loop carries at their initial values, or the most that they can be.
struct StateDims {
  SmallVector<Expr> initial, most;
  bool isBounded = true; // else `most` says nothing
};
} // namespace

static StateDims getStateDims(prim::LoopOp op, BlockArgument state) {
  StateDims dims;
  auto at = [&](Expr dim, bool isInitial) {
    return dim.substitute([&](StringRef name) -> Expr {
      if (auto carried = op.getCarriedAttr())
        for (auto size : carried.getAsRange<prim::CarriedAttr>())
          if (size.getName() == name) {
            dims.isBounded &= bool(size.getAtMost());
            return isInitial || !size.getAtMost() ? size.getInitial() : size.getAtMost();
          }
      return {};
    });
  };
  for (Expr dim : prim::getDims(state)) {
    dims.initial.push_back(at(dim, true));
    dims.most.push_back(at(dim, false));
  }
  return dims;
}

/// The concat that puts a round's values behind all that the state has, if in memory that is behind, too.
static prim::ConcatOp findAppend(prim::LoopOp op, unsigned number) {
  BlockArgument state = op.getStateArgs()[number];
  auto concat = op.getNextStates()[number].getDefiningOp<prim::ConcatOp>();
  if (!concat || concat->getBlock() != state.getOwner() || !concat->hasOneUse() || concat.getInputs()[0] != state)
    return {};
  SmallVector<Expr> initial = prim::getDims(op.getInitial()[number]), before = prim::getDims(state),
                    behind = prim::getDims(concat.getResult());
  for (auto [axis, dim] : llvm::enumerate(before))
    if (axis != concat.getAxis() && (axis < concat.getAxis() ? !dim.isConstant(1) || !initial[axis].isConstant(1)
                                                             : dim != initial[axis] || dim != behind[axis]))
      return {};
  return concat;
}

namespace {
/// One loop on its way to loop.repeat: what lies around it, what a round reads and writes, what is behind it.
class LoopLowering {
public:
  LoopLowering(FunctionLowering &whole, prim::LoopOp op)
      : whole(whole), op(op), loc(op.getLoc()), context(op.getContext()), zero(Expr::constant(context, 0)),
        round(Expr::symbol(context, op.getCounter())) {}

  void createControls();
  void createStates();
  LogicalResult createStacks();
  RepeatOp createRepeat();
  void setRoundArguments();
  void storeRound();
  void setResults(RepeatOp repeat);

private:
  Value partOf(const StateBuffer &state, Expr number, Value like) {
    return whole.createPart(state.whole, state.half ? number.mod(2) * state.half : zero, prim::getDims(like), loc);
  }
  void storeAppended(Value next, const StateBuffer &state);

  FunctionLowering &whole;
  prim::LoopOp op;
  Location loc;
  MLIRContext *context;
  Expr zero, round;
  Value limit, condition; // which the host reads before each round
  SmallVector<StateBuffer> states;
  SmallVector<Value> stacks;
};
} // namespace

void LoopLowering::createControls() {
  if (Value value = op.getLimit()) {
    whole.realize(whole.get(value), loc);
    limit = whole.get(value).buffer;
  }
  if (Value value = op.getCondition()) {
    condition = whole.createBuffer({}, prim::getElementType(value), loc);
    whole.store(whole.get(value), condition, atItself, loc);
  }
}

void LoopLowering::createStates() {
  for (auto [number, initial] : llvm::enumerate(op.getInitial())) {
    StateBuffer state;
    StateDims dims = getStateDims(op, op.getStateArgs()[number]);
    Type elementType = prim::getElementType(initial);
    state.grows = !dims.isBounded;
    if ((state.append = findAppend(op, number))) {
      whole.appends.insert(state.append);
    } else if (!state.grows) {
      int64_t line = std::max<int64_t>(64 / getElementBytes(prim::getScalarType(elementType)), 1);
      state.half = product(context, dims.most).ceilDiv(line) * line;
    }
    SmallVector<Expr> place = state.half ? SmallVector<Expr>{state.half * 2} : state.grows ? dims.initial : dims.most;
    state.whole = whole.createRowMajorBuffer(place, elementType, loc);
    whole.store(whole.get(initial), whole.createPart(state.whole, zero, prim::getDims(initial), loc), atItself, loc);
    states.push_back(state);
  }
}

LogicalResult LoopLowering::createStacks() {
  for (Value stack : op.getStacks()) {
    SmallVector<Expr> dims = prim::getDims(stack);
    if (!op.getTrips())
      return op.emitOpError("stacks rows of a number that nothing bounds, which has no lowering yet");
    dims[0] = *op.getTrips();
    stacks.push_back(whole.createRowMajorBuffer(dims, prim::getElementType(stack), loc));
  }
  return success();
}

RepeatOp LoopLowering::createRepeat() {
  // A loop behind which nothing needs to know the number of rounds but the parity of its states.
  StringAttr rounds = op.getRoundsAttr();
  if (!op.getRoundCount())
    rounds = whole.builder.getStringAttr(op.getCounter() + "_rounds");
  auto repeat = RepeatOp::create(whole.builder, loc, op.getCounterAttr(), op.getTripsAttr(), rounds,
                                 op.getCarriedAttr(), limit, condition);
  repeat.getBody().emplaceBlock();
  return repeat;
}

void LoopLowering::setRoundArguments() {
  for (auto [argument, state] : llvm::zip_equal(op.getStateArgs(), states))
    whole.set(argument, whole.readOf(partOf(state, round, argument), prim::getElementType(argument)));
  for (auto [argument, scanned] : llvm::zip_equal(op.getElementArgs(), op.getScanned()))
    whole.set(argument,
              whole.viewOf(whole.get(scanned), prim::getDims(argument), [round = round](Body &, ArrayRef<Expr> at) {
                SmallVector<Expr> index{round};
                index.append(at.begin(), at.end());
                return index;
              }));
}

void LoopLowering::storeAppended(Value next, const StateBuffer &state) {
  Value place = state.whole;
  if (state.grows) {
    regrow(whole.builder, loc, place, prim::getDims(next), prim::getElementType(next), /*keeps=*/true);
    place = whole.createPart(place, zero, prim::getDims(next), loc);
  }
  whole.storeBehind(state.append, place);
}

void LoopLowering::storeRound() {
  SmallVector<std::pair<Value, Tensor>> grown; // states that wait until no other reads the old ones
  for (auto [next, state] : llvm::zip_equal(op.getNextStates(), states)) {
    if (state.append) {
      storeAppended(next, state);
      continue;
    }
    if (state.half) {
      whole.store(whole.get(next), partOf(state, round + 1, next), atItself, loc);
      continue;
    }
    Type elementType = prim::getElementType(next);
    Value own = whole.createRowMajorBuffer(prim::getDims(next), elementType, loc);
    whole.store(whole.get(next), own, atItself, loc);
    grown.push_back({state.whole, whole.readOf(own, elementType)});
  }
  for (auto [row, stack] : llvm::zip_equal(op.getRows(), stacks)) {
    SmallVector<Expr> dims = prim::getDims(row);
    whole.store(whole.get(row), whole.createPart(stack, round * product(context, dims), dims, loc), atItself,
                getLocOfMaker(row, loc));
  }
  if (Value next = op.getNextCondition())
    whole.store(whole.get(next), condition, atItself, loc);
  for (auto &[buffer, tensor] : grown) {
    regrow(whole.builder, loc, buffer, tensor.dims, tensor.elementType, /*keeps=*/false);
    whole.store(tensor, whole.createPart(buffer, zero, tensor.dims, loc), atItself, loc);
  }
}

void LoopLowering::setResults(RepeatOp repeat) {
  Expr count = op.getRoundCount() ? op.getRoundCount() : Expr::symbol(context, *repeat.getRounds());
  for (auto [result, state] : llvm::zip_equal(op.getFinalStates(), states))
    whole.set(result, whole.readOf(partOf(state, count, result), prim::getElementType(result)));
  for (auto [result, stack] : llvm::zip_equal(op.getStacks(), stacks)) {
    SmallVector<Expr> dims = prim::getDims(result);
    bool isWhole = cast<BufferType>(stack.getType()).getShape() == dims;
    whole.set(result,
              whole.readOf(isWhole ? stack : whole.createPart(stack, zero, dims, loc), prim::getElementType(result)));
  }
}

LogicalResult FunctionLowering::lowerLoop(prim::LoopOp op) {
  realizeCaptured(op.getBody(), op.getLoc());
  LoopLowering lowering(*this, op);
  lowering.createControls();
  lowering.createStates();
  if (failed(lowering.createStacks()))
    return failure();
  RepeatOp repeat = lowering.createRepeat();
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&repeat.getBlock());
    lowering.setRoundArguments();
  }
  auto storeRound = [&](Operation *) {
    lowering.storeRound();
    return success();
  };
  if (failed(lowerRegion(op.getBody(), repeat.getBody(), storeRound)))
    return failure();
  lowering.setResults(repeat);
  return success();
}
