//===- IntegerDivisionTest.cpp - vectors are divided exactly --------------===//
//
// Quotients and remainders of all widths, by a divisor for each lane, by one that the lanes share and by constants,
// beside the language's: numbers around powers of two, which floats round, and on both sides of what f64 holds.
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "tests/numerics/FunctionCompiler.h"
#include <catch2/catch.hpp>
#include <limits>
#include <random>

using namespace mlir;
using namespace ptc::test;

namespace {

enum class Divisor { Each, Shared, Constant };
constexpr int64_t lanes = 16;

/// Numbers next to powers of two and random ones of every length, both signs.
template <typename T> std::vector<T> numbers() {
  std::vector<T> list;
  std::mt19937_64 random(7);
  for (unsigned bits = 0; bits < sizeof(T) * 8; ++bits)
    for (uint64_t each : {uint64_t(1) << bits, (uint64_t(1) << bits) - 1, (uint64_t(1) << bits) + 1,
                          random() >> (63 - bits), random() >> (63 - bits)})
      for (T value : {T(each), T(0 - each)})
        list.push_back(value);
  while (list.size() % lanes)
    list.push_back(T(random()));
  return list;
}

template <typename Op> BuildOp build(Divisor kind, int64_t constant) {
  return [=](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
    auto type = cast<VectorType>(x[0].getType());
    Value divisor = x[1];
    if (kind == Divisor::Shared)
      divisor = vector::BroadcastOp::create(b, type, vector::ExtractOp::create(b, divisor, ArrayRef<int64_t>{0}));
    if (kind == Divisor::Constant) {
      Attribute element = b.getIntegerAttr(type.getElementType(), constant);
      divisor = arith::ConstantOp::create(b, DenseElementsAttr::get(type, element));
    }
    return Op::create(b, x[0], divisor);
  };
}

/// The remainder with the divisor's sign, as scalar bodies say it.
struct Modulus {
  static Value create(ImplicitLocOpBuilder &b, Value x, Value divisor) {
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(x.getType())), r = arith::RemSIOp::create(b, x, divisor);
    Value isRest = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, r, zero),
          unlike = arith::XOrIOp::create(b, r, divisor);
    Value differs = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, unlike, zero);
    Value turned = arith::AddIOp::create(b, r, divisor);
    return arith::SelectOp::create(b, arith::AndIOp::create(b, isRest, differs), turned, r);
  }
};

enum class Wanted { Quotient, Remainder, Modulus };
template <typename T> T divide(T a, T divisor, Wanted wanted) {
  if (wanted == Wanted::Quotient)
    return a / divisor;
  T r = a % divisor;
  return wanted == Wanted::Modulus && r != 0 && (r < 0) != (divisor < 0) ? T(r + divisor) : r;
}

template <typename T, typename Op> size_t countWrong(Divisor kind, Wanted wanted, int64_t constant, Machine machine) {
  machine.options.dividesByFloats = true;
  auto element = [](Builder &b) -> Type { return b.getIntegerType(sizeof(T) * 8); };
  CompiledFunction f({2, lanes, element, nullptr, nullptr}, machine, build<Op>(kind, constant));
  std::vector<T> a, divisors, all = numbers<T>();
  for (T d : all) {
    T divisor = kind == Divisor::Constant ? T(constant) : d;
    if (divisor == 0 || divisor == T(-1)) // bodies replace these
      divisor = 1;
    for (T each : all) {
      a.push_back(each);
      divisors.push_back(divisor);
    }
    if (kind == Divisor::Constant)
      break;
  }
  if (kind == Divisor::Each)
    for (size_t i = 0; i < a.size(); ++i)
      std::swap(divisors[i], divisors[i * 7919 % a.size()]);
  std::vector<T> got(a.size());
  f(a.size(), got.data(), a.data(), divisors.data());
  size_t wrong = 0;
  for (size_t i = 0; i < a.size(); ++i)
    wrong += got[i] != divide(a[i], divisors[i], wanted);
  return wrong;
}

template <typename T> void check(const Machine &machine) {
  using Quotient = std::conditional_t<std::numeric_limits<T>::is_signed, arith::DivSIOp, arith::DivUIOp>;
  using Remainder = std::conditional_t<std::numeric_limits<T>::is_signed, arith::RemSIOp, arith::RemUIOp>;
  for (auto [kind, constant] : {std::pair(Divisor::Each, 0),
                                {Divisor::Shared, 0},
                                {Divisor::Constant, 7},
                                {Divisor::Constant, 100},
                                {Divisor::Constant, -12},
                                {Divisor::Constant, 8}}) {
    INFO(sizeof(T) * 8 << " bits, " << (std::numeric_limits<T>::is_signed ? "signed" : "unsigned") << ", kind "
                       << int(kind) << ", constant " << constant);
    CHECK(countWrong<T, Quotient>(kind, Wanted::Quotient, constant, machine) == 0);
    CHECK(countWrong<T, Remainder>(kind, Wanted::Remainder, constant, machine) == 0);
    if (std::numeric_limits<T>::is_signed)
      CHECK(countWrong<T, Modulus>(kind, Wanted::Modulus, constant, machine) == 0);
  }
}

void checkAll(const Machine &machine) {
  check<int8_t>(machine);
  check<uint8_t>(machine);
  check<int16_t>(machine);
  check<uint16_t>(machine);
  check<int32_t>(machine);
  check<uint32_t>(machine);
  check<int64_t>(machine);
  check<uint64_t>(machine);
}

} // namespace

TEST_CASE("vectors of integers are divided exactly") { checkAll({}); }

TEST_CASE("vectors of integers are divided exactly without fused multiply-add") {
  Machine old{"x86-64-v2", {}};
  old.options.hasFma = false;
  checkAll(old);
}

TEST_CASE("vectors of integers are divided exactly with AVX-512's conversions") {
  Machine machine;
  machine.options.x86Scalef = true;
  if (__builtin_cpu_supports("avx512dq"))
    checkAll(machine);
}
