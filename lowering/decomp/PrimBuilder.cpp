//===- PrimBuilder.cpp - values, constants, broadcasting ------------------===//
#include "lowering/decomp/PrimBuilder.h"
#include "ir/eval/ReferenceEval.h"
#include "lowering/decomp/SymbolicFold.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::decomp;
using namespace ptc::prim;

//===----------------------------------------------------------------------===//
// Attempts
//===----------------------------------------------------------------------===//

bool PrimBuilder::attempt(llvm::function_ref<bool()> build, std::vector<Diagnostic> &reports) {
  ShapeScope before = shapes;
  bool hadFailed = failed, isBuilt;
  std::vector<Diagnostic> said;
  {
    ScopedDiagnosticHandler keep(getContext(), [&](Diagnostic &report) { said.push_back(std::move(report)); });
    isBuilt = build() && !failed;
  }
  if (isBuilt) {
    for (Diagnostic &warning : said)
      getContext()->getDiagEngine().emit(std::move(warning));
    return true;
  }
  std::move(said.begin(), said.end(), std::back_inserter(reports));
  shapes = before;
  failed = hadFailed;
  return false;
}

void PrimBuilder::report(std::vector<Diagnostic> reports) {
  failed = true;
  for (Diagnostic &report : reports)
    getContext()->getDiagEngine().emit(std::move(report));
}

//===----------------------------------------------------------------------===//
// Looking at values
//===----------------------------------------------------------------------===//

Expr PrimBuilder::dim(Value x, int64_t axis) const {
  Dims all = dims(x);
  if (axis < 0)
    axis += all.size();
  return axis >= 0 && axis < int64_t(all.size()) ? all[axis] : expr(1);
}

Type PrimBuilder::elementType(Value x) const { return x ? getElementType(x) : builder.getF32Type(); }

bool PrimBuilder::isInteger(Value x) const {
  auto type = dyn_cast<IntegerType>(elementType(x));
  return type && type.getWidth() > 1 && !type.isSignless();
}

Type PrimBuilder::boolLike(Value x) { return resultType(dims(x), builder.getI1Type()); }

Type PrimBuilder::resultType(ArrayRef<Expr> dims, Type elementType) {
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim.isConstant() && dim.getValue() < 0)
      fail(DiagId::NegativeDim, i, dim);
  if (!ShapeScope::isHoldable(dims, elementType))
    fail(DiagId::UnsupportedForm, "a tensor of " + describe(dims) + ", which no address space holds,");
  // A type that nothing can overflow on: `fold` drops the op.
  return getTensorType(failed ? Dims(dims.size(), expr(1)) : Dims(dims), elementType);
}

std::string PrimBuilder::describe(ArrayRef<Expr> dims) const {
  std::string text = "[";
  for (auto [i, dim] : llvm::enumerate(dims))
    text += (i ? ", " : "") + (dim ? dim.str() : "-1");
  return text + "]";
}

std::optional<int64_t> PrimBuilder::normalizeAxis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank)
    return axis < 0 ? axis + rank : axis;
  fail(DiagId::BadAxis, axis, rank);
  return std::nullopt;
}

bool PrimBuilder::hasAxis(Value x, int64_t axis) {
  bool isThere = axis >= 0 && axis < rank(x);
  if (x && !isThere)
    fail(DiagId::BadAxis, axis, rank(x));
  return x && isThere;
}

std::optional<Dims> PrimBuilder::knownExprs(Value x) const {
  if (llvm::any_of(dims(x), [](Expr dim) { return dim.isConstant(0); })) // no elements, whoever gives them
    return Dims();
  std::optional<KnownTensor> known = evaluateSymbolically(x, shapes);
  if (!known)
    return std::nullopt;
  Dims result;
  for (Rational element : known->elements) {
    if (!element.isInteger())
      return std::nullopt;
    result.push_back(element.numerator);
  }
  return result;
}

std::optional<Ints> PrimBuilder::knownInts(Value x) const {
  std::optional<Dims> known = knownExprs(x);
  if (!known)
    return std::nullopt;
  Ints result;
  for (Expr e : *known) {
    if (!e.isConstant())
      return std::nullopt;
    result.push_back(e.getValue());
  }
  return result;
}

std::optional<Expr> PrimBuilder::knownCondition(Value x) const {
  std::optional<Dims> known = knownExprs(x);
  return known && known->size() == 1 ? std::optional(known->front()) : std::nullopt;
}

std::optional<SmallVector<double>> PrimBuilder::knownFloats(Value x) const {
  auto op = x ? x.getDefiningOp<ConstantOp>() : ConstantOp();
  auto dense = op ? dyn_cast<DenseElementsAttr>(op.getValue()) : DenseElementsAttr();
  if (!dense || !isa<FloatType>(dense.getElementType())) {
    std::optional<Ints> ints = knownInts(x);
    if (!ints)
      return std::nullopt;
    return SmallVector<double>(ints->begin(), ints->end());
  }
  SmallVector<double> result;
  for (APFloat value : dense.getValues<APFloat>()) {
    bool losesInfo;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
    result.push_back(value.convertToDouble());
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

Dims PrimBuilder::exprs(ArrayRef<int64_t> values) const {
  return llvm::map_to_vector(values, [&](int64_t v) { return expr(v); });
}

Value PrimBuilder::constant(DenseElementsAttr value) {
  return ConstantOp::create(builder, loc, value.getType(), value);
}

static APFloat toFloat(double value, FloatType type) {
  APFloat result(value);
  bool losesInfo;
  result.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  return result;
}

static APInt toInteger(double value, IntegerType type) {
  bool isUnsigned = type.isUnsigned() || type.getWidth() == 1;
  llvm::APSInt result(type.getWidth(), isUnsigned);
  bool isExact;
  APFloat(value).convertToInteger(result, APFloat::rmTowardZero, &isExact); // saturates
  return result;
}

static DenseElementsAttr dense(ArrayRef<double> values, RankedTensorType type) {
  if (auto floatType = dyn_cast<FloatType>(type.getElementType()))
    return DenseElementsAttr::get(type, llvm::map_to_vector(values, [&](double v) { return toFloat(v, floatType); }));
  auto integerType = cast<IntegerType>(type.getElementType());
  return DenseElementsAttr::get(type, llvm::map_to_vector(values, [&](double v) { return toInteger(v, integerType); }));
}

Value PrimBuilder::scalar(double value, Type type) {
  if (isa<StringType>(type) && value == 0)
    return strings(std::string(), /*isScalar=*/true);
  if (!isa<FloatType, IntegerType>(type))
    return fail(DiagId::UnsupportedType, "a constant", type);
  return constant(dense(value, RankedTensorType::get({}, type)));
}

Value PrimBuilder::lowest(Type type) { return scalar(-std::numeric_limits<double>::infinity(), type); }
Value PrimBuilder::highest(Type type) { return scalar(std::numeric_limits<double>::infinity(), type); }

Value PrimBuilder::floatVector(ArrayRef<double> values, Type type) {
  return constant(dense(values, RankedTensorType::get(int64_t(values.size()), type)));
}

Value PrimBuilder::intVector(ArrayRef<int64_t> values) { return fromExprs(exprs(values), si64()); }

/// An integer or boolean tensor of these elements; at most rank 1 unless all are constants.
static Value materialize(OpBuilder &builder, Location loc, ArrayRef<Expr> elements, ArrayRef<int64_t> shape,
                         IntegerType type) {
  auto resultType = RankedTensorType::get(shape, type);
  if (llvm::all_of(elements, [](Expr e) { return e.isConstant(); })) {
    auto values = llvm::map_to_vector(elements, [&](Expr e) {
      return APInt(type.getWidth(), e.getValue(), /*isSigned=*/true, /*implicitTrunc=*/true);
    });
    return ConstantOp::create(builder, loc, resultType, DenseElementsAttr::get(resultType, values));
  }
  auto flatType = shape.size() <= 1 ? resultType : RankedTensorType::get(int64_t(elements.size()), type);
  Value flat = ExprsOp::create(builder, loc, flatType, getExprArray(builder.getContext(), elements));
  return flatType == resultType ? flat : Value(ReshapeOp::create(builder, loc, resultType, flat));
}

Value PrimBuilder::fromExprs(ArrayRef<Expr> values, Type type, bool isScalar) {
  SmallVector<int64_t, 1> shape;
  if (!isScalar)
    shape.push_back(values.size());
  auto simplified = llvm::map_to_vector(values, [&](Expr e) { return shapes.simplify(e); });
  return materialize(builder, loc, simplified, shape, cast<IntegerType>(type));
}

Value PrimBuilder::iota(int64_t axis, ArrayRef<Expr> dims, Type type) {
  return fold(IotaOp::create(builder, loc, resultType(dims, type), axis));
}

//===----------------------------------------------------------------------===//
// Folding
//===----------------------------------------------------------------------===//

/// Import folds what shapes and attributes may depend on; a pass folds the rest.
static constexpr int64_t maxFoldedBytes = 16 * 1024;

/// The constant that an op of constants is; null where it is none, or not worth the bytes.
static Value foldConstants(OpBuilder &builder, Operation *op) {
  auto isConstant = [](Value v) { return v.getDefiningOp<ConstantOp>() != nullptr; };
  bool isFoldable = op->getNumOperands() > 0 && llvm::all_of(op->getOperands(), isConstant);
  if (!isFoldable || isa<BroadcastOp>(op))
    return {};
  std::optional<std::vector<DenseElementsAttr>> values = eval::fold(op, {.maxBytes = maxFoldedBytes});
  if (!values)
    return {};
  Value folded = ConstantOp::create(builder, op->getLoc(), values->front().getType(), values->front());
  op->erase();
  return folded;
}

Value PrimBuilder::fold(Operation *op) {
  if (failed) {
    op->erase();
    return {};
  }
  Value result = op->getResult(0);
  auto type = cast<RankedTensorType>(result.getType());
  if (!type.hasStaticShape() || type.getNumElements() > maxKnownElements)
    return result;
  auto integerType = dyn_cast<IntegerType>(type.getElementType());
  std::optional<KnownTensor> known = integerType ? evaluateSymbolically(result, shapes) : std::nullopt;
  if (!known) {
    Value folded = op->getNumResults() == 1 ? foldConstants(builder, op) : Value();
    return folded ? folded : result;
  }
  Dims elements;
  for (Rational element : known->elements) {
    bool isExpressible = element.isInteger() && (integerType.getWidth() > 1 || element.numerator.isConstant());
    if (!isExpressible)
      return result;
    elements.push_back(element.numerator);
  }
  // A view of rank 2 and more of symbolic sizes stays the view that it is.
  bool isConstant = llvm::all_of(elements, [](Expr e) { return e.isConstant(); });
  if (!isConstant && type.getRank() > 1 && isa<ReshapeOp>(op))
    return result;
  Value folded = materialize(builder, loc, elements, type.getShape(), integerType);
  op->erase();
  return folded;
}

//===----------------------------------------------------------------------===//
// Broadcasting
//===----------------------------------------------------------------------===//

std::optional<Dims> PrimBuilder::broadcastDims(ArrayRef<Expr> a, ArrayRef<Expr> b) {
  Dims result;
  size_t rank = std::max(a.size(), b.size());
  for (size_t i = 0; i < rank; ++i) {
    Expr x = i + a.size() >= rank ? a[i + a.size() - rank] : expr(1);
    Expr y = i + b.size() >= rank ? b[i + b.size() - rank] : expr(1);
    Expr size = shapes.meet(x, y);
    if (!size) {
      fail(DiagId::Broadcast, describe(a), describe(b));
      return std::nullopt;
    }
    result.push_back(size);
  }
  return result;
}

Value PrimBuilder::recast(Value x, ArrayRef<Expr> to) {
  if (!x || dims(x) == Dims(to))
    return x;
  Type type = resultType(to, elementType(x));
  return failed ? Value() : ReshapeOp::create(builder, loc, type, x);
}

/// The operand dims that become `dims` by adding dims of 1, as positions in `dims`; nothing if that is not all.
static std::optional<Ints> unsqueezedAxes(ArrayRef<Expr> from, ArrayRef<Expr> dims) {
  Ints axes;
  size_t next = 0;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (next < from.size() && from[next] == dim && (!dim.isConstant(1) || from.size() - next == dims.size() - i)) {
      axes.push_back(i);
      ++next;
    } else if (!dim.isConstant(1)) {
      return std::nullopt;
    }
  }
  return next == from.size() ? std::optional(axes) : std::nullopt;
}

Value PrimBuilder::broadcast(Value x, ArrayRef<int64_t> axes, ArrayRef<Expr> to, bool mayStretch) {
  if (!x)
    return {};
  if (rank(x) != int64_t(axes.size()))
    return fail(DiagId::Broadcast, describe(dims(x)), describe(to));
  // What was only unsqueezed to be stretched is stretched as it was.
  Ints composed;
  if (auto view = x.getDefiningOp<ReshapeOp>()) {
    std::optional<Ints> kept = unsqueezedAxes(dims(view.getX()), dims(x));
    if (kept && dims(x) != Dims(to)) {
      for (int64_t i : *kept)
        composed.push_back(axes[i]);
      x = view.getX();
      axes = composed;
    }
  }
  Dims from = dims(x), matched = from;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    if (from[i].isConstant(1))
      continue;
    if (!(mayStretch ? shapes.assumeStretch(from[i], to[axis]) : shapes.assumeEqual(from[i], to[axis])))
      return fail(DiagId::Broadcast, describe(from), describe(to));
    if (shapes.equal(from[i], to[axis]) == true)
      matched[i] = to[axis];
  }
  x = recast(x, matched);
  if (matched == Dims(to))
    return x;
  return fold(BroadcastOp::create(builder, loc, resultType(to, elementType(x)), x, axes));
}

Value PrimBuilder::broadcastTo(Value x, ArrayRef<Expr> to) {
  if (rank(x) > int64_t(to.size()))
    return fail(DiagId::Broadcast, describe(dims(x)), describe(to));
  Ints axes;
  for (int64_t i = 0; i < rank(x); ++i)
    axes.push_back(to.size() - rank(x) + i);
  return broadcast(x, axes, to, /*mayStretch=*/true);
}

bool PrimBuilder::broadcast(MutableArrayRef<Value> operands) {
  if (!llvm::all_of(operands, [](Value v) { return bool(v); }))
    return false;
  std::optional<Dims> joint = dims(operands.front());
  for (Value operand : operands.drop_front())
    if (!(joint = broadcastDims(*joint, dims(operand))))
      return false;
  for (Value &operand : operands)
    if (!(operand = broadcastTo(operand, *joint)))
      return false;
  return true;
}

bool PrimBuilder::broadcast(Value &a, Value &b) {
  if (!a || !b)
    return false;
  if (elementType(a) != elementType(b))
    return fail(DiagId::TypeMismatch, elementType(a), elementType(b)), false;
  Value operands[] = {a, b};
  if (!broadcast(operands))
    return false;
  a = operands[0];
  b = operands[1];
  return true;
}

//===----------------------------------------------------------------------===//
// Pointwise
//===----------------------------------------------------------------------===//

Value PrimBuilder::clamp(Value x, double low, double high) {
  return minimum(maximum(x, scalarLike(low, x)), scalarLike(high, x));
}

Value PrimBuilder::equal(Value a, Value b) {
  if (!isString(a) || !isString(b))
    return predicate<EqOp>(a, b);
  return broadcast(a, b) ? call("string_equal", {a, b}, elementCount(a), dims(a), i1()) : Value();
}

Value PrimBuilder::select(Value condition, Value a, Value b) {
  if (!a || !b || !condition)
    return {};
  if (elementType(a) != elementType(b))
    return fail(DiagId::TypeMismatch, elementType(a), elementType(b));
  if (!isBool(condition))
    return fail(DiagId::WrongInputType, 0, elementType(condition), "bool is needed");
  if (std::optional<Ints> known = knownInts(condition); known && known->size() == 1 && rank(condition) == 0) {
    std::optional<Dims> joint = broadcastDims(dims(a), dims(b));
    return joint ? broadcastTo((*known)[0] ? a : b, *joint) : Value();
  }
  Value operands[] = {condition, a, b};
  if (!broadcast(operands))
    return {};
  return fold(SelectOp::create(builder, loc, operands[1].getType(), operands[0], operands[1], operands[2]));
}

Value PrimBuilder::convert(Value x, Type to) {
  if (!x || elementType(x) == to)
    return x;
  return fold(ConvertOp::create(builder, loc, resultType(dims(x), to), x));
}

Value PrimBuilder::bitcast(Value x, Type to) {
  if (!x || !to || elementType(x) == to)
    return x;
  auto storedBits = [](Type type) {
    return isHandle(type) ? 64 : type.isInteger(1) ? 8 : type.getIntOrFloatBitWidth();
  };
  if (storedBits(elementType(x)) != storedBits(to))
    return fail(DiagId::WrongInputType, 0, elementType(x), "a type of the result's width is needed");
  return fold(BitcastOp::create(builder, loc, resultType(dims(x), to), x));
}

std::pair<Value, Value> PrimBuilder::complexParts(Value x) {
  if (!x)
    return {};
  unsigned half = elementType(x).getIntOrFloatBitWidth() / 2;
  Type whole = builder.getIntegerType(2 * half, /*isSigned=*/false), word = builder.getIntegerType(half, false);
  Type real = half == 32 ? f32() : f64();
  Value bits = bitcast(x, whole), high = binary<ShiftRightOp>(bits, scalar(half, whole));
  return {bitcast(convert(bits, word), real), bitcast(convert(high, word), real)};
}

Value PrimBuilder::complex(Value re, Value im) {
  if (!re || !im)
    return {};
  unsigned half = elementType(re).getIntOrFloatBitWidth();
  Type whole = builder.getIntegerType(2 * half, /*isSigned=*/false), word = builder.getIntegerType(half, false);
  Value low = convert(bitcast(re, word), whole), high = convert(bitcast(im, word), whole);
  Value bits = binary<OrOp>(low, binary<ShiftLeftOp>(high, scalar(half, whole)));
  return bitcast(bits, builder.getIntegerType(2 * half));
}

//===----------------------------------------------------------------------===//
// Strings, functions of the runtime
//===----------------------------------------------------------------------===//

Value PrimBuilder::strings(ArrayRef<std::string> values, bool isScalar) {
  SmallVector<int64_t, 1> shape;
  if (!isScalar)
    shape.push_back(values.size());
  SmallVector<StringRef> texts(values.begin(), values.end());
  return constant(DenseStringElementsAttr::get(RankedTensorType::get(shape, stringType()), texts));
}

Values PrimBuilder::call(StringRef callee, ArrayRef<Value> inputs, ArrayRef<Expr> numbers, ArrayRef<Type> results) {
  if (failed || !llvm::all_of(inputs, [](Value v) { return bool(v); }))
    return Values(results.size());
  auto simplified = llvm::map_to_vector(numbers, [&](Expr e) { return shapes.simplify(e); });
  auto op = CallOp::create(builder, loc, results, callee, inputs, getExprArray(getContext(), simplified), CustomAttr());
  return Values(op.getResults());
}

Value PrimBuilder::call(StringRef callee, ArrayRef<Value> inputs, ArrayRef<Expr> numbers, ArrayRef<Expr> dims,
                        Type elementType) {
  Type type = resultType(dims, elementType);
  return call(callee, inputs, numbers, ArrayRef<Type>(type)).front();
}
