// Convolutions by Winograd's algorithm, as generated for every level that this processor runs, against sums in f64.
#include "ir/loop/Winograd.h"
#include "tests/unit/TemplateKernels.h"
#include "tests/unit/TemplateRunner.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

using namespace ptc;
using namespace ptc::test;

namespace {

loop::WinogradTile tileOf(const Convolution &s) {
  bool isSquare = s.kernelHeight == 3 && s.kernelWidth == 3;
  return {.outputs = s.winograd, .taps = s.kernelWidth, .sides = isSquare ? 2 : 1, .stride = s.stride};
}

int64_t elementsOf(const Convolution &s) { return s.kernelHeight * s.kernelWidth; }

// Of the largest output, as ir/loop/Winograd.h tells for a few hundred channels.
double errorBound(loop::WinogradTile tile) { return tile.size() == 4 || tile.stride == 2 ? 1.5e-6 : 5e-6; }

/// The stored form of w [out][kernelHeight][kernelWidth][in]: of lines, rows of the window are slices.
std::vector<float> transformedPanels(const Convolution &s, const std::vector<float> &w) {
  int64_t slices = elementsOf(s) / tileOf(s).elements(), panels = (s.out + 15) / 16, slice = s.in * 16;
  std::vector<float> stored(size_t(tileOf(s).positions() * slices * panels * slice), 0.0f);
  for (int64_t element = 0; element < elementsOf(s); ++element) {
    auto packed = packPanels(w.data() + element * s.in, s.in, s.out, 1, elementsOf(s) * s.in);
    int64_t tap = element % tileOf(s).elements(), number = element / tileOf(s).elements();
    for (int64_t panel = 0; panel < panels; ++panel)
      std::copy_n(packed.begin() + panel * slice, slice,
                  stored.begin() + ((tap * panels + panel) * slices + number) * slice);
  }
  loop::transformWinogradWeights(tileOf(s), stored);
  return stored;
}

double exactOutput(const Convolution &s, const std::vector<float> &x, const std::vector<float> &w, int64_t image,
                   int64_t oy, int64_t ox, int64_t channel) {
  double sum = 0;
  for (int64_t ky = 0; ky < s.kernelHeight; ++ky)
    for (int64_t kx = 0; kx < s.kernelWidth; ++kx) {
      int64_t iy = oy * s.stride + ky * s.dilation - s.pad, ix = ox * s.stride + kx * s.dilation - s.padLeft();
      if (iy < 0 || iy >= s.height || ix < 0 || ix >= s.width)
        continue;
      for (int64_t i = 0; i < s.in; ++i)
        sum += double(x[size_t(s.inputIndex(image, iy, ix, i))]) *
               w[size_t((channel * elementsOf(s) + ky * s.kernelWidth + kx) * s.in + i)];
    }
  return sum;
}

void check(const Convolution &s, const cpu::CpuLevel &level, const Numbers &numbers = {}) {
  INFO("level " << level.name.str() << " tile " << s.winograd << " of " << s.kernelHeight << "x" << s.kernelWidth << " "
                << s.images << "x" << s.height << "x" << s.width << " " << s.in << " -> " << s.out << " pads " << s.pad
                << ", " << s.pads() - s.pad);
  auto x = randomFloats(s.images * s.height * s.width * s.in, 1), w = randomFloats(s.out * elementsOf(s) * s.in, 2);
  auto bias = randomFloats(s.out, 3), residual = randomFloats(s.images * s.outHeight() * s.outWidth() * s.out, 4);
  auto panels = transformedPanels(s, w);
  auto kernel = CompiledKernel::share(s.text(), level, numbers);
  REQUIRE(kernel);
  std::vector<float> y(residual.size(), -777.0f);
  std::vector<void *> buffers{x.data(), panels.data(), bias.data(), residual.data(), y.data()};
  kernel->run(buffers, {}, 1);
  double worst = 0, scale = 0;
  for (int64_t image = 0; image < s.images; ++image)
    for (int64_t oy = 0; oy < s.outHeight(); ++oy)
      for (int64_t ox = 0; ox < s.outWidth(); ++ox)
        for (int64_t channel = 0; channel < s.out; ++channel) {
          double sum = exactOutput(s, x, w, image, oy, ox, channel);
          scale = std::max(scale, std::abs(sum));
          size_t at = size_t(s.outputIndex(image, oy, ox, channel));
          sum += bias[size_t(channel)] + (s.hasResidual ? residual[at] : 0);
          worst = larger(worst, std::abs((s.hasRelu ? std::max(sum, 0.0) : sum) - y[at]));
        }
  CHECK(worst <= errorBound(tileOf(s)) * std::max(scale, 1.0));
  // Any cut into pieces, that is any number of threads, gives the same bits.
  std::vector<float> whole = y;
  kernel->run(buffers, {}, 3);
  CHECK(std::memcmp(whole.data(), y.data(), y.size() * sizeof(float)) == 0);
}

void check(Convolution shape) {
  shape.kernelHeight = shape.kernelWidth = 3;
  for (int64_t tile : {2, 4}) {
    shape.winograd = tile;
    for (const cpu::CpuLevel *level : plannedLevels())
      check(shape, *level);
  }
}

void checkLines(Convolution shape) {
  for (auto [outputs, taps] : {std::array<int64_t, 2>{2, 3}, {4, 3}, {2, 5}, {4, 5}, {2, 7}}) {
    shape.winograd = outputs;
    shape.kernelWidth = taps;
    for (const cpu::CpuLevel *level : plannedLevels())
      check(shape, *level);
  }
}

} // namespace

TEST_CASE("Winograd convolutions are right for any size and padding", "[winograd]") {
  for (auto [height, width] : {std::array<int64_t, 2>{2, 2}, {3, 5}, {4, 4}, {7, 7}, {9, 14}, {13, 17}})
    for (auto [pad, padAfter] : {std::array<int64_t, 2>{1, 1}, {0, 0}, {0, 1}, {2, 0}}) {
      if (height + pad + padAfter < 4 || width + pad + padAfter < 4)
        continue;
      check({.height = height, .width = width, .in = 16, .out = 16, .pad = pad, .padAfter = padAfter});
    }
  check({.height = 37, .width = 53, .in = 20, .out = 24, .pad = 1, .hasRelu = true});
}

TEST_CASE("Winograd convolutions are right for any number of channels", "[winograd]") {
  for (auto [in, out] : {std::array<int64_t, 2>{1, 2}, {3, 17}, {19, 8}, {33, 40}, {64, 100}, {130, 72}})
    check({.height = 10, .width = 9, .in = in, .out = out, .pad = 1});
  check({.height = 6, .width = 6, .in = 512, .out = 48, .pad = 1});
}

TEST_CASE("Winograd convolutions of several images, with epilogues", "[winograd]") {
  check({.images = 3, .height = 11, .width = 6, .in = 24, .out = 40, .pad = 1, .hasResidual = true, .hasRelu = true});
  check({.images = 3, .height = 8, .width = 8, .in = 16, .out = 33, .pad = 0, .hasResidual = true});
}

TEST_CASE("Winograd convolutions of windows whose elements lie apart", "[winograd]") {
  // Phases of equal and unequal length, of fewer outputs than a tile has, and fewer outputs than phases.
  for (auto [height, width, dilation] :
       {std::array<int64_t, 3>{16, 8, 2}, {13, 17, 2}, {9, 14, 3}, {11, 6, 4}, {3, 5, 7}})
    for (int64_t pad : {dilation, int64_t(1)})
      if (std::min(height, width) + 2 * pad > 2 * dilation)
        check({.images = 2,
               .height = height,
               .width = width,
               .in = 20,
               .out = 24,
               .dilation = dilation,
               .pad = pad,
               .hasResidual = true,
               .hasRelu = true});
  check({.height = 15, .width = 12, .in = 16, .out = 16, .dilation = 2, .pad = 2, .isInputChannelsFirst = true});
}

TEST_CASE("Winograd convolutions of images with channels first", "[winograd]") {
  check({.height = 9, .width = 7, .in = 18, .out = 20, .pad = 1, .isInputChannelsFirst = true});
  check({.height = 9, .width = 7, .in = 18, .out = 20, .pad = 1, .isChannelsFirst = true, .hasResidual = true});
}

TEST_CASE("Winograd convolutions of outputs that lie two pixels apart", "[winograd]") {
  auto checkStrided = [](Convolution shape) {
    shape.kernelHeight = shape.kernelWidth = 3;
    shape.stride = 2;
    for (int64_t tile : {3, 4}) {
      shape.winograd = tile;
      for (const cpu::CpuLevel *level : plannedLevels())
        check(shape, *level);
    }
  };
  for (auto [height, width] : {std::array<int64_t, 2>{4, 4}, {7, 7}, {14, 9}, {15, 24}, {3, 40}})
    for (auto [pad, padAfter] : {std::array<int64_t, 2>{1, 1}, {0, 0}, {0, 1}, {2, 0}})
      checkStrided(
          {.images = 2, .height = height, .width = width, .in = 20, .out = 24, .pad = pad, .padAfter = padAfter});
  for (auto [in, out] : {std::array<int64_t, 2>{3, 17}, {33, 40}, {256, 100}})
    checkStrided({.height = 13, .width = 12, .in = in, .out = out, .pad = 1, .hasResidual = true, .hasRelu = true});
  checkStrided({.height = 9, .width = 8, .in = 18, .out = 20, .pad = 1, .isInputChannelsFirst = true});
}

TEST_CASE("Winograd convolutions of windows along one dim", "[winograd]") {
  for (auto [height, width] : {std::array<int64_t, 2>{1, 9}, {1, 64}, {3, 7}, {5, 22}})
    for (auto [pad, padAfter] : {std::array<int64_t, 2>{1, 1}, {0, 0}, {3, 0}})
      checkLines({.images = 2,
                  .height = height,
                  .width = width,
                  .in = 20,
                  .out = 40,
                  .pad = pad,
                  .padAfter = padAfter,
                  .hasRelu = true});
  // Rows of the window that are slices, and elements that lie apart.
  checkLines({.height = 6, .width = 17, .in = 16, .out = 24, .kernelHeight = 2, .pad = 1, .hasResidual = true});
  checkLines({.height = 3, .width = 40, .in = 33, .out = 17, .dilation = 3, .pad = 5, .hasResidual = true});
  checkLines({.height = 2, .width = 21, .in = 18, .out = 20, .pad = 1, .isInputChannelsFirst = true});
}

TEST_CASE("Winograd convolutions are right whatever sizes tuning asks for", "[winograd][tuning]") {
  for (int64_t tile : {2, 4})
    for (const cpu::CpuLevel *level : lowestAndHighest()) {
      Convolution shape{.height = 26, .width = 23, .in = 40, .out = 100, .kernelHeight = 3, .kernelWidth = 3, .pad = 1};
      shape.winograd = tile;
      std::vector<Numbers> alternatives = alternativesOf(shape.text(), *level);
      REQUIRE(!alternatives.empty());
      for (const Numbers &numbers : alternatives)
        check(shape, *level, numbers);
      for (int64_t extreme : {INT64_MIN, INT64_MAX})
        check(shape, *level, {{"block_tiles", extreme}, {"task_panels", extreme}});
    }
}

TEST_CASE("transformed weights are those of the exact matrices", "[winograd]") {
  // The sum over all positions of A^T (G g G^T * B^T d B) A for an impulse d is g: the first output of a pixel at (2,
  // 2) is g[2][2]. Here, G alone: rows at the points 0 and infinity.
  for (int64_t outputs : {2, 4}) {
    loop::WinogradTile tile{.outputs = outputs};
    size_t size = size_t(tile.size());
    std::vector<float> planes(size * size, 0.0f);
    for (size_t at = 0; at < 9; ++at)
      planes[at] = float(at + 1);
    loop::transformWinogradWeights(tile, planes);
    auto matrix = loop::getWinogradWeightMatrix(tile);
    CHECK(planes[0] == float(matrix[0] * matrix[0] * 1));
    CHECK(planes[size - 1] == float(matrix[0] * 3));
    CHECK(planes[size * size - 1] == 9.0f);
  }
}

TEST_CASE("weights of volumes are transformed along all three dims", "[winograd]") {
  for (int64_t outputs : {2, 4}) {
    loop::WinogradTile tile{.outputs = outputs, .depth = 2};
    auto sides = loop::getWinogradWeightMatrix(tile), deep = loop::getWinogradWeightMatrix(tile.alongDepth());
    int64_t size = tile.size(), planes = tile.planes(), plane = 70; // a block of weights and some
    REQUIRE(planes == 4);
    auto window = randomFloats(27 * plane, 1);
    std::vector<float> stored(size_t(tile.positions() * plane), 0.0f);
    std::copy(window.begin(), window.end(), stored.begin());
    loop::transformWinogradWeights(tile, stored);
    double worst = 0;
    for (int64_t position = 0; position < tile.positions(); ++position)
      for (int64_t e = 0; e < plane; ++e) {
        int64_t z = position / (size * size), y = position / size % size, x = position % size;
        double sum = 0;
        for (int64_t tap = 0; tap < 27; ++tap)
          sum += deep[size_t(3 * z + tap / 9)] * sides[size_t(3 * y + tap / 3 % 3)] * sides[size_t(3 * x + tap % 3)] *
                 double(window[size_t(tap * plane + e)]);
        worst = std::max(worst, std::abs(sum - double(stored[size_t(position * plane + e)])));
      }
    CHECK(worst < 1e-6);
  }
}

TEST_CASE("weights of a stride are those of its phases", "[winograd]") {
  for (int64_t outputs : {3, 4}) {
    loop::WinogradTile tile{.outputs = outputs, .stride = 2};
    auto matrix = loop::getWinogradWeightMatrix(tile), even = loop::getWinogradWeightMatrix(tile.phase(0));
    REQUIRE(int64_t(matrix.size()) == tile.size() * 3);
    for (int64_t row = 0; row < tile.size(); ++row) {
      bool isEven = row < outputs + 1;
      for (int64_t tap = 0; tap < 3; ++tap) {
        double ofEven = isEven && tap != 1 ? even[size_t(row * 2 + tap / 2)] : 0;
        CHECK(matrix[size_t(row * 3 + tap)] == (isEven || tap != 1 ? ofEven : 1));
      }
    }
  }
}

namespace {

/// Coefficients of the product of (x - point) over all points but one, from the constant one up.
std::vector<double> productBut(const std::vector<double> &points, size_t except) {
  std::vector<double> product{1};
  for (size_t at = 0; at < points.size(); ++at)
    if (at != except) {
      product.insert(product.begin(), 0);
      for (size_t k = 0; k + 1 < product.size(); ++k)
        product[k] -= points[at] * product[k + 1];
    }
  return product;
}

/// What a position contributes to output `k` for pixel `j`, without the weights: A[position][k] B[position][j].
double aroundWeight(const std::vector<double> &points, int64_t outputs, size_t position, int64_t k, int64_t j) {
  std::vector<double> row = productBut(points, position);
  double pixel = size_t(j) < row.size() ? row[size_t(j)] : 0;
  bool isInfinity = position == points.size();
  return pixel * (isInfinity ? double(k == outputs - 1) : std::pow(points[position], double(k)));
}

} // namespace

TEST_CASE("weights transformed along one dim give back integers", "[winograd]") {
  for (auto [outputs, taps] : {std::array<int64_t, 2>{2, 3}, {4, 3}, {2, 5}, {4, 5}, {2, 7}, {3, 2}, {4, 2}}) {
    loop::WinogradTile tile{.outputs = outputs, .taps = taps, .sides = 1};
    INFO("F(" << outputs << ", " << taps << ")");
    std::vector<double> points{0};
    for (double p : loop::getWinogradPoints(tile))
      points.insert(points.end(), {p, -p});
    std::vector<float> planes(size_t(tile.size()), 0.0f);
    for (int64_t tap = 0; tap < taps; ++tap)
      planes[size_t(tap)] = float(3 * tap - 7);
    std::vector<float> weights(planes.begin(), planes.begin() + taps);
    loop::transformWinogradWeights(tile, planes);
    for (int64_t k = 0; k < outputs; ++k)
      for (int64_t j = 0; j < tile.size(); ++j) {
        double sum = 0, size = 0;
        for (size_t position = 0; position < planes.size(); ++position) {
          double term = aroundWeight(points, outputs, position, k, j) * double(planes[position]);
          sum += term;
          size += std::abs(term);
        }
        double exact = j >= k && j - k < taps ? double(weights[size_t(j - k)]) : 0;
        CHECK(std::abs(sum - exact) <= size * 0x1p-24); // each weight is rounded once
      }
  }
}
