//===- ElementaryRounding.cpp - exact functions ---------------------------===//
//
// Rounding, remainder, minimum and maximum, classification.
//
// remf (C's fmod): the remainder r of |x| by d = |y| shrinks by L bits a round: s = d 2^k with k = max(0, exponent(r) -
// exponent(d) - L), q = trunc(r / s) < 2^(L+1), r -= q s. The rounded quotient may be one too large, then s is added
// back. Both results are multiples of s's last bit not above s, hence exact: by fma, or without it through the halves
// of s. Rounds: one for ordinary quotients, at most 13 in f32 and 42 in f64; lanes that are done stay as they are (q =
// 0).
//
// maximumf: compare and select is one vmaxps, but yields the second operand where a NaN is: one more compare and select
// puts a NaN of the first operand back. An operand that is a constant needs none when it comes first.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ElementaryFamilies.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace ptc::codegen {

// The largest float below 1/2 is added: 1/2 itself would lift the float before it to 1.
Num emitRound(Num x) {
  double almostHalf = x.e->pick(0x1.fffffep-2, 0x1.fffffffffffffp-2);
  return copysign(trunc(x + copysign(x.e->num(almostHalf), x)), x);
}

//===----------------------------------------------------------------------===//
// Remainder
//===----------------------------------------------------------------------===//

/// Biased exponent of x >= 0, that of denormals as if they were normalised: zero and below.
static Bits exponentOf(Num x) {
  Emitter &e = *x.e;
  Mask denormal = x < e.smallestNormal();
  Num normal = select(denormal, x * std::ldexp(1.0, e.mantissa + 1), x);
  return (toBits(normal) >> e.mantissa) - select(denormal, e.bits(e.mantissa + 1), e.bits(0));
}

/// s 2^k for k >= 0, exact; in four steps, as k may exceed the largest exponent where s is denormal.
static Num scaleUp(Num s, Bits k) {
  Emitter &e = *s.e;
  Bits quarter = k >> 2, rest = k - (quarter + quarter + quarter);
  Num factor = toNum((quarter + e.bias) << e.mantissa);
  return s * factor * factor * factor * toNum((rest + e.bias) << e.mantissa);
}

/// r - q s, exact (see above).
static Num subtractMultiple(Num r, Num q, Num s) {
  Emitter &e = *r.e;
  if (e.options.hasFma)
    return fma(-q, s, r);
  Num high = toNum(toBits(s) & ~((uint64_t(1) << (e.isF64 ? 27 : 12)) - 1));
  return (r - q * high) - q * (s - high);
}

static Num remainderRound(Num r, Num d, Bits exponentOfD) {
  Emitter &e = *r.e;
  unsigned quotientBits = e.options.hasFma ? e.mantissa - 1 : (e.isF64 ? 25 : 11); // halves of s times q fit
  Bits k = exponentOf(r) - exponentOfD - quotientBits;
  Num s = scaleUp(d, select(lessSigned(k, e.bits(0)), e.bits(0), k));
  Num rest = subtractMultiple(r, trunc(r / s), s);
  return select(rest < 0.0, rest + s, rest);
}

Num emitRemainder(Num x, Num y) {
  Emitter &e = *x.e;
  ImplicitLocOpBuilder &b = e.b;
  Num a = abs(x), d = abs(y), inf = e.infinity();
  Mask divides = (a < inf) & (d > 0.0), finite = divides & (d < inf);
  Num start = select(finite, a, 0.0);
  d = select(finite, d, 1.0);
  Bits exponent = exponentOf(d);

  auto loop = scf::WhileOp::create(b, TypeRange{e.floatType}, ValueRange{start.v});
  {
    OpBuilder::InsertionGuard guard(b);
    Block *before = b.createBlock(&loop.getBefore(), {}, {e.floatType}, {b.getLoc()});
    scf::ConditionOp::create(b, e.any(d <= e.num(before->getArgument(0))), before->getArguments());
    Block *after = b.createBlock(&loop.getAfter(), {}, {e.floatType}, {b.getLoc()});
    scf::YieldOp::create(b, remainderRound(e.num(after->getArgument(0)), d, exponent).v);
  }
  Num r = select(finite, copysign(e.num(loop.getResult(0)), x), x); // x rem infinity = x
  return select(divides, r, e.nan());
}

//===----------------------------------------------------------------------===//
// Minimum and maximum
//===----------------------------------------------------------------------===//

static bool isNumberConstant(Value v) {
  llvm::APFloat c(0.0);
  return matchPattern(v, m_ConstantFloat(&c)) && !c.isNaN();
}

static Num larger(Num x, Num y) { return select(y < x, x, y); }
static Num smaller(Num x, Num y) { return select(x < y, x, y); }

/// `pick` yields y where an operand is NaN.
static Num propagating(Num x, Num y, arith::FastMathFlags flags, bool maximum) {
  if (hasExtremum(x)) // where f16 is computed in f32
    return x.e->num(maximum ? arith::MaximumFOp::create(x.e->b, x.v, y.v).getResult()
                            : arith::MinimumFOp::create(x.e->b, x.v, y.v).getResult());
  if (isNumberConstant(y.v))
    std::swap(x, y);
  Num m = maximum ? larger(x, y) : smaller(x, y);
  bool zeros = x.e->options.orderSignedZeros && !arith::bitEnumContainsAny(flags, arith::FastMathFlags::nsz);
  if (zeros)
    m = select(x == y, toNum(maximum ? toBits(x) & toBits(y) : toBits(x) | toBits(y)), m);
  bool noNaN = isNumberConstant(x.v) || arith::bitEnumContainsAny(flags, arith::FastMathFlags::nnan);
  return noNaN ? m : select(unordered(x, x), x, m);
}

static Num ignoring(Num x, Num y, arith::FastMathFlags flags, bool maximum) {
  if (isNumberConstant(x.v))
    std::swap(x, y);
  Num m = maximum ? larger(x, y) : smaller(x, y);
  bool noNaN = isNumberConstant(y.v) || arith::bitEnumContainsAny(flags, arith::FastMathFlags::nnan);
  return noNaN ? m : select(unordered(y, y), x, m);
}

Num emitMinMax(Num x, Num y, arith::FastMathFlags flags, bool maximum, bool propagatesNaN) {
  return propagatesNaN ? propagating(x, y, flags, maximum) : ignoring(x, y, flags, maximum);
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

Mask emitIsNaN(Num x) { return unordered(x, x); }
Mask emitIsInf(Num x) { return abs(x) == std::numeric_limits<double>::infinity(); }
Mask emitIsFinite(Num x) { return abs(x) < x.e->infinity(); }
Mask emitIsNormal(Num x) {
  Num a = abs(x);
  return (a < x.e->infinity()) & (a >= x.e->smallestNormal());
}

// Without the instruction: f32 through f64, where the product is exact (two roundings); f64 by pairs, plainly where
// those overflow.
Num emitFmaWithoutInstruction(Num x, Num y, Num z) {
  Emitter &e = *x.e;
  if (!e.isF64) {
    Emitter wide(e.b, e.withElement(e.b.getF64Type()), e.options);
    return truncate(extend(x, wide) * extend(y, wide) + extend(z, wide), e);
  }
  Pair p = twoProduct(x, y), s = twoSum(p.hi, z);
  Num r = s.hi + (s.lo + p.lo);
  return select(unordered(r, r), p.hi + z, r);
}

} // namespace ptc::codegen
