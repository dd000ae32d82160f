//===- SortKeys.cpp - sort keys as integers of one order ------------------===//
#include "codegen/common/SortKeys.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::codegen;

namespace {
struct KeyBuilder {
  KernelEmitter &e;
  template <typename OpTy> Value create(Value a, Value b) const { return OpTy::create(e.builder, e.loc, a, b); }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) const {
    return arith::CmpIOp::create(e.builder, e.loc, predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) const {
    return arith::SelectOp::create(e.builder, e.loc, condition, a, b);
  }
  Value literal(Type type, APInt value) const { return e.invariants.constant(IntegerAttr::get(type, value)); }
  Value orderedBits(Value key) const;
};
} // namespace

// Bits of a float as an integer of the same order.
Value KeyBuilder::orderedBits(Value key) const {
  auto type = cast<FloatType>(key.getType());
  unsigned width = type.getWidth();
  Type bitsType = IntegerType::get(type.getContext(), width);
  Value bits = arith::BitcastOp::create(e.builder, e.loc, bitsType, key);
  Value largest = literal(bitsType, APInt::getSignedMaxValue(width));
  Value zero = literal(bitsType, APInt(width, 0));
  Value infinity = literal(bitsType, APFloat::getInf(type.getFloatSemantics()).bitcastToAPInt());
  Value magnitude = create<arith::AndIOp>(bits, largest);
  Value isNegative = compare(arith::CmpIPredicate::slt, bits, zero);
  Value ordered = select(isNegative, create<arith::XOrIOp>(bits, largest), bits);
  ordered = select(compare(arith::CmpIPredicate::eq, magnitude, zero), zero, ordered);
  return select(compare(arith::CmpIPredicate::sgt, magnitude, infinity), largest, ordered);
}

Value codegen::orderedKey(KernelEmitter &e, Value key, bool isUnsigned, bool descending) {
  KeyBuilder b{e};
  Type i64 = e.builder.getI64Type();
  isUnsigned |= key.getType().isInteger(1);
  if (isa<FloatType>(key.getType())) {
    key = b.orderedBits(key);
    isUnsigned = false;
  }
  if (key.getType() != i64)
    key = isUnsigned ? arith::ExtUIOp::create(e.builder, e.loc, i64, key).getResult()
                     : arith::ExtSIOp::create(e.builder, e.loc, i64, key).getResult();
  else if (isUnsigned)
    key = b.create<arith::XOrIOp>(key, b.literal(i64, APInt::getSignedMinValue(64)));
  return descending ? b.create<arith::XOrIOp>(key, e.constant(-1)) : key;
}
