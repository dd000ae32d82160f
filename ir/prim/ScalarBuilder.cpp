//===- ScalarBuilder.cpp - total scalar operations ------------------------===//

#include "ir/prim/ScalarBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace ptc::prim;

bool ScalarBuilder::isFloat(Value v) const { return isa<FloatType>(v.getType()); }

Value ScalarBuilder::constant(Type type, double value) {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, int64_t(value)));
}

#define FLOAT_OR_INT(NAME, FLOAT_OP, INT_OP)                                                                           \
  Value ScalarBuilder::NAME(Value a, Value c) {                                                                        \
    if (isFloat(a))                                                                                                    \
      return FLOAT_OP::create(b, loc, a, c);                                                                           \
    return INT_OP::create(b, loc, a, c);                                                                               \
  }
FLOAT_OR_INT(add, arith::AddFOp, arith::AddIOp)
FLOAT_OR_INT(sub, arith::SubFOp, arith::SubIOp)
FLOAT_OR_INT(mul, arith::MulFOp, arith::MulIOp)
#undef FLOAT_OR_INT

// Integer division is total: the divisor is replaced by 1 where it is 0 or
// where the quotient would overflow, and the result chosen afterwards.
Value ScalarBuilder::div(Value a, Value c) {
  if (isFloat(a))
    return arith::DivFOp::create(b, loc, a, c);
  Value isZero = equal(c, zero(c));
  Value safe = select(isZero, one(c), c);
  if (isUnsigned)
    return select(isZero, zero(a), arith::DivUIOp::create(b, loc, a, safe));
  Value isMinusOne = equal(c, constant(c.getType(), -1));
  safe = select(isMinusOne, one(c), safe);
  Value quotient = arith::DivSIOp::create(b, loc, a, safe);
  quotient = select(isMinusOne, sub(zero(a), a), quotient); // wraps at the minimum
  return select(isZero, zero(a), quotient);
}

Value ScalarBuilder::rem(Value a, Value c) {
  if (isFloat(a))
    return arith::RemFOp::create(b, loc, a, c);
  Value isZero = equal(c, zero(c));
  Value safe = select(isZero, one(c), c);
  if (isUnsigned)
    return arith::RemUIOp::create(b, loc, a, safe);
  safe = select(equal(c, constant(c.getType(), -1)), one(c), safe);
  return arith::RemSIOp::create(b, loc, a, safe);
}

// r = a rem c; where r != 0 and its sign differs from c's, r + c. An integer's r is 0 where c is 0 or -1, which rem
// replaces.
Value ScalarBuilder::mod(Value a, Value c) {
  Value r = rem(a, c);
  if (!isFloat(a) && isUnsigned)
    return r;
  Value divisor = isFloat(a) ? c : r.getDefiningOp()->getOperand(1);
  Value differs = isFloat(a) ? Value(arith::XOrIOp::create(b, loc, less(r, zero(r)), less(c, zero(c))))
                             : less(bitXor(r, divisor), zero(r));
  return select(bitAnd(notEqual(r, zero(r)), differs), add(r, divisor), r);
}

Value ScalarBuilder::pow(Value a, Value c) {
  if (isFloat(a))
    return math::PowFOp::create(b, loc, a, c);
  return math::IPowIOp::create(b, loc, a, c);
}

Value ScalarBuilder::maximum(Value a, Value c) {
  if (isFloat(a))
    return arith::MaximumFOp::create(b, loc, a, c);
  if (isUnsigned)
    return arith::MaxUIOp::create(b, loc, a, c);
  return arith::MaxSIOp::create(b, loc, a, c);
}

Value ScalarBuilder::minimum(Value a, Value c) {
  if (isFloat(a))
    return arith::MinimumFOp::create(b, loc, a, c);
  if (isUnsigned)
    return arith::MinUIOp::create(b, loc, a, c);
  return arith::MinSIOp::create(b, loc, a, c);
}

Value ScalarBuilder::abs(Value a) {
  if (isFloat(a))
    return math::AbsFOp::create(b, loc, a);
  if (isUnsigned)
    return a;
  return select(less(a, zero(a)), sub(zero(a), a), a);
}

Value ScalarBuilder::neg(Value a) {
  if (isFloat(a))
    return arith::NegFOp::create(b, loc, a);
  return sub(zero(a), a);
}

// NaN stays NaN, and a zero stays the zero it is.
Value ScalarBuilder::sign(Value a) {
  Value positive = less(zero(a), a);
  if (!isFloat(a) && isUnsigned)
    return select(positive, one(a), zero(a));
  Value negative = less(a, zero(a));
  Value neither = isFloat(a) ? select(isNan(a), a, zero(a)) : a; // -0 gives 0
  return select(positive, one(a), select(negative, constant(a.getType(), -1), neither));
}

// x < 0 ? 0 : x is one instruction and keeps NaN.
Value ScalarBuilder::relu(Value a) {
  if (!isFloat(a) && isUnsigned)
    return a;
  return select(less(a, zero(a)), zero(a), a);
}

Value ScalarBuilder::sigmoid(Value a) {
  // exp(-|x|) never overflows, so that results keep their digits down to the denormals.
  Value e = math::ExpOp::create(b, loc, neg(abs(a)));
  return div(select(less(a, zero(a)), e, one(a)), add(one(a), e));
}

Value ScalarBuilder::bitAnd(Value a, Value c) { return arith::AndIOp::create(b, loc, a, c); }
Value ScalarBuilder::bitOr(Value a, Value c) { return arith::OrIOp::create(b, loc, a, c); }
Value ScalarBuilder::bitXor(Value a, Value c) { return arith::XOrIOp::create(b, loc, a, c); }
Value ScalarBuilder::bitNot(Value a) { return arith::XOrIOp::create(b, loc, a, constant(a.getType(), -1)); }

Value ScalarBuilder::shiftLeft(Value a, Value c) {
  if (isBelow && isBelow(c, a.getType().getIntOrFloatBitWidth()))
    return arith::ShLIOp::create(b, loc, a, c);
  Value width = constant(a.getType(), a.getType().getIntOrFloatBitWidth());
  Value inRange = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, c, width);
  Value shifted = arith::ShLIOp::create(b, loc, a, select(inRange, c, zero(c)));
  return select(inRange, shifted, zero(a));
}

// Signed values shift in their sign, so that the width or more leaves the sign alone.
Value ScalarBuilder::shiftRight(Value a, Value c) {
  unsigned bits = a.getType().getIntOrFloatBitWidth();
  if (isBelow && isBelow(c, bits))
    return isUnsigned ? arith::ShRUIOp::create(b, loc, a, c).getResult() : arith::ShRSIOp::create(b, loc, a, c);
  Value width = constant(a.getType(), bits);
  Value inRange = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, c, width);
  if (!isUnsigned)
    return arith::ShRSIOp::create(b, loc, a, select(inRange, c, constant(a.getType(), bits - 1)));
  Value shifted = arith::ShRUIOp::create(b, loc, a, select(inRange, c, zero(c)));
  return select(inRange, shifted, zero(a));
}

Value ScalarBuilder::equal(Value a, Value c) {
  if (isFloat(a))
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, a, c);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, a, c);
}

Value ScalarBuilder::notEqual(Value a, Value c) {
  if (isFloat(a))
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, a, c);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, a, c);
}

Value ScalarBuilder::less(Value a, Value c) {
  if (isFloat(a))
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, a, c);
  return arith::CmpIOp::create(b, loc, isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt, a, c);
}

Value ScalarBuilder::lessEqual(Value a, Value c) {
  if (isFloat(a))
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLE, a, c);
  return arith::CmpIOp::create(b, loc, isUnsigned ? arith::CmpIPredicate::ule : arith::CmpIPredicate::sle, a, c);
}

Value ScalarBuilder::isNan(Value a) { return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, a, a); }

Value ScalarBuilder::isInf(Value a) {
  auto type = cast<FloatType>(a.getType());
  Value infinity = arith::ConstantOp::create(b, loc, b.getFloatAttr(type, APFloat::getInf(type.getFloatSemantics())));
  return equal(math::AbsFOp::create(b, loc, a), infinity);
}

Value ScalarBuilder::select(Value c, Value a, Value d) { return arith::SelectOp::create(b, loc, c, a, d); }

namespace {

/// The largest float of `type` that is not above 2^exponent - 1 (or the value
/// itself): what a float may be at most before conversion to an integer.
APFloat largestBelowPowerOf2(FloatType type, unsigned exponent) {
  APFloat limit(type.getFloatSemantics());
  APInt value = APInt::getMaxValue(exponent).zext(exponent + 2);
  limit.convertFromAPInt(value, /*isSigned=*/false, APFloat::rmTowardZero);
  return limit;
}

/// A rounded number and a whole one that is added to it: convert's operand in quantisation.
struct RoundedSum {
  math::RoundEvenOp round;
  int64_t added = 0;
};

std::optional<RoundedSum> matchRoundedSum(Value a) {
  RoundedSum sum;
  if (auto add = a.getDefiningOp<arith::AddFOp>()) {
    constexpr double most = 1 << 16; // sums of what is inside of a narrow integer's range are exact
    auto constant = add.getRhs().getDefiningOp<arith::ConstantOp>();
    auto number = constant ? dyn_cast<FloatAttr>(constant.getValue()) : FloatAttr();
    if (!number)
      return std::nullopt;
    double added = number.getValueAsDouble();
    if (!(std::abs(added) <= most) || added != std::trunc(added))
      return std::nullopt;
    sum.added = int64_t(added);
    a = add.getLhs();
  }
  sum.round = a.getDefiningOp<math::RoundEvenOp>();
  return sum.round ? std::optional(sum) : std::nullopt;
}

/// convert(round(x) + c) to an integer of at most 16 bits, c whole: x is clamped before it is rounded, since the limits
/// less c are whole, and c is added behind the conversion, which then rounds by itself. The same results, NaN included.
Value convertRoundedSum(OpBuilder &b, Location loc, RoundedSum sum, IntegerType to, bool toUnsigned) {
  Value x = sum.round.getOperand();
  auto from = cast<FloatType>(x.getType());
  unsigned width = to.getWidth();
  int64_t least = toUnsigned ? 0 : -(int64_t(1) << (width - 1)), most = least + (int64_t(1) << width) - 1;
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(from, double(value - sum.added)));
  };
  Value low = number(least), high = number(most);
  Value inside = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, low);
  Value clamped = arith::SelectOp::create(b, loc, inside, x, low);
  Value below = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, clamped, high);
  clamped = arith::SelectOp::create(b, loc, below, clamped, high);
  Value whole = math::RoundEvenOp::create(b, loc, clamped);
  Value wide = arith::FPToSIOp::create(b, loc, b.getI32Type(), whole);
  if (sum.added)
    wide = arith::AddIOp::create(b, loc, wide, arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(sum.added)));
  Value narrow = arith::TruncIOp::create(b, loc, to, wide);
  if (least == 0)
    return narrow;
  Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
  return arith::SelectOp::create(b, loc, isNan, arith::ConstantOp::create(b, loc, b.getIntegerAttr(to, 0)), narrow);
}

} // namespace

// Saturating conversion: clamp in the float type, convert, and mend NaN and the
// upper limit, which the float type may be unable to express. The clamps are what
// one instruction each does, and take NaN to the lower limit: for unsigned integers that is 0 already.
static Value convertFloatToInteger(OpBuilder &b, Location loc, Value a, IntegerType to, bool toUnsigned) {
  auto from = cast<FloatType>(a.getType());
  if (to.getWidth() <= 16 && from.isF32())
    if (std::optional<RoundedSum> sum = matchRoundedSum(a))
      return convertRoundedSum(b, loc, *sum, to, toUnsigned);
  unsigned magnitude = to.getWidth() - (toUnsigned ? 0 : 1);
  auto constant = [&](Type type, Attribute value) -> Value {
    return arith::ConstantOp::create(b, loc, cast<TypedAttr>(value));
  };
  APFloat high = largestBelowPowerOf2(from, magnitude);
  APFloat low = APFloat::getZero(from.getFloatSemantics());
  if (!toUnsigned) {
    low = APFloat(from.getFloatSemantics());
    low.convertFromAPInt(APInt::getSignedMinValue(to.getWidth()), true, APFloat::rmTowardZero);
  }
  Value highF = constant(from, b.getFloatAttr(from, high));
  Value lowF = constant(from, b.getFloatAttr(from, low));
  Value inside = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, a, lowF);
  Value clamped = arith::SelectOp::create(b, loc, inside, a, lowF);
  Value below = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, clamped, highF);
  clamped = arith::SelectOp::create(b, loc, below, clamped, highF);
  Value converted = toUnsigned ? Value(arith::FPToUIOp::create(b, loc, to, clamped))
                               : Value(arith::FPToSIOp::create(b, loc, to, clamped));
  APInt most = toUnsigned ? APInt::getMaxValue(to.getWidth()) : APInt::getSignedMaxValue(to.getWidth());
  APSInt exact(to.getWidth(), toUnsigned);
  bool isExact = false;
  high.convertToInteger(exact, APFloat::rmTowardZero, &isExact);
  if (!isExact || static_cast<const APInt &>(exact) != most) {
    Value above = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, a, highF);
    converted = arith::SelectOp::create(b, loc, above, constant(to, b.getIntegerAttr(to, most)), converted);
  }
  if (low.isZero())
    return converted;
  Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, a, a);
  Value zero = constant(to, b.getIntegerAttr(to, 0));
  return arith::SelectOp::create(b, loc, isNan, zero, converted);
}

Value ScalarBuilder::convert(Value a, Type to, bool toUnsigned) {
  Type from = a.getType();
  if (from == to)
    return a;
  // Floats of at most 8 bits are only converted to and from f32.
  auto isNarrow = [](Type type) { return isa<FloatType>(type) && type.getIntOrFloatBitWidth() <= 8; };
  if (isNarrow(from) && !to.isF32())
    return convert(convert(a, b.getF32Type(), false), to, toUnsigned);
  if (isNarrow(to) && !from.isF32())
    return convert(convert(a, b.getF32Type(), false), to, toUnsigned);
  if (to.isInteger(1))
    return notEqual(a, zero(a));
  auto toFloat = dyn_cast<FloatType>(to);
  if (isFloat(a) && toFloat) {
    unsigned fromWidth = from.getIntOrFloatBitWidth();
    if (toFloat.getWidth() > fromWidth)
      return arith::ExtFOp::create(b, loc, to, a);
    if (toFloat.getWidth() < fromWidth)
      return arith::TruncFOp::create(b, loc, to, a);
    // f16 <-> bf16 go through f32.
    Value wide = arith::ExtFOp::create(b, loc, b.getF32Type(), a);
    return arith::TruncFOp::create(b, loc, to, wide);
  }
  if (isFloat(a))
    return convertFloatToInteger(b, loc, a, cast<IntegerType>(to), toUnsigned);
  bool zeroExtend = isUnsigned || from.isInteger(1);
  if (toFloat)
    return zeroExtend ? Value(arith::UIToFPOp::create(b, loc, to, a)) : Value(arith::SIToFPOp::create(b, loc, to, a));
  if (to.getIntOrFloatBitWidth() < from.getIntOrFloatBitWidth())
    return arith::TruncIOp::create(b, loc, to, a);
  return zeroExtend ? Value(arith::ExtUIOp::create(b, loc, to, a)) : Value(arith::ExtSIOp::create(b, loc, to, a));
}

Value ScalarBuilder::bitcast(Value a, Type to) {
  Type from = a.getType();
  if (from == to)
    return a;
  if (from.isInteger(1) || to.isInteger(1))
    return convert(a, to, /*toUnsigned=*/true);
  if (isFloat(a) && isa<FloatType>(to))
    a = arith::BitcastOp::create(b, loc, b.getIntegerType(from.getIntOrFloatBitWidth()), a);
  return arith::BitcastOp::create(b, loc, to, a);
}

// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3; SC 2011). A word of 32 bits
// lies in the low half of an i64, so that a product holds both of its halves.
Value ScalarBuilder::philox(Value counter, Value key) {
  constexpr double multipliers[] = {0xD2511F53, 0xCD9E8D57}, bumps[] = {0x9E3779B9, 0xBB67AE85};
  Type type = counter.getType();
  Value low = constant(type, 0xFFFFFFFF), half = constant(type, 32);
  auto highOf = [&](Value v) -> Value { return arith::ShRUIOp::create(b, loc, v, half); };
  auto lowOf = [&](Value v) { return bitAnd(v, low); };
  Value x[4] = {lowOf(counter), highOf(counter), zero(counter), zero(counter)};
  Value keys[2] = {lowOf(key), highOf(key)};
  for (int round = 0; round < 10; ++round) {
    Value first = mul(x[0], constant(type, multipliers[0])), second = mul(x[2], constant(type, multipliers[1]));
    Value next[4] = {bitXor(bitXor(highOf(second), x[1]), keys[0]), lowOf(second),
                     bitXor(bitXor(highOf(first), x[3]), keys[1]), lowOf(first)};
    llvm::copy(next, x);
    for (int i = 0; i < 2; ++i)
      keys[i] = lowOf(add(keys[i], constant(type, bumps[i])));
  }
  return bitOr(x[0], arith::ShLIOp::create(b, loc, x[1], half));
}
