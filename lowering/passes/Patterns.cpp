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

void prim::noteFoldedWeights(func::FuncOp function, ArrayRef<StringAttr> names) {
  llvm::SetVector<Attribute> all;
  if (auto before = function->getAttrOfType<ArrayAttr>(foldedWeightsAttr))
    all.insert(before.begin(), before.end());
  all.insert(names.begin(), names.end());
  if (!all.empty())
    function->setAttr(foldedWeightsAttr, ArrayAttr::get(function.getContext(), all.getArrayRef()));
}
