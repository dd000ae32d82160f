//===- ElementaryNarrow.cpp - functions whose values end in 16 bits -------===//
//
// A model in f16 or bf16 computes in f32 and rounds. Of a function's value that is rounded to 16 bits, the last twelve
// bits of an f32 cannot be seen, and they are what the polynomials of the other files are long for. The forms here rest
// on a target's instructions for 2^x, 1/x and quotients, which are within 2 ulp of f32 (NVIDIA: ex2.approx, rcp.approx,
// div.full). Their results are within 0.51 of a unit in the last place of f16 or bf16 after rounding:
//
//   exp      2^(x log2 e): the product's rounding is at most 2^-17 of the result
//   erfc     a = |x|: log2 erfc(a) is smooth, a polynomial P (of f16 up to where erfc ends, of bf16 up to 9.5; beyond,
//            its highest term takes it down); erfc(x) = 2^P(a), or 2 - 2^P(a) below 0
//   erf      x P(x^2) below 1/2, beyond it 1 - erfc
//   tanh     x + x^3 P(x^2) below 1/4, beyond it 1 - 2 / (1 + exp(2x))
//   1 + erf  erfc(-x), which keeps its digits where the sum cancels: GELU. Where sums may be rounded together.
//   a / b    a (1 / b), or the target's quotient where b may lie near the ends of f32's range. Where sums may be
//            rounded together, and not if the quotient's own rounding is left out and a step (a comparison, a
//            conversion to an integer) comes of it: 6 / 3 may be 2 less a bit.
//
// All that comes of a value is rounded to 16 bits where its uses are conversions to one such type, or what keeps the
// relative error: products, quotients, selections, sums of what is positive.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ElementaryNarrow.h"
#include "codegen/common/ElementaryCoefficients.h"
#include "codegen/common/ElementaryFamilies.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace ptc::codegen {
using namespace coefficients;

//===----------------------------------------------------------------------===//
// What can be seen of a value
//===----------------------------------------------------------------------===//

static bool isNarrow(Type type) { return getElementTypeOrSelf(type).isF16() || getElementTypeOrSelf(type).isBF16(); }

static bool contracts(Operation *op) {
  auto arithmetic = dyn_cast<arith::ArithFastMathInterface>(op);
  auto flags = arithmetic ? arithmetic.getFastMathFlagsAttr() : arith::FastMathFlagsAttr();
  return flags && arith::bitEnumContainsAny(flags.getValue(), arith::FastMathFlags::contract);
}

/// A constant, perhaps of a narrower type.
static std::optional<double> constantOf(Value value) {
  if (auto wide = value.getDefiningOp<arith::ExtFOp>())
    value = wide.getIn();
  llvm::APFloat constant(0.0);
  if (!matchPattern(value, m_ConstantFloat(&constant)))
    return std::nullopt;
  bool loses = false;
  constant.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &loses);
  return constant.convertToDouble();
}

namespace {
/// Bounds of a number's magnitude if it is neither zero, infinite nor NaN; a sign that is known.
struct Range {
  double least = 0, most = std::numeric_limits<double>::infinity();
  bool isPositive = false; // or zero, or NaN
};
} // namespace

static Range rangeOf(Value value, unsigned depth = 4) {
  if (std::optional<double> c = constantOf(value))
    return {std::fabs(*c), std::fabs(*c), *c >= 0};
  Operation *op = depth ? value.getDefiningOp() : nullptr;
  if (!op)
    return {};
  auto of = [&](unsigned i) { return rangeOf(op->getOperand(i), depth - 1); };
  return llvm::TypeSwitch<Operation *, Range>(op)
      .Case([&](arith::ExtFOp o) {
        Range in = rangeOf(o.getIn(), depth - 1);
        bool isF16 = getElementTypeOrSelf(o.getIn().getType()).isF16();
        return isF16 ? Range{0x1p-24, 65504, in.isPositive} : in;
      })
      .Case([&](arith::TruncFOp) { return Range{.isPositive = of(0).isPositive}; })
      .Case([&](math::ExpOp) {
        auto negated = op->getOperand(0).getDefiningOp<arith::NegFOp>();
        bool isBelow1 = negated && negated.getOperand().getDefiningOp<math::AbsFOp>();
        return isBelow1 ? Range{0, 1, true} : Range{.isPositive = true};
      })
      .Case([&](math::Exp2Op) { return Range{.isPositive = true}; })
      .Case([&](arith::AddFOp) {
        Range a = of(0), b = of(1);
        bool grows = a.isPositive && b.isPositive;
        // A constant is there even if the other is zero.
        double least = std::max(constantOf(op->getOperand(0)).value_or(0), constantOf(op->getOperand(1)).value_or(0));
        return grows ? Range{least, a.most + b.most, true} : Range{};
      })
      .Case([&](arith::MulFOp) {
        Range a = of(0), b = of(1);
        return Range{a.least * b.least, a.most * b.most, a.isPositive && b.isPositive};
      })
      .Case([&](arith::SelectOp) {
        Range a = of(1), b = of(2);
        return Range{std::min(a.least, b.least), std::max(a.most, b.most), a.isPositive && b.isPositive};
      })
      .Default(Range());
}

namespace {
/// What all that comes of a value is rounded to; null if it is nothing of the kind.
struct Rounding {
  Type type;
  bool isDirect = true; // the value itself is rounded, or what is no larger than 2^100 times as much
};
} // namespace

static Rounding getRounding(Value value, unsigned depth = 4);

static Rounding getRounding(Value value, Operation *user, unsigned depth) {
  Value result = user->getResult(0);
  if (isa<arith::TruncFOp>(user))
    return {isNarrow(result.getType()) ? getElementTypeOrSelf(result.getType()) : Type()};
  if (depth == 0 || !isa<arith::MulFOp, arith::DivFOp, arith::SelectOp, arith::NegFOp, arith::AddFOp>(user))
    return {};
  Rounding rounding = getRounding(result, depth - 1);
  if (isa<arith::MulFOp, arith::DivFOp, arith::AddFOp>(user)) {
    Value other = user->getOperand(user->getOperand(0) == value ? 1 : 0);
    Range range = rangeOf(other);
    if (isa<arith::AddFOp>(user) && !(range.isPositive && rangeOf(value).isPositive))
      return {};
    if (isa<arith::MulFOp>(user))
      rounding.isDirect &= range.most <= 0x1p100;
    if (isa<arith::AddFOp>(user))
      rounding.isDirect |= range.least >= 0x1p-100;
    if (isa<arith::DivFOp>(user))
      rounding.isDirect &= user->getOperand(0) == value && range.least >= 0x1p-100;
  }
  return rounding;
}

static Rounding getRounding(Value value, unsigned depth) {
  Rounding all;
  for (Operation *user : value.getUsers()) {
    if (user->getNumResults() != 1)
      return {};
    Rounding one = getRounding(value, user, depth);
    if (!one.type || (all.type && all.type != one.type))
      return {};
    all = {one.type, all.isDirect && one.isDirect};
  }
  return all;
}

/// Whether what comes of the value changes little where the value does: until it is rounded, and not by leave only, or
/// for as many operations as `left` has.
static bool isSmooth(Value value, unsigned &left) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (isNarrow(value.getType()) && !(isa<arith::ExtFOp>(user) && contracts(user)))
      return true;
    if (left == 0 || !isa<arith::TruncFOp, arith::ExtFOp, arith::MulFOp, arith::DivFOp, arith::AddFOp, arith::SubFOp,
                          arith::NegFOp, arith::SelectOp, math::AbsFOp, math::ExpOp, math::ErfOp, math::TanhOp>(user))
      return false;
    --left;
    if (isa<arith::TruncFOp>(user) && !contracts(user))
      return true;
    return isSmooth(user->getResult(0), left);
  });
}

//===----------------------------------------------------------------------===//
// The short forms
//===----------------------------------------------------------------------===//

namespace {
struct NarrowForms {
  Emitter &e;
  Rounding rounding;

  bool isF16() const { return rounding.type.isF16(); }
  bool isExact() const { return e.options.approximations == Approximations::Exact; }
  Num call(const char *name, llvm::ArrayRef<Value> arguments) const {
    auto call = LLVM::CallIntrinsicOp::create(e.b, e.floatType, e.b.getStringAttr(name), arguments);
    return e.num(call.getResult(0));
  }

  /// f16 does not see the denormals of f32, which an instruction takes to be 0. bf16 does: the square of a root has
  /// them.
  bool seesDenormals() const { return !isF16() || !rounding.isDirect; }
  Num power(Num x) const { return isExact() ? emitExp2(x) : call("llvm.nvvm.ex2.approx.ftz.f32", {x.v}); }
  double scale() const { return seesDenormals() ? 0.5 : 1; }
  /// 2^(x / scale).
  Num powerOfScaled(Num x) const {
    Num y = power(x);
    return seesDenormals() ? y * y : y;
  }
  /// 2^-126 <= |x| <= 2^126, zero, infinite or NaN.
  Num reciprocal(Num x) const { return isExact() ? 1.0 / x : call("llvm.nvvm.rcp.approx.ftz.f", {x.v}); }

  Num exp(Num x) const { return powerOfScaled(x * (1.4426950408889634 * scale())); }
  /// Exact where x is an integer.
  Num exp2(Num x) const { return isExact() || !seesDenormals() ? power(x) : call("llvm.nvvm.ex2.approx.f32", {x.v}); }

  /// erfc(a), a >= 0.
  Num erfcOfMagnitude(Num a) const {
    llvm::ArrayRef<double> log2 = kLog2ErfcLongF32;
    if (isF16())
      log2 = kLog2ErfcShortF32;
    return powerOfScaled(polynomial(a, llvm::map_to_vector(log2, [&](double c) { return c * scale(); })));
  }
  Num erfc(Num x) const {
    Num y = erfcOfMagnitude(abs(x));
    return select(x < 0.0, 2.0 - y, y);
  }
  Num erf(Num x) const {
    Num a = abs(x), small = a * polynomial(x * x, kErfShortF32);
    return copysign(select(a < 0.5, small, 1.0 - erfcOfMagnitude(a)), x);
  }
  Num tanh(Num x) const {
    Num a = abs(x), z = x * x;
    Num small = fma(a * z, polynomial(z, kTanhShortF32), a);
    Num rest = reciprocal(power(a * 2.8853900817779268) + 1.0);
    return copysign(select(a < 0.25, small, fma(rest, -2.0, e.num(1.0))), x);
  }

  Num quotient(Num a, Num b) const {
    if (std::optional<double> c = constantOf(b.v); c && std::fabs(*c) >= 0x1p-100 && std::fabs(*c) <= 0x1p100)
      return a * (1 / *c);
    Range range = rangeOf(b.v);
    if (range.least >= 0x1p-126 && range.most <= 0x1p126)
      return a * reciprocal(b);
    return isExact() ? a / b : call("llvm.nvvm.div.full", {a.v, b.v});
  }

  /// Null for an op that has no short form.
  Num emit(Operation *op, ValueRange x) const {
    auto number = [&](unsigned i) { return e.num(x[i]); };
    return llvm::TypeSwitch<Operation *, Num>(op)
        .Case([&](math::ExpOp) { return exp(number(0)); })
        .Case([&](math::Exp2Op) { return exp2(number(0)); })
        .Case([&](math::ErfOp) { return erf(number(0)); })
        .Case([&](math::ErfcOp) { return erfc(number(0)); })
        .Case([&](math::TanhOp) { return tanh(number(0)); })
        .Case([&](arith::AddFOp) { return erfc(-number(0)); })
        .Case([&](arith::DivFOp) { return quotient(number(0), number(1)); })
        .Default(Num());
  }
};

/// One op that is replaced.
struct NarrowFunction {
  Operation *op;
  SmallVector<Value, 2> operands;
  Rounding rounding;
};
} // namespace

/// x, where the op is 1 + erf(x).
static Value matchOnePlusErf(arith::AddFOp op) {
  for (auto [one, value] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
    // Conversions that may be left out between the two.
    if (auto wide = value.getDefiningOp<arith::ExtFOp>(); wide && contracts(wide))
      if (auto narrow = wide.getIn().getDefiningOp<arith::TruncFOp>(); narrow && contracts(narrow))
        value = narrow.getIn();
    auto erf = value.getDefiningOp<math::ErfOp>();
    if (erf && erf.getType() == op.getType() && constantOf(one) == 1.0)
      return erf.getOperand();
  }
  return {};
}

/// The op with what its short form is of, if it takes that.
static std::optional<NarrowFunction> findForm(Operation *op, const ElementaryOptions &options) {
  if (op->getNumResults() != 1 || !getElementTypeOrSelf(op->getResult(0).getType()).isF32())
    return std::nullopt;
  if (options.approximations == Approximations::Nvidia && isa<VectorType>(op->getResult(0).getType()))
    return std::nullopt;
  SmallVector<Value, 2> operands(op->getOperands());
  if (auto sum = dyn_cast<arith::AddFOp>(op)) {
    Value x = contracts(sum) ? matchOnePlusErf(sum) : Value();
    if (!x)
      return std::nullopt;
    operands.assign({x});
  } else if (isa<arith::DivFOp>(op)) {
    unsigned left = 16;
    if (!contracts(op) || !isSmooth(op->getResult(0), left))
      return std::nullopt;
  } else if (!isa<math::ExpOp, math::Exp2Op, math::ErfOp, math::ErfcOp, math::TanhOp>(op)) {
    return std::nullopt;
  }
  Rounding rounding = getRounding(op->getResult(0));
  if (!rounding.type)
    return std::nullopt;
  return NarrowFunction{op, operands, rounding};
}

void expandNarrowFunctions(Operation *root, const ElementaryOptions &options) {
  if (options.approximations == Approximations::None)
    return;
  SmallVector<NarrowFunction> found; // all, before the first is replaced: what becomes of values is read off the ops
  root->walk([&](Operation *op) {
    if (std::optional<NarrowFunction> form = findForm(op, options))
      found.push_back(*form);
  });
  // From the last to the first: a form sees how its operands are made.
  for (const NarrowFunction &f : llvm::reverse(found)) {
    ImplicitLocOpBuilder b(f.op->getLoc(), f.op);
    Emitter e(b, f.op->getResult(0).getType(), options);
    Num y = NarrowForms{e, f.rounding}.emit(f.op, f.operands);
    f.op->getResult(0).replaceAllUsesWith(y.v);
    f.op->erase();
  }
}

} // namespace ptc::codegen
