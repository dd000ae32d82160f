//===- NarrowFunctionsTest.cpp - values that end in 16 bits ---------------===//
//
// The short forms of ElementaryNarrow.cpp over all values of f16 and bf16, in arithmetic of this machine: what the
// instructions of a GPU err by comes on top, 2 ulp of f32, which is 2^-11 of a unit in f16.
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "tests/numerics/FunctionCompiler.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include <catch2/catch.hpp>
#include <cmath>

using namespace mlir;
using namespace ptc::test;

namespace {

struct Format {
  const char *name;
  const llvm::fltSemantics &semantics;
  int digits, leastExponent; // of the significand; of the smallest normal number, as frexp has it
  std::function<Type(Builder &)> type;
};

const Format formats[] = {
    {"f16", llvm::APFloat::IEEEhalf(), 11, -13, [](Builder &b) -> Type { return b.getF16Type(); }},
    {"bf16", llvm::APFloat::BFloat(), 8, -125, [](Builder &b) -> Type { return b.getBF16Type(); }},
};

double valueOf(uint16_t bits, const Format &format) {
  llvm::APFloat value(format.semantics, llvm::APInt(16, bits));
  bool loses = false;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &loses);
  return value.convertToDouble();
}

/// As ulpError, of a number of the format; infinity stands for the value after the largest.
double errorOf(uint16_t bits, double exact, const Format &format) {
  double y = valueOf(bits, format);
  if (std::isnan(y) || std::isnan(exact))
    return std::isnan(y) == std::isnan(exact) ? 0 : INFINITY;
  if (y == exact)
    return std::signbit(y) == std::signbit(exact) ? 0 : INFINITY;
  double end = valueOf(llvm::APFloat::getLargest(format.semantics).bitcastToAPInt().getZExtValue(), format);
  double after = end + std::ldexp(1, std::ilogb(end) + 1 - format.digits);
  if (std::isinf(y))
    y = std::copysign(after, y);
  if (std::fabs(exact) >= after)
    exact = std::copysign(after, exact);
  int exponent;
  std::frexp(exact, &exponent);
  return std::fabs(y - exact) / std::ldexp(1, std::max(exponent, format.leastExponent) - format.digits);
}

using Wide = std::function<Value(ImplicitLocOpBuilder &, Value, Value)>; // from f32 to f32
struct Form {
  const char *name;
  unsigned operands;
  Wide build;
  double (*exact)(double, double);
};

arith::FastMathFlagsAttr contract(Builder &b) {
  return arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::contract);
}

Value constant(ImplicitLocOpBuilder &b, Value like, double value) {
  auto type = cast<VectorType>(like.getType());
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, Attribute(b.getF32FloatAttr(float(value)))));
}

template <typename Op> Value unary(ImplicitLocOpBuilder &b, Value x, Value) { return Op::create(b, x); }

Value onePlusErf(ImplicitLocOpBuilder &b, Value x, Value) {
  return arith::AddFOp::create(b, math::ErfOp::create(b, x), constant(b, x, 1), contract(b));
}

Value gelu(ImplicitLocOpBuilder &b, Value x, Value y) {
  Value part = onePlusErf(b, arith::MulFOp::create(b, x, constant(b, x, std::sqrt(0.5))), y);
  return arith::MulFOp::create(b, arith::MulFOp::create(b, x, constant(b, x, 0.5)), part);
}

/// exp(-|x|) / (1 + exp(-|x|)), as `sigmoid` has it below 0.
Value sigmoid(ImplicitLocOpBuilder &b, Value x, Value) {
  Value power = math::ExpOp::create(b, arith::NegFOp::create(b, math::AbsFOp::create(b, x)));
  return arith::DivFOp::create(b, power, arith::AddFOp::create(b, constant(b, x, 1), power), contract(b));
}

Value quotient(ImplicitLocOpBuilder &b, Value x, Value y) { return arith::DivFOp::create(b, x, y, contract(b)); }

const Form forms[] = {
    {"exp", 1, unary<math::ExpOp>, [](double x, double) { return std::exp(x); }},
    {"exp2", 1, unary<math::Exp2Op>, [](double x, double) { return std::exp2(x); }},
    {"tanh", 1, unary<math::TanhOp>, [](double x, double) { return std::tanh(x); }},
    {"erf", 1, unary<math::ErfOp>, [](double x, double) { return std::erf(x); }},
    {"erfc", 1, unary<math::ErfcOp>, [](double x, double) { return std::erfc(x); }},
    {"1 + erf", 1, onePlusErf, [](double x, double) { return std::erfc(-x); }},
    {"gelu", 1, gelu, [](double x, double) { return x * 0.5 * std::erfc(-x * std::sqrt(0.5)); }},
    {"sigmoid", 1, sigmoid, [](double x, double) { return 1 / (1 + std::exp(std::fabs(x))); }},
    {"quotient", 2, quotient, [](double x, double y) { return x / y; }},
};

struct Worst16 {
  double error = 0, at = 0, at2 = 0;
};

/// Over all values of the last operand; the first of two is some.
Worst16 measureAll(const Form &form, const Format &format) {
  BuildOp build = [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
    Type wide = cast<VectorType>(x[0].getType()).clone(b.getF32Type());
    auto extend = [&](Value v) -> Value { return arith::ExtFOp::create(b, wide, v, contract(b)); };
    Value y = form.build(b, extend(x[0]), extend(x[form.operands - 1]));
    return arith::TruncFOp::create(b, x[0].getType(), y, /*roundingmode=*/nullptr, contract(b));
  };
  Machine machine;
  machine.options.approximations = ptc::codegen::Approximations::Exact;
  CompiledFunction f({.operands = form.operands, .lanes = 16, .element = format.type}, machine, build);
  Worst16 worst;
  std::vector<uint16_t> x(1 << 16), y(x.size()), got(x.size());
  for (size_t i = 0; i < y.size(); ++i)
    y[i] = uint16_t(i);
  for (uint16_t first : {0x3c00, 0x3f80, 0x0001, 0x7bff, 0x4249}) {
    x = form.operands == 1 ? y : std::vector(y.size(), first);
    f(int64_t(x.size()), got.data(), x.data(), y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      double at = valueOf(x[i], format), at2 = valueOf(y[i], format);
      double error = errorOf(got[i], form.exact(at, at2), format);
      if (!(error <= worst.error))
        worst = {error, at, at2};
    }
    if (form.operands == 1)
      break;
  }
  return worst;
}

} // namespace

TEST_CASE("functions whose values end in 16 bits keep their bounds") {
  for (const Format &format : formats)
    for (const Form &form : forms) {
      Worst16 worst = measureAll(form, format);
      INFO(form.name << " " << format.name << ": " << worst.error << " at " << worst.at << ", " << worst.at2);
      CHECK(worst.error <= 0.51);
    }
}
