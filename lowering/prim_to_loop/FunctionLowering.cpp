//===- FunctionLowering.cpp - from an entry function to a loop.program ----===//

#include "lowering/prim_to_loop/FunctionLowering.h"
#include "ir/expr/DimName.h"
#include "ir/prim/Elements.h"
#include "ir/prim/GuardNodes.h"
#include "ir/prim/Variants.h"
#include "ir/prim/WeightAttrs.h"
#include "lowering/prim_to_loop/Passes.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_LOWERPRIMTOLOOP
#include "lowering/prim_to_loop/Passes.h.inc"
} // namespace ptc

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

SymbolRanges loop::getDomainRanges(const SymbolRanges &symbols, ArrayRef<Expr> domain) {
  SymbolRanges ranges = symbols;
  for (auto [index, extent] : llvm::enumerate(domain)) {
    ExprRange known = extent.range(symbols);
    ExprRange range;
    range.min = 0;
    if (known.max != std::numeric_limits<int64_t>::max())
      range.max = std::max<int64_t>(known.max - 1, 0);
    range.below = extent;
    ranges[dimName(index)] = range;
  }
  return ranges;
}

Value Body::emitIndex(Expr expr, ArrayRef<Value> operands) {
  expr = expr.simplify(ranges);
  return IndexOp::create(builder, loc, builder.getI64Type(), ExprAttr(expr), operands);
}

/// What a narrow value is computed in is not the model's business: from one operation to the next it may stay wide. The
/// model's own casts have no such flag, and round.
static arith::FastMathFlagsAttr mayStayWide(Body &body) {
  return arith::FastMathFlagsAttr::get(body.builder.getContext(), arith::FastMathFlags::contract);
}

Value loop::unwidened(Value value) {
  auto widening = value.getDefiningOp<prim::ConvertOp>();
  if (!widening || !prim::getElementType(value).isF32())
    return value;
  Type from = prim::getElementType(widening.getX());
  return from.isF16() || from.isBF16() ? widening.getX() : value;
}

Value loop::widen(Body &body, Value scalar) {
  Type type = scalar.getType();
  if (!isa<FloatType>(type) || type.getIntOrFloatBitWidth() >= 32)
    return scalar;
  return arith::ExtFOp::create(body.builder, body.loc, body.builder.getF32Type(), scalar, mayStayWide(body));
}

Value loop::narrow(Body &body, Value scalar, Type elementType) {
  Type to = prim::getScalarType(elementType);
  if (scalar.getType() == to || !isa<FloatType>(to))
    return scalar;
  return arith::TruncFOp::create(body.builder, body.loc, to, scalar, /*roundingmode=*/nullptr, mayStayWide(body));
}

SmallVector<Expr> FunctionLowering::dims(unsigned first, unsigned count) {
  SmallVector<Expr> list;
  for (unsigned i = 0; i < count; ++i)
    list.push_back(Expr::dim(context, first + i));
  return list;
}

Body FunctionLowering::beginBody(Region &region, ArrayRef<Expr> domain, Location loc, TypeRange arguments) {
  Block &block = region.emplaceBlock();
  for (Type type : arguments)
    block.addArgument(type, loc);
  builder.setInsertionPointToEnd(&block);
  return Body{builder, loc, getDomainRanges(symbolRanges, domain), SmallVector<Expr>(domain)};
}

bool Body::holds(Expr condition) const {
  // The least value of what is affine in a dim lies at one of its ends, which may be a size.
  for (auto [dim, extent] : llvm::enumerate(domain)) {
    std::string name = dimName(dim);
    if (!condition.uses(name))
      continue;
    Expr rest, coefficient = condition.coefficientOf(name, &rest);
    if (!coefficient || !coefficient.isConstant())
      break;
    condition = coefficient.getValue() < 0 ? rest + coefficient * (extent - 1) : rest;
  }
  return condition.simplify(ranges).range(ranges).min >= 0;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

void FunctionLowering::set(Value value, Tensor tensor) {
  std::unique_ptr<Tensor> &place = values.back()[value];
  if (place)
    *place = std::move(tensor);
  else
    place = std::make_unique<Tensor>(std::move(tensor));
}

Tensor &FunctionLowering::get(Value value) {
  for (const Values &region : llvm::reverse(values))
    if (auto found = region.find(value); found != region.end()) {
      if (&region != &values.back())
        set(value, *found->second);
      break;
    }
  return *values.back().at(value);
}

Value FunctionLowering::createBuffer(ArrayRef<Expr> dims, Type elementType, Location loc) {
  auto type = BufferType::get(context, dims, prim::getScalarType(elementType));
  return BufferOp::create(builder, loc, type);
}

Tensor FunctionLowering::readOf(Value buffer, Type elementType) {
  Tensor tensor;
  tensor.dims = cast<BufferType>(buffer.getType()).getShape();
  tensor.elementType = elementType;
  tensor.buffer = buffer;
  tensor.reads = 1;
  tensor.element = [buffer](Body &body, const Index &index) -> Value {
    SmallVector<Expr> at;
    for (Expr expr : index.at)
      at.push_back(expr.simplify(body.ranges));
    return LoadOp::create(body.builder, body.loc, buffer, ArrayRef<Expr>(at), ValueRange(index.operands));
  };
  return tensor;
}

Tensor FunctionLowering::viewOf(const Tensor &tensor, ArrayRef<Expr> dims,
                                std::function<SmallVector<Expr>(Body &, ArrayRef<Expr>)> map) {
  Tensor view = tensor;
  view.dims.assign(dims.begin(), dims.end());
  view.buffer = {};
  view.element = [inner = tensor.element, map](Body &body, const Index &index) {
    return inner(body, {map(body, index.at), index.operands});
  };
  return view;
}

void FunctionLowering::store(const Tensor &tensor, Value buffer, function_ref<SmallVector<Expr>(ArrayRef<Expr>)> at,
                             Location loc) {
  OpBuilder::InsertionGuard guard(builder);
  if (!tensor.origins.empty())
    loc = FusedLoc::get(context, tensor.origins);
  auto node = PointwiseOp::create(builder, loc, prim::getExprArray(context, tensor.dims));
  Body body = beginBody(node.getBody(), tensor.dims, loc);
  SmallVector<Expr> position = dims(0, tensor.dims.size());
  Value scalar = tensor.element(body, {position, {}});
  StoreOp::create(builder, loc, scalar, buffer, ArrayRef<Expr>(at(position)));
}

void FunctionLowering::realize(Tensor &tensor, Location loc) {
  if (tensor.buffer)
    return;
  Value buffer = createBuffer(tensor.dims, tensor.elementType, loc);
  store(tensor, buffer, [](ArrayRef<Expr> d) { return SmallVector<Expr>(d); }, loc);
  tensor = readOf(buffer, tensor.elementType);
}

void FunctionLowering::realizeUnlessCheap(Tensor &tensor, Location loc, int operations, int reads) {
  if (tensor.operations > operations || tensor.reads > reads)
    realize(tensor, loc);
}

static bool hasDivision(Expr expr) {
  bool isDivision = expr.getKind() == ExprKind::FloorDiv || expr.getKind() == ExprKind::Mod;
  return isDivision || llvm::any_of(expr.getOperands(), hasDivision);
}

/// Where the elements of `view` lie in `base`, in dims of `view`.
SmallVector<Expr> FunctionLowering::findBelowViews(Value view, Value base, ArrayRef<Operation *> views) {
  Tensor computed = get(base);
  SmallVector<Expr> at;
  get(base).element = [&](Body &, const Index &index) -> Value {
    at = index.at;
    return {};
  };
  for (Operation *op : llvm::reverse(views))
    lowerView(op);
  Body body{builder, view.getLoc(), getDomainRanges(symbolRanges, prim::getDims(view))};
  get(view).element(body, {dims(0, prim::getRank(view)), {}});
  set(base, computed);
  for (Operation *op : llvm::reverse(views))
    lowerView(op);
  return at;
}

/// Whether row-major positions in dims of `extents` are affine.
static bool isAffine(ArrayRef<Expr> at, ArrayRef<Expr> extents, const SymbolRanges &ranges) {
  Expr position = Expr::constant(at.front().getContext(), 0);
  for (auto [index, extent] : llvm::zip(at, extents))
    position = position * extent + index;
  return !hasDivision(position.simplify(ranges));
}

void FunctionLowering::realizeBelowViews(Value value, Location loc, bool asRows) {
  SmallVector<Operation *> views;
  Value base = value;
  while (!get(base).buffer && isPermutation(base.getDefiningOp())) {
    views.push_back(base.getDefiningOp());
    base = views.back()->getOperand(0);
  }
  bool staysView = false;
  if (!views.empty()) {
    SmallVector<Expr> at = findBelowViews(value, base, views), from = prim::getDims(base), to = prim::getDims(value);
    if (at.empty() || to.empty())
      staysView = !asRows;
    else if (asRows)
      staysView = from.back() == to.back() && at.back() == Expr::dim(context, to.size() - 1);
    else
      staysView = isAffine(at, from, getDomainRanges(symbolRanges, to));
  }
  if (!staysView)
    return realize(get(value), loc);
  realize(get(base), loc);
  for (Operation *op : llvm::reverse(views))
    lowerView(op);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

FunctionLowering::FunctionLowering(func::FuncOp function, OpBuilder &builder, TargetTraits target)
    : function(function), builder(builder), target(target), context(builder.getContext()) {
  auto symbols = function->getAttrOfType<DictionaryAttr>(prim::symbolsAttr);
  symbolRanges = prim::getSymbolRanges(symbols);
  symbolHints = prim::getSymbolHints(symbols);
}

LogicalResult FunctionLowering::lowerOp(Operation *op) {
  if (prim::isNarrowedWeight(op)) {
    lowerConstant(op);
    return success();
  }
  if (isa<prim::PointwiseOpInterface>(op)) {
    lowerPointwise(op);
    return success();
  }
  if (isa<prim::ConstantOp, prim::ExprsOp, prim::WeightOp, prim::IotaOp>(op)) {
    lowerConstant(op);
    return success();
  }
  if (lowerView(op) || lowerIndexing(op) || lowerReduction(op) || lowerContraction(op))
    return success();
  if (auto branch = dyn_cast<prim::IfOp>(op))
    return lowerIf(branch);
  if (auto loop = dyn_cast<prim::LoopOp>(op))
    return target.recurrences && isRecurrence(loop) ? lowerRecurrence(loop) : lowerLoop(loop);
  if (auto bind = dyn_cast<prim::BindOp>(op)) {
    if (auto exprs = bind.getX().getDefiningOp<prim::ExprsOp>()) {
      ExprAttr value = prim::getExprs(exprs.getValues())[0];
      BindOp::create(builder, op->getLoc(), bind.getSymbolAttr(), Value(), value, bind.getAtMostAttr());
      return success();
    }
    realize(get(bind.getX()), op->getLoc());
    BindOp::create(builder, op->getLoc(), bind.getSymbolAttr(), get(bind.getX()).buffer, ExprAttr(),
                   bind.getAtMostAttr());
    return success();
  }
  if (auto guard = dyn_cast<prim::GuardOp>(op)) {
    GuardOp::create(builder, op->getLoc(), guard.getConditionAttr(), guard.getBecauseAttr());
    return success();
  }
  if (auto call = dyn_cast<prim::CallOp>(op)) {
    lowerCall(call);
    return success();
  }
  return op->emitOpError("has no lowering to loop");
}

/// Reading a value several times repeats its work: realize what computes anything
/// from memory, unless a single user reads it. Fusion takes the buffer away again
/// where the users run in the same loop. Bodies stay of a size that vectorizes well
/// and compiles in time proportional to the model's.
static bool shouldRealize(const Tensor &tensor, Value value) {
  if (tensor.buffer || value.hasOneUse() || value.use_empty())
    return tensor.reads > 32 || tensor.operations > 100;
  return tensor.reads > 0 && (tensor.operations > 0 || tensor.reads > 2);
}

static bool isView(Operation *op) {
  return isa<prim::BroadcastOp, prim::ReshapeOp, prim::TransposeOp, prim::SliceOp, prim::PadOp>(op);
}

/// Whether elements of the op's result are computed where they are read, unless it is realized.
static bool isComputedWhereRead(Operation *op) {
  return isView(op) || isa<prim::PointwiseOpInterface, prim::GatherOp, prim::GatherElementsOp, prim::GatherNdOp>(op);
}

/// Whether the node that `loc` names is among those of `whole`.
static bool contains(Location whole, Location loc) {
  auto fused = dyn_cast<FusedLoc>(whole);
  return whole == loc ||
         (fused && llvm::any_of(fused.getLocations(), [&](Location part) { return contains(part, loc); }));
}

/// Whether the op counts among those whose work its result is. Views of constants do not: equal ones of all nodes are
/// one, which names but the first of them. Nor do views that a node ends with: what they show is computed where it
/// lies.
static bool isWork(Operation *op) {
  if (!isView(op))
    return true;
  Operation *maker = op->getOperand(0).getDefiningOp(), *source = maker;
  while (source && isView(source))
    source = source->getOperand(0).getDefiningOp();
  bool isOfConstant = source && source->hasTrait<OpTrait::ZeroOperands>();
  return !isOfConstant && !(maker && contains(maker->getLoc(), op->getLoc()));
}

/// Notes whose work the results of `op` are, or that of its nodes (those behind `before`): its own and that of
/// operands which it reads without a buffer between.
void FunctionLowering::traceOrigins(Operation *op, Operation *before) {
  SmallVector<Location> origins;
  for (Value operand : op->getOperands())
    for (Location origin : get(operand).origins)
      if (!llvm::is_contained(origins, origin))
        origins.push_back(origin);
  if (isWork(op) && !llvm::is_contained(origins, op->getLoc()))
    origins.push_back(op->getLoc());
  if (isComputedWhereRead(op)) {
    if (Tensor &tensor = get(op->getResult(0)); !tensor.buffer)
      tensor.origins = origins;
    return;
  }
  Block *block = builder.getInsertionBlock();
  for (Operation &node : llvm::make_range(before ? std::next(before->getIterator()) : block->begin(), block->end()))
    if (isNode(&node) && node.getLoc() == op->getLoc())
      node.setLoc(FusedLoc::get(context, origins));
}

/// Whether products read the value in f32.
static bool isWidenedForProducts(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    if (isa<prim::ReshapeOp, prim::TransposeOp, prim::SliceOp, prim::BroadcastOp, prim::PadOp, prim::ConcatOp>(user))
      return isWidenedForProducts(user->getResult(0));
    auto isProduct = [](Operation *op) { return isa<prim::MatmulOp, prim::ConvolutionOp, prim::AttentionOp>(op); };
    return isa<prim::ConvertOp>(user) && llvm::any_of(user->getUsers(), isProduct);
  });
}

/// Whether the op rounds what products read: the narrow value is what lies in memory, below views.
static bool isRounding(Operation *op) {
  auto convert = dyn_cast<prim::ConvertOp>(op);
  if (!convert || prim::isNarrowedWeight(op) || !prim::getElementType(convert.getX()).isF32())
    return false;
  Type to = prim::getElementType(convert.getY());
  return (to.isF16() || to.isBF16()) && isWidenedForProducts(convert.getY());
}

/// Whether the op widens integers: what lies in memory is narrow, and widening it again is cheap.
static bool isWideningOfIntegers(Operation *op) {
  auto convert = dyn_cast<prim::ConvertOp>(op);
  if (!convert)
    return false;
  Type from = prim::getElementType(convert.getX()), to = prim::getElementType(convert.getY());
  return isa<IntegerType>(from) && to.isIntOrFloat() && from.getIntOrFloatBitWidth() >= 8 &&
         from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth();
}

LogicalResult FunctionLowering::lowerBlock(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (auto tap = dyn_cast<prim::TapOp>(op)) {
      lowerTap(tap);
      continue;
    }
    if (appends.contains(&op))
      continue;
    Block *target = builder.getInsertionBlock();
    Operation *before = target->empty() ? nullptr : &target->back();
    if (failed(lowerOp(&op)))
      return failure();
    traceOrigins(&op, before);
    for (Value result : op.getResults())
      if (shouldRealize(get(result), result) || isRounding(&op)) {
        bool isWidening = isWideningOfIntegers(&op);
        realizeBelowViews(isWidening ? op.getOperand(0) : result, op.getLoc());
        if (isWidening)
          lowerPointwise(&op);
      }
  }
  return success();
}

namespace {

/// Names of the arguments or results, `x0`, ... where there is none.
ArrayAttr collectNames(func::FuncOp function, bool results) {
  SmallVector<Attribute> names;
  Builder b(function.getContext());
  unsigned count = results ? function.getNumResults() : function.getNumArguments();
  for (unsigned i = 0; i < count; ++i) {
    Attribute name = results ? function.getResultAttr(i, prim::nameAttr) : function.getArgAttr(i, prim::nameAttr);
    names.push_back(name ? name : b.getStringAttr((results ? "y" : "x") + Twine(i)));
  }
  return b.getArrayAttr(names);
}

ArrayAttr collectElementTypes(TypeRange types) {
  SmallVector<Attribute> list;
  for (Type type : types)
    list.push_back(TypeAttr::get(cast<RankedTensorType>(type).getElementType()));
  return ArrayAttr::get(types.front().getContext(), list);
}

/// The first argument dim that is each symbol itself.
DictionaryAttr collectSymbolSources(func::FuncOp function) {
  Builder b(function.getContext());
  llvm::StringMap<bool> seen;
  SmallVector<NamedAttribute> sources;
  for (auto [argument, type] : llvm::enumerate(function.getArgumentTypes()))
    for (auto [axis, dim] : llvm::enumerate(prim::getDims(type)))
      if (dim.isSymbol() && seen.try_emplace(dim.getSymbol()).second)
        sources.push_back(b.getNamedAttr(dim.getSymbol(), b.getDenseI64ArrayAttr({int64_t(argument), int64_t(axis)})));
  return b.getDictionaryAttr(sources);
}

} // namespace

/// Results that share an argument's memory are computed beside it and copied there when everything else is done:
/// others may still read the argument.
void FunctionLowering::storeResults(OperandRange results, ArrayRef<Value> outputs, ArrayRef<int64_t> aliases) {
  llvm::SmallBitVector isShared(results.size());
  for (size_t i = 1; i < aliases.size(); i += 2)
    isShared.set(aliases[i]);
  SmallVector<Tensor> copies;
  for (unsigned number : isShared.set_bits()) {
    Tensor copy = get(results[number]);
    if (isa_and_nonnull<BlockArgument>(copy.buffer))
      copy.buffer = {}; // another argument, which its own result may overwrite
    realize(copy, results[number].getLoc());
    copies.push_back(copy);
  }
  auto whole = [](ArrayRef<Expr> dims) { return SmallVector<Expr>(dims); };
  for (auto [number, result] : llvm::enumerate(results))
    if (!isShared[number])
      store(get(result), outputs[number], whole, result.getLoc());
  for (auto [number, copy] : llvm::zip(isShared.set_bits(), copies))
    store(copy, outputs[number], whole, results[number].getLoc());
}

LogicalResult FunctionLowering::run() {
  auto orEmpty = [&](StringRef name) {
    auto attr = function->getAttrOfType<DictionaryAttr>(name);
    return attr ? attr : builder.getDictionaryAttr({});
  };
  auto guards = function->getAttrOfType<ArrayAttr>(prim::guardsAttr);
  SmallVector<int64_t> aliases;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto result = function.getArgAttrOfType<IntegerAttr>(i, prim::aliasAttr))
      aliases.append({int64_t(i), result.getInt()});
  Block &entry = function.getBody().front();
  auto emptyTypes = builder.getArrayAttr({});
  auto program =
      ProgramOp::create(builder, function.getLoc(), function.getName(), int64_t(entry.getNumArguments()),
                        collectNames(function, false), collectNames(function, true),
                        entry.getNumArguments() ? collectElementTypes(function.getArgumentTypes()) : emptyTypes,
                        function.getNumResults() ? collectElementTypes(function.getResultTypes()) : emptyTypes,
                        orEmpty(prim::symbolsAttr), collectSymbolSources(function),
                        guards ? guards : builder.getArrayAttr({}), aliases, ExprAttr(), ExprAttr());
  for (StringRef name :
       {prim::foldedWeightsAttr, prim::variantOfAttr, prim::pinsAttr, prim::mapsAttr, prim::guardNodesAttr})
    if (Attribute kept = function->getAttr(name))
      program->setAttr(name, kept);
  Block &block = program.getBody().emplaceBlock();

  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&block);
  auto addArgument = [&](Type tensor) {
    auto rank = cast<RankedTensorType>(tensor).getRank();
    Type element = cast<RankedTensorType>(tensor).getElementType();
    auto type = BufferType::get(context, prim::getDims(tensor), prim::getScalarType(element),
                                LayoutAttr::getRowMajor(context, rank));
    return block.addArgument(type, function.getLoc());
  };
  for (BlockArgument argument : entry.getArguments())
    set(argument, readOf(addArgument(argument.getType()), prim::getElementType(argument)));
  if (failed(lowerBlock(entry)))
    return failure();
  SmallVector<Value> outputs;
  for (Value result : entry.getTerminator()->getOperands())
    outputs.push_back(addArgument(result.getType()));
  storeResults(entry.getTerminator()->getOperands(), outputs, aliases);
  return success();
}

namespace {

struct LowerPrimToLoop : ptc::impl::LowerPrimToLoopBase<LowerPrimToLoop> {
  using LowerPrimToLoopBase::LowerPrimToLoopBase;
  void runOnOperation() override {
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      OpBuilder builder(function);
      if (failed(prim::verifyBoundSymbols(function)) ||
          failed(FunctionLowering(function, builder,
                                  {recurrences, convertsWeights, readsRowsAnywhere, groupsInWindows, storesBorders,
                                   skipsZeros, takesByteRows, mostStreamedRows})
                     .run()))
        return signalPassFailure();
      function.erase();
    }
  }
};

} // namespace
