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
  Value bitsOf(Value value) const;
  Value flipNegative(Value bits) const;
  Value orderedBits(Value key) const;
};
} // namespace

/// A scalar, or vectors of as many lanes as `like` has.
static Type shapedLike(Type like, Type elementType) {
  auto vector = dyn_cast<VectorType>(like);
  return vector ? vector.clone(elementType) : elementType;
}

Value KeyBuilder::bitsOf(Value value) const {
  unsigned width = getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
  Type type = shapedLike(value.getType(), IntegerType::get(value.getContext(), width));
  return type == value.getType() ? value : arith::BitcastOp::create(e.builder, e.loc, type, value);
}

// Negative numbers have the order of their complements; the map is its own inverse.
Value KeyBuilder::flipNegative(Value bits) const {
  unsigned width = getElementTypeOrSelf(bits.getType()).getIntOrFloatBitWidth();
  Value sign = create<arith::ShRSIOp>(bits, literal(bits.getType(), APInt(width, width - 1)));
  Value largest = literal(bits.getType(), APInt::getSignedMaxValue(width));
  return create<arith::XOrIOp>(bits, create<arith::AndIOp>(sign, largest));
}

// Bits of a float as an integer of the same order.
Value KeyBuilder::orderedBits(Value key) const {
  auto type = cast<FloatType>(getElementTypeOrSelf(key.getType()));
  unsigned width = type.getWidth();
  Value bits = bitsOf(key), isZero = isNegativeZero(e, key);
  Value largest = literal(bits.getType(), APInt::getSignedMaxValue(width));
  Value infinity = literal(bits.getType(), APFloat::getInf(type.getFloatSemantics()).bitcastToAPInt());
  Value isNaN = compare(arith::CmpIPredicate::sgt, create<arith::AndIOp>(bits, largest), infinity);
  Value ordered = flipNegative(select(isZero, literal(bits.getType(), APInt(width, 0)), bits));
  return select(isNaN, largest, ordered);
}

Value codegen::isNegativeZero(KernelEmitter &e, Value value) {
  KeyBuilder b{e};
  if (!isa<FloatType>(getElementTypeOrSelf(value.getType())))
    return {};
  Value bits = b.bitsOf(value);
  unsigned width = getElementTypeOrSelf(bits.getType()).getIntOrFloatBitWidth();
  return b.compare(arith::CmpIPredicate::eq, bits, b.literal(bits.getType(), APInt::getSignedMinValue(width)));
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

Value codegen::valueOfKey(KernelEmitter &e, Value ordered, bool isUnsigned, bool descending, Type type) {
  KeyBuilder b{e};
  unsigned width = getElementTypeOrSelf(ordered.getType()).getIntOrFloatBitWidth();
  assert(type.getIntOrFloatBitWidth() == width && "keys have their own width");
  bool isFloat = isa<FloatType>(type);
  if (descending)
    ordered = b.create<arith::XOrIOp>(ordered, b.literal(ordered.getType(), APInt::getAllOnes(width)));
  if (isUnsigned && !isFloat)
    ordered = b.create<arith::XOrIOp>(ordered, b.literal(ordered.getType(), APInt::getSignedMinValue(width)));
  if (!isFloat)
    return ordered;
  return arith::BitcastOp::create(e.builder, e.loc, shapedLike(ordered.getType(), type), b.flipNegative(ordered));
}
