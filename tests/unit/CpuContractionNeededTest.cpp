// Products whose tiles leave out terms that are zero or unread, at every level, against plain loops.
#include "tests/unit/TemplateKernels.h"
#include "tests/unit/TemplateRunner.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

using namespace ptc;
using namespace ptc::test;

namespace {

/// c[b, m, n], or its transpose, = a[b, m, k] b[b, k, n], of which the terms that `isNeeded` matter.
struct NeededProduct {
  int64_t batch = 1, m, n, k;
  const char *needed; // over d0 = batch, d1 = m, d2 = n, d3 = k
  std::function<bool(int64_t m, int64_t n, int64_t k)> isNeeded;
  bool isTransposed = false;

  std::string text() const {
    auto of = [](int64_t a, int64_t b, int64_t c) { return std::to_string(a * b * c); };
    std::string a = "!loop.buffer<[" + of(batch, m, k) + "] x f32>",
                b = "!loop.buffer<[" + of(batch, k, n) + "] x f32>",
                c = "!loop.buffer<[" + of(batch, m, n) + "] x f32>";
    auto times = [](const char *dim, int64_t factor) {
      return std::string(dim) + "*" + std::to_string(factor) + " + ";
    };
    std::string place = isTransposed ? times("d2", m) + "d1" : times("d1", n) + "d2";
    return "loop.kernel @product(%a: " + a + ", %b: " + b + ", %c: " + c +
           ") attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {\n"
           "  loop.contraction [" +
           std::to_string(batch) + ", " + std::to_string(m) + ", " + std::to_string(n) + ", " + std::to_string(k) +
           "] batch 1 m 1 n 1 k 1 needed [" + needed + "] lhs {\n    %0 = loop.load %a[" + times("d0", m * k) +
           times("d1", k) + "d3] : " + a + "\n    loop.yield %0 : f32\n  } rhs {\n    %0 = loop.load %b[" +
           times("d0", k * n) + times("d3", n) + "d2] : " + b +
           "\n    loop.yield %0 : f32\n  } epilogue {\n  ^bb0(%acc: f32):\n    loop.store %acc, %c[" +
           times("d0", m * n) + place + "] : " + c + "\n  }\n}\n";
  }
};

/// Factors of terms that are not needed are 0 in one operand; sums without needed terms may be anything finite.
void check(const NeededProduct &p, bool zeroesA, bool zeroesB, const cpu::CpuLevel &level) {
  INFO("level " << level.name.str() << " needed " << p.needed << " m " << p.m << " n " << p.n << " k " << p.k);
  auto a = randomFloats(p.batch * p.m * p.k, 1), b = randomFloats(p.batch * p.k * p.n, 2);
  auto forEach = [&](auto visit) {
    for (int64_t i = 0; i < p.batch; ++i)
      for (int64_t m = 0; m < p.m; ++m)
        for (int64_t n = 0; n < p.n; ++n)
          visit(i, m, n);
  };
  forEach([&](int64_t i, int64_t m, int64_t n) {
    for (int64_t k = 0; k < p.k; ++k)
      if (!p.isNeeded(m, n, k)) {
        a[size_t((i * p.m + m) * p.k + k)] *= zeroesA ? 0 : 1;
        b[size_t((i * p.k + k) * p.n + n)] *= zeroesB ? 0 : 1;
      }
  });
  auto kernel = CompiledKernel::share(p.text(), level);
  REQUIRE(kernel);
  std::vector<float> c(size_t(p.batch * p.m * p.n), -777.0f);
  kernel->run({a.data(), b.data(), c.data()}, {}, 3);
  double worst = 0;
  forEach([&](int64_t i, int64_t m, int64_t n) {
    double sum = 0;
    bool isRead = false;
    for (int64_t k = 0; k < p.k; ++k) {
      isRead |= p.isNeeded(m, n, k);
      sum += double(a[size_t((i * p.m + m) * p.k + k)]) * b[size_t((i * p.k + k) * p.n + n)];
    }
    float result = c[size_t(p.isTransposed ? (i * p.n + n) * p.m + m : (i * p.m + m) * p.n + n)];
    worst = larger(worst, isRead ? std::abs(sum - result) : 0 * result);
  });
  CHECK(worst < 1e-5 * std::sqrt(double(p.k)));
}

void check(const NeededProduct &p, bool zeroesA, bool zeroesB) {
  for (const cpu::CpuLevel *level : plannedLevels())
    check(p, zeroesA, zeroesB, *level);
}

} // namespace

TEST_CASE("terms behind the row are left out", "[contraction]") {
  auto isNeeded = [](int64_t m, int64_t, int64_t k) { return k <= m; };
  NeededProduct product{.batch = 3, .m = 97, .n = 40, .k = 97, .needed = "d1 - d3", .isNeeded = isNeeded};
  check(product, /*zeroesA=*/true, /*zeroesB=*/false);
  product.isTransposed = true;
  check(product, true, false);
  // The last term meets none of the first tile's rows.
  for (const cpu::CpuLevel *level : plannedLevels()) {
    auto kernel = CompiledKernel::share(product.text(), *level);
    REQUIRE(kernel);
    std::vector<float> a(size_t(3 * 97 * 97), 0.0f), b(size_t(3 * 97 * 40), 1.0f), c(size_t(3 * 97 * 40), -777.0f);
    std::fill(b.begin() + 96 * 40, b.begin() + 97 * 40, NAN);
    kernel->run({a.data(), b.data(), c.data()}, {}, 1);
    CHECK(c[0] == 0.0f);
    CHECK(std::isnan(c[96]));
  }
}

TEST_CASE("terms before the column are left out", "[contraction]") {
  auto isNeeded = [](int64_t, int64_t n, int64_t k) { return n <= k; };
  NeededProduct product{.batch = 2, .m = 50, .n = 70, .k = 80, .needed = "d3 - d2", .isNeeded = isNeeded};
  check(product, false, true);
  product.isTransposed = true;
  check(product, false, true);
}

TEST_CASE("sums behind the diagonal are left out", "[contraction]") {
  auto isNeeded = [](int64_t m, int64_t n, int64_t) { return n <= m + 5; };
  NeededProduct product{.m = 60, .n = 100, .k = 24, .needed = "d1 - d2 + 5", .isNeeded = isNeeded};
  check(product, false, false);
  product.isTransposed = true;
  check(product, false, false);
}

TEST_CASE("terms behind the row are left out of blocks of a long k", "[contraction]") {
  auto isNeeded = [](int64_t m, int64_t, int64_t k) { return k <= 60 * m + 200; };
  check({.m = 40, .n = 32, .k = 2600, .needed = "60*d1 + 200 - d3", .isNeeded = isNeeded}, true, false);
}
