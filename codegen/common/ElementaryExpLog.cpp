//===- ElementaryExpLog.cpp - exponentials and logarithms -----------------===//
//
// exp: n = round(x / ln 2), r = x - n ln 2 in two steps (Cody and Waite 1980: the first constant has trailing zeros,
// so that n times it is exact), exp(r) by a polynomial, then times 2^n. exp2 has r = x - n exactly. The argument is
// clamped to just beyond overflow and underflow, where the scaling itself yields infinity and zero. AVX-512 has
// instructions for what is left of x and for the scaling, which need no bounds.
//
// expm1: 2^n exp(r) - 1 = 2^n expm1(r) + (2^n - 1), evaluated at half size because 2^128 is no float.
//
// log: x = 2^e m, sqrt(1/2) <= m < sqrt(2), f = m - 1 is exact, log(1+f) = f + g with a small g: in f32 g = -f^2/2 +
// f^3 P(f); in f64 by s = f / (2+f), log(1+f) = f - (h - s (h + s^2 P(s^2))), h = f^2/2 (fdlibm). The large terms
// e ln 2 and f are added exactly (fastTwoSum), so that one rounding of the result's size remains. Other bases multiply
// f as a product of two words. log1p passes what 1 + x lost as a correction of f; in [0, 1], where a softplus has its
// argument, one polynomial in f32 does without a split, and thus without any special case. pow needs log as a pair of
// words: 2s + 2/3 s^3 + s^5 P(s^2) with the first two terms as pairs.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ElementaryCoefficients.h"
#include "codegen/common/ElementaryFamilies.h"
#include <cmath>
#include <limits>

namespace ptc::codegen {
using namespace coefficients;

static constexpr double kLog2e = 1.4426950408889634;
// ln 2 in two words; the first leaves 8 (f32) and 11 (f64) low bits empty.
static constexpr double kLn2HiF32 = 0x1.62e4p-1, kLn2LoF32 = 0x1.7f7d1cp-20;
static constexpr double kLn2HiF64 = 0x1.62e42feep-1, kLn2LoF64 = 0x1.a39ef35793c76p-33;

//===----------------------------------------------------------------------===//
// Exponentials
//===----------------------------------------------------------------------===//

/// x + lo - n ln 2, rounded once; lo may be absent.
static Num subtractLn2(Num x, Num n, Num lo = {}) {
  Emitter &e = *x.e;
  Num r = fma(n, -e.pick(kLn2HiF32, kLn2HiF64), x); // exact
  double ln2Lo = -e.pick(kLn2LoF32, kLn2LoF64);
  return lo.v ? r + fma(n, ln2Lo, lo) : fma(n, ln2Lo, r);
}

/// Below the first bound results round to 0, above the second they are infinite, even when halved.
static Num clampForExp(Num x) { return atMost(atLeast(x, x.e->pick(-104, -746)), x.e->pick(89.5, 711)); }

ReducedExp reduceForExp(Num x, int bias) {
  PowerOfTwo k = roundToPower(x, kLog2e, bias);
  Num r = subtractLn2(x, k.n);
  Num q = polynomial(r, x.e->pick(kExpF32, kExpF64));
  return {fma(fma(q, r, 1.0), r, 1.0), k};
}

/// The same of exp(-x): r is -(x + n ln 2). No operand is negated by an operation of its own.
ReducedExp reduceForNegatedExp(Num x, int bias) {
  Emitter &e = *x.e;
  PowerOfTwo k = roundToPower(x, -kLog2e, bias);
  Num r = fma(k.n, e.pick(kLn2LoF32, kLn2LoF64), fma(k.n, e.pick(kLn2HiF32, kLn2HiF64), x));
  llvm::SmallVector<double> c(e.pick(kExpF32, kExpF64));
  for (size_t odd = 1; odd < c.size(); odd += 2)
    c[odd] = -c[odd];
  return {fma(fma(polynomial(r, c), r, -1.0), r, 1.0), k};
}

Num expScaled(Num x, int shift) {
  ReducedExp reduced = reduceForExp(clampForExp(x), 2 * x.e->bias + shift);
  return timesPower(reduced.mantissa, reduced.power, shift);
}

/// expm1(r) for |r| <= ln(2)/2.
static Num expm1Reduced(Num r) { return fma(r * r, polynomial(r, r.e->pick(kExpF32, kExpF64)), r); }

Num expOfPair(Num x, Num lo, Num factor) {
  Emitter &e = *x.e;
  Num c = clampForExp(x);
  PowerOfTwo k = roundToPower(c, kLog2e, 2 * e.bias);
  Num m = expm1Reduced(subtractLn2(c, k.n, lo));
  return timesPower(factor.v ? fma(factor, m, factor) : m + 1.0, k);
}

Num emitExp(Num x) { return expScaled(x, 0); }

Num expOfNotPositive(Num x) {
  Emitter &e = *x.e;
  ReducedExp reduced = reduceForExp(atLeast(x, -e.bias / kLog2e), e.bias); // of the bound: 0 times 2^-bias
  return reduced.mantissa * powerOfTwo(reduced.power);
}

/// 2^r for |r| <= 1/2.
static Num exp2Reduced(Num r) { return fma(polynomial(r, r.e->pick(kExp2F32, kExp2F64)), r, 1.0); }

Num emitExp2(Num x) {
  Emitter &e = *x.e;
  if (Num power = powerByInstructions(x, exp2Reduced); power.v)
    return power;
  Num c = atMost(atLeast(x, e.pick(-151, -1076)), e.pick(129, 1025));
  PowerOfTwo k = roundToPower(c, 1, 2 * e.bias);
  return timesPower(exp2Reduced(c - k.n), k);
}

Num exp2OfNotPositive(Num x) {
  Emitter &e = *x.e;
  if (Num power = powerByInstructions(x, exp2Reduced); power.v)
    return power;
  Num c = atLeast(x, -e.bias);
  PowerOfTwo k = roundToPower(c, 1, e.bias);
  return exp2Reduced(c - k.n) * powerOfTwo(k);
}

Num emitExpm1(Num x) {
  Emitter &e = *x.e;
  Num c = atMost(atLeast(x, e.pick(-20, -42)), e.pick(89, 710));
  PowerOfTwo k = roundToPower(c, kLog2e, e.bias - 1);
  Num p = expm1Reduced(subtractLn2(c, k.n)), half = powerOfTwo(k);
  Num y = fma(half, p, half - 0.5);
  // Halving would cost the smallest denormal, and -0 its sign.
  return select(abs(x) < e.num(e.pick(0x1p-26, 0x1p-55)), x, y + y);
}

//===----------------------------------------------------------------------===//
// Logarithms
//===----------------------------------------------------------------------===//

/// x = 2^k m with sqrt(1/2) <= m < sqrt(2), x normal; biasedK = k + bias.
static Num splitExponent(Num x, Bits &biasedK) {
  Emitter &e = *x.e;
  uint64_t one = uint64_t(e.bias) << e.mantissa;
  uint64_t rootHalf = e.isF64 ? 0x3FE6A09E667F3BCD : 0x3F3504F3;
  Bits u = toBits(x) + (one - rootHalf);
  biasedK = u >> e.mantissa;
  return toNum((u & ((uint64_t(1) << e.mantissa) - 1)) + rootHalf);
}

LogSplit splitForLog(Num x) {
  Emitter &e = *x.e;
  // Denormals are scaled into the normal range.
  Mask denormal = x < e.smallestNormal();
  Num normal = select(denormal, x * std::ldexp(1.0, e.mantissa + 1), x);
  Num adjust = select(denormal, -double(e.bias + e.mantissa + 1), -double(e.bias), e);
  Bits k;
  Num m = splitExponent(normal, k);
  return {toFloat(k) + adjust, m - 1.0, {}};
}

LogSplit splitForLog(Pair x) {
  Emitter &e = *x.hi.e;
  Bits k;
  Num m = splitExponent(x.hi, k);
  // Where k is large lo no longer counts; the bound keeps 2^-k normal.
  Bits limit = e.bits(e.bias + 100);
  Bits bounded = select(lessUnsigned(k, limit), k, limit);
  Num scale = toNum((e.bits(2 * e.bias) - bounded) << e.mantissa);
  return {toFloat(k) - double(e.bias), m - 1.0, x.lo * scale};
}

/// log(1+f) - f.
static Num logTail(Num f) {
  if (!f.e->isF64) {
    Num square = f * f;
    return fma(square * f, polynomial(f, kLogPolynomialF32), square * -0.5);
  }
  Num s = f / (f + 2.0), z = s * s, h = f * f * 0.5;
  return s * fma(polynomial(z, kLogRatioF64), z, h) - h;
}

/// The correction for fLo: its share of log(1 + f + fLo) is fLo / (1 + f), nearly.
static Num correctTail(LogSplit s, Num tail) { return s.fLo.v ? tail + fma(-s.fLo, s.f, s.fLo) : tail; }

/// hi + (lo + tail) with hi = a + b, |a| >= |b| or a = 0.
static Num addWithTail(Num a, Num b, Num tail) {
  Pair s = fastTwoSum(a, b);
  return s.hi + (s.lo + tail);
}

Num logOfSplit(LogSplit s) {
  Emitter &e = *s.f.e;
  Num tail = fma(s.e, e.pick(kLn2LoF32, kLn2LoF64), correctTail(s, logTail(s.f)));
  return addWithTail(s.e * e.pick(kLn2HiF32, kLn2HiF64), s.f, tail);
}

/// e * (eHi + eLo) + (f + g) (cHi + cLo).
static Num logInBase(Num x, Pair c, Num eHi, Num eLo) {
  LogSplit s = splitForLog(x);
  Pair h = twoProduct(s.f, c.hi);
  Num tail = fma(logTail(s.f), c.hi, fma(s.f, c.lo, h.lo));
  if (eLo.v)
    tail = fma(s.e, eLo, tail);
  return addWithTail(eHi.v ? s.e * eHi : s.e, h.hi, tail);
}

/// Puts the values of infinity, zero, negatives and NaN into the logarithm `y` of x.
static Num logSpecials(Num x, Num y) {
  Emitter &e = *x.e;
  Num special = select(x < 0.0, e.nan(), x); // +inf and NaN stay
  special = select(x == 0.0, -std::numeric_limits<double>::infinity(), special);
  return select((x > 0.0) & (x < e.infinity()), y, special);
}

Num emitLog(Num x) { return logSpecials(x, logOfSplit(splitForLog(x))); }

Num emitLog2(Num x) {
  Emitter &e = *x.e;
  Pair c = pairOf(e.pick(0x1.715476p+0, 0x1.71547652b82fep+0), e.pick(0x1.4ae0cp-26, 0x1.777d0ffda0d24p-56), e);
  return logSpecials(x, logInBase(x, c, {}, {}));
}

Num emitLog10(Num x) {
  Emitter &e = *x.e;
  Pair c = pairOf(e.pick(0x1.bcb7b2p-2, 0x1.bcb7b1526e50ep-2), e.pick(-0x1.5b235ep-27, 0x1.95355baaafad3p-57), e);
  Num hi = e.num(e.pick(0x1.344p-2, 0x1.34413509f6p-2)), lo = e.num(e.pick(0x1.3509f8p-18, 0x1.9fef311f12b36p-42));
  return logSpecials(x, logInBase(x, c, hi, lo));
}

Num emitLog1p(Num x) {
  Emitter &e = *x.e;
  Num y = copysign(logOfSplit(splitForLog(twoSum(e.num(1.0), x))), x); // -0 stays
  Num special = select(x < -1.0, e.nan(), x);
  special = select(x == -1.0, -std::numeric_limits<double>::infinity(), special);
  return select((x > -1.0) & (x < e.infinity()), y, special);
}

Num log1pOfUnit(Num x) { return fma(x * x, polynomial(x, kLog1pOfUnitF32), x); }

Pair logAsPair(Num x) {
  Emitter &e = *x.e;
  LogSplit s = splitForLog(x);
  // q = f / (2+f) as a pair: the remainder f - q (2+f) is exact up to the error of 2+f, which is known.
  Pair d = fastTwoSum(e.num(2.0), s.f);
  Num q = s.f / d.hi;
  Pair back = twoProduct(q, d.hi);
  Num qLo = ((s.f - back.hi) - back.lo - q * d.lo) / d.hi;
  Pair ratio{q, qLo};

  Pair z = multiply(ratio, ratio);
  Num tail = z.hi * polynomial(z.hi, e.pick(kLogTailF32, kLogTailF64));
  // s^3 (2/3 + tail) = s (s^2 (2/3 + tail))
  Pair third = pairOf(e.pick(0x1.555556p-1, 0x1.5555555555555p-1), e.pick(-0x1.555556p-26, 0x1.5555555555555p-55), e);
  Pair cubic = multiply(multiply(z, add(third, {tail, e.num(0.0)})), ratio);
  Pair sum = add({ratio.hi * 2.0, ratio.lo * 2.0}, cubic);
  Pair ln2{s.e * e.pick(kLn2HiF32, kLn2HiF64), s.e * e.pick(kLn2LoF32, kLn2LoF64)};
  return add(ln2, sum);
}

} // namespace ptc::codegen
