//===- NarrowFloats.cpp - conversions that a processor lacks --------------===//
//
// bf16 is the upper half of f32. Rounding to nearest even adds 0x7fff and the lowest kept bit to the bits before the
// lower half is dropped; carries run into the exponent as they should. A NaN would be rounded to infinity or to zero:
// its upper half is taken instead, with the quiet bit set.
//
// What is left of the type (selections, constants, values that leave a branch) then becomes i16: LLVM would legalise a
// bf16 scalar by way of f32, with library calls again.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

static Type withElement(Type like, Type element) {
  auto vector = dyn_cast<VectorType>(like);
  return vector ? Type(vector.clone(element)) : element;
}

static Value literal(OpBuilder &b, Location loc, Type type, uint64_t value) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr attribute = IntegerAttr::get(element, int64_t(value));
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, Attribute(attribute));
  return arith::ConstantOp::create(b, loc, type, attribute);
}

static Value truncate(OpBuilder &b, Location loc, Value value, Type to) {
  Type i32 = withElement(to, b.getI32Type()), i16 = withElement(to, b.getIntegerType(16));
  auto constant = [&](uint64_t v) { return literal(b, loc, i32, v); };
  Value bits = arith::BitcastOp::create(b, loc, i32, value);
  Value upper = arith::ShRUIOp::create(b, loc, bits, constant(16));
  Value odd = arith::AndIOp::create(b, loc, upper, constant(1));
  Value bias = arith::AddIOp::create(b, loc, odd, constant(0x7fff));
  Value sum = arith::AddIOp::create(b, loc, bits, bias);
  Value rounded = arith::ShRUIOp::create(b, loc, sum, constant(16));
  Value quiet = arith::OrIOp::create(b, loc, upper, constant(0x40));
  Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
  Value chosen = arith::SelectOp::create(b, loc, isNan, quiet, rounded);
  Value narrow = arith::TruncIOp::create(b, loc, i16, chosen);
  return arith::BitcastOp::create(b, loc, to, narrow);
}

static Value extend(OpBuilder &b, Location loc, Value value, Type to) {
  Type i32 = withElement(to, b.getI32Type()), i16 = withElement(to, b.getIntegerType(16));
  Value bits = arith::BitcastOp::create(b, loc, i16, value);
  Value wide = arith::ExtUIOp::create(b, loc, i32, bits);
  Value shifted = arith::ShLIOp::create(b, loc, wide, literal(b, loc, i32, 16));
  return arith::BitcastOp::create(b, loc, to, shifted);
}

static bool isBf16(Type type) { return getElementTypeOrSelf(type).isBF16(); }

// Ops that only move bits.
static bool isTypeAgnostic(Operation *op) {
  return isa<arith::SelectOp, arith::ConstantOp, arith::BitcastOp>(op) ||
         !isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
}

static void replaceConstant(arith::ConstantOp op, Type to) {
  if (auto splat = dyn_cast<SplatElementsAttr>(op.getValue())) {
    APInt bits = splat.getSplatValue<APFloat>().bitcastToAPInt();
    op.setValueAttr(DenseElementsAttr::get(cast<ShapedType>(to), bits));
  } else if (auto elements = dyn_cast<DenseElementsAttr>(op.getValue())) {
    op.setValueAttr(elements.mapValues(getElementTypeOrSelf(to), [](const APFloat &v) { return v.bitcastToAPInt(); }));
  } else {
    op.setValueAttr(IntegerAttr::get(to, cast<FloatAttr>(op.getValue()).getValue().bitcastToAPInt()));
  }
}

static void retypeBf16(Operation *root) {
  Type i16 = IntegerType::get(root->getContext(), 16);
  WalkResult result = root->walk([](Operation *op) {
    bool touches = llvm::any_of(op->getOperandTypes(), isBf16) || llvm::any_of(op->getResultTypes(), isBf16);
    return touches && !isTypeAgnostic(op) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (result.wasInterrupted())
    return; // arithmetic in bf16 itself stays LLVM's affair
  auto retype = [&](Value value) {
    if (isBf16(value.getType()))
      value.setType(withElement(value.getType(), i16));
  };
  SmallVector<Operation *> casts;
  root->walk([&](Operation *op) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && isBf16(constant.getType()))
      replaceConstant(constant, withElement(constant.getType(), i16));
    llvm::for_each(op->getResults(), retype);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), retype);
    if (isa<arith::BitcastOp>(op))
      casts.push_back(op);
  });
  for (Operation *op : casts)
    if (op->getOperand(0).getType() == op->getResult(0).getType()) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    }
}

void ptc::cpu::expandBf16Conversions(Operation *root) {
  auto isBetween = [](Type narrow, Type wide) {
    return getElementTypeOrSelf(narrow).isBF16() && getElementTypeOrSelf(wide).isF32();
  };
  SmallVector<Operation *> found;
  root->walk([&](Operation *op) {
    if (auto narrow = dyn_cast<arith::TruncFOp>(op); narrow && isBetween(narrow.getType(), narrow.getIn().getType()))
      found.push_back(op);
    if (auto wide = dyn_cast<arith::ExtFOp>(op); wide && isBetween(wide.getIn().getType(), wide.getType()))
      found.push_back(op);
  });
  for (Operation *op : found) {
    OpBuilder b(op);
    Type to = op->getResult(0).getType();
    Value from = op->getOperand(0);
    Value value = isa<arith::TruncFOp>(op) ? truncate(b, op->getLoc(), from, to) : extend(b, op->getLoc(), from, to);
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  }
  retypeBf16(root);
}
