// Products and convolutions of bytes: sums are those of the integers, at every level, whether they are of pairs,
// with lists of what does not fit or as 16-bit integers (codegen/cpu/CpuContractionBytes.cpp), or of 4 x 4 outputs at
// once (CpuContractionPatches.cpp).
#include "tests/unit/TemplateRunner.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <tuple>

using namespace ptc;
using namespace ptc::test;

namespace {

/// y[image, oh, ow, out] = sum (x or `outside`) * w + bias[out], channels last, over windows of so many images, too.
struct Shape {
  int64_t images = 1, planes = 1, height = 1, width = 1, in = 32, out = 32, kernelHeight = 3, stride = 1, dilation = 1,
          pad = 1;
  int64_t outside = 7;
  bool isRectified = false; // and multiplied, in an epilogue that is longer

  int64_t outHeight() const { return (height + 2 * pad - dilation * (kernelHeight - 1) - 1) / stride + 1; }
  int64_t outWidth() const { return (width + 2 * pad - dilation * 2 - 1) / stride + 1; }
  int64_t terms() const { return planes * kernelHeight * 3 * in; }
  int64_t pixels() const { return (images + planes - 1) * height * width * in; }
  int64_t results() const { return images * outHeight() * outWidth() * out; }
};

std::string textOf(const Shape &s) {
  auto str = [](int64_t x) { return std::to_string(x); };
  auto buffer = [&](int64_t count, const char *type) { return "!loop.buffer<[" + str(count) + "] x " + type + ">"; };
  std::string x = buffer(s.pixels(), "i8"), w = buffer(s.out * s.terms(), "i8");
  std::string b = buffer(s.out, "i32"), y = buffer(s.results(), "i32");
  std::string row = "(d1*" + str(s.stride) + " + d5*" + str(s.dilation) + " - " + str(s.pad) + ")";
  std::string column = "(d2*" + str(s.stride) + " + d6*" + str(s.dilation) + " - " + str(s.pad) + ")";
  std::string read = "loop.load %x[(((d0 + d4)*" + str(s.height) + " + " + row + ")*" + str(s.width) + " + " + column +
                     ")*" + str(s.in) + " + d7] : " + x + "\n";
  std::string pixel = "  %v = " + read;
  if (s.pad)
    pixel = "  %o = arith.constant " + str(s.outside) + " : i8\n  %v = loop.masked [" + row + ", " + str(s.height - 1) +
            " - " + row + ", " + column + ", " + str(s.width - 1) + " - " + column + "] else %o {\n  %l = " + read +
            "  loop.yield %l : i8\n  } : i8\n";
  std::string result = "((d0*" + str(s.outHeight()) + " + d1)*" + str(s.outWidth()) + " + d2)*" + str(s.out) + " + d3";
  std::string rest = "  loop.store %s, %y[" + result + "] : " + y + "\n";
  if (s.isRectified)
    rest = "  %z = arith.constant 0 : i32\n  %r = arith.maxsi %s, %z : i32\n  %f = arith.sitofp %r : i32 to f32\n"
           "  %h = arith.constant 0.5 : f32\n  %p = arith.mulf %f, %h : f32\n  %e = math.roundeven %p : f32\n"
           "  %i = arith.fptosi %e : f32 to i32\n  loop.store %i, %y[" +
           result + "] : " + y + "\n";
  std::string domain = str(s.images) + ", " + str(s.outHeight()) + ", " + str(s.outWidth()) + ", " + str(s.out) + ", " +
                       str(s.planes) + ", " + str(s.kernelHeight) + ", 3, " + str(s.in);
  return "loop.kernel @k(%x: " + x + ", %w: " + w + ", %b: " + b + ", %y: " + y +
         ") attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 3>} {\nloop.contraction [" +
         domain + "] batch 0 m 3 n 1 k 4 lhs {\n" + pixel + "  %u = arith.extui %v : i8 to i32\n" +
         "  loop.yield %u : i32\n} rhs {\n  %v = loop.panels %w {group = 4 : i64} : " + w +
         " -> i8\n  %u = arith.extsi %v : i8 to i32\n  loop.yield %u : i32\n} epilogue {\n^bb0(%acc: i32):\n" +
         "  %b0 = loop.load %b[d3] : " + b + "\n  %s = arith.addi %acc, %b0 : i32\n" + rest + "}\n}\n";
}

using Draw = std::function<int()>;

std::vector<uint8_t> drawBytes(int64_t count, Draw draw) {
  std::vector<uint8_t> bytes(size_t(count), 0);
  for (uint8_t &value : bytes)
    value = uint8_t(draw());
  return bytes;
}

/// [terms][out] in panels of groups, zeros beyond `out`.
std::vector<int8_t> panelsOf(const std::vector<uint8_t> &w, int64_t terms, int64_t out) {
  std::vector<int8_t> stored(size_t((out + 15) / 16 * 16 * terms), 0);
  for (int64_t term = 0; term < terms; ++term)
    for (int64_t n = 0; n < out; ++n) {
      int64_t group = (n / 16) * (terms / 4) + term / 4;
      stored[size_t((group * 16 + n % 16) * 4 + term % 4)] = int8_t(w[size_t(term * out + n)]);
    }
  return stored;
}

/// Runs the kernel at every level; `arguments` are all but the result.
void checkRuns(const std::string &text, std::vector<void *> arguments, const std::vector<int32_t> &expected) {
  for (const cpu::CpuLevel *level : runnableLevels()) {
    INFO(level->name.str());
    auto kernel = CompiledKernel::share(text, *level);
    REQUIRE(kernel);
    const size_t guard = 64;
    std::vector<int32_t> y(expected.size() + guard, -777);
    std::vector<void *> all(arguments);
    all.push_back(y.data());
    kernel->run(all, {}, 3);
    int64_t wrong = 0;
    for (size_t at = 0; at < y.size(); ++at)
      wrong += y[at] != (at < expected.size() ? expected[at] : -777);
    CHECK(wrong == 0);
  }
}

void check(const Shape &s, Draw pixel, Draw weight) {
  std::vector<uint8_t> x = drawBytes(s.pixels(), pixel);
  std::vector<uint8_t> w = drawBytes(s.out * s.terms(), weight); // [terms][out]
  std::vector<int8_t> stored = panelsOf(w, s.terms(), s.out);
  std::vector<int32_t> bias(size_t(s.out), 0), expected;
  for (int64_t out = 0; out < s.out; ++out)
    bias[size_t(out)] = int32_t(out * 1001 % 257) - 128;
  auto pixelAt = [&](int64_t image, int64_t row, int64_t column, int64_t channel) {
    bool isInside = row >= 0 && row < s.height && column >= 0 && column < s.width;
    return isInside ? x[size_t(((image * s.height + row) * s.width + column) * s.in + channel)] : uint8_t(s.outside);
  };
  for (int64_t image = 0; image < s.images; ++image)
    for (int64_t oh = 0; oh < s.outHeight(); ++oh)
      for (int64_t ow = 0; ow < s.outWidth(); ++ow) {
        std::vector<int64_t> sums(bias.begin(), bias.end());
        for (int64_t term = 0; term < s.terms(); ++term) {
          int64_t kh = term / (3 * s.in) % s.kernelHeight, kw = term / s.in % 3;
          int64_t value = pixelAt(image + term / (3 * s.in * s.kernelHeight), oh * s.stride + kh * s.dilation - s.pad,
                                  ow * s.stride + kw * s.dilation - s.pad, term % s.in);
          for (int64_t out = 0; out < s.out; ++out)
            sums[size_t(out)] += value * int8_t(w[size_t(term * s.out + out)]);
        }
        for (int64_t sum : sums)
          expected.push_back(
              int32_t(s.isRectified ? std::nearbyint(double(float(std::max<int64_t>(sum, 0)) * 0.5f)) : double(sum)));
      }
  INFO(s.images << "x" << s.height << "x" << s.width << " " << s.in << " -> " << s.out << " window " << s.kernelHeight
                << " stride " << s.stride << " dilation " << s.dilation << " pad " << s.pad);
  checkRuns(textOf(s), {x.data(), stored.data(), bias.data()}, expected);
}

/// y[m, n] = sum x[m, k] * w[k, n]; w lies in panels, or in rows, whose bytes are flipped (1) or not (0).
void checkProduct(int64_t m, int64_t n, int64_t k, Draw left, Draw right, std::optional<bool> flips = {}) {
  auto buffer = [](int64_t count, const char *type) {
    return "!loop.buffer<[" + std::to_string(count) + "] x " + type + ">";
  };
  std::vector<uint8_t> x = drawBytes(m * k, left), w = drawBytes(k * n, right);
  std::vector<int8_t> stored = flips ? std::vector<int8_t>(w.begin(), w.end()) : panelsOf(w, k, n);
  for (uint8_t &weight : w)
    weight ^= flips.value_or(false) ? 128 : 0;
  std::vector<int32_t> expected;
  for (int64_t row = 0; row < m; ++row)
    for (int64_t column = 0; column < n; ++column) {
      int64_t sum = 0;
      for (int64_t term = 0; term < k; ++term)
        sum += int64_t(x[size_t(row * k + term)]) * int8_t(w[size_t(term * n + column)]);
      expected.push_back(int32_t(sum));
    }
  std::string typeX = buffer(m * k, "i8"), typeW = buffer(int64_t(stored.size()), "i8"), typeY = buffer(m * n, "i32");
  std::string weight = "loop.panels %w {group = 4 : i64} : " + typeW + " -> i8";
  if (flips)
    weight = "loop.load %w[d2*" + std::to_string(n) + " + d1] : " + typeW;
  std::string flipped = "  %c = arith.constant -128 : i8\n  %f = arith.xori %v, %c : i8\n";
  std::string text =
      "loop.kernel @k(%x: " + typeX + ", %w: " + typeW + ", %y: " + typeY +
      ") attributes {symbols = [], parallel = 0 : i64, arguments_written = array<i64: 2>} {\nloop.contraction [" +
      std::to_string(m) + ", " + std::to_string(n) + ", " + std::to_string(k) +
      "] batch 0 m 1 n 1 k 1 lhs {\n  %v = loop.load %x[d0*" + std::to_string(k) + " + d2] : " + typeX +
      "\n  %u = arith.extui %v : i8 to i32\n  loop.yield %u : i32\n} rhs {\n" + "  %v = " + weight + "\n" +
      (flips.value_or(false) ? flipped : "") + "  %u = arith.extsi " + (flips.value_or(false) ? "%f" : "%v") +
      " : i8 to i32\n  loop.yield %u : i32\n} epilogue {\n^bb0(%acc: i32):\n" + "  loop.store %acc, %y[d0*" +
      std::to_string(n) + " + d1] : " + typeY + "\n}\n}\n";
  INFO(m << " x " << n << " x " << k);
  checkRuns(text, {x.data(), stored.data()}, expected);
}

void checkRandom(const Shape &shape) {
  std::mt19937 numbers(1);
  auto any = [&] { return int(numbers() % 256); };
  check(shape, any, any);
}

} // namespace

TEST_CASE("products of bytes have the sums of the integers", "[contraction]") {
  std::mt19937 numbers(3);
  auto any = [&] { return int(numbers() % 256); };
  for (auto [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{40, 64, 128},
                         {17, 72, 100},
                         {300, 40, 256},
                         {33, 160, 2052},
                         {40, 32, 4196},
                         {196, 256, 1024}, // in fewer blocks of rows where bytes are taken apart
                         {6, 64, 128},
                         {65, 64, 388},  // tasks of up to 16 rows and of more, in matrix registers
                         {129, 112, 64}, // an odd number of panels that wait in the first-level cache
                         {1, 96, 64}})
    checkProduct(m, n, k, any, any);
}

// Where pairs of products leave 16 bits, and sums of sums of products 32.
TEST_CASE("products of bytes at the ends of their range", "[contraction]") {
  for (int weight : {-128, 127})
    for (int64_t k : {256, 60000})
      checkProduct(24, 64, k, [] { return 255; }, [=] { return weight; });
  std::mt19937 numbers(4);
  checkProduct(40, 64, 1028, [&] { return numbers() & 1 ? 255 : 0; }, [&] { return numbers() & 1 ? 127 : -128; });
}

// Pairs of weights whose products by 255 just stay in 16 bits, or just leave them; bytes that let them, at few places.
TEST_CASE("products of bytes around the range of pairs", "[contraction]") {
  std::mt19937 numbers(5);
  auto oneOf = [&](std::vector<int> values) {
    return [&numbers, values] { return values[numbers() % values.size()]; };
  };
  int64_t drawn = 0;
  auto everyNinth = [&] { return ++drawn % 9 ? int(numbers() % 128) : 255; };
  for (auto [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{37, 48, 68}, {16, 33, 100}, {161, 80, 260}}) {
    for (const std::vector<int> &weights :
         {std::vector<int>{64, 65}, {-64, -65}, {127, 1, 2}, {-128, 0, -1}, {127, -128, 0}}) {
      checkProduct(m, n, k, [] { return 255; }, oneOf(weights));
      checkProduct(m, n, k, oneOf({254, 255, 128, 129}), oneOf(weights));
    }
    checkProduct(m, n, k, everyNinth, oneOf({127, -128, 127, 100, -100}));
  }
}

// Column tiles of each kind in a task: sums of four products fit, of few pairs they do not, of many.
TEST_CASE("products of bytes by columns of different ranges", "[contraction]") {
  std::mt19937 numbers(6);
  for (auto [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{40, 240, 132}, {130, 104, 68}, {17, 104, 4100}}) {
    int64_t drawn = 0;
    auto weight = [&] {
      int64_t column = drawn++ % n, kind = column / 32 % 3;
      bool isLarge = kind == 1 ? numbers() % 12 == 0 : kind == 2;
      return isLarge ? int(numbers() % 256) : int(numbers() % 16) - 8;
    };
    auto any = [&] { return int(numbers() % 256); };
    checkProduct(m, n, k, any, weight);
    for (bool flips : {false, true}) {
      drawn = 0;
      checkProduct(m, n, k, any, [&] { return weight() ^ (flips ? 128 : 0); }, flips);
    }
  }
}

// Columns that are packed in whole vectors, and fewer.
TEST_CASE("products of bytes that are no weights", "[contraction]") {
  std::mt19937 numbers(7);
  auto any = [&] { return int(numbers() % 256); };
  for (auto [m, n, k] :
       {std::tuple<int64_t, int64_t, int64_t>{64, 100, 128}, {20, 64, 36}, {128, 321, 64}, {24, 17, 256}})
    for (bool flips : {false, true})
      checkProduct(m, n, k, any, any, flips);
}

TEST_CASE("windows of three bytes have the sums of the integers", "[contraction]") {
  checkRandom({.height = 28, .width = 28});
  checkRandom({.height = 8, .width = 56, .out = 64});
  checkRandom({.images = 10, .height = 7, .width = 7, .in = 64, .out = 48}); // the last patches share outputs
  checkRandom({.images = 3, .height = 10, .width = 11, .in = 240});          // blocks of 80 channels
  checkRandom({.height = 12, .width = 18, .in = 256});                       // the last block is shorter
  checkRandom({.images = 2, .planes = 3, .height = 8, .width = 13, .in = 48, .out = 64});
  checkRandom({.height = 14, .width = 14, .in = 128, .out = 128}); // in fewer blocks of rows than the plan
  checkRandom({.height = 40, .width = 15, .isRectified = true});
}

TEST_CASE("windows of three bytes without a border, far apart", "[contraction]") {
  checkRandom({.height = 42, .width = 14, .pad = 0});
  checkRandom({.height = 60, .width = 60, .stride = 2, .dilation = 2, .pad = 2});
}

TEST_CASE("convolutions of bytes that patches do not suit", "[contraction]") {
  // Pixels of a window are not those of its neighbour's; patches with many idle places; few channels; few rows.
  checkRandom({.height = 57, .width = 57, .in = 64, .out = 64, .stride = 2});
  checkRandom({.height = 40, .width = 12, .dilation = 2, .pad = 2});
  checkRandom({.height = 90, .width = 5});
  checkRandom({.images = 20, .height = 6, .width = 4, .in = 16});
  checkRandom({.height = 28, .width = 28, .in = 8});
  checkRandom({.height = 28, .width = 28, .in = 12, .out = 40});
  checkRandom({.height = 3, .width = 6});
  // Windows of one row and of five.
  checkRandom({.images = 2, .height = 40, .width = 16, .in = 64, .kernelHeight = 1, .pad = 0});
  checkRandom({.height = 44, .width = 12, .kernelHeight = 5});
}

TEST_CASE("windows of bytes in what matrix registers copy", "[contraction]") {
  checkRandom({.height = 12, .width = 22, .in = 64, .dilation = 2}); // more tasks than 16 rows each
  checkRandom({.images = 3, .height = 14, .width = 13, .in = 64});   // pixels between images
}

// Sums of the largest products, of both signs: those of points leave 32 bits, which is made up for; blocks of channels
// are the largest whose outputs have room.
TEST_CASE("windows of three bytes at the ends of their range", "[contraction]") {
  Shape shape{.height = 8, .width = 8, .in = 224, .out = 32, .outside = 255};
  for (int weight : {-128, 127})
    check(shape, [] { return 255; }, [&] { return weight; });
  std::mt19937 numbers(2);
  auto either = [&](int a, int b) { return [&numbers, a, b] { return numbers() & 1 ? a : b; }; };
  shape.outside = 0;
  check(shape, either(0, 255), either(-128, 127));
  shape.in = 928;
  check(shape, either(0, 255), either(-128, 127));
}
