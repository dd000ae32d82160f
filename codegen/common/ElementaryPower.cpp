//===- ElementaryPower.cpp - powers and roots -----------------------------===//
//
// pow(x, y) = exp(y log |x|). The error of the exponent is multiplied by up to 128 (f32) or 1024 (f64), so the
// logarithm is a pair of words, and so is its product with y. Signs and C99's special cases (F.9.4.4) come after: x^0 =
// 1^y = 1, NaN for a negative base with a fractional exponent, the sign of odd powers of negatives. A constant exponent
// among 0, 1, 2, 3, -1 becomes products or a quotient, one of 1/4, 1/2, 3/4 with either sign square roots; in f32 those
// of quarters are polynomials, and roots for the few numbers that these leave out: the unit that takes roots and
// divides is busy with two and a quotient for three times as long.
//
// fpowi takes the same way: the integer exponent is split into two floats, which hold it exactly.
// ipowi squares and multiplies while a lane has exponent bits left; x^-n is 1/x^n truncated, and 0 for x = 0.
//
// cbrt: a third of the exponent bits gives two digits, Halley's iteration triples them; the last step uses the exact
// residual x - t^3.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ElementaryCoefficients.h"
#include "codegen/common/ElementaryFamilies.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace ptc::codegen {

using namespace coefficients;

//===----------------------------------------------------------------------===//
// pow, fpowi
//===----------------------------------------------------------------------===//

/// |x|^(y.hi + y.lo), also for |x| zero or infinite; NaN for infinity^0 and 0^0.
static Num powerOfMagnitude(Num a, Pair y) {
  Emitter &e = *a.e;
  Pair log = logAsPair(a);
  double inf = std::numeric_limits<double>::infinity();
  Num logHi = select(a == 0.0, -inf, select(a == inf, inf, log.hi));
  Pair z = twoProduct(logHi, y.hi);
  Num lo = fma(log.lo, y.hi, z.lo);
  if (y.lo.v)
    lo = fma(logHi, y.lo, lo);
  // Where the result over- or underflows, lo may be NaN and no longer counts.
  lo = select(abs(z.hi) < e.num(e.pick(128, 1024)), lo, 0.0);
  return expOfPair(z.hi, lo, {});
}

/// What `root` lacks of the square root of x, times its double.
static Num missingSquare(Num x, Num root) {
  if (x.e->options.hasFma)
    return fma(-root, root, x); // exact
  Pair square = twoProduct(root, root);
  return (x - square.hi) - square.lo;
}

/// x^y, y among 1/4 and 3/4 with either sign, to 0.51 ulp: two roots, and what each lacks. With s = sqrt(x),
/// q = sqrt(s) and h = 1 / (2 q):
///   sqrt(x) = s + l, l = (x - s^2) 2 h^2;   x^(1/4) = q + (s - q^2 + l) h
static Num quarterPowerByRoots(Num x, double y) {
  Emitter &e = *x.e;
  // x - s^2 has bits far below x, and s^2 may be above it.
  int up = int(e.pick(96, 900)), down = -8;
  double inf = std::numeric_limits<double>::infinity();
  Mask tiny = x < std::ldexp(1.0, down - up);
  Num a = x * select(tiny, std::ldexp(1.0, up), std::ldexp(1.0, down), e);
  Num s = sqrt(a), q = sqrt(s), h = 0.5 / q;
  Pair half{s, missingSquare(a, s) * (h * h * 2.0)};
  Pair power{q, (missingSquare(s, q) + half.lo) * h};
  if (std::fabs(y) == 0.75)
    power = multiply(half, power);
  Num r = power.hi + power.lo;
  if (y < 0) {
    Num inverse = 1.0 / power.hi;
    Pair one = twoProduct(power.hi, inverse);
    r = fma(inverse, ((1.0 - one.hi) - one.lo) - power.lo * inverse, inverse);
  }
  r = r * select(tiny, std::ldexp(1.0, int(-y * up)), std::ldexp(1.0, int(-y * down)), e);
  Num end = abs(x); // 0 and infinity of either sign
  return select((end == 0.0) | (end == inf), y > 0 ? end : 1.0 / end, r);
}

/// The polynomial in pairs of terms, pairs of those and so on (Estrin): the fewest steps that wait for each other. By
/// Horner's rule those of three or four vectors fill what a processor has in flight.
static Num polynomialInPairs(Num x, ArrayRef<double> c) {
  Emitter &e = *x.e;
  SmallVector<Num> terms;
  for (size_t i = 0; i < c.size(); i += 2)
    terms.push_back(i + 1 < c.size() ? fma(x, c[i + 1], e.num(c[i])) : e.num(c[i]));
  for (Num power = x; terms.size() > 1;) {
    power = power * power;
    SmallVector<Num> joined;
    for (size_t i = 0; i < terms.size(); i += 2)
      joined.push_back(i + 1 < terms.size() ? fma(power, terms[i + 1], terms[i]) : terms[i]);
    terms = joined;
  }
  return terms.front();
}

/// The same for f32 in [2^-126, 2^125), to 0.8 ulp, without roots and quotients. A number s of 6 bits near x^(-1/4)
/// comes from the exponent's bits, as the integers that say floats are near their logarithms. s^3 and s^4 are exact,
/// and so is r = 1 - x s^4 but for the last rounding:
///   x^(-1/4) = s (1 - r)^(-1/4);   x^(-3/4) = s^3 (1 - r)^(-3/4);   x^(3/4), x^(1/4) = x times those
static Num quarterPowerByPolynomial(Num x, double y) {
  Emitter &e = *x.e;
  constexpr uint64_t start = 0x4f5a0000, sixBits = 0xfffc0000; // |r| < 0.173
  Num s = toNum((e.bits(start) - (toBits(x) >> 2)) & sixBits), square = s * s;
  Num r = fma(-x, square * square, 1.0);
  bool isCubed = y == -0.75 || y == 0.25;
  auto terms = isCubed ? ArrayRef(kFourthRootCubedF32) : ArrayRef(kFourthRootF32);
  Num factor = isCubed ? square * s : s;
  if (y < 0)
    return fma(factor * r, polynomialInPairs(r, terms), factor);
  Num rest = fma(r, polynomialInPairs(r, terms.drop_front()), terms[0]); // the constant last: it is rounded once
  Num power = x * factor;
  if (!e.options.hasFma)
    return fma(power, r * rest, power);
  return power + fma(power, r * rest, fma(x, factor, -power));
}

static Num quarterPower(Num x, double y) {
  Emitter &e = *x.e;
  if (e.isF64)
    return quarterPowerByRoots(x, y);
  constexpr uint64_t least = 0x00800000, end = 0x7e000000; // bits of 2^-126 and 2^125
  Mask isOrdinary = lessUnsigned(toBits(x) - least, e.bits(end - least));
  Num power = quarterPowerByPolynomial(x, y);
  return e.num(e.ifAny(!isOrdinary, {power.v}, [&] {
                  return SmallVector<Value>{select(isOrdinary, power, quarterPowerByRoots(x, y)).v};
                }).front());
}

/// y if the exponent is a constant with a short form; null value if not.
static Num constantPower(Num x, double y) {
  Emitter &e = *x.e;
  if (y == 0)
    return e.num(1.0);
  if (y == 1)
    return x;
  if (y == -1)
    return 1.0 / x;
  if (y == 2)
    return x * x;
  if (y == 3)
    return x * x * x;
  if (std::fabs(y) == 0.25 || std::fabs(y) == 0.75)
    return quarterPower(x, y);
  if (std::fabs(y) != 0.5)
    return {};
  // pow(-0, 1/2) = +0 and pow(-infinity, 1/2) = +infinity.
  double inf = std::numeric_limits<double>::infinity();
  Num root = select(x == -inf, inf, abs(sqrt(x)));
  return y > 0 ? root : 1.0 / root;
}

Num emitPow(Num x, Num y) {
  Emitter &e = *x.e;
  llvm::APFloat constant(0.0);
  if (matchPattern(y.v, m_ConstantFloat(&constant))) {
    bool loses = false;
    constant.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &loses);
    if (Num simple = constantPower(x, constant.convertToDouble()); simple.v)
      return simple;
  }
  double inf = std::numeric_limits<double>::infinity();
  Num a = abs(x), r = powerOfMagnitude(a, {y, {}});
  r = select(a == 1.0, 1.0, r); // also for infinite y
  Num half = y * 0.5;
  Mask integer = trunc(y) == y, odd = integer & differs(trunc(half), half);
  Mask negative = lessSigned(toBits(x), e.bits(0));
  r = select(odd & negative, -r, r);
  r = select((x < 0.0) & (x > -inf) & differs(trunc(y), y), e.nan(), r);
  r = select(unordered(x, y), e.nan(), r);
  return select((y == 0.0) | (x == 1.0), 1.0, r);
}

/// The integer n as two floats, exact; in f32 beyond 2^40 only the magnitude's being huge counts.
static Pair exponentAsPair(Emitter &e, Value n) {
  ImplicitLocOpBuilder &b = e.b;
  unsigned width = getElementTypeOrSelf(n.getType()).getIntOrFloatBitWidth();
  unsigned working = width <= 32 ? 32 : 64;
  Type type = e.withElement(b.getIntegerType(working));
  auto constant = [&](int64_t c) -> Value {
    auto attribute = b.getIntegerAttr(b.getIntegerType(working), c);
    if (auto v = dyn_cast<VectorType>(type))
      return arith::ConstantOp::create(b, DenseElementsAttr::get(v, Attribute(attribute)));
    return arith::ConstantOp::create(b, attribute);
  };
  if (width < working)
    n = arith::ExtSIOp::create(b, type, n);
  if (!e.isF64 && working == 64) {
    n = arith::MinSIOp::create(b, n, constant(int64_t(1) << 40));
    n = arith::MaxSIOp::create(b, n, constant(-(int64_t(1) << 40)));
  }
  int64_t lowBits = working == 32 ? 12 : e.isF64 ? 32 : 20;
  Value low = arith::AndIOp::create(b, n, constant((int64_t(1) << lowBits) - 1));
  Value high = arith::SubIOp::create(b, n, low);
  return fastTwoSum(e.num(arith::SIToFPOp::create(b, e.floatType, high)),
                    e.num(arith::SIToFPOp::create(b, e.floatType, low)));
}

/// n as a constant, if it is one.
static std::optional<int64_t> constantInteger(Value n) {
  llvm::APInt c;
  if (matchPattern(n, m_ConstantInt(&c)) && c.isSignedIntN(64))
    return c.getSExtValue();
  return std::nullopt;
}

Num emitFPowI(Num x, Value n) {
  Emitter &e = *x.e;
  if (std::optional<int64_t> c = constantInteger(n))
    if (Num simple = constantPower(x, double(*c)); simple.v)
      return simple;
  ImplicitLocOpBuilder &b = e.b;
  Type type = n.getType();
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  Type bit = e.withElement(b.getI1Type());
  // The lowest bit of n: its truncation to i1.
  Mask odd = e.mask(getElementTypeOrSelf(type).isInteger(1) ? n : arith::TruncIOp::create(b, bit, n).getResult());
  Mask none = e.mask(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, n, zero));
  Num a = abs(x), r = powerOfMagnitude(a, exponentAsPair(e, n));
  Mask negative = lessSigned(toBits(x), e.bits(0));
  r = select(odd & negative, -r, r);
  r = select(unordered(x, x), x, r);
  return select(none, 1.0, r);
}

//===----------------------------------------------------------------------===//
// ipowi
//===----------------------------------------------------------------------===//

static Value splat(ImplicitLocOpBuilder &b, Type type, int64_t c) {
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  auto attribute = b.getIntegerAttr(getElementTypeOrSelf(type), APInt(width, c, true, true));
  if (auto v = dyn_cast<VectorType>(type))
    return arith::ConstantOp::create(b, DenseElementsAttr::get(v, Attribute(attribute)));
  return arith::ConstantOp::create(b, attribute);
}

Value emitIPowI(ImplicitLocOpBuilder &b, Value x, Value n, llvm::function_ref<Value(Value)> anyLane) {
  using Predicate = arith::CmpIPredicate;
  Type type = x.getType();
  Value zero = splat(b, type, 0), one = splat(b, type, 1), minusOne = splat(b, type, -1);
  auto compare = [&](Predicate p, Value l, Value r) -> Value { return arith::CmpIOp::create(b, p, l, r); };
  auto choose = [&](Value c, Value l, Value r) -> Value { return arith::SelectOp::create(b, c, l, r); };
  Value negative = compare(Predicate::slt, n, zero);
  Value isOdd = compare(Predicate::ne, arith::AndIOp::create(b, n, one), zero);

  SmallVector<Value> initial{one, x, choose(negative, zero, n)};
  auto loop = scf::WhileOp::create(b, TypeRange{type, type, type}, initial);
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&loop.getBefore(), {}, {type, type, type}, SmallVector<Location>(3, b.getLoc()));
  scf::ConditionOp::create(b, anyLane(compare(Predicate::ne, before->getArgument(2), zero)), before->getArguments());
  Block *after = b.createBlock(&loop.getAfter(), {}, {type, type, type}, SmallVector<Location>(3, b.getLoc()));
  Value product = after->getArgument(0), power = after->getArgument(1), left = after->getArgument(2);
  Value bit = compare(Predicate::ne, arith::AndIOp::create(b, left, one), zero);
  Value next = choose(bit, arith::MulIOp::create(b, product, power), product);
  Value rest = arith::ShRUIOp::create(b, left, one);
  scf::YieldOp::create(b, ValueRange{next, arith::MulIOp::create(b, power, power), rest});

  b.setInsertionPointAfter(loop);
  // 1/x^n: only +-1 have an integer reciprocal.
  Value sign = choose(isOdd, minusOne, one);
  Value reciprocal =
      choose(compare(Predicate::eq, x, one), one, choose(compare(Predicate::eq, x, minusOne), sign, zero));
  return choose(negative, reciprocal, loop.getResult(0));
}

//===----------------------------------------------------------------------===//
// Roots
//===----------------------------------------------------------------------===//

/// The residuals of the root, x - root^2, and of its reciprocal, 1 - r root, are exact and correct the quotient.
Num emitRsqrt(Num x) {
  Emitter &e = *x.e;
  Num root = sqrt(x), r = 1.0 / root;
  if (!e.options.hasFma)
    return r;
  Num ofRoot = fma(-root, root, x), ofQuotient = fma(-r, root, 1.0);
  Num corrected = fma(r, fma(ofRoot * r, r * -0.5, ofQuotient), r);
  return select((x > 0.0) & (x < e.infinity()), corrected, r);
}

Num emitCbrt(Num x) {
  Emitter &e = *x.e;
  Num a = abs(x);
  // Away from denormals and from overflow of 3 a; the exponents are divisible by 3.
  int up = e.isF64 ? 54 : 24, down = -6;
  Mask tiny = a < 0x1p-60;
  Num c = a * select(tiny, std::ldexp(1.0, up), std::ldexp(1.0, down), e);
  // bits / 3 + 2/3 bias; the quotient as a sum of shifts.
  Bits i = toBits(c), third = (i >> 2) + (i >> 4);
  third = third + (third >> 4);
  third = third + (third >> 8);
  if (e.isF64)
    third = third + (third >> 16);
  Num t = toNum(third + (e.isF64 ? 0x2A9F789300000000 : 709958130));
  for (int n = e.isF64 ? 2 : 1; n > 0; --n) {
    Num cube = t * t * t;
    t = t * (fma(c, 2.0, cube) / fma(cube, 2.0, c));
  }
  Pair square = twoProduct(t, t), cube = twoProduct(square.hi, t);
  Num residual = ((c - cube.hi) - cube.lo) - square.lo * t;
  t = fma(t, residual / fma(cube.hi, 2.0, c), t);
  t = t * select(tiny, std::ldexp(1.0, -up / 3), std::ldexp(1.0, -down / 3), e);
  return select((a > 0.0) & (a < e.infinity()), copysign(t, x), x);
}

} // namespace ptc::codegen
