// Element types of contractions: what is stored, what is widened on the way, what is added up.
#include "tests/unit/TemplateRunner.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>

using namespace ptc;
using namespace ptc::test;

namespace {

constexpr int64_t m = 21, n = 37, k = 45;

/// `widen` is the text that turns %x into %w of the accumulator's type, for A and for B.
std::string kernelText(const std::string &a, const std::string &b, const std::string &acc, const std::string &widenA,
                       const std::string &widenB, bool isPacked) {
  auto buffer = [](int64_t count, const std::string &type) {
    return "!loop.buffer<[" + std::to_string(count) + "] x " + type + ">";
  };
  std::string typeA = buffer(m * k, a), typeB = buffer(isPacked ? (n + 15) / 16 * 16 * k : k * n, b);
  std::string typeC = buffer(m * n, acc);
  auto yielded = [&](const std::string &widen) { return widen.empty() ? "%x" : "%w"; };
  std::string rhs = isPacked ? "  %x = loop.panels %b : " + typeB + " -> " + b + "\n"
                             : "  %x = loop.load %b [d2*37 + d1] : " + typeB + "\n";
  return "loop.kernel @k(%a: " + typeA + ", %b: " + typeB + ", %c: " + typeC +
         ") attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {\n"
         "loop.contraction [21, 37, 45] batch 0 m 1 n 1 k 1 lhs {\n  %x = loop.load %a [d0*45 + d2] : " +
         typeA + "\n" + widenA + "  loop.yield " + yielded(widenA) + " : " + acc + "\n} rhs {\n" + rhs + widenB +
         "  loop.yield " + yielded(widenB) + " : " + acc + "\n} epilogue {\n^bb0(%acc: " + acc +
         "):\n  loop.store %acc, %c [d0*37 + d1] : " + typeC + "\n}\n}\n";
}

template <typename T> std::vector<T> panelsOf(const std::vector<T> &b) {
  std::vector<T> packed(size_t((n + 15) / 16 * 16 * k), T(0));
  for (int64_t row = 0; row < k; ++row)
    for (int64_t column = 0; column < n; ++column)
      packed[size_t(((column / 16) * k + row) * 16 + column % 16)] = b[size_t(row * n + column)];
  return packed;
}

/// Runs with A(i) = a(i), B(i) = b(i); compares with sums in double, which are exact for these small integers.
template <typename A, typename B, typename C>
void check(const std::string &typeA, const std::string &typeB, const std::string &acc, const std::string &widenA,
           const std::string &widenB, auto encodeA, auto encodeB) {
  for (const cpu::CpuLevel *level : runnableLevels())
    for (bool isPacked : {true, false}) {
      INFO(level->name.str() << " " << typeA << " x " << typeB << " -> " << acc << " packed " << isPacked);
      auto kernel = CompiledKernel::share(kernelText(typeA, typeB, acc, widenA, widenB, isPacked), *level);
      REQUIRE(kernel);
      auto valueA = [](int64_t i) { return int(i * 7 % 23) - 11; };
      auto valueB = [](int64_t i) { return int(i * 5 % 19) - 9; };
      std::vector<A> a(m * k);
      std::vector<B> b(k * n);
      for (size_t i = 0; i < a.size(); ++i)
        a[i] = encodeA(valueA(int64_t(i)));
      for (size_t i = 0; i < b.size(); ++i)
        b[i] = encodeB(valueB(int64_t(i)));
      std::vector<B> stored = isPacked ? panelsOf(b) : b;
      std::vector<C> c(m * n, C(0));
      kernel->run({a.data(), stored.data(), c.data()}, {}, 2);
      int wrong = 0;
      for (int64_t row = 0; row < m; ++row)
        for (int64_t column = 0; column < n; ++column) {
          double sum = 0;
          for (int64_t i = 0; i < k; ++i)
            sum += double(valueA(row * k + i)) * valueB(i * n + column);
          wrong += double(c[size_t(row * n + column)]) != sum;
        }
      CHECK(wrong == 0);
    }
}

uint16_t toBf16(int x) {
  float f = float(x);
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return uint16_t(bits >> 16); // exact: few bits
}

uint16_t toF16(int x) {
  _Float16 half = _Float16(x);
  uint16_t bits;
  std::memcpy(&bits, &half, 2);
  return bits;
}

} // namespace

TEST_CASE("doubles add up in doubles", "[contraction]") {
  check<double, double, double>(
      "f64", "f64", "f64", "", "", [](int x) { return double(x); }, [](int x) { return double(x); });
}

TEST_CASE("8-bit integers add up in 32 bits", "[contraction]") {
  check<int8_t, int8_t, int32_t>(
      "i8", "i8", "i32", "  %w = arith.extsi %x : i8 to i32\n", "  %w = arith.extsi %x : i8 to i32\n",
      [](int x) { return int8_t(x); }, [](int x) { return int8_t(x); });
  // u8 with a zero point of 100 against s8.
  check<uint8_t, int8_t, int32_t>(
      "i8", "i8", "i32",
      "  %u = arith.extui %x : i8 to i32\n  %p = arith.constant 100 : i32\n  %w = arith.subi %u, %p : i32\n",
      "  %w = arith.extsi %x : i8 to i32\n", [](int x) { return uint8_t(x + 100); }, [](int x) { return int8_t(x); });
}

TEST_CASE("half precision adds up in single", "[contraction]") {
  std::string half = "  %w = arith.extf %x : f16 to f32\n", brain = "  %w = arith.extf %x : bf16 to f32\n";
  check<uint16_t, uint16_t, float>("f16", "f16", "f32", half, half, toF16, toF16);
  check<uint16_t, uint16_t, float>("bf16", "bf16", "f32", brain, brain, toBf16, toBf16);
}

TEST_CASE("64-bit integers multiply as they are", "[contraction]") {
  check<int64_t, int64_t, int64_t>(
      "i64", "i64", "i64", "", "", [](int x) { return int64_t(x); }, [](int x) { return int64_t(x); });
}

TEST_CASE("a packed weight is scaled by groups of k", "[contraction]") {
  std::string text =
      R"(loop.kernel @k(%a: !loop.buffer<[21*64] x f32>, %b: !loop.buffer<[3*64*16] x i8>, %s: !loop.buffer<[4*37] x f32>,
    %c: !loop.buffer<[21*37] x f32>) attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 3>} {
  loop.contraction [21, 37, 64] batch 0 m 1 n 1 k 1 lhs {
    %x = loop.load %a [d0*64 + d2] : !loop.buffer<[21*64] x f32>
    loop.yield %x : f32
  } rhs {
    %x = loop.panels %b : !loop.buffer<[3*64*16] x i8> -> i8
    %f = arith.sitofp %x : i8 to f32
    %g = loop.load %s [floordiv(d2, 16)*37 + d1] : !loop.buffer<[4*37] x f32>
    %w = arith.mulf %f, %g : f32
    loop.yield %w : f32
  } epilogue {
  ^bb0(%acc: f32):
    loop.store %acc, %c [d0*37 + d1] : !loop.buffer<[21*37] x f32>
  }
})";
  std::vector<float> a(21 * 64), scales(4 * 37), c(21 * 37);
  std::vector<int8_t> b(3 * 64 * 16);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = float(int(i % 13) - 6);
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = int8_t(int(i * 7 % 31) - 15);
  for (size_t i = 0; i < scales.size(); ++i)
    scales[i] = float(1 << (i % 4));
  for (const cpu::CpuLevel *level : runnableLevels()) {
    INFO(level->name.str());
    auto kernel = CompiledKernel::share(text, *level);
    REQUIRE(kernel);
    kernel->run({a.data(), b.data(), scales.data(), c.data()}, {}, 2);
    int wrong = 0;
    for (size_t row = 0; row < 21; ++row)
      for (size_t column = 0; column < 37; ++column) {
        float sum = 0;
        for (size_t i = 0; i < 64; ++i)
          sum += a[row * 64 + i] * scales[i / 16 * 37 + column] * float(b[(column / 16 * 64 + i) * 16 + column % 16]);
        wrong += sum != c[row * 37 + column];
      }
    CHECK(wrong == 0);
  }
}
