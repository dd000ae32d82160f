//===- ElementaryHyperbolic.cpp - sinh, cosh, tanh, erf, erfc -------------===//
//
// With E = exp(|x|)/2, computed without overflow where the result has none: cosh = E + 1/(4E); sinh = E - 1/(4E) beyond
// 1 and a polynomial below. tanh(n ln(2)/2 + r), with t = tanh(r) by a polynomial and p = 2^n, is by the theorem of
// addition
//
//   (t (p + 1) - (1 - p)) / ((p + 1) - t (1 - p))
//
// whose two sums are exact: three roundings remain, and t where n is 0. It is odd in x by itself. A single rational
// function on the whole range takes as many operations and errs by 5 ulp, because its terms of high degree dominate
// where tanh saturates. Where one instruction looks up a coefficient for each of 16 lanes: polynomials of degree 6 in
// parts that grow with 1 + |x|.
//
// erf in f32: x + x P(x^2) up to 1, and beyond it 1 + a polynomial in x alone (erfc is below 0.16 there and vanishes
// from 3.91 on, where the sum is exactly 1: 1 + erf(-inf) is 0). Where one instruction looks up a coefficient for each
// of 16 lanes: polynomials of degree 5 around the multiples of 1/4, with a quarter of the multiply-adds. erf in f64:
// 1 - erfc beyond 1. erfc: 1 - x - x P(x^2) up to 1; beyond, (1+2x) exp(x^2) erfc(x) is smooth in q = (x-k)/(x+k)
// (Shepherd and Laframboise 1981); x^2 enters the exponential as a pair.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ElementaryCoefficients.h"
#include "codegen/common/ElementaryFamilies.h"

namespace ptc::codegen {
using namespace coefficients;

Num emitCosh(Num x) {
  Num half = expScaled(abs(x), -1);
  return half + 0.25 / half;
}

Num emitSinh(Num x) {
  Num a = abs(x), z = a * a, half = expScaled(a, -1);
  Num small = fma(a * z, polynomial(z, x.e->pick(kSinhF32, kSinhF64)), a);
  return copysign(select(a < 1.0, small, half - 0.25 / half), x);
}

/// tanh(a) for a >= 0.
static Num tanhInParts(Num a) {
  constexpr double last = 9.5;      // of the last part, in which all are 1
  constexpr unsigned fraction = 21; // of 23 bits, those that do not tell the part
  Num within = atMost(a, last);
  Bits part = toBits(within + 1.0) >> fraction;
  Num r = within - lookUp(kTanhPartsF32[0], part), p = lookUp(std::end(kTanhPartsF32)[-1], part);
  for (auto &power : llvm::reverse(llvm::ArrayRef(kTanhPartsF32).drop_front().drop_back()))
    p = fma(p, r, lookUp(power, part));
  return p;
}

static Num tanhByAddition(Num x) {
  Emitter &e = *x.e;
  double last = e.pick(10, 20); // what is beyond rounds to 1
  Num bounded = atMost(atLeast(x, -last), last);
  PowerOfTwo k = roundToPower(bounded, 2 * 1.4426950408889634, e.bias);
  Num r = fma(k.n, -e.pick(0x1.62e43p-2, 0x1.62e42feep-2), bounded);
  if (e.isF64)
    r = fma(k.n, -0x1.a39ef35793c76p-34, r);
  // A product, and 1 - p instead of its opposite: -0 stays.
  Num z = r * r, t = r * fma(z, polynomial(z, e.pick(kTanhF32, kTanhF64)), 1.0);
  Num power = powerOfTwo(k), sum = power + 1.0, difference = 1.0 - power;
  return fma(t, sum, -difference) / fma(-t, difference, sum);
}

Num emitTanh(Num x) { return hasLookUp(*x.e) ? copysign(tanhInParts(abs(x)), x) : tanhByAddition(x); }

/// erfc(a) for a >= 1.
static Num erfcBeyond1(Num a) {
  Emitter &e = *a.e;
  Num c = atMost(a, e.pick(10.1, 27.4));
  double pole = e.pick(2, 4);
  Num q = (c - pole) / (c + pole);
  Num p = polynomial(q, e.pick(kErfcNear2F32, kErfcNear4F64)) + 1.0;
  Pair square = twoProduct(c, c);
  return expOfPair(-square.hi, -square.lo, p / fma(c, 2.0, e.num(1.0)));
}

Num emitErfc(Num x) {
  Num a = abs(x), p = polynomial(x * x, x.e->pick(kErfSmallF32, kErfSmallF64));
  Num small = fma(-x, p, 1.0 - x), y = erfcBeyond1(a);
  return select(a < 1.0, small, select(x < 0.0, 2.0 - y, y));
}

/// erf(a) for a >= 0.
static Num erfInQuarters(Num a) {
  Emitter &e = *a.e;
  constexpr double toQuarters = 0x1.8p21; // numbers from here on are quarters, whose lowest bits count them
  constexpr double last = 0x1.effffep+1;  // the largest that is nearest to quarter 15
  Num within = atMost(a, last), moved = within + toQuarters;
  Num r = within - (moved - toQuarters), p = lookUp(std::end(kErfQuartersF32)[-1], toBits(moved));
  for (auto &power : llvm::reverse(llvm::ArrayRef(kErfQuartersF32).slice(1, std::size(kErfQuartersF32) - 2)))
    p = fma(p, r, lookUp(power, toBits(moved)));
  return fma(p, r, select(within <= e.num(0.125), r, lookUp(kErfQuartersF32[0], toBits(moved))));
}

Num emitErf(Num x) {
  Emitter &e = *x.e;
  if (hasLookUp(e))
    return copysign(erfInQuarters(abs(x)), x);
  Num a = abs(x), z = a * a;
  Num small = fma(a, polynomial(z, e.pick(kErfSmallF32, kErfSmallF64)), a);
  Num large = e.isF64 ? 1.0 - erfcBeyond1(a) : polynomialInHalves(atMost(a, 3.90625) - 2.46875, kErfTailF32) + 1.0;
  return copysign(select(a < 1.0, small, large), x);
}

} // namespace ptc::codegen
