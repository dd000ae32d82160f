//===- ElementaryTrig.cpp - sine, cosine, tangent -------------------------===//
//
// x = q pi/2 + r, then polynomials of r on [-pi/4, pi/4] (the leading terms r and 1 - r^2/2 are kept apart), chosen and
// signed by the two low bits of q. Functions are computed of |x|, so that the sign of zero survives.
//
// Reduction. Up to a bound, q pi/2 is subtracted in parts of pi/2 (Cody and Waite): in f32 three of 24 bits through
// fused multiply-adds, which lose nothing but the last rounding (without fma in f64, where two parts do); in f64 four
// parts of 33 bits whose products with q < 2^20 are exact, the sum kept as a pair. Beyond the bound x / (pi/2) modulo 4
// needs bits of 2/pi far to the right of the point (Payne and Hanek 1983): x = M 2^E with an integer M, bits of 2/pi
// before position E - 2 contribute multiples of 4, and 96 (f32) or 192 (f64) bits from there on leave at least 40
// correct bits after the worst cancellation (2^-31 in f32, 2^-62 in f64). The window is fetched by conditional word
// moves (a barrel shifter over constants), as vectors have no cheap table look-up on every target. That way is taken
// at run time only if a lane needs it.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ElementaryCoefficients.h"
#include "codegen/common/ElementaryFamilies.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>

using namespace mlir;

namespace ptc::codegen {
using namespace coefficients;

static constexpr double kTwoOverPi = 0.63661977236758134;

// 2/pi = 0.A2F9836E... in binary.
static constexpr uint32_t kTwoOverPiWords[] = {
    0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561,
    0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484,
    0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F,
    0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B,
    0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B6BAB, 0xF0CFBC20, 0x9AF4361D,
};

//===----------------------------------------------------------------------===//
// Payne and Hanek
//===----------------------------------------------------------------------===//

/// Words [index, index + count) of the table, per lane: moves by 16, 8, 4, 2, 1 words where the index has that bit.
static SmallVector<Bits> window(ArrayRef<uint64_t> table, Bits index, unsigned count, unsigned indexBits) {
  Emitter &e = *index.e;
  SmallVector<Bits> words;
  for (uint64_t w : table)
    words.push_back(e.bits(w));
  for (int bit = indexBits - 1; bit >= 0; --bit) {
    unsigned step = 1u << bit, needed = count + step - 1;
    Mask moved = differs(index & step, 0);
    for (unsigned i = 0; i < needed; ++i)
      if (i + step < words.size())
        words[i] = select(moved, words[i + step], words[i]);
    words.truncate(std::min<size_t>(needed, words.size()));
  }
  return words;
}

/// a << n for a per-lane n < width; LLVM and arith agree that such a shift is defined.
static Bits shiftLeft(Bits a, Bits n) { return {a.e, arith::ShLIOp::create(a.e->b, a.v, n.v)}; }
static Bits shiftRight(Bits a, Bits n) { return {a.e, arith::ShRUIOp::create(a.e->b, a.v, n.v)}; }

/// r, known in f64, as one or two floats of `e`.
static Quadrant splitReduced(Num r, Emitter &e, bool withLow) {
  Num hi = truncate(r, e);
  return {{}, hi, withLow ? truncate(r - extend(hi, *r.e), e) : Num{}};
}

static Quadrant reduceLargeF32(Num x, bool withLow) {
  Emitter &e = *x.e;
  Emitter wide(e.b, e.withElement(e.b.getF64Type()), e.options);
  // M 2^E = x, and the first bit wanted, E - 2, counted from a zero word put before the point.
  Bits xBits = toBits(x);
  auto widen = [&](Bits v) { return wide.bits(arith::ExtUIOp::create(e.b, wide.bitsType, v.v)); };
  Bits significand = widen((xBits & 0x7FFFFFu) | 0x800000u);
  Bits position = widen((xBits >> 23) - (127 + 23 + 2 - 32));
  SmallVector<uint64_t> table{0};
  for (uint32_t w : ArrayRef(kTwoOverPiWords).take_front(8))
    table.push_back(w);
  SmallVector<Bits> words = window(table, position >> 5, 4, 3);
  Bits shift = position & 31;
  auto at = [&](unsigned i) { return shiftLeft((words[i] << 32) | words[i + 1], shift) >> 32; };
  // x / (pi/2) modulo 4 in units of 2^-62; the bits above fall off.
  Bits turn = ((significand * at(0)) << 32) + significand * at(1) + ((significand * at(2)) >> 32);
  Bits q = (turn + (uint64_t(1) << 61)) >> 62;
  Num rest = wide.num(arith::SIToFPOp::create(e.b, wide.floatType, (turn - (q << 62)).v));
  Num r = rest * std::ldexp(M_PI_2, -62);
  Quadrant result = splitReduced(r, e, withLow);
  result.q = e.bits(arith::TruncIOp::create(e.b, e.bitsType, q.v));
  return result;
}

/// The upper 64 bits of a * b.
static Bits multiplyHigh(Bits a, Bits b) {
  Bits aLow = a & 0xFFFFFFFFu, aHigh = a >> 32, bLow = b & 0xFFFFFFFFu, bHigh = b >> 32;
  Bits middle = aLow * bHigh + ((aLow * bLow) >> 32);
  Bits other = aHigh * bLow + (middle & 0xFFFFFFFFu);
  return aHigh * bHigh + (middle >> 32) + (other >> 32);
}

/// The signed 128-bit integer high:low as a pair.
static Pair toPair(Bits high, Bits low) {
  Num h1 = toFloat(shiftRightSigned(high, 32)), h0 = toFloat(high & 0xFFFFFFFFu);
  Num l1 = toFloat(low >> 32), l0 = toFloat(low & 0xFFFFFFFFu);
  Pair h = fastTwoSum(h1 * 0x1p96, h0 * 0x1p64), l = fastTwoSum(l1 * 0x1p32, l0);
  Pair sum = twoSum(h.hi, l.hi);
  return fastTwoSum(sum.hi, sum.lo + (h.lo + l.lo));
}

static Quadrant reduceLargeF64(Num x) {
  Emitter &e = *x.e;
  Bits xBits = toBits(x);
  Bits significand = (xBits & 0xFFFFFFFFFFFFFu) | 0x10000000000000u;
  Bits position = (xBits >> 52) - (1023 + 52 + 2 - 64);
  SmallVector<uint64_t> table{0};
  for (unsigned i = 0; i + 1 < std::size(kTwoOverPiWords); i += 2)
    table.push_back(uint64_t(kTwoOverPiWords[i]) << 32 | kTwoOverPiWords[i + 1]);
  SmallVector<Bits> words = window(table, position >> 6, 4, 5);
  Bits shift = position & 63, complement = e.bits(63) - shift;
  auto at = [&](unsigned i) { return shiftLeft(words[i], shift) | shiftRight(words[i + 1] >> 1, complement); };
  // x / (pi/2) modulo 4 in units of 2^-126.
  Bits w0 = at(0), w1 = at(1), w2 = at(2);
  Bits product = significand * w1, low = product + multiplyHigh(significand, w2);
  Bits carry = select(lessUnsigned(low, product), e.bits(1), e.bits(0));
  Bits high = significand * w0 + multiplyHigh(significand, w1) + carry;
  Bits q = (high + (uint64_t(1) << 61)) >> 62;
  Pair turn = toPair(high - (q << 62), low);
  Pair r = multiply(turn, pairOf(std::ldexp(0x1.921fb54442d18p+0, -126), std::ldexp(0x1.1a62633145c07p-54, -126), e));
  return {q, r.hi, r.lo};
}

static Quadrant reduceLarge(Num x, bool withLow) { return x.e->isF64 ? reduceLargeF64(x) : reduceLargeF32(x, withLow); }

//===----------------------------------------------------------------------===//
// Cody and Waite
//===----------------------------------------------------------------------===//

static Quadrant reduceSmall(Num x, bool withLow) {
  Emitter &e = *x.e;
  PowerOfTwo k = roundToPower(x, kTwoOverPi, 0);
  if (e.isF64) {
    Pair r = twoSum(fma(k.n, -0x1.921fb544p+0, x), k.n * -0x1.0b4611a6p-34);
    Pair rest = twoSum(r.hi, k.n * -0x1.3198a2ep-69);
    Num lo = fma(k.n, -0x1.b839a252049c1p-104, r.lo + rest.lo);
    Pair sum = fastTwoSum(rest.hi, lo);
    return {k.biased, sum.hi, sum.lo};
  }
  if (e.options.hasFma) {
    Num r1 = fma(k.n, -0x1.921fb4p+0, x); // exact
    if (!withLow)
      return {k.biased, fma(k.n, -0x1.846988p-48, fma(k.n, -0x1.4442dp-24, r1)), {}};
    Pair second = twoProduct(k.n, e.num(-0x1.4442dp-24)), sum = twoSum(r1, second.hi);
    Pair r = fastTwoSum(sum.hi, sum.lo + fma(k.n, -0x1.846988p-48, second.lo));
    return {k.biased, r.hi, r.lo};
  }
  Emitter wide(e.b, e.withElement(e.b.getF64Type()), e.options);
  Num n = extend(k.n, wide), r = extend(x, wide) - n * 0x1.921fb544p+0;
  Quadrant result = splitReduced(r - n * 0x1.0b4611a62633p-34, e, withLow);
  result.q = k.biased;
  return result;
}

/// f16 values stay below the bound.
static bool isWidenedHalf(Value v) {
  auto widening = v.getDefiningOp<arith::ExtFOp>();
  return widening && getElementTypeOrSelf(widening.getIn().getType()).isF16();
}

Quadrant reduceByHalfPi(Num x, bool withLow) {
  Emitter &e = *x.e;
  Quadrant small = reduceSmall(x, withLow);
  if (isWidenedHalf(x.v))
    return small;
  Mask large = (x > e.pick(0x1p17, 0x1p20)) & (x < e.infinity());
  SmallVector<Value> shorter{small.q.v, small.hi.v};
  if (small.lo.v)
    shorter.push_back(small.lo.v);
  SmallVector<Value> r = e.ifAny(large, shorter, [&] {
    Quadrant wide = reduceLarge(x, withLow);
    SmallVector<Value> chosen{select(large, wide.q, small.q).v, select(large, wide.hi, small.hi).v};
    if (small.lo.v)
      chosen.push_back(select(large, wide.lo, small.lo).v);
    return chosen;
  });
  return {e.bits(r[0]), e.num(r[1]), small.lo.v ? e.num(r[2]) : Num{}};
}

//===----------------------------------------------------------------------===//
// The functions
//===----------------------------------------------------------------------===//

/// sin(hi + lo) on [-pi/4, pi/4].
static Num sinReduced(Quadrant r, Num z) {
  Num cube = z * r.hi, p = polynomial(z, r.hi.e->pick(kSinF32, kSinF64));
  if (!r.lo.v)
    return fma(cube, p, r.hi);
  return r.hi + fma(cube, p, fma(z * r.lo, -0.5, r.lo));
}

/// cos(hi + lo) on [-pi/4, pi/4]; what 1 - z/2 loses is added back.
static Num cosReduced(Quadrant r, Num z) {
  Num p = polynomial(z, r.hi.e->pick(kCosF32, kCosF64));
  if (!r.lo.v)
    return fma(z * z, p, fma(z, -0.5, r.hi.e->num(1.0)));
  Num half = z * 0.5, w = 1.0 - half;
  return w + (((1.0 - w) - half) + fma(z * z, p, -(r.hi * r.lo)));
}

/// x with its sign changed where bit 1 of q is set.
static Num negateByQuadrant(Num x, Bits q) {
  Emitter &e = *x.e;
  return toNum(toBits(x) ^ ((q << (e.width - 2)) & e.signMask()));
}

static Num sinOfQuadrant(Quadrant r, Num z, Bits q) {
  Mask odd = differs(q & 1, 0);
  return negateByQuadrant(select(odd, cosReduced(r, z), sinReduced(r, z)), q);
}

/// sin(x) from sin(|x|).
static Num restoreSign(Num y, Num x) {
  Emitter &e = *x.e;
  return toNum(toBits(y) ^ (toBits(x) & e.signMask()));
}

Num emitSin(Num x) {
  Quadrant r = reduceByHalfPi(abs(x), false);
  return restoreSign(sinOfQuadrant(r, r.hi * r.hi, r.q), x);
}

Num emitCos(Num x) {
  Quadrant r = reduceByHalfPi(abs(x), false);
  return sinOfQuadrant(r, r.hi * r.hi, r.q + 1);
}

SmallVector<Value> emitSincos(Num x) {
  Quadrant r = reduceByHalfPi(abs(x), false);
  Num z = r.hi * r.hi, s = sinReduced(r, z), c = cosReduced(r, z);
  Mask odd = differs(r.q & 1, 0);
  return {restoreSign(negateByQuadrant(select(odd, c, s), r.q), x).v, negateByQuadrant(select(odd, s, c), r.q + 1).v};
}

// In odd quadrants -1 / tan(r).
Num emitTan(Num x) {
  Quadrant r = reduceByHalfPi(abs(x), true);
  Num z = r.hi * r.hi, p = polynomial(z, x.e->pick(kTanF32, kTanF64));
  // tan(hi + lo) = tan(hi) + lo (1 + hi^2 ...)
  Pair t = fastTwoSum(r.hi, fma(z * r.hi, p, fma(z, r.lo, r.lo)));
  // 1 / (hi + lo) = 1/hi - lo/hi^2
  Num inverse = -1.0 / t.hi, odd = fma(inverse * inverse, t.lo, inverse);
  Num y = select(differs(r.q & 1, 0), odd, t.hi);
  return restoreSign(y, x);
}

} // namespace ptc::codegen
