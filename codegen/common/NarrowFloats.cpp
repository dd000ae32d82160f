//===- NarrowFloats.cpp - conversions that a processor lacks --------------===//
//
// bf16 is the upper half of f32. Rounding to nearest even adds 0x7fff and the lowest kept bit to the bits before the
// lower half is dropped; carries run into the exponent as they should. A NaN would be rounded to infinity or to zero:
// its upper half is taken instead, with the quiet bit set.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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
}
