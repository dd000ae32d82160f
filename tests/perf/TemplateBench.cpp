// Speed of template kernels on one core, as a share of the multiply-add peak that the same process measures beside
// them. Kernel and peak run in short alternating slices; the best slices of each count.
//
//   ptc-perf-templates [level] [filter]       the cases below whose names contain the filter
//   ptc-perf-templates [level] FILE.mlir      every kernel of the file (stage `schedule`), symbols at 8

#include "tests/unit/TemplateKernels.h"
#include "tests/unit/TemplateRunner.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <immintrin.h>
#include <random>

using namespace ptc;
using namespace ptc::test;
using Clock = std::chrono::steady_clock;

namespace {

struct Aligned {
  explicit Aligned(int64_t bytes) : memory(size_t(bytes) + 8192) {
    at = reinterpret_cast<float *>((reinterpret_cast<uintptr_t>(memory.data()) + 4095) / 4096 * 4096);
  }
  std::vector<char> memory;
  float *at;
};

double secondsOf(const std::function<void()> &run, int64_t repeats) {
  auto start = Clock::now();
  for (int64_t i = 0; i < repeats; ++i)
    run();
  return std::chrono::duration<double>(Clock::now() - start).count() / double(repeats);
}

// 24 independent chains of multiply-adds.
#if defined(__x86_64__)
__attribute__((target("avx512f"))) void peakLoop(int64_t steps) {
  __asm__ volatile("vpxord %%zmm30,%%zmm30,%%zmm30\nvpxord %%zmm31,%%zmm31,%%zmm31\n1:\n"
#define F(i) "vfmadd231ps %%zmm30,%%zmm31,%%zmm" #i "\n"
                   F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15) F(16) F(17)
                       F(18) F(19) F(20) F(21) F(22) F(23) "dec %0\njnz 1b\n"
                   : "+r"(steps)::"zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8", "zmm9",
                     "zmm10", "zmm11", "zmm12", "zmm13", "zmm14", "zmm15", "zmm16", "zmm17", "zmm18", "zmm19", "zmm20",
                     "zmm21", "zmm22", "zmm23", "zmm30", "zmm31");
}
constexpr double peakFlops = 24 * 32;
#endif

struct Case {
  std::string name, text, kernel = {};
  double flops = 0;
  std::vector<int64_t> symbols = {};
};

void measure(const Case &c, const cpu::CpuLevel &level) {
  auto kernel = CompiledKernel::compile(c.text, level, c.kernel);
  if (!kernel) {
    std::printf("%-34s failed\n", c.name.c_str());
    return;
  }
  std::mt19937 random(1);
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<int64_t> sizes = kernel->bufferBytes(c.symbols);
  int64_t total = 0;
  for (int64_t bytes : sizes)
    total += (bytes + 8191) / 4096 * 4096;
  Aligned arena(total); // every buffer on a page of its own
  std::vector<void *> buffers;
  float *next = arena.at;
  for (int64_t bytes : sizes) {
    buffers.push_back(next);
    for (int64_t i = 0; i < bytes / 4; ++i)
      next[i] = values(random);
    next += (bytes + 8191) / 4096 * 1024;
  }
  Aligned scratch(kernel->scratchBytes(c.symbols));
  int64_t all = kernel->iterations(c.symbols);
  auto run = [&] { kernel->function(buffers.data(), c.symbols.data(), 0, all, scratch.at); };
  auto peak = [&] { peakLoop(2000); };
  run();
  double once = secondsOf(run, 1);
  int64_t repeats = std::max<int64_t>(1, int64_t(1e-3 / once));
  std::vector<double> mine, best;
  for (int round = 0; round < (c.kernel.empty() ? 60 : 15); ++round) {
    mine.push_back(secondsOf(run, repeats));
    best.push_back(secondsOf(peak, 20));
  }
  std::sort(mine.begin(), mine.end());
  std::sort(best.begin(), best.end());
  double seconds = mine[mine.size() / 5], peakRate = 2000 * peakFlops / best[best.size() / 5];
  std::printf("%-34s %9.1f us %7.1f GFLOP/s %5.1f %% of peak  tasks %3ld  compile %5.1f ms  %s\n", c.name.c_str(),
              seconds * 1e6, c.flops / seconds * 1e-9, 100 * c.flops / seconds / peakRate, long(all),
              kernel->milliseconds, kernel->config.c_str());
  std::fflush(stdout);
}

Case matmul(std::string name, const Matmul &m) {
  return {.name = name, .text = m.text(), .flops = 2.0 * double(m.batch * m.m * m.n * m.k), .symbols = m.symbols()};
}

Case convolution(std::string name, const Convolution &c) {
  return {.name = name, .text = c.text(), .flops = c.flops()};
}

Case attention(std::string name, const Attention &a) {
  return {.name = name,
          .text = a.text(),
          .flops = 2.0 * double(a.batch * a.heads * a.i * a.j * (a.d + a.e)),
          .symbols = a.symbols()};
}

std::vector<Case> casesOfFile(const std::string &path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<Case> list;
  for (const std::string &name : kernelNames(text))
    list.push_back({.name = name, .text = text, .kernel = name, .symbols = std::vector<int64_t>(16, 8)});
  return list;
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1000, 2048},
                         {1, 4096, 4096},
                         {4, 768, 768},
                         {128, 768, 768},
                         {128, 3072, 768},
                         {128, 768, 3072},
                         {197, 768, 768},
                         {197, 3072, 768},
                         {3136, 64, 64},
                         {3136, 256, 64},
                         {3136, 64, 256},
                         {784, 512, 128},
                         {196, 1024, 256},
                         {49, 2048, 512},
                         {512, 512, 512},
                         {1024, 1024, 1024},
                         {196, 1000, 24},
                         {12544, 16, 24}})
    list.push_back(matmul("gemm " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k),
                          {.m = m, .n = n, .k = k, .hasBias = true}));
  list.push_back(matmul("gemm+gelu 128x3072x768",
                        {.m = 128, .n = 3072, .k = 768, .hasBias = true, .activation = Activation::Gelu}));
  list.push_back(matmul("gemm+res symbolic 128x768x768",
                        {.m = 128, .n = 768, .k = 768, .hasBias = true, .hasResidual = true, .symbolicM = "m"}));
  list.push_back(matmul("gemm symbolic 1x768x768", {.m = 1, .n = 768, .k = 768, .symbolicM = "m"}));
  list.push_back(matmul("gemm transposed A 512x512x512", {.m = 512, .n = 512, .k = 512, .transposeA = true}));
  list.push_back(matmul("gemm computed A 128x768x768", {.m = 128, .n = 768, .k = 768, .isMaskedLhs = true}));
  list.push_back(matmul("bmm 12x128x128x64 B^T",
                        {.batch = 12, .m = 128, .n = 128, .k = 64, .isPacked = false, .transposeB = true}));
  list.push_back(matmul("bmm 12x128x64x128", {.batch = 12, .m = 128, .n = 64, .k = 128, .isPacked = false}));
  list.push_back(matmul("matmul dynamic B 512x512x512", {.m = 512, .n = 512, .k = 512, .isPacked = false}));
  list.push_back(matmul("gemm transposed C 512x512x512", {.m = 512, .n = 512, .k = 512, .transposeC = true}));
  auto conv = [&](const char *name, Convolution c) { list.push_back(convolution(name, c)); };
  conv("stem 7x7 s2 224x224x3 nchw", {.height = 224,
                                      .width = 224,
                                      .in = 3,
                                      .out = 64,
                                      .kernelHeight = 7,
                                      .kernelWidth = 7,
                                      .stride = 2,
                                      .pad = 3,
                                      .isInputChannelsFirst = true,
                                      .hasRelu = true});
  conv("stem 7x7 s2 224x224x3 nhwc", {.height = 224,
                                      .width = 224,
                                      .in = 3,
                                      .out = 64,
                                      .kernelHeight = 7,
                                      .kernelWidth = 7,
                                      .stride = 2,
                                      .pad = 3,
                                      .hasRelu = true});
  conv("stem 3x3 s2 224x224x3 nchw", {.height = 224,
                                      .width = 224,
                                      .in = 3,
                                      .out = 32,
                                      .kernelHeight = 3,
                                      .kernelWidth = 3,
                                      .stride = 2,
                                      .pad = 1,
                                      .isInputChannelsFirst = true,
                                      .hasRelu = true});
  for (auto [size, channels] : {std::pair(56, 64), std::pair(28, 128), std::pair(14, 256), std::pair(7, 512)}) {
    std::string shape = std::to_string(size) + "x" + std::to_string(size) + "x" + std::to_string(channels);
    Convolution c{.height = size,
                  .width = size,
                  .in = channels,
                  .out = channels,
                  .kernelHeight = 3,
                  .kernelWidth = 3,
                  .pad = 1,
                  .hasRelu = true};
    list.push_back(convolution("conv 3x3 " + shape, c));
    c.isChannelsFirst = true;
    list.push_back(convolution("conv 3x3 nchw " + shape, c));
    if (size == 56)
      continue;
    c.isChannelsFirst = false;
    c.height = c.width = 2 * size;
    c.stride = 2;
    list.push_back(convolution("conv 3x3 s2 to " + shape, c));
  }
  conv("conv 1x1 56x56x64 to 256 +res", {.height = 56,
                                         .width = 56,
                                         .in = 64,
                                         .out = 256,
                                         .kernelHeight = 1,
                                         .kernelWidth = 1,
                                         .hasResidual = true,
                                         .hasRelu = true});
  conv("conv 1x1 s2 56x56x256 to 512",
       {.height = 56, .width = 56, .in = 256, .out = 512, .kernelHeight = 1, .kernelWidth = 1, .stride = 2});
  conv("conv 1x1 nchw 56x56x64 to 256",
       {.height = 56, .width = 56, .in = 64, .out = 256, .kernelHeight = 1, .kernelWidth = 1, .isChannelsFirst = true});
  conv("conv 3x3 groups 32 56x56x128",
       {.height = 56, .width = 56, .groups = 32, .in = 4, .out = 4, .kernelHeight = 3, .kernelWidth = 3, .pad = 1});
  conv("patch 16x16 224x224x3 nchw to 768", {.height = 224,
                                             .width = 224,
                                             .in = 3,
                                             .out = 768,
                                             .kernelHeight = 16,
                                             .kernelWidth = 16,
                                             .stride = 16,
                                             .isInputChannelsFirst = true});
  for (int64_t length : {128, 197, 512, 1024})
    list.push_back(attention("attention 12x" + std::to_string(length) + "x64",
                             {.heads = 12, .i = length, .j = length, .d = 64, .e = 64}));
  list.push_back(
      attention("attention 12x128x64 mask", {.heads = 12, .i = 128, .j = 128, .d = 64, .e = 64, .hasMask = true}));
  list.push_back(attention("attention 12x128x64 symbolic",
                           {.heads = 12, .i = 128, .j = 128, .d = 64, .e = 64, .symbolicI = "i", .symbolicJ = "j"}));
  list.push_back(
      attention("attention causal 12x512x64", {.heads = 12, .i = 512, .j = 512, .d = 64, .e = 64, .isCausal = true}));
  list.push_back(attention("attention decode 12x1x512x64", {.heads = 12, .i = 1, .j = 512, .d = 64, .e = 64}));
  return list;
}

} // namespace

int main(int argc, char **argv) {
  const cpu::CpuLevel *level = runnableLevels().back();
  std::string filter;
  for (int a = 1; a < argc; ++a) {
    if (const cpu::CpuLevel *named = cpu::findCpuLevel(argv[a]))
      level = named;
    else
      filter = argv[a];
  }
  bool isFile = filter.ends_with(".mlir");
  for (const Case &c : isFile ? casesOfFile(filter) : cases())
    if (isFile || c.name.find(filter) != std::string::npos)
      measure(c, *level);
  return 0;
}
