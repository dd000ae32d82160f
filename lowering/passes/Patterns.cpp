//===- Patterns.cpp - questions that passes ask of prim values ------------===//
#include "lowering/passes/Patterns.h"
#include "ir/prim/WeightAttrs.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ptc;

DenseElementsAttr prim::getConstant(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  return constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
}

std::optional<double> prim::getSplat(Value value) {
  Operation *op = value.getDefiningOp();
  if (op && isa<BroadcastOp, ReshapeOp, TransposeOp, SliceOp>(op))
    return getSplat(op->getOperand(0));
  DenseElementsAttr elements = getConstant(value);
  if (!elements || !elements.isSplat())
    return std::nullopt;
  if (isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<APFloat>().convertToDouble();
  auto type = dyn_cast<IntegerType>(elements.getElementType());
  if (!type || type.getWidth() == 1)
    return std::nullopt;
  APInt integer = elements.getSplatValue<APInt>();
  return type.isUnsigned() ? integer.roundToDouble() : integer.signedRoundToDouble();
}

bool prim::widens(Operation *op) {
  auto convert = dyn_cast_if_present<ConvertOp>(op);
  if (!convert)
    return false;
  Type from = getElementType(convert.getX()), to = getElementType(convert.getY());
  return from.isIntOrFloat() && to.isIntOrFloat() && from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth();
}

void prim::listReaders(Value value, SmallVectorImpl<Operation *> &readers) {
  for (Operation *user : value.getUsers())
    if (isa<BroadcastOp, ReshapeOp, TransposeOp>(user) || widens(user))
      listReaders(user->getResult(0), readers);
    else if (!isa<TapOp>(user))
      readers.push_back(user);
}

bool prim::hasUses(Value value, unsigned count) { return countReaders(value) == count; }

bool prim::isInteger(Value value, unsigned bits) {
  auto type = dyn_cast<IntegerType>(prim::getElementType(value));
  return type && type.getWidth() == bits && !type.isSignless();
}

static bool isSigned32(Value value) {
  auto type = dyn_cast<IntegerType>(prim::getElementType(value));
  return type && type.getWidth() == 32 && type.isSigned();
}

std::optional<prim::Bytes> prim::matchBytes(Value value) {
  constexpr double mostZero = 1 << 16; // far from where a difference of 32 bits wraps; zero points have 8
  auto convert = value.getDefiningOp<ConvertOp>();
  if (!convert || !getElementType(value).isF32())
    return std::nullopt;
  Bytes bytes{convert.getX()};
  if (auto difference = bytes.q.getDefiningOp<SubOp>()) {
    std::optional<double> zero = getSplat(difference.getB());
    if (!zero || std::abs(*zero) > mostZero || !isSigned32(bytes.q))
      return std::nullopt;
    bytes = {difference.getA(), *zero};
  }
  if (auto widening = bytes.q.getDefiningOp<ConvertOp>(); widening && isSigned32(bytes.q))
    bytes.q = widening.getX();
  if (!isInteger(bytes.q, 8))
    return std::nullopt;
  return bytes;
}

std::optional<prim::Quantization> prim::matchQuantization(ConvertOp op) {
  if (!isInteger(op.getY(), 8) || !getElementType(op.getX()).isF32())
    return std::nullopt;
  Quantization found;
  Value value = op.getX();
  if (auto sum = value.getDefiningOp<AddOp>()) {
    std::optional<double> zero = getSplat(sum.getB());
    if (!zero || *zero != std::round(*zero))
      return std::nullopt;
    found.zero = *zero;
    found.isAlone = hasUses(value, 1);
    value = sum.getA();
  }
  found.round = value.getDefiningOp<RoundOp>();
  found.isAlone &= hasUses(value, 1);
  if (!found.round)
    return std::nullopt;
  return found;
}

void prim::noteFoldedWeights(func::FuncOp function, ArrayRef<StringAttr> names) {
  llvm::SetVector<Attribute> all;
  if (auto before = function->getAttrOfType<ArrayAttr>(foldedWeightsAttr))
    all.insert(before.begin(), before.end());
  all.insert(names.begin(), names.end());
  if (!all.empty())
    function->setAttr(foldedWeightsAttr, ArrayAttr::get(function.getContext(), all.getArrayRef()));
}
