//===- ReferenceEval.cpp - execution of prim functions --------------------===//
#include "ir/eval/ReferenceEval.h"
#include "ir/Diagnostics.h"
#include "ir/eval/EvalOps.h"
#include "ir/expr/ConditionText.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace ptc;
using namespace ptc::eval;

llvm::Error eval::error(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

char Lack::ID;

llvm::Expected<llvm::ArrayRef<char>> NoWeights::getBytes(prim::WeightRefAttr ref) {
  return error("the weight '" + ref.getName() + "' is not available here");
}

llvm::Expected<int64_t> eval::evaluateExpr(Expr e, const Scope &scope) {
  if (std::optional<int64_t> value = e.evaluate(scope.symbols))
    return *value;
  return error("the value of '" + e.str() + "' is not known");
}

llvm::Expected<Dims> eval::evaluateExprs(llvm::ArrayRef<Expr> exprs, const Scope &scope) {
  Dims values;
  for (Expr e : exprs) {
    llvm::Expected<int64_t> value = evaluateExpr(e, scope);
    if (!value)
      return value.takeError();
    values.push_back(*value);
  }
  return values;
}

llvm::Expected<Tensor> eval::allocate(mlir::Value value, const Scope &scope) {
  llvm::Expected<Dims> dims = evaluateExprs(prim::getDims(value), scope);
  if (!dims)
    return dims.takeError();
  return Tensor::create(prim::getElementType(value), *dims);
}

static Results dispatch(mlir::Operation *op, Operands x, Scope &scope) {
#define CASE(NAME) .Case([&](prim::NAME##Op o) { return eval##NAME(o, x, scope); })
  // clang-format off
  return llvm::TypeSwitch<mlir::Operation *, Results>(op)
      .Case([&](prim::PointwiseOpInterface o) { return evalPointwise(o, x, scope); })
      CASE(Constant) CASE(Exprs) CASE(Weight) CASE(Iota)
      CASE(Broadcast) CASE(Reshape) CASE(Transpose) CASE(Slice) CASE(Pad) CASE(Concat)
      CASE(Gather) CASE(GatherElements) CASE(GatherNd) CASE(ScatterElements) CASE(ScatterNd)
      CASE(Reduce) CASE(ArgReduce) CASE(Scan) CASE(Sort) CASE(Nms) CASE(WindowReduce)
      CASE(Matmul) CASE(Convolution) CASE(Attention) CASE(Call)
      .Default([](mlir::Operation *o) -> Results {
        return llvm::make_error<Lack>("'" + o->getName().getStringRef() + "' is not evaluated");
      });
  // clang-format on
#undef CASE
}

/// Puts the node that the op stems from before the message.
static llvm::Error atNode(mlir::Operation *op, llvm::Error failure) {
  std::string node = formatLocation(op->getLoc());
  if (node.empty())
    node = op->getName().getStringRef().str();
  bool isLack = failure.isA<Lack>();
  std::string text = node + ": " + llvm::toString(std::move(failure));
  return isLack ? llvm::make_error<Lack>(text) : error(text);
}

Results eval::evaluate(mlir::Operation *op, Operands operands, const SymbolValues &symbols, WeightSource &weights) {
  Scope scope{symbols, weights};
  Results results = dispatch(op, operands, scope);
  if (!results)
    return atNode(op, results.takeError());
  return results;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

namespace {
/// Executes blocks. A value lives from its op to the last op that uses it.
class Interpreter {
public:
  Interpreter(SymbolValues symbols, WeightSource &weights, Observer observer)
      : symbols(std::move(symbols)), weights(weights), observer(observer) {}

  void define(mlir::Value value, Tensor tensor) { values.insert_or_assign(value, std::move(tensor)); }
  bool isDefined(mlir::Value value) const { return values.contains(value); }
  const Tensor &get(mlir::Value value) const { return values.find(value)->second; }
  /// The values that the block's terminator hands out.
  Results run(mlir::Block &block);
  llvm::Error runOp(mlir::Operation &op);
  bool isBound(llvm::StringRef symbol) const { return symbols.contains(symbol); }

private:
  Results runIf(prim::IfOp op);
  Results runLoop(prim::LoopOp op);
  llvm::Expected<bool> isTrue(const Tensor &condition);
  llvm::Error runBind(prim::BindOp op);
  llvm::Expected<std::vector<const Tensor *>> lookup(mlir::OperandRange operands);

  SymbolValues symbols;
  WeightSource &weights;
  Observer observer;
  llvm::DenseMap<mlir::Value, Tensor> values;
};
} // namespace

llvm::Expected<std::vector<const Tensor *>> Interpreter::lookup(mlir::OperandRange operands) {
  std::vector<const Tensor *> found;
  for (mlir::Value operand : operands) {
    auto it = values.find(operand);
    if (it == values.end())
      return error("an operand has no value");
    found.push_back(&it->second);
  }
  return found;
}

llvm::Expected<bool> Interpreter::isTrue(const Tensor &condition) {
  if (condition.getNumElements() != 1)
    return error("the condition has " + llvm::Twine(condition.getNumElements()) + " elements");
  return condition.getInt(0) != 0;
}

Results Interpreter::runIf(prim::IfOp op) {
  auto condition = lookup(op->getOperands());
  if (!condition)
    return condition.takeError();
  llvm::Expected<bool> isTaken = isTrue(*condition->front());
  if (!isTaken)
    return isTaken.takeError();
  Results results = run((*isTaken ? op.getThenRegion() : op.getElseRegion()).front());
  if (results && op.getJoinedAttr())
    for (auto size : op.getJoinedAttr().getAsRange<prim::JoinedAttr>()) {
      auto value = evaluateExpr(*isTaken ? size.getThenSize() : size.getElseSize(), Scope{symbols, weights});
      if (!value)
        return value.takeError();
      symbols[size.getName()] = *value;
    }
  return results;
}

/// Element `index` along dim 0.
static llvm::Expected<Tensor> takeRow(const Tensor &x, int64_t index) {
  if (index >= x.getDim(0))
    return error("round " + llvm::Twine(index) + " of a loop over " + llvm::Twine(x.getDim(0)) + " elements");
  llvm::Expected<Tensor> row = Tensor::create(x.getElementType(), x.getShape().drop_front());
  if (row)
    for (int64_t i = 0; i < row->getNumElements(); ++i)
      row->copyElement(i, x, index * row->getNumElements() + i);
  return row;
}

/// Rows of the type of `stacked` as one tensor.
static llvm::Expected<Tensor> stackRows(mlir::Value stacked, llvm::ArrayRef<Tensor> rows, const Scope &scope) {
  llvm::Expected<Tensor> result = allocate(stacked, scope);
  if (!result)
    return result;
  int64_t position = 0;
  for (const Tensor &row : rows) {
    if (row.getShape() != result->getShape().drop_front())
      return error("the rows of a loop differ in their dims");
    for (int64_t i = 0; i < row.getNumElements(); ++i)
      result->copyElement(position++, row, i);
  }
  return result;
}

Results Interpreter::runLoop(prim::LoopOp op) {
  auto operands = lookup(op->getOperands());
  if (!operands)
    return operands.takeError();
  Scope scope{symbols, weights};
  llvm::Expected<int64_t> trips = op.getTrips() ? evaluateExpr(*op.getTrips(), scope) : INT64_MAX;
  if (!trips)
    return trips.takeError();
  llvm::ArrayRef<const Tensor *> given = *operands;
  int64_t rounds = *trips;
  bool isLive = true;
  if (op.getLimit())
    rounds = std::min(rounds, given.consume_front()->getInt(0));
  if (op.getCondition()) {
    llvm::Expected<bool> holds = isTrue(*given.consume_front());
    if (!holds)
      return holds.takeError();
    isLive = *holds;
  }
  unsigned states = op.getStateCount(), kinds = op.getStacks().size();
  std::vector<Tensor> values; // the states
  for (const Tensor *initial : given.take_front(states))
    values.push_back(*initial);
  std::vector<Tensor> scanned;
  for (const Tensor *operand : given.drop_front(states))
    scanned.push_back(*operand); // the region may use up what it captures
  std::vector<std::vector<Tensor>> rows(kinds);
  auto carried = op.getCarriedAttr() ? op.getCarriedAttr() : mlir::ArrayAttr::get(op.getContext(), {});
  for (auto size : carried.getAsRange<prim::CarriedAttr>()) {
    llvm::Expected<int64_t> initial = evaluateExpr(size.getInitial(), scope);
    if (!initial)
      return initial.takeError();
    symbols[size.getName()] = *initial;
  }
  int64_t round = 0;
  for (; isLive && round < rounds; ++round) {
    symbols[op.getCounter()] = round;
    for (auto [argument, state] : llvm::zip_equal(op.getStateArgs(), values))
      define(argument, std::move(state));
    for (auto [argument, whole] : llvm::zip_equal(op.getElementArgs(), scanned)) {
      llvm::Expected<Tensor> row = takeRow(whole, round);
      if (!row)
        return row.takeError();
      define(argument, std::move(*row));
    }
    Results yielded = run(op.getBlock());
    if (!yielded)
      return yielded;
    auto next = yielded->begin();
    if (op.getCondition())
      isLive = (next++)->getInt(0) != 0;
    for (Tensor &state : values)
      state = std::move(*next++);
    for (std::vector<Tensor> &kind : rows)
      kind.push_back(std::move(*next++));
    llvm::SmallVector<std::pair<llvm::StringRef, int64_t>> sizes;
    for (auto size : carried.getAsRange<prim::CarriedAttr>()) {
      llvm::Expected<int64_t> value = evaluateExpr(size.getNext(), scope);
      if (!value)
        return value.takeError();
      sizes.push_back({size.getName(), *value});
    }
    for (auto [name, value] : sizes)
      symbols[name] = value;
  }
  if (op.getRounds())
    symbols[*op.getRounds()] = round;
  for (auto size : carried.getAsRange<prim::CarriedAttr>())
    symbols[size.getFinal()] = symbols.lookup(size.getName());
  for (auto [stack, kind] : llvm::zip_equal(op.getStacks(), rows)) {
    llvm::Expected<Tensor> stacked = stackRows(stack, kind, scope);
    if (!stacked)
      return stacked.takeError();
    values.push_back(std::move(*stacked));
  }
  return values;
}

/// The range that the function's symbols give the bound one, and its own bound, as the library checks them.
llvm::Error Interpreter::runBind(prim::BindOp op) {
  auto operands = lookup(op->getOperands());
  if (!operands)
    return operands.takeError();
  int64_t value = operands->front()->getInt(0);
  auto function = op->getParentOfType<mlir::func::FuncOp>();
  SymbolRanges ranges =
      prim::getSymbolRanges(function ? function->getAttrOfType<mlir::DictionaryAttr>(prim::symbolsAttr) : nullptr);
  ExprRange range = ranges.lookup(op.getSymbol());
  if (Expr upper = op.getUpper())
    if (std::optional<int64_t> most = upper.evaluate(symbols))
      range.max = std::min(range.max, *most);
  if (value < range.min || value > range.max)
    return error("size " + op.getSymbol() + " is " + llvm::Twine(value) + ", which is not in " +
                 llvm::Twine(range.min) + ".." + llvm::Twine(range.max));
  symbols[op.getSymbol()] = value;
  return llvm::Error::success();
}

/// "a == b is needed, but a is 1 and b is 2"
static std::string brokenGuardText(Expr condition, const SymbolValues &symbols) {
  llvm::SmallVector<std::string> values;
  condition.walkSymbols([&](llvm::StringRef name) {
    std::string text = (name + " is " + llvm::Twine(symbols.lookup(name))).str();
    if (!llvm::is_contained(values, text))
      values.push_back(text);
  });
  return conditionText(condition) + " is needed, but " + llvm::join(values, " and ");
}

llvm::Error Interpreter::runOp(mlir::Operation &op) {
  Results results = std::vector<Tensor>();
  if (auto bind = mlir::dyn_cast<prim::BindOp>(op)) {
    llvm::Error failure = runBind(bind);
    return failure ? atNode(&op, std::move(failure)) : llvm::Error::success();
  }
  if (auto guard = mlir::dyn_cast<prim::GuardOp>(op)) {
    if (guard.getCondition().evaluate(symbols) == 0)
      return atNode(
          &op, error(guard.getBecause() ? guard.getBecause()->str() : brokenGuardText(guard.getCondition(), symbols)));
    return llvm::Error::success();
  }
  if (mlir::isa<prim::TapOp>(op)) // shows a value that is there
    return observer ? observer(&op, *results) : llvm::Error::success();
  if (auto choice = mlir::dyn_cast<prim::IfOp>(op)) {
    results = runIf(choice);
  } else if (auto loop = mlir::dyn_cast<prim::LoopOp>(op)) {
    results = runLoop(loop);
  } else {
    auto operands = lookup(op.getOperands());
    if (!operands)
      return operands.takeError();
    Scope scope{symbols, weights};
    results = dispatch(&op, *operands, scope);
    if (!results)
      return atNode(&op, results.takeError());
  }
  if (!results)
    return results.takeError();
  if (observer)
    if (llvm::Error stop = observer(&op, *results))
      return stop;
  for (auto [value, tensor] : llvm::zip(op.getResults(), *results))
    define(value, std::move(tensor));
  return llvm::Error::success();
}

/// For each op of a block the values that nothing after it uses.
static llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> lastUses(mlir::Block &block) {
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> result;
  llvm::DenseSet<mlir::Value> seen;
  for (mlir::Operation &op : llvm::reverse(block)) {
    op.walk([&](mlir::Operation *nested) {
      for (mlir::Value operand : nested->getOperands())
        if (operand.getParentBlock() == &block && seen.insert(operand).second)
          result[&op].push_back(operand);
    });
    for (mlir::Value value : op.getResults())
      if (value.use_empty())
        result[&op].push_back(value);
  }
  return result;
}

Results Interpreter::run(mlir::Block &block) {
  auto dead = lastUses(block);
  for (mlir::Operation &op : block.without_terminator()) {
    if (llvm::Error failure = runOp(op))
      return failure;
    for (mlir::Value value : dead.lookup(&op))
      values.erase(value);
  }
  auto operands = lookup(block.getTerminator()->getOperands());
  if (!operands)
    return operands.takeError();
  std::vector<Tensor> results;
  for (const Tensor *operand : *operands)
    results.push_back(*operand);
  return results;
}

/// What an argument is called in messages.
static std::string nameOfInput(mlir::func::FuncOp function, unsigned index) {
  if (auto name = function.getArgAttrOfType<mlir::StringAttr>(index, prim::nameAttr))
    return "input '" + name.getValue().str() + "'";
  return "input " + std::to_string(index);
}

/// Checks inputs against the function's types and binds symbols that are dims.
static llvm::Error bindInputs(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> inputs, SymbolValues &symbols) {
  if (inputs.size() != function.getNumArguments())
    return error("the model takes " + llvm::Twine(function.getNumArguments()) + " inputs, not " +
                 llvm::Twine(inputs.size()));
  for (auto [index, input] : llvm::enumerate(inputs)) {
    auto type = mlir::dyn_cast<mlir::RankedTensorType>(function.getArgument(index).getType());
    if (!type)
      return error(nameOfInput(function, index) + " is not a tensor");
    if (type.getElementType() != input.getElementType())
      return error(nameOfInput(function, index) + " has another element type than the model's");
    if (type.getRank() != input.getRank())
      return error(nameOfInput(function, index) + " has rank " + llvm::Twine(input.getRank()) + ", not " +
                   llvm::Twine(type.getRank()));
    for (auto [axis, dim] : llvm::enumerate(prim::getDims(type)))
      if (dim.isSymbol())
        symbols.try_emplace(dim.getSymbol(), input.getDim(axis));
  }
  for (auto [index, input] : llvm::enumerate(inputs))
    for (auto [axis, dim] : llvm::enumerate(prim::getDims(function.getArgument(index))))
      if (std::optional<int64_t> size = dim.evaluate(symbols); size != input.getDim(axis))
        return error(nameOfInput(function, index) + ": dim " + llvm::Twine(axis) + " is " +
                     llvm::Twine(input.getDim(axis)) + ", not " + dim.str());
  return llvm::Error::success();
}

static llvm::Error checkGuards(mlir::func::FuncOp function, const SymbolValues &symbols) {
  auto guards = function->getAttrOfType<mlir::ArrayAttr>(prim::guardsAttr);
  if (!guards)
    return llvm::Error::success();
  for (Expr guard : prim::getExprs(guards))
    if (guard.evaluate(symbols) == 0)
      return error(brokenGuardText(guard, symbols));
  return llvm::Error::success();
}

llvm::Expected<SymbolValues> eval::bindSymbols(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> inputs,
                                               const SymbolValues &symbols) {
  SymbolValues bound = symbols;
  if (llvm::Error failure = bindInputs(function, inputs, bound))
    return failure;
  if (llvm::Error failure = checkGuards(function, bound))
    return failure;
  return bound;
}

Results eval::evaluate(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> inputs, const SymbolValues &symbols,
                       WeightSource &weights, Observer observer) {
  if (!llvm::hasSingleElement(function.getBody()))
    return error("the function does not consist of one block");
  llvm::Expected<SymbolValues> bound = bindSymbols(function, inputs, symbols);
  if (!bound)
    return bound.takeError();
  Interpreter interpreter(std::move(*bound), weights, observer);
  for (auto [argument, input] : llvm::zip(function.getArguments(), inputs))
    interpreter.define(argument, input);
  return interpreter.run(function.getBody().front());
}

//===----------------------------------------------------------------------===//
// Single values
//===----------------------------------------------------------------------===//

/// Calls `visit` for each value from outside that the op, or one inside of its regions, uses.
static void walkUsedValues(mlir::Operation *op, llvm::function_ref<void(mlir::Value)> visit) {
  op->walk([&](mlir::Operation *inner) {
    for (mlir::Value operand : inner->getOperands())
      if (!op->isAncestor(operand.getParentBlock()->getParentOp()))
        visit(operand);
  });
}

/// The ops that give symbols their values, in the function around `value`.
static llvm::StringMap<mlir::Operation *> collectBinders(mlir::Value value) {
  llvm::StringMap<mlir::Operation *> binders;
  mlir::Operation *op = value.getParentBlock()->getParentOp();
  while (op && !mlir::isa<mlir::func::FuncOp>(op))
    op = op->getParentOp();
  if (op)
    op->walk([&](prim::BindOp bind) { binders[bind.getSymbol()] = bind; });
  return binders;
}

llvm::Expected<Tensor> eval::evaluateValue(mlir::Value wanted, llvm::ArrayRef<Tensor> inputs, GivenValues given,
                                           const SymbolValues &symbols, WeightSource &weights) {
  if (wanted.getParentBlock()->getParentOp()->getParentOfType<prim::LoopOp>() ||
      mlir::isa<prim::LoopOp>(wanted.getParentBlock()->getParentOp()))
    return error("a value inside a loop is another one in each round");
  Interpreter interpreter(symbols, weights, nullptr);
  llvm::SmallVector<std::pair<mlir::Operation *, bool>> open; // true: what it needs is defined
  llvm::StringMap<mlir::Operation *> binders = collectBinders(wanted);
  auto need = [&](mlir::Value value) {
    if (interpreter.isDefined(value))
      return;
    const Tensor *tensor = value == wanted ? nullptr : given(value);
    if (tensor)
      interpreter.define(value, *tensor);
    else if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value))
      interpreter.define(value, inputs[argument.getArgNumber()]);
    else
      open.push_back({value.getDefiningOp(), false});
  };
  auto needSymbols = [&](mlir::Operation *op) {
    op->walk([&](mlir::Operation *inner) {
      prim::walkSymbols(inner, [&](llvm::StringRef symbol) {
        if (mlir::Operation *binder = binders.lookup(symbol); binder && !interpreter.isBound(symbol))
          open.push_back({binder, false});
      });
    });
  };
  auto isDone = [&](mlir::Operation *op) {
    auto bind = mlir::dyn_cast<prim::BindOp>(op);
    return bind ? interpreter.isBound(bind.getSymbol()) : interpreter.isDefined(op->getResult(0));
  };
  need(wanted);
  while (!open.empty()) {
    auto [op, isReady] = open.pop_back_val();
    if (isReady) {
      if (llvm::Error failure = interpreter.runOp(*op))
        return failure;
    } else if (!isDone(op)) {
      open.push_back({op, true});
      walkUsedValues(op, need);
      if (!binders.empty())
        needSymbols(op);
    }
  }
  return interpreter.get(wanted);
}

//===----------------------------------------------------------------------===//
// Folding
//===----------------------------------------------------------------------===//

/// Bytes of a static tensor type; nothing for other types.
static std::optional<int64_t> bytesOf(mlir::Type type) {
  auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || !tensor.getElementType().isIntOrFloat())
    return std::nullopt;
  std::optional<int64_t> count = countElements(tensor.getShape());
  int64_t stride = (tensor.getElementTypeBitWidth() + 7) / 8, bytes;
  if (!count || __builtin_mul_overflow(*count, stride, &bytes))
    return std::nullopt;
  return bytes;
}

std::optional<std::vector<mlir::DenseElementsAttr>> eval::fold(mlir::Operation *op, const FoldLimits &limits) {
  if (op->getNumRegions() != 0 || op->getNumResults() == 0)
    return std::nullopt;
  for (mlir::Type type : llvm::concat<const mlir::Type>(op->getOperandTypes(), op->getResultTypes()))
    if (std::optional<int64_t> bytes = bytesOf(type); !bytes || *bytes > limits.maxBytes)
      return std::nullopt;
  std::vector<Tensor> operands;
  for (mlir::Value operand : op->getOperands()) {
    auto constant = operand.getDefiningOp<prim::ConstantOp>();
    llvm::Expected<Tensor> tensor =
        constant ? Tensor::fromAttribute(constant.getValue()) : llvm::Expected<Tensor>(error("not a constant"));
    if (!tensor) {
      llvm::consumeError(tensor.takeError());
      return std::nullopt;
    }
    operands.push_back(std::move(*tensor));
  }
  std::vector<const Tensor *> pointers;
  for (const Tensor &operand : operands)
    pointers.push_back(&operand);
  NoWeights weights;
  Results results = evaluate(op, pointers, SymbolValues(), weights);
  if (!results) {
    llvm::consumeError(results.takeError());
    return std::nullopt;
  }
  std::vector<mlir::DenseElementsAttr> attributes;
  for (const Tensor &tensor : *results)
    attributes.push_back(tensor.toAttribute());
  return attributes;
}
