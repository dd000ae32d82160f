//===- ElementarySigmoid.cpp - 1 / (1 + exp(-x)) as one function ----------===//
//
// A scalar body says sigmoid as select(x < 0, e, 1) / (1 + e) with e = exp(-|x|), which never overflows, so that
// results keep their digits down to the denormals. That is a third more operations than the function takes as one:
//
//   s / (s + s exp(-x))
//
// with s a power of 2 so small that s exp(-x) is finite wherever the result is not 0. The scaling by s costs nothing,
// since 2^n has its exponent added anyway, and a product and a sum are rounded once. Where exp(-x) is lost beside 1 the
// argument is clamped, and again where the result rounds to 0: so 2^n s stays normal.
//
// Where one instruction looks 16 numbers up (AVX-512), exp(-x) = 2^(j/16) 2^n exp(-r) with |r| <= ln(2)/32, for which a
// polynomial of degree 3 does: three multiply-adds less, which are what an epilogue of SiLU waits for on processors
// that divide beside them. j and n are the low and the high bits of one rounded number, which is shifted to where 2^n
// has its exponent: j lands behind it, and the table takes that into account. (Dividing by an estimate and a Newton
// step takes multiply-adds instead, and was slower.)
//
// No dialect has an op for it, so the formula is recognised where elementary functions are expanded.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ElementaryCoefficients.h"
#include "codegen/common/ElementaryFamilies.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include <bit>
#include <cmath>

using namespace mlir;

namespace ptc::codegen {

/// 2^(j/16) less j units of the fourth bit behind the point, which the shifted number j brings along: a float below 1.
static llvm::SmallVector<double> mantissasOfSixteenths() {
  llvm::SmallVector<double> all;
  for (uint32_t j = 0; j < lookUpSize; ++j)
    all.push_back(std::bit_cast<float>(std::bit_cast<uint32_t>(float(std::exp2(j / 16.0))) - (j << 19)));
  return all;
}

/// s + s exp(-x) for -104 <= x <= 70, s = 2^-24, by sixteenths of powers of 2.
static Num sumBySixteenths(Num x, Num scale) {
  Emitter &e = *x.e;
  PowerOfTwo k = roundToPower(x, -16 * 1.4426950408889634, -24 * lookUpSize);
  Num r = fma(k.n, 0x1.7f7d1cp-24, fma(k.n, 0x1.62e4p-5, x)); // n ln 2 / 16 in two words, the first product exact
  Num power = toNum(toBits(lookUp(mantissasOfSixteenths(), k.biased)) + (k.biased << (e.mantissa - 4)));
  Num q = fma(r, -coefficients::kExpSixteenthF32[1], e.num(coefficients::kExpSixteenthF32[0]));
  return fma(power, fma(r * r, q, -r), power + scale);
}

Num emitSigmoid(Num x) {
  Emitter &e = *x.e;
  int shift = e.isF64 ? 54 : 24;
  Num c = atMost(atLeast(x, e.pick(-104, -746)), e.pick(70, 600));
  Num scale = e.num(std::ldexp(1.0, -shift));
  if (hasLookUp(e))
    return scale / sumBySixteenths(c, scale);
  ReducedExp reduced = reduceForNegatedExp(c, e.bias - shift);
  return scale / fma(reduced.mantissa, powerOfTwo(reduced.power), scale);
}

static bool isConstant(Value value, double expected) {
  while (auto broadcast = value.getDefiningOp<vector::BroadcastOp>())
    value = broadcast.getSource();
  llvm::APFloat found(0.0);
  return matchPattern(value, m_ConstantFloat(&found)) && found.isExactlyValue(expected);
}

/// The x of select(x < 0, e, 1) / (1 + e), e = exp(-|x|); null: it is something else.
static Value argumentOfSigmoid(arith::DivFOp quotient) {
  auto chosen = quotient.getLhs().getDefiningOp<arith::SelectOp>();
  auto sum = quotient.getRhs().getDefiningOp<arith::AddFOp>();
  auto isBelow = chosen ? chosen.getCondition().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
  if (!sum || !isBelow || isBelow.getPredicate() != arith::CmpFPredicate::OLT)
    return {};
  Value x = isBelow.getLhs(), power = chosen.getTrueValue();
  auto exp = power.getDefiningOp<math::ExpOp>();
  auto negated = exp ? exp.getOperand().getDefiningOp<arith::NegFOp>() : arith::NegFOp();
  auto magnitude = negated ? negated.getOperand().getDefiningOp<math::AbsFOp>() : math::AbsFOp();
  bool isSigmoid = magnitude && magnitude.getOperand() == x && isConstant(isBelow.getRhs(), 0) &&
                   isConstant(chosen.getFalseValue(), 1) && isConstant(sum.getLhs(), 1) && sum.getRhs() == power;
  return isSigmoid ? x : Value();
}

void joinSigmoids(Operation *root, const ElementaryOptions &options) {
  SmallVector<arith::DivFOp> found;
  root->walk([&](arith::DivFOp quotient) {
    Type element = getElementTypeOrSelf(quotient.getType());
    if ((element.isF32() || element.isF64()) && argumentOfSigmoid(quotient))
      found.push_back(quotient);
  });
  for (arith::DivFOp quotient : found) {
    Value x = argumentOfSigmoid(quotient); // perhaps another one's value, which is made by now
    ImplicitLocOpBuilder b(quotient.getLoc(), quotient);
    Emitter e(b, x.getType(), options);
    quotient.replaceAllUsesWith(emitSigmoid(e.num(x)).v);
    eraseUnused(quotient);
  }
}

} // namespace ptc::codegen
