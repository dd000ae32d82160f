// Products by Strassen's algorithm as generated for every level that this processor runs, against sums of f64.
#include "tests/unit/TemplateKernels.h"
#include "tests/unit/TemplateRunner.h"

#include "llvm/ADT/STLExtras.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

using namespace ptc;
using namespace ptc::test;

namespace {

constexpr size_t guard = 64;

/// A product whose rows tests may change, with what is tuned of its plan, and its results in so many pieces.
struct Product {
  Matmul shape;
  Numbers numbers;
  std::vector<float> a, b, bias, residual;

  explicit Product(Matmul of) : shape(of) {
    shape.isStrassen = true;
    a = randomFloats((shape.sharesA ? shape.m : rows()) * shape.k, 1);
    b = randomFloats(shape.batch * shape.k * shape.n, 2);
    bias = randomFloats(shape.n, 3);
    residual = randomFloats(rows() * shape.n, 4);
  }

  /// Of all matrices of the batch.
  int64_t rows() const { return shape.batch * shape.m; }

  std::vector<float> run(const cpu::CpuLevel &level, int64_t pieces) {
    std::vector<float> panels;
    for (int64_t matrix = 0; matrix < shape.batch; ++matrix)
      llvm::append_range(panels, packPanels(&b[size_t(matrix * shape.k * shape.n)], shape.k, shape.n, shape.n, 1));
    auto kernel = CompiledKernel::share(shape.text(), level, numbers);
    REQUIRE(kernel);
    CHECK(kernel->config.find("strassen") != std::string::npos);
    std::vector<float> c(size_t(rows() * shape.n) + guard, -777.0f);
    kernel->run({a.data(), panels.data(), bias.data(), residual.data(), c.data()}, {}, pieces);
    for (size_t at = c.size() - guard; at < c.size(); ++at)
      REQUIRE(c[at] == -777.0f);
    return c;
  }

  /// The largest error in a row, over the sum of magnitudes that a plain sum's error is in proportion to.
  double errorOf(int64_t row, const std::vector<float> &c) const {
    double worst = 0;
    const float *matrix = &b[size_t(row / shape.m * shape.k * shape.n)];
    int64_t rowOfA = shape.sharesA ? row % shape.m : row;
    for (int64_t n = 0; n < shape.n; ++n) {
      double sum = 0, squares = 0;
      for (int64_t k = 0; k < shape.k; ++k) {
        if (shape.isMaskedLhs && (row % shape.m + k) % 2)
          continue;
        double product = double(a[size_t(rowOfA * shape.k + k)]) * matrix[k * shape.n + n];
        sum += product;
        squares += product * product;
      }
      size_t at = size_t(row * shape.n + n);
      sum += (shape.hasBias ? bias[size_t(n)] : 0) + (shape.hasResidual ? residual[at] : 0);
      worst = larger(worst, std::abs(sum - c[at]) / (std::sqrt(squares) + 1e-30));
    }
    return worst;
  }
};

/// Eight times what plain sums have, at most.
double mostError(int64_t k) { return 8 * 0x1p-24 * std::sqrt(double(k)); }

bool areSame(const std::vector<float> &one, const std::vector<float> &other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size() * sizeof(float)) == 0;
}

void scaleRow(Product &p, int64_t row, float factor) {
  for (int64_t k = 0; k < p.shape.k; ++k)
    p.a[size_t(row * p.shape.k + k)] *= factor;
}

} // namespace

TEST_CASE("Strassen's products are right for any number of rows, blocks of terms and of columns", "[contraction]") {
  for (Matmul shape : {Matmul{.m = 28, .n = 64, .k = 32}, Matmul{.m = 56, .n = 128, .k = 96},
                       Matmul{.m = 101, .n = 192, .k = 64, .hasBias = true},
                       Matmul{.m = 112, .n = 320, .k = 256, .hasBias = true, .hasResidual = true},
                       Matmul{.m = 96, .n = 256, .k = 1536, .hasBias = true}, Matmul{.m = 197, .n = 256, .k = 3072},
                       // Large enough for levels that store sums of columns.
                       Matmul{.m = 96, .n = 448, .k = 416}, Matmul{.m = 129, .n = 768, .k = 768, .hasBias = true},
                       Matmul{.m = 66, .n = 768, .k = 1536, .hasBias = true, .hasResidual = true},
                       // With a last block of fewer terms; with rows that are computed; of several matrices.
                       Matmul{.m = 96, .n = 256, .k = 1600, .hasResidual = true},
                       Matmul{.m = 130, .n = 768, .k = 1600, .isMaskedLhs = true},
                       Matmul{.batch = 3, .m = 97, .n = 384, .k = 416, .hasBias = true, .isMaskedLhs = true},
                       Matmul{.batch = 3, .m = 130, .n = 768, .k = 768, .sharesA = true}})
    for (const cpu::CpuLevel *level : runnableLevels()) {
      INFO("level " << level->name.str() << " m " << shape.m << " n " << shape.n << " k " << shape.k);
      Product product(shape);
      std::vector<float> c = product.run(*level, 3);
      double worst = 0;
      for (int64_t row = 0; row < product.rows(); row += 3)
        worst = larger(worst, product.errorOf(row, c));
      CHECK(worst < mostError(shape.k));
    }
}

TEST_CASE("rows that Strassen's sums would spoil, or be spoilt by, are multiplied plainly", "[contraction]") {
  auto shape = GENERATE(Matmul{.m = 112, .n = 128, .k = 256}, Matmul{.m = 128, .n = 768, .k = 768});
  for (const cpu::CpuLevel *level : runnableLevels()) {
    INFO("level " << level->name.str());
    Product product(shape);
    scaleRow(product, 3, 1e6f);
    scaleRow(product, 40, 1e-6f);
    scaleRow(product, 41, 0.0f);
    scaleRow(product, 20, 0.0f); // as large as those beside it in one element alone
    product.a[size_t(20 * shape.k + 5)] = 1.0f;
    product.a[size_t(75 * shape.k + 7)] = NAN;
    product.a[size_t(100 * shape.k + 8)] = INFINITY;
    std::vector<float> c = product.run(*level, 2);
    for (int64_t row = 0; row < shape.m; ++row) {
      INFO("row " << row);
      bool isFinite = row != 75 && row != 100;
      for (int64_t n = 0; n < shape.n; ++n)
        REQUIRE(std::isfinite(c[size_t(row * shape.n + n)]) == isFinite);
      if (isFinite)
        CHECK(product.errorOf(row, c) < (row == 20 ? 0x1p-24 : mostError(shape.k)));
    }
  }
}

TEST_CASE("Strassen's products do not depend on how rows and columns are cut into tasks", "[contraction]") {
  // A block of rows and several; rows that are computed; matrices with rows of their own, and with the same ones.
  auto shape = GENERATE(Matmul{.m = 128, .n = 768, .k = 768}, Matmul{.m = 197, .n = 512, .k = 256},
                        Matmul{.m = 197, .n = 768, .k = 1536}, Matmul{.m = 1123, .n = 320, .k = 768},
                        Matmul{.m = 131, .n = 768, .k = 768, .isMaskedLhs = true},
                        Matmul{.batch = 3, .m = 131, .n = 768, .k = 768},
                        Matmul{.batch = 5, .m = 130, .n = 768, .k = 768, .sharesA = true});
  for (const cpu::CpuLevel *level : runnableLevels()) {
    Product product(shape);
    std::vector<float> whole = product.run(*level, 1);
    for (int64_t pieces : {2, 3, 5, 8, 16, 23}) {
      INFO("level " << level->name.str() << " m " << shape.m << " batch " << shape.batch << " pieces " << pieces);
      CHECK(areSame(whole, product.run(*level, pieces)));
    }
    // As many blocks of rows as all levels compute so; blocks of terms would be other sums.
    product.numbers = {{"m_blocks", shape.m / 64}, {"n_blocks", 5}};
    for (int64_t pieces : {1, 3, 16}) {
      INFO("level " << level->name.str() << " m " << shape.m << " batch " << shape.batch << " in blocks, pieces "
                    << pieces);
      CHECK(areSame(whole, product.run(*level, pieces)));
    }
  }
}

TEST_CASE("products ahead of an attention are those of its head, whose matrices have the same rows", "[contraction]") {
  constexpr int64_t heads = 4, rows = 112, size = 256, terms = 384;
  std::string text = R"(loop.kernel @ahead(%x: !loop.buffer<[43008] x f32>, %w: !loop.buffer<[393216] x f32>,
      %q: !loop.buffer<[114688] x f32>, %k: !loop.buffer<[114688] x f32>, %y: !loop.buffer<[114688] x f32>)
      attributes {symbols = [], parallel = 1 : i64, arguments_written = array<i64: 4>} {
    %v = loop.buffer : <[28672] x f32>
    loop.contraction [4, 112, 256, 384] batch 1 m 1 n 1 k 1 lhs {
      %0 = loop.load %x[384*d1 + d3] : !loop.buffer<[43008] x f32>
      loop.yield %0 : f32
    } rhs {
      %0 = loop.panels %w {strassen} : !loop.buffer<[393216] x f32> -> f32
      loop.yield %0 : f32
    } epilogue {
    ^bb0(%sum: f32):
      loop.store %sum, %v[256*d1 + d2] : !loop.buffer<[28672] x f32>
    }
    loop.attention [4, 112, 112, 256, 256] batch 1 q {
      %0 = loop.load %q [28672*d0 + 256*d1 + d3] : <[114688] x f32>
      loop.yield %0 : f32
    } k {
      %0 = loop.load %k [28672*d0 + 256*d2 + d3] : <[114688] x f32>
      loop.yield %0 : f32
    } v {
      %0 = loop.load %v [256*d2 + d4] : <[28672] x f32>
      loop.yield %0 : f32
    } score {
    ^bb0(%s: f32):
      loop.yield %s : f32
    } epilogue {
    ^bb0(%r: f32):
      loop.store %r, %y [28672*d0 + 256*d1 + d4] : <[114688] x f32>
    }
  })";
  // Queries of zeros see all keys alike: a result is the mean of the rows of x times the head's matrix.
  std::vector<float> x = randomFloats(rows * terms, 1), w = randomFloats(heads * terms * size, 2);
  std::vector<float> q(heads * rows * size), k = randomFloats(heads * rows * size, 3), panels;
  for (int64_t head = 0; head < heads; ++head)
    llvm::append_range(panels, packPanels(&w[size_t(head * terms * size)], terms, size, size, 1));
  for (const cpu::CpuLevel *level : runnableLevels())
    for (int64_t blocks : {1, 2, 3}) {
      INFO("level " << level->name.str() << " blocks " << blocks);
      auto kernel = CompiledKernel::share(text, *level, {{"m_blocks", blocks}});
      REQUIRE(kernel);
      std::vector<float> y(heads * rows * size);
      kernel->run({x.data(), panels.data(), q.data(), k.data(), y.data()}, {}, 3);
      double worst = 0;
      for (int64_t head = 0; head < heads; ++head)
        for (int64_t column = 0; column < size; ++column) {
          double mean = 0;
          for (int64_t row = 0; row < rows; ++row)
            for (int64_t term = 0; term < terms; ++term)
              mean += double(x[size_t(row * terms + term)]) * w[size_t((head * terms + term) * size + column)] / rows;
          for (int64_t row = 0; row < rows; row += 37)
            worst = larger(worst, std::abs(mean - y[size_t((head * rows + row) * size + column)]));
        }
      CHECK(worst < mostError(terms));
    }
}
