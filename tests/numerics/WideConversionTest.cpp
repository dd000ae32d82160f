//===- WideConversionTest.cpp - floats saturate as integers of 64 bits ----===//
//
// Vectors of numbers around powers of two up to 2^70, infinities and NaN, alone and among small ones, which take
// another way, converted as scalar bodies say it.
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "tests/numerics/FunctionCompiler.h"
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace ptc::test;

namespace {

constexpr int64_t lanes = 8;

template <typename T> Value buildSaturating(ImplicitLocOpBuilder &b, ValueRange operands) {
  Value x = operands[0];
  auto type = cast<VectorType>(x.getType());
  Type integers = type.clone(b.getI64Type());
  auto splat = [&](Type of, Attribute element) -> Value {
    return arith::ConstantOp::create(b, DenseElementsAttr::get(cast<VectorType>(of), element));
  };
  T below = std::nextafter(T(0x1p63), T(0));
  Value low = splat(type, b.getFloatAttr(type.getElementType(), -0x1p63));
  Value high = splat(type, b.getFloatAttr(type.getElementType(), double(below)));
  auto compare = [&](arith::CmpFPredicate predicate, Value left, Value right) -> Value {
    return arith::CmpFOp::create(b, predicate, left, right);
  };
  Value bounded = arith::SelectOp::create(b, compare(arith::CmpFPredicate::OGT, x, low), x, low);
  bounded = arith::SelectOp::create(b, compare(arith::CmpFPredicate::OLT, bounded, high), bounded, high);
  Value converted = arith::FPToSIOp::create(b, integers, bounded);
  Value most = splat(integers, b.getI64IntegerAttr(std::numeric_limits<int64_t>::max()));
  converted = arith::SelectOp::create(b, compare(arith::CmpFPredicate::OGT, x, high), most, converted);
  Value zero = splat(integers, b.getI64IntegerAttr(0));
  return arith::SelectOp::create(b, compare(arith::CmpFPredicate::UNO, x, x), zero, converted);
}

template <typename T> int64_t saturated(T x) {
  if (std::isnan(x))
    return 0;
  if (x >= T(0x1p63))
    return std::numeric_limits<int64_t>::max();
  return x <= T(-0x1p63) ? std::numeric_limits<int64_t>::min() : int64_t(x);
}

/// Each number alone in a vector of small ones, at each place, and all of them in a row.
template <typename T> std::vector<T> numbers() {
  std::vector<T> special{T(0),
                         T(-0.0),
                         std::numeric_limits<T>::quiet_NaN(),
                         std::numeric_limits<T>::infinity(),
                         -std::numeric_limits<T>::infinity(),
                         std::numeric_limits<T>::denorm_min()};
  for (int power = -2; power < 70; ++power)
    for (T magnitude :
         {std::ldexp(T(1), power), std::nextafter(std::ldexp(T(1), power), T(0)), std::ldexp(T(1.25), power)})
      special.insert(special.end(), {magnitude, -magnitude});
  std::vector<T> all;
  for (size_t i = 0; i < special.size(); ++i)
    for (int64_t lane = 0; lane < lanes; ++lane)
      all.push_back(lane == int64_t(i % lanes) ? special[i] : T(lane * 1000.75 - 3000));
  all.insert(all.end(), special.begin(), special.end());
  while (all.size() % lanes)
    all.push_back(T(1.5));
  return all;
}

template <typename T> size_t countWrong(Machine machine) {
  machine.options.convertsThrough32 = true;
  Signature signature = floats(1, sizeof(T) == 8, lanes);
  CompiledFunction f(signature, machine, buildSaturating<T>);
  std::vector<T> x = numbers<T>();
  std::vector<int64_t> y(x.size());
  f(int64_t(x.size()), y.data(), x.data());
  size_t wrong = 0;
  for (size_t i = 0; i < x.size(); ++i)
    wrong += y[i] != saturated(x[i]);
  return wrong;
}

} // namespace

TEST_CASE("floats saturate as integers of 64 bits through those of 32") {
  CHECK(countWrong<float>({}) == 0);
  CHECK(countWrong<double>({}) == 0);
  CHECK(countWrong<float>({"x86-64-v2", {}}) == 0);
  CHECK(countWrong<double>({"x86-64-v2", {}}) == 0);
}
