//===- ElementaryFamilies.h - the rows of the table as functions ----------===//
//
// One function a row of ElementaryFunctions.def, and the pieces that families share. All work in f32 or f64.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_COMMON_ELEMENTARYFAMILIES_H
#define PTC_CODEGEN_COMMON_ELEMENTARYFAMILIES_H

#include "codegen/common/ElementaryEmitter.h"

namespace ptc::codegen {

#define PTC_ELEMENTARY_UNARY(NAME, OP, ULP32, ULP64) Num emit##NAME(Num x);
#define PTC_ELEMENTARY_BINARY(NAME, OP, ULP32, ULP64) Num emit##NAME(Num x, Num y);
#define PTC_ELEMENTARY_TEST(NAME, OP) Mask emit##NAME(Num x);
#include "codegen/common/ElementaryFunctions.def"

/// e^x and 2^x for an x that is not above 0, or NaN; results below the smallest normal number may be 0.
Num expOfNotPositive(Num x);
Num exp2OfNotPositive(Num x);
/// log(1 + x) for an x in [0, 1], or NaN, of f32.
Num log1pOfUnit(Num x);
/// exp(x) * 2^shift. NaN stays.
Num expScaled(Num x, int shift);
/// exp(x) = mantissa 2^n for an x that is bounded; the power holds n + bias.
struct ReducedExp {
  Num mantissa;
  PowerOfTwo power;
};
ReducedExp reduceForExp(Num x, int bias);
ReducedExp reduceForNegatedExp(Num x, int bias);
/// 1 / (1 + exp(-x)).
Num emitSigmoid(Num x);
/// Replaces that formula, as scalar bodies say it, in `root`.
void joinSigmoids(mlir::Operation *root, const ElementaryOptions &options);
/// Divides vectors of integers by floats, exactly (IntegerDivision.cpp).
void expandIntegerDivisions(mlir::Operation *root, const ElementaryOptions &options);
/// Converts vectors of floats to integers of 64 bits through those of 32 (WideConversions.cpp).
void expandWideConversions(mlir::Operation *root, const ElementaryOptions &options);
/// Erases the op, and what it alone used, if nothing uses it.
void eraseUnused(mlir::Operation *op);
/// Wide vectors of quotients by one number that a loop does not change, as products with its reciprocal
/// (SharedDivisors.cpp).
void multiplyByReciprocals(mlir::Operation *root, const ElementaryOptions &options);
/// All of a softmax's quotients (ir/loop/Softmax.h), if it pays for one of them.
void multiplyByInverseSums(mlir::Operation *root, const ElementaryOptions &options);
/// exp(x + lo) * factor, a little more accurate; factor may be absent, is at most 2 and normal.
Num expOfPair(Num x, Num lo, Num factor);
/// log(1 + f + fLo) + e log(2) in the base that the constants say, from an argument split as 2^e (1 + f + fLo).
struct LogSplit {
  Num e, f, fLo; ///< fLo may be absent
};
/// Any positive finite x, denormal or not.
LogSplit splitForLog(Num x);
/// x.hi + x.lo with x.hi normal and positive.
LogSplit splitForLog(Pair x);
Num logOfSplit(LogSplit s);
/// log(x), x positive and finite, to about 10 bits more than the format's.
Pair logAsPair(Num x);

/// x = q pi/2 + hi + lo with |hi| <= pi/4 (1 + small), q modulo 4; x >= 0. lo is absent in f32 if `withLow` is not set.
struct Quadrant {
  Bits q;
  Num hi, lo;
};
Quadrant reduceByHalfPi(Num x, bool withLow);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_ELEMENTARYFAMILIES_H
