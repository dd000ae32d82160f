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
  /// In every lane of a vector type.
  Value literal(Type type, APInt value) const {
    TypedAttr one = IntegerAttr::get(getElementTypeOrSelf(type), value);
    auto vector = dyn_cast<VectorType>(type);
    return e.invariants.constant(vector ? cast<TypedAttr>(DenseElementsAttr::get(vector, Attribute(one))) : one);
  }
  Value orderedBits(Value key) const;
};
} // namespace

/// A scalar, or vectors of as many lanes as `like` has.
static Type shapedLike(Type like, Type elementType) {
  auto vector = dyn_cast<VectorType>(like);
  return vector ? vector.clone(elementType) : elementType;
}

// Bits of a float as an integer of the same order.
Value KeyBuilder::orderedBits(Value key) const {
  auto type = cast<FloatType>(getElementTypeOrSelf(key.getType()));
  unsigned width = type.getWidth();
  Type bitsType = shapedLike(key.getType(), IntegerType::get(type.getContext(), width));
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

IntegerType codegen::narrowKeyType(Type type) {
  return IntegerType::get(type.getContext(), type.getIntOrFloatBitWidth() <= 32 ? 32 : 64);
}

Value codegen::orderedKey(KernelEmitter &e, Value key, bool isUnsigned, bool descending, IntegerType type) {
  KeyBuilder b{e};
  unsigned width = type.getWidth();
  Type keyType = shapedLike(key.getType(), type);
  isUnsigned |= getElementTypeOrSelf(key.getType()).isInteger(1);
  if (isa<FloatType>(getElementTypeOrSelf(key.getType()))) {
    key = b.orderedBits(key);
    isUnsigned = false;
  }
  if (key.getType() != keyType)
    key = isUnsigned ? arith::ExtUIOp::create(e.builder, e.loc, keyType, key).getResult()
                     : arith::ExtSIOp::create(e.builder, e.loc, keyType, key).getResult();
  else if (isUnsigned)
    key = b.create<arith::XOrIOp>(key, b.literal(keyType, APInt::getSignedMinValue(width)));
  return descending ? b.create<arith::XOrIOp>(key, b.literal(keyType, APInt::getAllOnes(width))) : key;
}

Value codegen::orderedKey(KernelEmitter &e, Value key, bool isUnsigned, bool descending) {
  return orderedKey(e, key, isUnsigned, descending, e.builder.getI64Type());
}
