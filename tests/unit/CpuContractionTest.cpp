// Matrix products and convolutions as generated for every level that this processor runs, against plain loops.
#include "tests/unit/TemplateKernels.h"
#include "tests/unit/TemplateRunner.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace ptc;
using namespace ptc::test;

namespace {

double activate(Activation activation, double x) {
  if (activation == Activation::Relu)
    return x < 0 ? 0 : x;
  if (activation == Activation::Gelu)
    return 0.5 * x * (1 + std::erf(x * 0.70710678118654752));
  return x;
}

void checkMatmul(const Matmul &s, const cpu::CpuLevel &level, const Numbers &numbers = {}) {
  INFO("level " << level.name.str() << " batch " << s.batch << " m " << s.m << " n " << s.n << " k " << s.k
                << " packed " << s.isPacked << " tA " << s.transposeA << " tB " << s.transposeB << " tC "
                << s.transposeC << " symbols " << s.symbolicM << s.symbolicN << s.symbolicK);
  auto a = randomFloats(s.batch * s.m * s.k, 1), b = randomFloats(s.batch * s.k * s.n, 2);
  auto bias = randomFloats(s.n, 3), residual = randomFloats(s.batch * s.m * s.n, 4);
  std::vector<float> stored;
  for (int64_t i = 0; i < s.batch && s.isPacked; ++i) {
    auto panels = packPanels(b.data() + i * s.k * s.n, s.k, s.n, s.n, 1);
    stored.insert(stored.end(), panels.begin(), panels.end());
  }
  if (!s.isPacked)
    stored = b;
  auto kernel = CompiledKernel::share(s.text(), level, numbers);
  REQUIRE(kernel);
  const size_t guard = 64;
  std::vector<float> c(size_t(s.batch * s.m * s.n) + guard, -777.0f);
  kernel->run({a.data(), stored.data(), bias.data(), residual.data(), c.data()}, s.symbols(), 3);
  double worst = 0;
  for (int64_t i = 0; i < s.batch; ++i)
    for (int64_t m = 0; m < s.m; ++m)
      for (int64_t n = 0; n < s.n; ++n) {
        double sum = 0, scale = 1;
        for (int64_t k = 0; k < s.k; ++k) {
          if (s.isMaskedLhs && (m + k) % 2)
            continue;
          double x = a[size_t(s.transposeA ? (i * s.k + k) * s.m + m : (i * s.m + m) * s.k + k)];
          double y = b[size_t(s.transposeB ? (i * s.n + n) * s.k + k : (i * s.k + k) * s.n + n)];
          sum += x * y;
          scale += std::abs(x * y);
        }
        size_t at = size_t(s.transposeC ? (i * s.n + n) * s.m + m : (i * s.m + m) * s.n + n);
        sum += s.hasBias ? bias[size_t(n)] : 0;
        sum += s.hasResidual ? residual[at] : 0;
        worst = larger(worst, std::abs(activate(s.activation, sum) - c[at]) / scale);
      }
  CHECK(worst < 1e-6 * std::sqrt(double(s.k) + 16));
  for (size_t at = c.size() - guard; at < c.size(); ++at)
    REQUIRE(c[at] == -777.0f);
}

void checkMatmul(const Matmul &shape) {
  for (const cpu::CpuLevel *level : plannedLevels())
    checkMatmul(shape, *level);
}

void checkConvolution(const Convolution &s, const cpu::CpuLevel &level, const Numbers &numbers = {}) {
  INFO("level " << level.name.str() << " " << s.images << "x" << s.height << "x" << s.width << " groups " << s.groups
                << " " << s.in << " -> " << s.out << " kernel " << s.kernelHeight << "x" << s.kernelWidth << " stride "
                << s.stride << " dilation " << s.dilation << " pad " << s.pad << " first " << s.isChannelsFirst
                << s.isInputChannelsFirst);
  int64_t terms = s.kernelHeight * s.kernelWidth * s.in, oh = s.outHeight(), ow = s.outWidth();
  auto x = randomFloats(s.images * s.height * s.width * s.groups * s.in, 1);
  auto w = randomFloats(s.groups * s.out * terms, 2); // [group][out][kh][kw][in]
  auto bias = randomFloats(s.groups * s.out, 3), residual = randomFloats(s.images * oh * ow * s.groups * s.out, 4);
  std::vector<float> panels;
  for (int64_t g = 0; g < s.groups; ++g) {
    auto packed = packPanels(w.data() + g * s.out * terms, terms, s.out, 1, terms);
    panels.insert(panels.end(), packed.begin(), packed.end());
  }
  auto kernel = CompiledKernel::share(s.text(), level, numbers);
  REQUIRE(kernel);
  std::vector<float> y(residual.size(), -777.0f);
  std::vector<int64_t> symbols(s.isFreeBatch ? 1 : 0, s.images);
  kernel->run({x.data(), panels.data(), bias.data(), residual.data(), y.data()}, symbols, 2);
  double worst = 0;
  for (int64_t image = 0; image < s.images; ++image)
    for (int64_t oy = 0; oy < oh; ++oy)
      for (int64_t ox = 0; ox < ow; ++ox)
        for (int64_t c = 0; c < s.groups * s.out; ++c) {
          double sum = bias[size_t(c)];
          for (int64_t ky = 0; ky < s.kernelHeight; ++ky)
            for (int64_t kx = 0; kx < s.kernelWidth; ++kx) {
              int64_t iy = oy * s.stride + ky * s.dilation - s.pad, ix = ox * s.stride + kx * s.dilation - s.padLeft();
              if (iy < 0 || iy >= s.height || ix < 0 || ix >= s.width)
                continue;
              for (int64_t i = 0; i < s.in; ++i)
                sum += double(x[size_t(s.inputIndex(image, iy, ix, c / s.out * s.in + i))]) *
                       w[size_t(c * terms + (ky * s.kernelWidth + kx) * s.in + i)];
            }
          size_t at = size_t(s.outputIndex(image, oy, ox, c));
          sum += s.hasResidual ? residual[at] : 0;
          sum = activate(s.hasRelu ? Activation::Relu : s.hasGelu ? Activation::Gelu : Activation::None, sum);
          worst = larger(worst, std::abs(sum - y[at]));
        }
  CHECK(worst < 2e-6 * std::sqrt(double(terms)) * 4);
}

void checkConvolution(const Convolution &shape) {
  for (const cpu::CpuLevel *level : plannedLevels())
    checkConvolution(shape, *level);
}

} // namespace

TEST_CASE("a product by a packed weight is right for any extents", "[contraction]") {
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                         {1, 17, 5},
                         {2, 16, 1},
                         {3, 33, 40},
                         {5, 64, 7},
                         {7, 80, 64},
                         {13, 100, 31},
                         {25, 8, 19},
                         {30, 24, 12},
                         {29, 48, 16},
                         {31, 144, 20},
                         {61, 129, 33},
                         {8, 196, 40},
                         {20, 200, 33},
                         {7, 333, 12},
                         {197, 72, 48},
                         {1, 300, 257}})
    checkMatmul({.m = m, .n = n, .k = k, .hasBias = true});
}

TEST_CASE("a long k runs in blocks", "[contraction]") {
  checkMatmul({.m = 37, .n = 70, .k = 1100, .hasBias = true, .hasResidual = true});
  checkMatmul({.m = 33, .n = 40, .k = 2050, .isPacked = false, .activation = Activation::Relu});
}

TEST_CASE("a weight whose tiles outgrow a cache is right for a few rows", "[contraction]") {
  for (int64_t rows : {5, 8, 13, 16, 28})
    checkMatmul({.m = rows, .n = 70, .k = 2064, .hasBias = true});
  checkMatmul({.m = 16, .n = 140, .k = 2048, .hasResidual = true, .activation = Activation::Gelu});
}

TEST_CASE("operands may lie in any order", "[contraction]") {
  for (bool transposeA : {false, true})
    for (bool transposeB : {false, true})
      for (bool transposeC : {false, true})
        checkMatmul({.batch = 2,
                     .m = 35,
                     .n = 37,
                     .k = 29,
                     .isPacked = false,
                     .transposeA = transposeA,
                     .transposeB = transposeB,
                     .transposeC = transposeC,
                     .hasResidual = true});
  checkMatmul({.m = 50, .n = 40, .k = 30, .transposeC = true, .hasBias = true});
}

TEST_CASE("narrow products are right", "[contraction]") {
  checkMatmul({.batch = 3, .m = 40, .n = 1, .k = 33, .isPacked = false});
  checkMatmul({.batch = 2, .m = 1, .n = 40, .k = 33, .isPacked = false});
  checkMatmul({.m = 3, .n = 4, .k = 50, .isPacked = false, .transposeB = true});
}

TEST_CASE("symbolic extents take any value", "[contraction]") {
  for (int64_t m : {1, 5, 6, 100, 193})
    checkMatmul({.m = m, .n = 72, .k = 40, .hasBias = true, .symbolicM = "m"});
  for (int64_t length : {1, 15, 64, 130})
    checkMatmul({.batch = 2,
                 .m = length,
                 .n = length,
                 .k = 24,
                 .isPacked = false,
                 .transposeB = true,
                 .symbolicM = "m",
                 .symbolicN = "n"});
  for (int64_t length : {1, 100, 1600})
    checkMatmul({.m = 20, .n = 24, .k = length, .isPacked = false, .symbolicK = "k"});
}

TEST_CASE("prologues and epilogues run on tiles", "[contraction]") {
  checkMatmul({.m = 30,
               .n = 40,
               .k = 50,
               .hasBias = true,
               .hasResidual = true,
               .isMaskedLhs = true,
               .activation = Activation::Relu});
  checkMatmul({.m = 30, .n = 72, .k = 50, .hasBias = true, .activation = Activation::Gelu});
}

TEST_CASE("convolutions with strides, dilations, pads and groups", "[contraction]") {
  checkConvolution({.height = 9, .width = 11, .in = 16, .out = 32, .kernelHeight = 3, .kernelWidth = 3, .pad = 1});
  checkConvolution({.images = 2,
                    .height = 13,
                    .width = 10,
                    .in = 24,
                    .out = 20,
                    .kernelHeight = 3,
                    .kernelWidth = 3,
                    .stride = 2,
                    .pad = 1,
                    .hasResidual = true,
                    .hasRelu = true});
  checkConvolution(
      {.height = 12, .width = 12, .in = 8, .out = 16, .kernelHeight = 3, .kernelWidth = 3, .dilation = 2, .pad = 2});
  // Rows of zeros alone are left out.
  checkConvolution(
      {.height = 14, .width = 14, .in = 40, .out = 32, .kernelHeight = 3, .kernelWidth = 3, .dilation = 12, .pad = 12});
  checkConvolution({.images = 2,
                    .height = 15,
                    .width = 9,
                    .in = 64,
                    .out = 20,
                    .kernelHeight = 3,
                    .kernelWidth = 3,
                    .stride = 2,
                    .dilation = 6,
                    .pad = 6,
                    .isChannelsFirst = true});
  checkConvolution({.height = 10, .width = 10, .groups = 3, .in = 8, .out = 5, .kernelHeight = 3, .kernelWidth = 3});
  checkConvolution(
      {.images = 2, .height = 8, .width = 8, .in = 20, .out = 40, .kernelHeight = 1, .kernelWidth = 1, .stride = 2});
  checkConvolution({.height = 7, .width = 7, .in = 512, .out = 48, .kernelHeight = 3, .kernelWidth = 3, .pad = 1});
  // Runs that would crowd few sets of the first-level cache are copied.
  checkConvolution({.images = 8,
                    .height = 20,
                    .width = 100,
                    .in = 32,
                    .out = 70,
                    .kernelHeight = 20,
                    .kernelWidth = 1,
                    .stride = 100});
}

TEST_CASE("convolutions of images with few channels, in either layout", "[contraction]") {
  for (bool first : {false, true})
    checkConvolution({.height = 23,
                      .width = 19,
                      .in = 3,
                      .out = 16,
                      .kernelHeight = 7,
                      .kernelWidth = 7,
                      .stride = 2,
                      .pad = 3,
                      .isInputChannelsFirst = first,
                      .hasRelu = true});
  // Rows are copied in whole vectors, the last ones end with the image.
  for (int64_t pad : {0, 1})
    for (int64_t kernel : {3, 5})
      checkConvolution({.images = 2,
                        .height = 17,
                        .width = 21,
                        .in = 3,
                        .out = 32,
                        .kernelHeight = kernel,
                        .kernelWidth = kernel,
                        .stride = 2,
                        .pad = pad,
                        .isInputChannelsFirst = true,
                        .hasRelu = true});
  // Lines are long beside a tile: most tiles read the image where it is.
  for (int64_t stride : {1, 2})
    for (int64_t out : {16, 200})
      checkConvolution({.images = 2,
                        .height = 9,
                        .width = 99,
                        .in = 3,
                        .out = out,
                        .kernelHeight = 3,
                        .kernelWidth = 5,
                        .stride = stride,
                        .pad = 2,
                        .isInputChannelsFirst = true,
                        .hasRelu = true});
  checkConvolution({.height = 17,
                    .width = 18,
                    .in = 5,
                    .out = 24,
                    .kernelHeight = 3,
                    .kernelWidth = 3,
                    .pad = 1,
                    .isChannelsFirst = true,
                    .hasResidual = true});
  checkConvolution({.images = 2,
                    .height = 8,
                    .width = 6,
                    .in = 20,
                    .out = 40,
                    .kernelHeight = 1,
                    .kernelWidth = 1,
                    .isChannelsFirst = true});
}

TEST_CASE("convolutions with few outputs", "[contraction]") {
  for (int64_t out : {1, 4, 8})
    for (int64_t in : {8, 12, 32})
      for (int64_t stride : {1, 2})
        checkConvolution({.images = 2,
                          .height = 9,
                          .width = 37,
                          .in = in,
                          .out = out,
                          .kernelHeight = 3,
                          .kernelWidth = 5,
                          .stride = stride,
                          .pad = 2,
                          .hasRelu = true});
}

TEST_CASE("several outputs of few channels are a row of the tile", "[contraction]") {
  for (auto [out, height, width, stride] :
       {std::array<int64_t, 4>{8, 3, 39, 1}, {6, 1, 7, 2}, {7, 5, 5, 3}, {5, 3, 3, 1}})
    for (bool isFree : {false, true})
      checkConvolution({.images = 2,
                        .height = 3 + stride * 8,
                        .width = width - (isFree ? 4 : 0) + stride * (isFree ? 83 : 71),
                        .in = stride == 2 ? 24 : 8,
                        .out = out,
                        .kernelHeight = height,
                        .kernelWidth = width,
                        .stride = stride,
                        .pad = isFree ? 2 : 0,
                        .hasResidual = true,
                        .hasRelu = !isFree,
                        .hasGelu = isFree,
                        .isFreeBatch = isFree});
  // Rows of the window above and below the image are read from zeros, as far as all outputs of a row reach.
  for (auto [window, stride] : {std::array<int64_t, 2>{16, 1}, {32, 1}, {48, 2}, {16, 8}})
    checkConvolution({.images = 2,
                      .height = 32,
                      .width = window + stride * 59,
                      .in = 1,
                      .out = 8,
                      .kernelHeight = 5,
                      .kernelWidth = window,
                      .stride = stride,
                      .pad = 2,
                      .padsLines = false,
                      .isFreeBatch = true});
  // Signals; a window of one pixel; outputs that share few pixels.
  for (auto [window, stride] : {std::array<int64_t, 2>{1, 1}, {64, 2}, {64, 60}})
    checkConvolution({.images = 2,
                      .height = 1,
                      .width = window + stride * 255,
                      .in = window == 1 ? 16 : 1,
                      .out = 8,
                      .kernelHeight = 1,
                      .kernelWidth = window,
                      .stride = stride});
}

TEST_CASE("outputs beside each other in a row of the tile read no pixels but their own", "[contraction]") {
  Convolution s{.height = 4, .width = 80, .in = 8, .out = 8, .kernelHeight = 1, .kernelWidth = 9};
  constexpr int64_t infinite = 41;
  std::vector<float> x(size_t(s.height * s.width * s.in), 1.0f), w(size_t(s.out * s.kernelWidth * s.in), 1.0f);
  x[infinite * s.in] = INFINITY;
  auto panels = packPanels(w.data(), s.kernelWidth * s.in, s.out, 1, s.kernelWidth * s.in);
  std::vector<float> zeros(size_t(s.outHeight() * s.outWidth() * s.out)), y(zeros.size());
  for (const cpu::CpuLevel *level : plannedLevels()) {
    auto kernel = CompiledKernel::share(s.text(), *level);
    REQUIRE(kernel);
    kernel->run({x.data(), panels.data(), zeros.data(), zeros.data(), y.data()}, {}, 1);
    for (int64_t at = 0; at < s.outWidth(); ++at)
      REQUIRE(std::isfinite(y[size_t(at * s.out)]) == (infinite < at || infinite >= at + s.kernelWidth));
  }
}

TEST_CASE("rows of a tile share pixels where a vector is all columns", "[contraction]") {
  // {columns, the window's rows and columns, stride, dilation, outputs of a line}
  for (auto [out, height, width, stride, dilation, across] : {std::array<int64_t, 6>{16, 3, 3, 1, 1, 28},
                                                              {12, 3, 3, 2, 1, 14},
                                                              {16, 1, 7, 1, 1, 9},
                                                              {16, 5, 5, 3, 1, 11},
                                                              {9, 3, 3, 1, 2, 20},
                                                              {8, 3, 3, 1, 1, 20},
                                                              {7, 5, 3, 2, 1, 16},
                                                              {16, 2, 2, 1, 1, 17},
                                                              {16, 3, 9, 1, 1, 14}})
    for (bool isFree : {false, true})
      checkConvolution({.images = 2,
                        .height = (height - 1) * dilation + 1 + stride * 4 - 2,
                        .width = (width - 1) * dilation + 1 + stride * (across - 1) - 2,
                        .in = out <= 8 ? 8
                              : isFree ? 13
                                       : 16,
                        .out = out,
                        .kernelHeight = height,
                        .kernelWidth = width,
                        .stride = stride,
                        .dilation = dilation,
                        .pad = 1,
                        .hasResidual = true,
                        .hasGelu = isFree,
                        .isFreeBatch = isFree});
}

TEST_CASE("tiles of one height where an image's pixels are a multiple of it, for any batch", "[contraction]") {
  for (int64_t images : {0, 3})
    for (auto [height, width, out] : {std::array<int64_t, 3>{14, 14, 16}, {11, 6, 40}})
      checkConvolution({.images = images,
                        .height = height,
                        .width = width,
                        .in = 16,
                        .out = out,
                        .kernelHeight = 3,
                        .kernelWidth = 3,
                        .pad = 1,
                        .hasRelu = true,
                        .isFreeBatch = true});
}

TEST_CASE("convolutions whose sums are so long that they run in blocks, in either layout", "[contraction]") {
  for (bool first : {false, true})
    for (auto [in, height, width] : {std::array<int64_t, 3>{114, 3, 3}, {128, 3, 3}, {344, 1, 3}, {260, 2, 2}})
      checkConvolution({.images = 2,
                        .height = 7,
                        .width = 6,
                        .in = in,
                        .out = 24,
                        .kernelHeight = height,
                        .kernelWidth = width,
                        .pad = 1,
                        .isChannelsFirst = first});
}

TEST_CASE("sums of whole pixels are turned for a result with channels first", "[contraction]") {
  for (int64_t out : {16, 19, 40, 96, 130})
    for (int64_t in : {3, 8})
      checkConvolution({.height = 17,
                        .width = 23,
                        .in = in,
                        .out = out,
                        .kernelHeight = 3,
                        .kernelWidth = 5,
                        .stride = 2,
                        .pad = 1,
                        .isChannelsFirst = true,
                        .isInputChannelsFirst = in == 3,
                        .hasResidual = out != 40,
                        .hasRelu = true});
  // Few pixels, an epilogue of functions, groups, tiles in lines, sums in blocks.
  checkConvolution({.height = 4,
                    .width = 5,
                    .in = 12,
                    .out = 33,
                    .kernelHeight = 2,
                    .kernelWidth = 2,
                    .isChannelsFirst = true,
                    .hasGelu = true});
  checkConvolution({.height = 28,
                    .width = 28,
                    .groups = 2,
                    .in = 40,
                    .out = 24,
                    .kernelHeight = 3,
                    .kernelWidth = 3,
                    .dilation = 12,
                    .pad = 12,
                    .isChannelsFirst = true});
  checkConvolution({.height = 9,
                    .width = 8,
                    .in = 260,
                    .out = 70,
                    .kernelHeight = 3,
                    .kernelWidth = 3,
                    .pad = 1,
                    .isChannelsFirst = true,
                    .hasResidual = true});
}

TEST_CASE("products are right whatever sizes tuning asks for", "[contraction][tuning]") {
  Matmul shapes[] = {{.m = 70, .n = 100, .k = 600, .hasBias = true},
                     {.m = 1, .n = 90, .k = 700, .hasBias = true},
                     {.m = 40, .n = 64, .k = 500, .isPacked = false, .transposeB = true},
                     {.m = 33, .n = 50, .k = 400, .transposeC = true, .hasResidual = true},
                     {.m = 23, .n = 49, .k = 100, .hasBias = true, .symbolicM = "rows"}};
  for (const Matmul &shape : shapes)
    for (const cpu::CpuLevel *level : lowestAndHighest()) {
      std::vector<Numbers> alternatives = alternativesOf(shape.text(), *level);
      REQUIRE(!alternatives.empty());
      for (const Numbers &numbers : alternatives)
        checkMatmul(shape, *level, numbers);
      for (int64_t extreme : {INT64_MIN, INT64_MAX})
        checkMatmul(shape, *level,
                    {{"m_blocks", extreme}, {"n_blocks", extreme}, {"k_blocks", extreme}, {"prefetch", extreme}});
      for (auto [rows, panels] : {std::pair{INT64_MIN, INT64_MAX}, std::pair<int64_t, int64_t>{0, 0}})
        checkMatmul(shape, *level, {{"tile_rows", rows}, {"tile_panels", panels}});
    }
  for (const cpu::CpuLevel *level : lowestAndHighest()) {
    Convolution shape{.height = 13, .width = 11, .in = 64, .out = 48, .kernelHeight = 3, .kernelWidth = 3, .pad = 1};
    for (const Numbers &numbers : alternativesOf(shape.text(), *level))
      checkConvolution(shape, *level, numbers);
    // Rows share pixels if their number divides the line; tiles lie in lines of which zeros are left out.
    Convolution narrow{
        .height = 5, .width = 28, .groups = 2, .in = 16, .out = 16, .kernelHeight = 3, .kernelWidth = 3, .pad = 1};
    Convolution dilated{
        .height = 28, .width = 28, .in = 32, .out = 32, .kernelHeight = 3, .kernelWidth = 3, .dilation = 12, .pad = 12};
    for (int64_t rows : {5, 7, 14})
      for (const Convolution &each : {narrow, dilated})
        checkConvolution(each, *level, {{"tile_rows", rows}, {"tile_panels", 1}});
  }
}
