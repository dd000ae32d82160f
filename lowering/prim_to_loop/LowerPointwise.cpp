//===- LowerPointwise.cpp - pointwise ops and constants --------------------===//

#include "ir/loop/Softmax.h"
#include "ir/prim/Elements.h"
#include "ir/prim/WeightAttrs.h"
#include "lowering/prim_to_loop/FunctionLowering.h"
#include "lowering/prim_to_loop/NanElsewhere.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

/// Whether an integer that is made of an index is known to be at least 0 and below `bound`.
static bool isBelow(const SymbolRanges &ranges, Value value, int64_t bound) {
  int64_t factor = 1;
  if (auto product = value.getDefiningOp<arith::MulIOp>()) {
    APInt constant;
    if (!matchPattern(product.getRhs(), m_ConstantInt(&constant)) || !constant.isStrictlyPositive())
      return false;
    factor = constant.getSExtValue();
    value = product.getLhs();
  }
  if (auto narrowed = value.getDefiningOp<arith::TruncIOp>())
    value = narrowed.getIn();
  auto index = value.getDefiningOp<IndexOp>();
  if (!index || !index.getOperands().empty())
    return false;
  ExprRange range = index.getExpr().range(ranges);
  return range.min >= 0 && range.max < int64_t(llvm::divideCeil(bound, factor));
}

/// A conversion that was marked as none of the model's; between other types the mark means nothing.
static bool mayStayWide(Operation *op, Type from, Type to) {
  auto isFloat = [](Type type) { return type.isF32() || type.isF16() || type.isBF16(); };
  return op->hasAttr(prim::unroundedAttr) && isFloat(from) && isFloat(to);
}

// result[i] = body(operands[i]...). f16 and bf16 compute in f32.
void FunctionLowering::lowerPointwise(Operation *op) {
  auto pointwise = cast<prim::PointwiseOpInterface>(op);
  SmallVector<ElementFn> elements;
  Tensor result;
  for (Value operand : op->getOperands()) {
    Tensor &tensor = get(operand);
    elements.push_back(tensor.element);
    result.operations += tensor.operations;
    result.reads += tensor.reads;
  }
  Type to = prim::getElementType(op->getResult(0));
  Type from = prim::getElementType(op->getOperand(op->getNumOperands() - 1));
  result.dims = prim::getDims(op->getResult(0));
  result.elementType = to;
  bool isRounded = op->hasAttr(prim::roundedAttr);
  bool isNotPositive = isPowerOfDistance(op), isOfSoftmax = isSoftmaxQuotient(op);
  bool isConversion = isa<prim::ConvertOp, prim::BitcastOp>(op), isUnrounded = mayStayWide(op, from, to);
  result.operations += isConversion ? 0 : 1;
  result.element = [=](Body &body, const Index &index) mutable -> Value {
    SmallVector<Value> x;
    for (const ElementFn &element : elements) {
      Value scalar = element(body, index);
      x.push_back(isConversion && !isUnrounded ? scalar : widen(body, scalar));
    }
    prim::ScalarBuilder scalars(body.builder, body.loc, from.isUnsignedInteger());
    scalars.isBelow = [&](Value amount, unsigned width) { return isBelow(body.ranges, amount, width); };
    Value scalar = isUnrounded ? x.front() : pointwise.emitScalar(scalars, x);
    if (auto product = scalar.getDefiningOp<arith::MulFOp>(); product && isRounded)
      product->setDiscardableAttr(prim::roundedAttr, body.builder.getUnitAttr());
    if (auto exp = scalar.getDefiningOp<math::ExpOp>(); exp && isNotPositive)
      exp->setDiscardableAttr(notPositiveAttr, body.builder.getUnitAttr());
    if (auto quotient = scalar.getDefiningOp<arith::DivFOp>(); quotient && isOfSoftmax)
      quotient->setDiscardableAttr(ofSoftmaxAttr, body.builder.getUnitAttr());
    return narrow(body, scalar, to);
  };
  set(op->getResult(0), std::move(result));
}

/// A splat or single element as an attribute; null otherwise.
static TypedAttr getSplat(ElementsAttr elements, Type scalarType) {
  if (!elements.isSplat() && elements.getNumElements() != 1)
    return {};
  Attribute value = *elements.value_begin<Attribute>();
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return IntegerAttr::get(scalarType, integer.getValue());
  if (auto text = dyn_cast<StringAttr>(value); text && text.empty())
    return IntegerAttr::get(scalarType, 0); // the handle of the empty string
  return dyn_cast<FloatAttr>(value);
}

/// The weight that the op is, or is a narrower form of.
static prim::WeightOp weightOf(Operation *op) {
  return prim::isNarrowedWeight(op) ? op->getOperand(0).getDefiningOp<prim::WeightOp>() : dyn_cast<prim::WeightOp>(op);
}

/// Whether a weight is read in another stored form alone.
static bool isNarrowedAlone(prim::WeightOp weight) {
  return !weight->use_empty() && llvm::all_of(weight->getUsers(), prim::isNarrowedWeight);
}

void FunctionLowering::lowerConstant(Operation *op) {
  Value result = op->getResult(0);
  Type elementType = prim::getElementType(result);
  Type scalarType = prim::getScalarType(elementType);
  Tensor tensor;
  tensor.dims = prim::getDims(result);
  tensor.elementType = elementType;

  if (auto iota = dyn_cast<prim::IotaOp>(op)) {
    int64_t axis = iota.getAxis();
    tensor.element = [=](Body &body, const Index &index) {
      Value position = body.emitIndex(index.at[axis], index.operands);
      prim::ScalarBuilder scalars(body.builder, body.loc, false);
      return scalars.convert(position, scalarType, elementType.isUnsignedInteger());
    };
    return set(result, tensor);
  }
  if (auto exprs = dyn_cast<prim::ExprsOp>(op)) {
    SmallVector<Expr> list = prim::getExprs(exprs.getValues());
    tensor.element = [=](Body &body, const Index &index) {
      Expr value = list.back();
      for (int64_t i = int64_t(list.size()) - 2; i >= 0; --i)
        value = Expr::select(Expr::lt(index.at[0], Expr::constant(value.getContext(), i + 1)), list[i], value);
      Value scalar = body.emitIndex(value, index.operands);
      prim::ScalarBuilder scalars(body.builder, body.loc, false);
      return scalars.convert(scalar, scalarType, elementType.isUnsignedInteger());
    };
    return set(result, tensor);
  }
  if (auto constant = dyn_cast<prim::ConstantOp>(op)) {
    if (TypedAttr splat = getSplat(constant.getValue(), scalarType)) {
      tensor.isScalarConstant = true;
      tensor.element = [=](Body &body, const Index &) -> Value {
        return arith::ConstantOp::create(body.builder, body.loc, splat);
      };
      return set(result, tensor);
    }
  }
  if (auto weight = dyn_cast<prim::WeightOp>(op); weight && isNarrowedAlone(weight))
    return set(result, tensor);
  // Weights and constants with several values are buffers of their own, row-major.
  auto type = BufferType::get(context, tensor.dims, scalarType, LayoutAttr::getRowMajor(context, tensor.dims.size()));
  Value buffer;
  if (auto weight = weightOf(op)) {
    auto stored = WeightOp::create(builder, op->getLoc(), type, weight.getRef(), weight.getOthersAttr(), RecipeAttr());
    stored->setAttr(prim::sourceTypeAttr, TypeAttr::get(weight.getPartType()));
    for (StringRef name : {prim::partRowsAttr, prim::turnedAttr})
      if (Attribute kept = weight->getAttr(name))
        stored->setAttr(name, kept);
    buffer = stored;
  } else
    buffer = ConstantOp::create(builder, op->getLoc(), type, cast<prim::ConstantOp>(op).getValue());
  set(result, readOf(buffer, elementType));
}

// What a function of the runtime reads and writes lies in memory, row by row.
void FunctionLowering::lowerCall(prim::CallOp call) {
  Location loc = call.getLoc();
  SmallVector<Value> read, written;
  for (Value input : call.getInputs()) {
    realize(get(input), loc);
    read.push_back(get(input).buffer);
  }
  for (Value result : call.getResults())
    written.push_back(createBuffer(prim::getDims(result), prim::getElementType(result), loc));
  CallOp::create(builder, loc, call.getCallee(), read, written, call.getNumbers(), call.getCustomAttr());
  for (auto [result, buffer] : llvm::zip(call.getResults(), written))
    set(result, readOf(buffer, prim::getElementType(result)));
}
