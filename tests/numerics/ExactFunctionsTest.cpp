//===- ExactFunctionsTest.cpp - rows without an error bound ---------------===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "tests/numerics/FunctionCompiler.h"
#include "tests/numerics/Measure.h"
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

using namespace mlir;
using namespace ptc::test;

namespace {

/// All pairs of special values, a multiple of 16 of them.
void pairs(std::vector<float> &x, std::vector<float> &y) {
  std::vector<float> special = specialValues<float>();
  for (float a : special)
    for (float b : special) {
      x.push_back(a);
      y.push_back(b);
    }
  x.resize(x.size() / 16 * 16);
  y.resize(x.size());
}

/// Counts where got differs from exact(x, y); NaN equals NaN, zeros of both signs are equal unless `signedZeros`.
size_t differences(const CompiledFunction &f, const std::function<float(float, float)> &exact,
                   bool signedZeros = true) {
  std::vector<float> x, y;
  pairs(x, y);
  std::vector<float> got(x.size());
  f(x.size(), got.data(), x.data(), y.data());
  size_t count = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    float e = exact(x[i], y[i]);
    bool same =
        std::isnan(e) ? std::isnan(got[i]) : e == got[i] && (!signedZeros || std::signbit(e) == std::signbit(got[i]));
    count += !same;
  }
  return count;
}

template <typename Op> BuildOp binary(arith::FastMathFlags flags = arith::FastMathFlags::none) {
  return [flags](ImplicitLocOpBuilder &b, ValueRange x) -> Value { return Op::create(b, x[0], x[1], flags); };
}

float maximum(float a, float b) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  return a == b ? (std::signbit(a) ? b : a) : a > b ? a : b;
}

BuildOp powerOf(double n) {
  return [n](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
    auto type = cast<ShapedType>(x[0].getType());
    auto element = b.getFloatAttr(type.getElementType(), n);
    Value y = arith::ConstantOp::create(b, DenseElementsAttr::get(type, ArrayRef<Attribute>(element)));
    return math::PowFOp::create(b, x[0], y);
  };
}

Signature integers(unsigned width, int64_t lanes) {
  auto type = [width](Builder &b) -> Type { return b.getIntegerType(width); };
  return {2, lanes, type, nullptr, nullptr};
}

} // namespace

TEST_CASE("maximumf and minimumf propagate NaN and order zeros on request") {
  auto minimum = [](float a, float b) { return -maximum(-a, -b); };
  Machine ordered;
  ordered.options.orderSignedZeros = true;
  CHECK(differences({floats(2, false, 16), ordered, binary<arith::MaximumFOp>()}, maximum) == 0);
  CHECK(differences({floats(2, false, 16), ordered, binary<arith::MinimumFOp>()}, minimum) == 0);
  CHECK(differences({floats(2, false, 16), {}, binary<arith::MaximumFOp>()}, maximum, false) == 0);
  CHECK(differences({floats(2, false, 0), {}, binary<arith::MinimumFOp>()}, minimum, false) == 0);
}

TEST_CASE("maxnumf and minnumf ignore NaN") {
  CHECK(differences(
            {floats(2, false, 16), {}, binary<arith::MaxNumFOp>()}, [](float a, float b) { return std::fmax(a, b); },
            false) == 0);
  CHECK(differences(
            {floats(2, false, 16), {}, binary<arith::MinNumFOp>()}, [](float a, float b) { return std::fmin(a, b); },
            false) == 0);
}

TEST_CASE("a constant operand makes minimum and maximum one comparison that still propagates NaN") {
  auto relu = [](bool constantFirst) -> BuildOp {
    return [=](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
      Value zero = arith::ConstantOp::create(b, b.getZeroAttr(x[0].getType()));
      return arith::MaximumFOp::create(b, constantFirst ? zero : x[0], constantFirst ? x[0] : zero);
    };
  };
  auto exact = [](float a, float) { return std::isnan(a) ? a : std::fmax(a, 0.0f); };
  CompiledFunction first(floats(2, false, 16), {}, relu(true)), second(floats(2, false, 16), {}, relu(false));
  CHECK(differences(first, exact, false) == 0);
  CHECK(differences(second, exact, false) == 0);
  CHECK(second.opCount + 2 == CompiledFunction(floats(2, false, 16), {}, binary<arith::MaximumFOp>()).opCount);
}

TEST_CASE("classification agrees with C") {
  auto check = [](auto op, auto exact) {
    using Op = decltype(op);
    std::vector<float> x, y;
    pairs(x, y);
    std::vector<int> got(x.size());
    CompiledFunction f(floats(1, false, 16), {},
                       [](ImplicitLocOpBuilder &b, ValueRange v) -> Value { return Op::create(b, v[0]); });
    f(x.size(), got.data(), x.data());
    size_t count = 0;
    for (size_t i = 0; i < x.size(); ++i)
      count += got[i] != int(exact(x[i]));
    CHECK(count == 0);
  };
  check(math::IsNaNOp(), [](float v) { return std::isnan(v); });
  check(math::IsInfOp(), [](float v) { return std::isinf(v); });
  check(math::IsFiniteOp(), [](float v) { return std::isfinite(v); });
  check(math::IsNormalOp(), [](float v) { return std::isnormal(v); });
}

TEST_CASE("powers with constant exponents agree with pow") {
  for (float n : {0.0f, 1.0f, 2.0f, 3.0f, 4.0f, -1.0f, 0.5f, -0.5f, 1.5f}) {
    CompiledFunction f(floats(1, false, 16), {}, powerOf(n));
    std::vector<float> x = specialValues<float>(), more = binadeValues<float>(4096, -60, 60, 3);
    x.insert(x.end(), more.begin(), more.end());
    x.resize(x.size() / 16 * 16);
    std::vector<float> y(x.size());
    f(x.size(), y.data(), x.data());
    Worst worst;
    for (size_t i = 0; i < x.size(); ++i) {
      double r = std::pow(double(x[i]), double(n));
      worst.take(ulpError(y[i], r), x[i], n, y[i], r);
    }
    INFO(n << ": " << worst.text());
    CHECK(worst.ulp <= 1.5);
  }
}

/// Worst error of x^n over the whole format.
template <typename T> static Worst worstPower(const CompiledFunction &f, double n) {
  std::vector<T> x = specialValues<T>(), more = spreadValues<T>(1 << 18);
  x.insert(x.end(), more.begin(), more.end());
  x.resize(x.size() / 16 * 16);
  std::vector<T> y(x.size());
  f(x.size(), y.data(), x.data());
  Worst worst;
  using Wide = std::conditional_t<sizeof(T) == 4, double, long double>;
  for (size_t i = 0; i < x.size(); ++i) {
    Wide magnitude = std::isinf(x[i]) ? std::fabs(Wide(x[i])) : Wide(x[i]); // powl errs for negative infinity
    Wide r = std::pow(magnitude, Wide(n));
    worst.take(ulpError(y[i], r), x[i], n, y[i], r);
  }
  return worst;
}

TEST_CASE("powers of quarters are polynomials or roots, nearer to the exact ones than pow") {
  Machine old{"x86-64-v2", {}};
  old.options.hasFma = false;
  for (double n : {0.25, 0.75, -0.25, -0.75})
    for (const Machine &machine : {Machine(), old}) {
      CompiledFunction f32(floats(1, false, 16), machine, powerOf(n)), f64(floats(1, true, 16), machine, powerOf(n));
      Worst worst = worstPower<float>(f32, n), worst64 = worstPower<double>(f64, n);
      INFO(n << ": " << worst.text() << "; " << worst64.text());
      CHECK(worst.ulp <= (machine.options.hasFma ? 0.8 : 1.8));
      CHECK(worst64.ulp <= 0.52);
      CHECK(f32.opCount < CompiledFunction(floats(2, false, 16), machine, binary<math::PowFOp>()).opCount);
    }
}

TEST_CASE("fpowi agrees with pow for every exponent") {
  Signature s = floats(2, false, 16);
  s.second = [](Builder &b) -> Type { return b.getI32Type(); };
  CompiledFunction f(
      s, {}, [](ImplicitLocOpBuilder &b, ValueRange x) -> Value { return math::FPowIOp::create(b, x[0], x[1]); });
  std::vector<float> x;
  std::vector<int32_t> n;
  for (float a : specialValues<float>())
    for (int32_t i :
         {0, 1, -1, 2, 3, -3, 10, 31, -32, 16777217, 2147483647, int32_t(-2147483648LL), -2147483647, 1000001}) {
      x.push_back(a);
      n.push_back(i);
    }
  for (float a : binadeValues<float>(4096, -1, 0, 8)) {
    x.push_back(a);
    n.push_back(int32_t(x.size() % 257) - 128);
  }
  x.resize(x.size() / 16 * 16);
  std::vector<float> y(x.size());
  f(x.size(), y.data(), x.data(), n.data());
  Worst worst;
  for (size_t i = 0; i < x.size(); ++i) {
    long double r = std::pow((long double)x[i], (long double)n[i]);
    worst.take(ulpError(y[i], double(r)), x[i], n[i], y[i], double(r));
  }
  INFO(worst.text());
  CHECK(worst.ulp <= 1.5);
}

TEST_CASE("ipowi multiplies modulo 2^n and truncates reciprocals") {
  for (int64_t lanes : {0, 16}) {
    CompiledFunction f(integers(32, lanes), {}, [](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
      return math::IPowIOp::create(b, x[0], x[1]);
    });
    std::vector<int32_t> x, n, y(16 * 16);
    for (int32_t a :
         {0, 1, -1, 2, -2, 3, 7, -7, 10, 255, 65536, -65536, 46341, 2147483647, int32_t(-2147483648LL), 12345})
      for (int32_t i : {0, 1, 2, 3, 4, 5, 15, 16, 31, 32, 33, -1, -2, -3, 2147483647, int32_t(-2147483648LL)}) {
        x.push_back(a);
        n.push_back(i);
      }
    f(x.size(), y.data(), x.data(), n.data());
    size_t different = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      uint32_t power = 1, base = x[i];
      for (uint32_t left = n[i] < 0 ? 0 : n[i]; left; left >>= 1, base *= base)
        if (left & 1)
          power *= base;
      if (n[i] < 0)
        power = x[i] == 1 ? 1 : x[i] == -1 ? (n[i] & 1 ? -1 : 1) : 0;
      different += uint32_t(y[i]) != power;
    }
    CHECK(different == 0);
  }
}

TEST_CASE("sincos has the bits of sin and cos") {
  std::vector<float> x = binadeValues<float>(4096, -20, 127, 4), s(x.size()), c(x.size()), t(x.size());
  auto part = [](int i) -> BuildOp {
    return [i](ImplicitLocOpBuilder &b, ValueRange v) -> Value { return math::SincosOp::create(b, v[0]).getResult(i); };
  };
  auto run = [&](const BuildOp &build, std::vector<float> &y) {
    CompiledFunction(floats(1, false, 16), {}, build)(x.size(), y.data(), x.data());
  };
  run(part(0), s);
  run(part(1), c);
  run([](ImplicitLocOpBuilder &b, ValueRange v) -> Value { return math::SinOp::create(b, v[0]); }, t);
  CHECK(s == t);
  run([](ImplicitLocOpBuilder &b, ValueRange v) -> Value { return math::CosOp::create(b, v[0]); }, t);
  CHECK(c == t);
}

TEST_CASE("fma without the instruction is within 1 ulp and keeps infinities and NaN") {
  Machine old{"x86-64-v2", {}};
  old.options.hasFma = false;
  CompiledFunction f(floats(3, false, 16), old, [](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
    return math::FmaOp::create(b, x[0], x[1], x[2]);
  });
  std::vector<float> x, y;
  pairs(x, y);
  std::vector<float> z(x.rbegin(), x.rend()), got(x.size());
  f(x.size(), got.data(), x.data(), y.data(), z.data());
  Worst worst;
  for (size_t i = 0; i < x.size(); ++i) {
    float r = std::fma(x[i], y[i], z[i]);
    worst.take(ulpError(got[i], double(r)), x[i], y[i], got[i], r);
  }
  INFO(worst.text());
  CHECK(worst.ulp <= 1);
}

TEST_CASE("f16 is computed in f32") {
  auto half = [](Builder &b) -> Type { return b.getF16Type(); };
  CompiledFunction f({1, 16, half, nullptr, nullptr}, {},
                     [](ImplicitLocOpBuilder &b, ValueRange x) -> Value { return math::ExpOp::create(b, x[0]); });
  std::vector<_Float16> x(65536), y(65536);
  for (unsigned i = 0; i < 65536; ++i)
    x[i] = std::bit_cast<_Float16>(uint16_t(i));
  f(x.size(), y.data(), x.data());
  size_t different = 0;
  for (unsigned i = 0; i < 65536; ++i) {
    double r = std::exp(double(x[i])), got = double(y[i]);
    if (std::isnan(r))
      different += !std::isnan(got);
    else // half a unit in the last place of f16 and a little more
      different += got != r && !(std::fabs(got - r) <= std::fmax(std::ldexp(std::fabs(r), -11), 0x1p-25) * 1.01) &&
                   !(r >= 65520 && std::isinf(got));
  }
  CHECK(different == 0);
}
