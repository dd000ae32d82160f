// Attention as generated for every level that this processor runs, against plain loops.
#include "tests/unit/TemplateKernels.h"
#include "tests/unit/TemplateRunner.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

using namespace ptc;
using namespace ptc::test;

namespace {

struct Tensors {
  std::vector<float> q, k, v, mask;
};

Tensors randomTensors(const Attention &s) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> values(-1, 1);
  auto make = [&](int64_t count) {
    std::vector<float> result(static_cast<size_t>(count));
    for (float &x : result)
      x = values(random);
    return result;
  };
  int64_t rows = s.batch * s.heads;
  return {make(rows * s.i * s.d), make(rows * s.j * s.d), make(rows * s.j * s.e), make(s.batch * s.i * s.j)};
}

/// The largest difference from the definition; rows without any visible key must be NaN, or 0 with zeroMaskedRows.
double worstError(const Attention &s, const Tensors &t, const std::vector<float> &o) {
  double worst = 0;
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.i; ++i) {
        std::vector<double> score(size_t(s.j), -std::numeric_limits<double>::infinity());
        double best = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t j = 0; j < s.j; ++j) {
          if (s.isCausal && j > i)
            continue;
          double dot = 0;
          for (int64_t d = 0; d < s.d; ++d)
            dot += double(t.q[size_t(((b * s.i + i) * s.heads + h) * s.d + d)]) *
                   t.k[size_t(((b * s.j + j) * s.heads + h) * s.d + d)];
          double scaled = s.cap ? s.cap * std::tanh(dot * s.scale) : dot * s.scale;
          score[size_t(j)] = scaled + (s.hasMask ? t.mask[size_t((b * s.i + i) * s.j + j)] : 0);
          best = std::max(best, score[size_t(j)]);
        }
        for (double &x : score)
          sum += x = std::isinf(best) ? 0 : std::exp(x - best);
        for (int64_t e = 0; e < s.e; ++e) {
          double result = 0;
          for (int64_t j = 0; j < s.j; ++j)
            result += score[size_t(j)] * t.v[size_t(((b * s.j + j) * s.heads + h) * s.e + e)];
          float got = o[size_t(((b * s.i + i) * s.heads + h) * s.e + e)];
          if (sum == 0 && !(s.zeroMaskedRows ? got == 0 : std::isnan(got)))
            FAIL("row " << i << " without a key gives " << got);
          if (sum == 0)
            continue;
          worst = larger(worst, std::abs(result / sum - got));
        }
      }
  return worst;
}

void check(const Attention &s, Tensors t, const Numbers &numbers = {}) {
  for (const cpu::CpuLevel *level : plannedLevels()) {
    INFO("level " << level->name.str() << " heads " << s.heads << " i " << s.i << " j " << s.j << " d " << s.d << " e "
                  << s.e << " causal " << s.isCausal << " mask " << s.hasMask << " " << s.symbolicI << s.symbolicJ);
    auto kernel = CompiledKernel::share(s.text(), *level, numbers);
    REQUIRE(kernel);
    std::vector<float> o(size_t(s.batch * s.heads * s.i * s.e) + 64, -777.0f);
    kernel->run({t.q.data(), t.k.data(), t.v.data(), t.mask.data(), o.data()}, s.symbols(), 2);
    CHECK(worstError(s, t, o) < 2e-6);
    CHECK(o.back() == -777.0f);
  }
}

void check(const Attention &s) { check(s, randomTensors(s)); }

} // namespace

TEST_CASE("attention is right for any extents", "[attention]") {
  check({.heads = 1, .i = 1, .j = 1, .d = 1, .e = 1});
  check({.heads = 2, .i = 7, .j = 19, .d = 24, .e = 40});
  check({.batch = 2, .heads = 3, .i = 50, .j = 197, .d = 64, .e = 64, .hasMask = true});
  check({.heads = 1, .i = 5, .j = 600, .d = 32, .e = 80});
  check({.heads = 3, .i = 400, .j = 577, .d = 24, .e = 40}); // several tasks of a head, one block of keys
  check({.heads = 2, .i = 70, .j = 1100, .d = 64, .e = 64}); // several blocks
  check({.heads = 2, .i = 1, .j = 300, .d = 64, .e = 64});
}

TEST_CASE("scores keep between their caps", "[attention]") {
  check({.heads = 2, .i = 33, .j = 300, .d = 32, .e = 32, .scale = 0.5f, .cap = 3});
  check({.heads = 1, .i = 70, .j = 70, .d = 16, .e = 16, .isCausal = true, .scale = 2, .cap = 0.5f});
}

TEST_CASE("causal attention sees keys up to the query", "[attention]") {
  check({.heads = 2, .i = 40, .j = 40, .d = 16, .e = 16, .isCausal = true});
  check({.heads = 1, .i = 300, .j = 310, .d = 16, .e = 16, .isCausal = true, .hasMask = true});
}

TEST_CASE("tasks of a head share the copies of many keys", "[attention]") {
  check({.heads = 2, .i = 400, .j = 1100, .d = 24, .e = 40});
  check({.heads = 1, .i = 130, .j = 4500, .d = 250, .e = 256}); // more than are held
  check({.heads = 2, .i = 700, .j = 700, .d = 40, .e = 16, .isCausal = true});
  check({.heads = 1, .i = 500, .j = 720, .d = 8, .e = 8, .isCausal = true, .symbolicI = "i", .symbolicJ = "j"});
}

TEST_CASE("symbolic lengths take any value", "[attention]") {
  for (int64_t length : {1, 33, 270, 600})
    check({.heads = 2, .i = length, .j = length, .d = 32, .e = 32, .symbolicI = "i", .symbolicJ = "j"});
  check({.heads = 1, .i = 20, .j = 290, .d = 8, .e = 8, .isCausal = true, .symbolicJ = "j"});
}

TEST_CASE("hidden keys that queries leave out have no weight", "[attention]") {
  float lowest = std::numeric_limits<float>::lowest(), infinity = std::numeric_limits<float>::infinity();
  std::vector<std::function<bool(int64_t, int64_t)>> isVisible = {
      [](int64_t i, int64_t j) { return j <= i; },
      [](int64_t i, int64_t j) { return j <= i && j > i - 100; },
      [](int64_t i, int64_t j) { return j / 90 == i / 90; },
      [](int64_t, int64_t j) { return j > 330; }, // most queries do not see their own key
      [](int64_t i, int64_t j) { return j != i; },
      [](int64_t i, int64_t j) { return j < 20 || (i > 200 && j == i); },
  };
  for (auto &see : isVisible)
    for (float hides : {lowest, -infinity}) {
      Attention s{.heads = 1, .i = 400, .j = 400, .d = 16, .e = 16, .hasMask = true, .cap = hides == lowest ? 2.0f : 0};
      Tensors t = randomTensors(s);
      for (int64_t i = 0; i < s.i; ++i)
        for (int64_t j = 0; j < s.j; ++j)
          if (!see(i, j))
            t.mask[size_t(i * s.j + j)] = hides;
      check(s, t);
      s.symbolicJ = "j";
      check(s, t);
    }
}

TEST_CASE("queries read no blocks of keys that a mask hides from them", "[attention]") {
  Attention s{.heads = 2, .i = 500, .j = 500, .d = 16, .e = 16, .hasMask = true};
  Tensors t = randomTensors(s);
  for (int64_t i = 0; i < s.i; ++i)
    for (int64_t j = 0; j < s.j; ++j)
      if (j >= 250 && i < 250)
        t.mask[size_t(i * s.j + j)] = std::numeric_limits<float>::lowest();
  Tensors poisoned = t;
  for (int64_t n = 320 * s.heads * s.e; n < s.j * s.heads * s.e; ++n)
    poisoned.v[size_t(n)] = std::numeric_limits<float>::quiet_NaN();
  for (const cpu::CpuLevel *level : plannedLevels()) {
    auto kernel = CompiledKernel::share(s.text(), *level);
    REQUIRE(kernel);
    std::vector<float> o(size_t(s.heads * s.i * s.e));
    kernel->run({t.q.data(), t.k.data(), poisoned.v.data(), t.mask.data(), o.data()}, s.symbols(), 2);
    CHECK(std::isfinite(o[size_t(240 * s.heads * s.e)]));
    CHECK(std::isnan(o[size_t(490 * s.heads * s.e)]));
  }
}

TEST_CASE("rows without a visible key are NaN, or zero where that is asked for", "[attention]") {
  for (int64_t keys : {20, 300})
    for (bool zero : {false, true}) {
      Attention s{.heads = 2, .i = 9, .j = keys, .d = 16, .e = 16, .hasMask = true, .zeroMaskedRows = zero};
      Tensors t = randomTensors(s);
      for (int64_t row : {0, 4})
        for (int64_t j = 0; j < keys; ++j)
          t.mask[size_t(row * keys + j)] = -std::numeric_limits<float>::infinity();
      for (int64_t j = 0; j < keys - 1; ++j) // one key left in row 6
        t.mask[size_t(6 * keys + j)] = -std::numeric_limits<float>::infinity();
      check(s, t);
    }
}

TEST_CASE("attention is right whatever sizes tuning asks for", "[attention][tuning]") {
  Attention shape{.heads = 2, .i = 150, .j = 300, .d = 40, .e = 24, .hasMask = true};
  std::vector<Numbers> alternatives = alternativesOf(shape.text(), *runnableLevels().front());
  REQUIRE(alternatives.size() >= 2);
  for (const Numbers &numbers : alternatives)
    check(shape, randomTensors(shape), numbers);
  for (int64_t extreme : {INT64_MIN, INT64_MAX})
    check(shape, randomTensors(shape), {{"task_queries", extreme}, {"block_keys", extreme}});
}
