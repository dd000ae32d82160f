//===- ElementaryInverse.cpp - inverse trigonometric and hyperbolic -------===//
//
// asin, acos: polynomial up to 1/2, beyond it asin(x) = pi/2 - 2 asin(sqrt((1-x)/2)). atan: |x| <= 1/2, around 1
// by (x-1)/(x+1), beyond 2 by -1/x, plus 0, pi/4 or pi/2. atan2 reduces numerator and denominator the same
// way, so that there is one division.
//
// asinh, acosh: logarithms of x + sqrt(x^2 +- 1), the argument kept as a pair; beyond a bound log(2x). atanh = log1p(2x
// / (1-x)) / 2. asinh and atanh take a polynomial up to 1/2.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ElementaryCoefficients.h"
#include "codegen/common/ElementaryFamilies.h"
#include <cmath>

namespace ptc::codegen {
using namespace coefficients;

// Bounds of atan's ranges: x - 1 is exact between them.
static constexpr double kAtanMiddle = 0.5, kAtanLarge = 2;

static double halfPiHi(Emitter &e) { return e.pick(0x1.921fb6p+0, 0x1.921fb54442d18p+0); }
static double halfPiLo(Emitter &e) { return e.pick(-0x1.777a5cp-25, 0x1.1a62633145c07p-54); }

//===----------------------------------------------------------------------===//
// asin, acos
//===----------------------------------------------------------------------===//

/// asin(s) = s + tail, where s = sqrt((1-|x|)/2) if |x| > 1/2, else |x|. NaN beyond 1.
struct AsinParts {
  Num magnitude;
  Mask large;
  Num s, tail;
};

static AsinParts asinParts(Num x) {
  Num a = abs(x);
  Mask large = a > 0.5;
  Num z = select(large, fma(a, -0.5, x.e->num(0.5)), a * a);
  Num s = select(large, sqrt(z), a);
  return {a, large, s, s * z * polynomial(z, x.e->pick(kAsinF32, kAsinF64))};
}

Num emitAsin(Num x) {
  Emitter &e = *x.e;
  AsinParts p = asinParts(x);
  Pair rest = fastTwoSum(e.num(halfPiHi(e)), p.s * -2.0);
  Num beyond = rest.hi + (rest.lo - fma(p.tail, 2.0, e.num(-halfPiLo(e))));
  return copysign(select(p.large, beyond, p.s + p.tail), x);
}

Num emitAcos(Num x) {
  Emitter &e = *x.e;
  AsinParts p = asinParts(x);
  Num tail = copysign(p.tail, x), s = copysign(p.s, x);
  Num small = halfPiHi(e) - (s - (halfPiLo(e) - tail));
  Num y = p.s + p.tail, mirrored = halfPiHi(e) - (p.s + (p.tail - halfPiLo(e)));
  Num half = select(x < 0.0, mirrored, y);
  return select(p.large, half + half, small);
}

//===----------------------------------------------------------------------===//
// atan, atan2
//===----------------------------------------------------------------------===//

/// offset + atan(u), |u| <= 1/2, the offset being 0, pi/4 or pi/2 in two words.
static Num atanReduced(Num u, Pair offset) {
  Num z = u * u;
  Num tail = fma(u * z, polynomial(z, u.e->pick(kAtanF32, kAtanF64)), offset.lo);
  Pair sum = fastTwoSum(offset.hi, u);
  return sum.hi + (sum.lo + tail);
}

Num emitAtan(Num x) {
  Emitter &e = *x.e;
  Num a = abs(x);
  Mask middle = a > kAtanMiddle, large = a > kAtanLarge;
  Num numerator = select(large, -1.0, select(middle, a - 1.0, a));
  Num denominator = select(large, a, select(middle, a + 1.0, 1.0));
  double hi = halfPiHi(e), lo = halfPiLo(e);
  Pair offset{select(large, hi, select(middle, hi / 2, 0.0, e)), select(large, lo, select(middle, lo / 2, 0.0, e))};
  return copysign(atanReduced(numerator / denominator, offset), x);
}

Num emitAtan2(Num y, Num x) {
  Emitter &e = *x.e;
  Num ax = abs(x), ay = abs(y);
  Mask steep = ax < ay;
  Num n = select(steep, ax, ay), d = select(steep, ay, ax);
  // Scaled so that n + d is finite and nothing denormal; two infinities count as equal, two zeros as 0 / 1.
  Num up = select(d < 0x1p-60, std::ldexp(1.0, e.mantissa + 2), 1.0, e);
  Num scale = select(d > std::ldexp(1.0, e.bias - 2), 0.25, up);
  Mask bothInfinite = n == e.infinity();
  n = select(bothInfinite, 1.0, n * scale);
  d = select(bothInfinite | (d == 0.0), 1.0, d * scale);
  Mask middle = d * kAtanMiddle < n;
  Num u = select(middle, n - d, n) / select(middle, n + d, d);
  double hi = halfPiHi(e), lo = halfPiLo(e);
  Pair offset{select(middle, hi / 2, 0.0, e), select(middle, lo / 2, 0.0, e)};
  Num r = atanReduced(u, offset);
  r = select(steep, hi - (r - lo), r);
  Mask left = lessSigned(toBits(x), e.bits(0));
  r = select(left, 2 * hi - (r - 2 * lo), r);
  return select(unordered(x, y), e.nan(), copysign(r, y));
}

//===----------------------------------------------------------------------===//
// Inverse hyperbolic
//===----------------------------------------------------------------------===//

/// sqrt(x) as a pair, x >= 0.
static Pair sqrtPair(Pair x) {
  Num s = sqrt(x.hi);
  Pair square = twoProduct(s, s);
  Num remainder = (x.hi - square.hi) - square.lo + x.lo;
  return {s, remainder / (s + s + s.e->smallestNormal())};
}

/// Above this x^2 - 1 and x^2 + 1 are x^2.
static double largeForInverse(Emitter &e) { return e.pick(0x1p14, 0x1p30); }

/// log(w), or log(2 x) where `large`.
static Num logOrLogOfTwice(Pair w, Num x, Mask large) {
  Emitter &e = *x.e;
  LogSplit s = splitForLog(Pair{select(large, x, w.hi), select(large, 0.0, w.lo)});
  s.e = s.e + select(large, 1.0, 0.0, e);
  return logOfSplit(s);
}

Num emitAsinh(Num x) {
  Emitter &e = *x.e;
  Num a = abs(x), z = a * a;
  Num small = fma(a * z, polynomial(z, e.pick(kAsinhF32, kAsinhF64)), a);
  Mask large = a > largeForInverse(e);
  Num bounded = select(large, 1.0, a);
  Pair square = twoProduct(bounded, bounded), sum = twoSum(square.hi, e.num(1.0));
  Pair root = sqrtPair({sum.hi, sum.lo + square.lo});
  Pair w = fastTwoSum(root.hi, bounded);
  Num y = logOrLogOfTwice({w.hi, w.lo + root.lo}, a, large);
  y = select(a < e.infinity(), y, a);
  return copysign(select(a < 0.5, small, y), x);
}

Num emitAcosh(Num x) {
  Emitter &e = *x.e;
  Mask large = x > largeForInverse(e);
  Num t = select(large, 1.0, x - 1.0); // exact
  Pair square = twoProduct(t, t), sum = twoSum(t + t, square.hi);
  Pair root = sqrtPair({sum.hi, sum.lo + square.lo});
  Pair v = fastTwoSum(root.hi, t), w = twoSum(e.num(1.0), v.hi);
  Num y = logOrLogOfTwice({w.hi, w.lo + (v.lo + root.lo)}, x, large);
  y = select(x < e.infinity(), y, x);
  return select(x >= 1.0, y, e.nan());
}

Num emitAtanh(Num x) {
  Num a = abs(x), z = a * a;
  Num small = fma(a * z, polynomial(z, x.e->pick(kAtanhF32, kAtanhF64)), a);
  Num y = emitLog1p((a + a) / (1.0 - a)) * 0.5;
  return copysign(select(a < 0.5, small, y), x);
}

} // namespace ptc::codegen
