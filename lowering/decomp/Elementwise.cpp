//===- Elementwise.cpp - arithmetic, comparisons, bits, casts -------------===//
#include "lowering/decomp/OnnxOps.h"
#include <cmath>

using namespace ptc::prim;

namespace ptc::decomp {

//===----------------------------------------------------------------------===//
// Binary and variadic arithmetic, with numpy broadcasting
//===----------------------------------------------------------------------===//

/// The right operand. Before version 7, `axis` said where its dims begin in the left one.
static Value right(NodeContext &n) {
  Value x = n.input(0), y = n.input(1);
  if (n.opset() >= 7 || !n.has("axis"))
    return y;
  std::optional<int64_t> axis = n.axis(n.rank(x), 0);
  Ints trailing;
  for (int64_t i = axis ? *axis + n.rank(y) : n.rank(x); i < n.rank(x); ++i)
    trailing.push_back(trailing.size() + n.rank(y));
  return n.unsqueeze(y, trailing);
}

Values add(NodeContext &n) { return {n.add(n.input(0), right(n))}; }
Values sub(NodeContext &n) { return {n.sub(n.input(0), right(n))}; }
Values mul(NodeContext &n) { return {n.mul(n.input(0), right(n))}; }
Values div(NodeContext &n) { return {n.div(n.input(0), right(n))}; }

/// fmod = 1 takes the sign of the dividend, else of the divisor.
Values mod(NodeContext &n) {
  if (n.flag("fmod"))
    return {n.binary<RemOp>(n.input(0), n.input(1))};
  return {n.binary<ModOp>(n.input(0), n.input(1))};
}

/// The powers that models use are products and roots.
static Value constantPower(NodeContext &n, Value x, double exponent) {
  if (exponent == 1)
    return x;
  if (exponent == 2)
    return n.mul(x, x);
  if (exponent == 3)
    return n.mul(n.mul(x, x), x);
  if (!n.isFloat(x))
    return {};
  if (exponent == 0.5)
    return n.sqrt(x);
  if (exponent == -0.5)
    return n.rsqrt(x);
  if (exponent == -1)
    return n.unary<ReciprocalOp>(x);
  return {};
}

/// Integers to a float exponent, in f64 and truncated; what is a whole number but for rounding counts as it.
static Value powerOfInteger(NodeContext &n, Value x, Value y) {
  Type wide = mlir::Float64Type::get(n.getContext());
  Value power = n.binary<PowOp>(n.convert(x, wide), n.convert(y, wide)), whole = n.unary<RoundOp>(power);
  Value isWhole = n.lessEqual(n.abs(n.sub(power, whole)), n.mul(n.abs(power), 0x1p-50));
  return n.convertLike(n.select(isWhole, whole, power), x);
}

Values pow(NodeContext &n) {
  Value x = n.input(0), y = right(n);
  if (std::optional<llvm::SmallVector<double>> exponent = n.knownFloats(y);
      exponent && exponent->size() == 1 && n.rank(y) <= n.rank(x))
    if (Value power = constantPower(n, x, exponent->front()))
      return {power};
  // The result has the type of the base; an exponent that the base's type may not hold decides in which the power is.
  bool isWider = n.isFloat(x) && n.isFloat(y) &&
                 n.elementType(y).getIntOrFloatBitWidth() > n.elementType(x).getIntOrFloatBitWidth();
  if (isWider)
    return {n.convertLike(n.binary<PowOp>(n.convertLike(x, y), y), x)};
  if (n.isFloat(y) && !n.isFloat(x))
    return {powerOfInteger(n, x, y)};
  return {n.binary<PowOp>(x, n.convertLike(y, x))};
}

template <typename Op> static Value variadic(NodeContext &n) {
  Value result = n.input(0);
  for (size_t i = 1; i < n.inputCount(); ++i)
    result = n.binary<Op>(result, n.input(i));
  return result;
}
Values max(NodeContext &n) { return {variadic<MaximumOp>(n)}; }
Values min(NodeContext &n) { return {variadic<MinimumOp>(n)}; }
Values sum(NodeContext &n) { return {variadic<AddOp>(n)}; }
Values mean(NodeContext &n) { return {n.div(variadic<AddOp>(n), double(n.inputCount()))}; }

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

Values identity(NodeContext &n) { return {n.input(0)}; }
Values neg(NodeContext &n) { return {n.neg(n.input(0))}; }
Values abs(NodeContext &n) { return {n.isUnsigned(n.input(0)) ? n.input(0) : n.abs(n.input(0))}; }
Values sign(NodeContext &n) { return {n.unary<SignOp>(n.input(0))}; }
Values reciprocal(NodeContext &n) { return {n.unary<ReciprocalOp>(n.input(0))}; }
Values sqrt(NodeContext &n) { return {n.sqrt(n.input(0))}; }
Values ceil(NodeContext &n) { return {n.unary<CeilOp>(n.input(0))}; }
Values floor(NodeContext &n) { return {n.unary<FloorOp>(n.input(0))}; }
Values round(NodeContext &n) { return {n.unary<RoundOp>(n.input(0))}; }
Values exp(NodeContext &n) { return {n.exp(n.input(0))}; }
Values log(NodeContext &n) { return {n.log(n.input(0))}; }
Values sin(NodeContext &n) { return {n.unary<SinOp>(n.input(0))}; }
Values cos(NodeContext &n) { return {n.unary<CosOp>(n.input(0))}; }
Values tan(NodeContext &n) { return {n.unary<TanOp>(n.input(0))}; }
Values asin(NodeContext &n) { return {n.unary<AsinOp>(n.input(0))}; }
Values acos(NodeContext &n) { return {n.unary<AcosOp>(n.input(0))}; }
Values atan(NodeContext &n) { return {n.unary<AtanOp>(n.input(0))}; }
Values sinh(NodeContext &n) { return {n.unary<SinhOp>(n.input(0))}; }
Values cosh(NodeContext &n) { return {n.unary<CoshOp>(n.input(0))}; }
Values asinh(NodeContext &n) { return {n.unary<AsinhOp>(n.input(0))}; }
Values acosh(NodeContext &n) { return {n.unary<AcoshOp>(n.input(0))}; }
Values atanh(NodeContext &n) { return {n.unary<AtanhOp>(n.input(0))}; }
Values erf(NodeContext &n) { return {n.erf(n.input(0))}; }

//===----------------------------------------------------------------------===//
// Comparisons and predicates
//===----------------------------------------------------------------------===//

Values equal(NodeContext &n) { return {n.equal(n.input(0), right(n))}; }
Values less(NodeContext &n) { return {n.less(n.input(0), right(n))}; }
Values lessOrEqual(NodeContext &n) { return {n.lessEqual(n.input(0), n.input(1))}; }
Values greater(NodeContext &n) { return {n.less(right(n), n.input(0))}; }
Values greaterOrEqual(NodeContext &n) { return {n.lessEqual(n.input(1), n.input(0))}; }
Values isNan(NodeContext &n) { return {n.isNan(n.input(0))}; }

Values isInf(NodeContext &n) {
  Value x = n.input(0);
  bool negative = n.flag("detect_negative", true), positive = n.flag("detect_positive", true);
  if (negative && positive)
    return {n.test<IsInfOp>(x)};
  if (!negative && !positive)
    return {n.fill(n.scalar(0, n.i1()), n.dims(x))};
  return {n.equal(x, positive ? n.highest(n.elementType(x)) : n.lowest(n.elementType(x)))};
}

//===----------------------------------------------------------------------===//
// Booleans and bits
//===----------------------------------------------------------------------===//

Values logicalAnd(NodeContext &n) { return {n.logicalAnd(n.input(0), right(n))}; }
Values logicalOr(NodeContext &n) { return {n.logicalOr(n.input(0), right(n))}; }
Values logicalXor(NodeContext &n) { return {n.binary<XorOp>(n.input(0), right(n))}; }
Values logicalNot(NodeContext &n) { return {n.logicalNot(n.input(0))}; }

/// Shifts by a negative count, or by the width and more, leave 0 or (to the right) the sign.
Values bitShift(NodeContext &n) {
  std::string direction = n.text("direction", "");
  Value x = n.input(0), count = n.input(1);
  if (direction == "LEFT")
    return {n.binary<ShiftLeftOp>(x, count)};
  if (direction == "RIGHT" && n.isUnsigned(x))
    return {n.binary<ShiftRightOp>(x, count)};
  if (direction == "RIGHT") {
    Value last = n.scalarLike(n.elementType(count).getIntOrFloatBitWidth() - 1, count);
    Value bounded = n.select(n.less(count, n.scalarLike(0, count)), last, n.minimum(count, last));
    return {n.binary<ShiftRightOp>(x, bounded)};
  }
  return {n.fail(DiagId::BadAttribute, "direction", "'" + direction + "'", "LEFT or RIGHT is needed")};
}

//===----------------------------------------------------------------------===//
// Selection, bounds, types
//===----------------------------------------------------------------------===//

Values where(NodeContext &n) { return {n.select(n.input(0), n.input(1), n.input(2))}; }

/// Bounds are attributes up to version 6 and inputs from 11.
Values clip(NodeContext &n) {
  Value x = n.input(0);
  Value low = n.optionalInput(1), high = n.optionalInput(2);
  if (n.opset() < 11) { // attributes, whose defaults end the range of f32 in wider types too
    constexpr double most = std::numeric_limits<float>::max();
    low = n.scalarLike(n.real("min", -most), x);
    high = n.scalarLike(n.real("max", most), x);
  }
  if (low)
    x = n.maximum(x, n.reshape(low, {}));
  if (high)
    x = n.minimum(x, n.reshape(high, {}));
  return {x};
}

/// Powers of two: the next one up or down where x is none (default: up), or the nearest. What is finite and above the
/// largest power becomes it unless the model says otherwise.
static Value castToScale(NodeContext &n, Value x, Type to) {
  Value wide = n.convert(x, n.f32()), largest = n.scalar(std::ldexp(1.0, 127), n.f32());
  if (n.flag("saturate", true))
    wide = n.select(n.test<IsInfOp>(wide), wide, n.minimum(wide, largest));
  Value nearest = n.convert(n.convert(wide, to), n.f32());
  std::string mode = n.text("round_mode", "up");
  if (mode == "up")
    nearest = n.select(n.less(nearest, wide), n.mul(nearest, 2.0), nearest);
  else if (mode == "down")
    nearest = n.select(n.less(wide, nearest), n.mul(nearest, 0.5), nearest);
  return n.convert(nearest, to);
}

/// Numbers of any type for floats of at most 8 bits: where those end they saturate, unless the model says otherwise.
static Value withinNarrow(NodeContext &n, Value x, Type to) {
  auto toFloat = llvm::dyn_cast<mlir::FloatType>(to);
  bool isNarrow = toFloat && toFloat.getWidth() <= 8 && !llvm::isa<mlir::Float8E8M0FNUType>(to);
  if (!isNarrow || n.elementType(x) == to || !n.flag("saturate", true))
    return x;
  double largest = llvm::APFloat::getLargest(toFloat.getFloatSemantics()).convertToDouble();
  bool isWide = n.isFloat(x) && n.elementType(x).getIntOrFloatBitWidth() > 8;
  return n.clamp(isWide ? x : n.convert(x, n.f32()), -largest, largest);
}

/// Strings say numbers in decimal. What lies outside of a type below 64 bits wraps, as between numbers.
static Value castFromString(NodeContext &n, Value x, Type to) {
  bool isFloat = llvm::isa<mlir::FloatType>(to);
  enum { F64, Si64, Ui64, F32 } kind = isFloat ? to.isF32() ? F32 : F64 : to.isUnsignedInteger() ? Ui64 : Si64;
  Type wide = isFloat ? n.f64() : kind == Ui64 ? n.ui64() : n.si64();
  Value number = n.call("string_to_number", x, {n.elementCount(x), n.expr(kind)}, n.dims(x), wide);
  return n.convert(withinNarrow(n, number, to), to);
}

static Value castToString(NodeContext &n, Value x) {
  enum {
    F32,
    F64,
    Si64,
    Ui64,
    Bool
  } kind = n.isBool(x)                ? Bool
           : n.elementType(x).isF64() ? F64
           : n.isFloat(x)             ? F32
           : n.isUnsigned(x)          ? Ui64
                                      : Si64;
  Type wide[] = {n.f32(), n.f64(), n.si64(), n.ui64(), n.i1()};
  return n.call("string_from_number", n.convert(x, wide[kind]), {n.elementCount(x), n.expr(kind)}, n.dims(x),
                n.stringType());
}

/// Conversions to integers below 8 bits wrap.
Value castTo(NodeContext &n, Value x, Type to) {
  if (!x || !to)
    return {};
  if (n.isComplex(x) || prim::isComplex(to))
    return n.elementType(x) == to
               ? x
               : n.fail(DiagId::WrongInputType, 0, n.elementType(x), "complex numbers are not converted");
  if (n.isString(x) || llvm::isa<StringType>(to))
    return n.elementType(x) == to ? x : n.isString(x) ? castFromString(n, x, to) : castToString(n, x);
  if (llvm::isa<mlir::Float8E8M0FNUType>(to) && n.isFloat(x))
    return castToScale(n, x, to);
  bool isTinyInteger = llvm::isa<mlir::IntegerType>(to) && !to.isInteger(1) && to.getIntOrFloatBitWidth() < 8;
  if (isTinyInteger && n.isFloat(x))
    x = n.convert(x, n.si32());
  return n.convert(withinNarrow(n, x, to), to);
}
Values cast(NodeContext &n) { return {castTo(n, n.input(0), n.typeAttribute("to"))}; }
Values bitCast(NodeContext &n) { return {n.bitcast(n.input(0), n.typeAttribute("to"))}; }
Values castLike(NodeContext &n) { return {castTo(n, n.input(0), n.elementType(n.input(1)))}; }

} // namespace ptc::decomp
