//===- MachinePeaks.cpp - measured peaks of the processor -----------------===//
//
// Products: independent chains of one instruction on the widest vectors, as many as hide its latency, and nothing else
// in the loop. Of matrix registers the four sums and four operands of a product's tile. Bandwidth: vectors of a working
// set are read and added up, over and over; a set of half a cache stays in it.
//
// Memory. A set of several times the last cache still finds some of itself there when it is read again, since caches do
// not give up the oldest line first: of four times as much, an eighth. So all its lines are flushed before each slice.
// It lies on huge pages, and is read as one stream or as four side by side, of which processors have more underway.
//
// All threads start a slice together, and a slice ends with the last of them. The best of many slices counts.
//
//===----------------------------------------------------------------------===//
#include "compiler/MachinePeaks.h"
#include "codegen/cpu/CpuLevels.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Threading.h"
#include "llvm/TargetParser/Host.h"
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

using namespace llvm;

namespace ptc {

double MachinePeaks::operationsOf(StringRef type) const {
  auto found = operations.find(type);
  return found != operations.end() ? found->second : operations.lookup("f32");
}

double MachinePeaks::bandwidthOf(double bytes) const {
  for (const Bandwidth &level : bandwidths)
    if (bytes <= level.bytes)
      return level.bytesPerSecond;
  return 0;
}

double MachinePeaks::secondsToReadAgain(double bytes) const {
  double seconds = 0, kept = 0;
  for (const Bandwidth &level : bandwidths) {
    double more = std::max(std::min(bytes, level.bytes) - kept, 0.0);
    seconds += more / level.bytesPerSecond;
    kept += more;
  }
  return seconds;
}

void MachinePeaks::merge(const MachinePeaks &other) {
  for (const auto &entry : other.operations)
    operations[entry.getKey()] = std::max(operations[entry.getKey()], entry.getValue());
  for (auto [mine, theirs] : zip(bandwidths, other.bandwidths))
    mine.bytesPerSecond = std::max(mine.bytesPerSecond, theirs.bytesPerSecond);
}

namespace {

/// One thread's part of a slice: so many steps.
using Loop = void (*)(const char *memory, int64_t bytes, int64_t steps);

/// A loop and what a step of it does: operations, or bytes (0: all of the memory).
struct Probe {
  Loop loop;
  double amountOfStep;
};

#if defined(__x86_64__)

// A value that the compiler must have made, and knows nothing of.
#define PTC_KEEP(VALUE) asm volatile("" : "+v"(VALUE))

#define PTC_CHAINS(NAME, FEATURES, VECTOR, COUNT, STEP)                                                                \
  [[gnu::target(FEATURES)]] void NAME(const char *, int64_t, int64_t steps) {                                          \
    VECTOR sums[COUNT] = {}, left = {}, right = {};                                                                    \
    PTC_KEEP(left);                                                                                                    \
    PTC_KEEP(right);                                                                                                   \
    for (int64_t step = 0; step < steps; ++step)                                                                       \
      _Pragma("clang loop unroll(full)") for (int i = 0; i < COUNT; ++i) sums[i] = STEP;                               \
    for (VECTOR &sum : sums)                                                                                           \
      PTC_KEEP(sum);                                                                                                   \
  }

PTC_CHAINS(productsF32Avx512, "avx512f", __m512, 24, _mm512_fmadd_ps(left, right, sums[i]))
PTC_CHAINS(productsF64Avx512, "avx512f", __m512d, 24, _mm512_fmadd_pd(left, right, sums[i]))
PTC_CHAINS(productsBytesAvx512, "avx512vnni", __m512i, 24, _mm512_dpbusd_epi32(sums[i], left, right))
PTC_CHAINS(productsBf16Avx512, "avx512bf16", __m512, 24, _mm512_dpbf16_ps(sums[i], __m512bh(left), __m512bh(right)))
PTC_CHAINS(productsF32Avx2, "avx2,fma", __m256, 12, _mm256_fmadd_ps(left, right, sums[i]))
PTC_CHAINS(productsF64Avx2, "avx2,fma", __m256d, 12, _mm256_fmadd_pd(left, right, sums[i]))
#undef PTC_CHAINS

/// 16 rows of 64 bytes in each of eight registers.
struct alignas(64) MatrixConfiguration {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t bytesOfRow[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

#define PTC_MATRICES(NAME, FEATURES, PRODUCT)                                                                          \
  [[gnu::target(FEATURES)]] void NAME(const char *, int64_t, int64_t steps) {                                          \
    MatrixConfiguration configuration;                                                                                 \
    _tile_loadconfig(&configuration);                                                                                  \
    for (int64_t step = 0; step < steps; ++step) {                                                                     \
      PRODUCT(0, 4, 6);                                                                                                \
      PRODUCT(1, 4, 7);                                                                                                \
      PRODUCT(2, 5, 6);                                                                                                \
      PRODUCT(3, 5, 7);                                                                                                \
    }                                                                                                                  \
    _tile_release();                                                                                                   \
  }

PTC_MATRICES(productsBf16Amx, "amx-tile,amx-bf16", _tile_dpbf16ps)
PTC_MATRICES(productsBytesAmx, "amx-tile,amx-int8", _tile_dpbusd)
#undef PTC_MATRICES

// As many streams, which divide the memory between them and take turns with eight vectors.
#define PTC_READING(NAME, FEATURES, VECTOR, ADD, STREAMS)                                                              \
  [[gnu::target(FEATURES)]] void NAME(const char *memory, int64_t bytes, int64_t steps) {                              \
    constexpr int64_t turn = 8 / STREAMS * int64_t(sizeof(VECTOR));                                                    \
    int64_t stream = bytes / STREAMS;                                                                                  \
    VECTOR sums[8] = {};                                                                                               \
    for (int64_t step = 0; step < steps; ++step)                                                                       \
      for (int64_t at = 0; at < stream; at += turn)                                                                    \
        _Pragma("clang loop unroll(full)") for (int i = 0; i < 8; ++i) {                                               \
          int64_t offset = i % STREAMS * stream + i / STREAMS * int64_t(sizeof(VECTOR));                               \
          VECTOR value = *reinterpret_cast<const VECTOR *>(memory + at + offset);                                      \
          PTC_KEEP(value);                                                                                             \
          sums[i] = ADD(sums[i], value);                                                                               \
        }                                                                                                              \
    for (VECTOR &sum : sums)                                                                                           \
      PTC_KEEP(sum);                                                                                                   \
  }

PTC_READING(readAvx512, "avx512f", __m512i, _mm512_xor_si512, 1)
PTC_READING(readStreamsAvx512, "avx512f", __m512i, _mm512_xor_si512, 4)
PTC_READING(readAvx2, "avx2", __m256i, _mm256_xor_si256, 1)
PTC_READING(readStreamsAvx2, "avx2", __m256i, _mm256_xor_si256, 4)
#undef PTC_READING
#undef PTC_KEEP

/// So that no cache holds any of it.
[[gnu::target("clflushopt")]] void flushUnordered(const char *memory, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64)
    _mm_clflushopt(const_cast<char *>(memory + at));
  _mm_mfence();
}
void flushOrdered(const char *memory, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64)
    _mm_clflush(memory + at);
  _mm_mfence();
}
void flush(const char *memory, int64_t bytes) {
  static const bool hasUnordered = sys::getHostCPUFeatures().lookup("clflushopt");
  hasUnordered ? flushUnordered(memory, bytes) : flushOrdered(memory, bytes);
}

struct ProbeRow {
  StringLiteral type, feature; // of LLVM's names; an earlier row of a type goes first
  Probe probe;
};
const ProbeRow productRows[] = {
    {"f32", "avx512f", {productsF32Avx512, 24 * 32}},   {"f32", "fma", {productsF32Avx2, 12 * 16}},
    {"f64", "avx512f", {productsF64Avx512, 24 * 16}},   {"f64", "fma", {productsF64Avx2, 12 * 8}},
    {"bf16", "amx-bf16", {productsBf16Amx, 4 * 16384}}, {"bf16", "avx512bf16", {productsBf16Avx512, 24 * 64}},
    {"i8", "amx-int8", {productsBytesAmx, 4 * 32768}},  {"i8", "avx512vnni", {productsBytesAvx512, 24 * 128}},
};
const ProbeRow readingRows[] = {{"", "avx512f", {readAvx512, 0}}, {"", "avx2", {readAvx2, 0}}};
const ProbeRow streamRows[] = {{"", "avx512f", {readStreamsAvx512, 0}}, {"", "avx2", {readStreamsAvx2, 0}}};

#else
struct ProbeRow {
  StringLiteral type, feature;
  Probe probe;
};
const ArrayRef<ProbeRow> productRows, readingRows, streamRows;
void flush(const char *, int64_t) {}
#endif

const ProbeRow *findRow(ArrayRef<ProbeRow> rows, const StringMap<bool> &features) {
  return llvm::find_if(rows, [&](const ProbeRow &row) { return features.lookup(row.feature); });
}

/// Bytes of ones, each page there already, on huge pages where the system has them.
class Pages {
public:
  explicit Pages(int64_t bytes) : memory(new char[size_t(bytes) + alignment]) {
    start = memory.get() + alignment - reinterpret_cast<uintptr_t>(memory.get()) % alignment;
#if defined(__linux__)
    (void)madvise(start, size_t(bytes) / alignment * alignment, MADV_HUGEPAGE);
#endif
    std::memset(start, 1, size_t(bytes));
  }
  const char *getStart() const { return start; }

private:
  static constexpr size_t alignment = size_t(2) << 20; // of huge pages
  std::unique_ptr<char[]> memory;
  char *start;
};

/// Each thread with memory of its own, of which a smaller part may be used.
class Slices {
public:
  Slices(unsigned threads, int64_t bytes) : bytes(bytes) {
    for (unsigned i = 0; i < threads; ++i)
      memories.emplace_back(bytes);
  }

  /// Steps of all threads a second, in the best of the slices.
  double measure(const Probe &probe, int64_t used) {
    int64_t steps = 1;
    double seconds = runOnce(probe, used, steps);
    while (seconds < shortest && steps < (int64_t(1) << 40)) {
      steps *= 2;
      seconds = runOnce(probe, used, steps);
    }
    double best = seconds;
    for (int slice = 0; slice < slices; ++slice)
      best = std::min(best, runOnce(probe, used, steps));
    return double(steps) * double(memories.size()) / best;
  }

  /// Bytes of all threads a second in one slice, none of which is in a cache.
  double readFlushed(const Probe &probe) {
    return double(bytes) * double(memories.size()) / runOnce(probe, bytes, 1, /*isFlushed=*/true);
  }

  static constexpr int slices = 25;

private:
  static constexpr double shortest = 1e-3; // seconds; a fork and join of threads costs some 50 us

  double runOnce(const Probe &probe, int64_t used, int64_t steps, bool isFlushed = false) {
    std::atomic<unsigned> ready = 0;
    std::vector<double> seconds(memories.size());
    auto work = [&](size_t index) {
      const char *memory = memories[index].getStart();
      if (isFlushed)
        flush(memory, used);
      ++ready;
      while (ready.load() < memories.size())
        std::this_thread::yield();
      auto start = std::chrono::steady_clock::now();
      probe.loop(memory, std::min(used, bytes), steps);
      seconds[index] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    std::vector<std::thread> others;
    for (size_t index = 1; index < memories.size(); ++index)
      others.emplace_back(work, index);
    work(0);
    for (std::thread &other : others)
      other.join();
    return *llvm::max_element(seconds);
  }

  int64_t bytes;
  std::vector<Pages> memories;
};

constexpr int64_t grain = 512; // bytes; what loops read are multiples of it

/// A cache as the system shows it.
struct Cache {
  int64_t bytes = 0;
  unsigned sharers = 1; // threads of the machine
};

std::string readLine(const Twine &path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFileAsStream(path);
  return file ? (*file)->getBuffer().trim().str() : std::string();
}

/// How many processors "0-3,8" names.
unsigned countProcessors(StringRef list) {
  unsigned count = 0;
  for (StringRef range : split(list, ',')) {
    auto [first, last] = range.split('-');
    unsigned from = 0, to = 0;
    if (first.getAsInteger(10, from))
      continue;
    count += last.empty() || last.getAsInteger(10, to) ? 1 : to - from + 1;
  }
  return std::max(count, 1u);
}

/// Caches of data, the smallest first. Where the system shows none: usual sizes.
std::vector<Cache> findCaches() {
  std::vector<Cache> caches;
  for (unsigned index = 0; index < 8; ++index) {
    std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    std::string size = readLine(folder + "/size");
    StringRef text = size;
    int64_t kilobytes = 0;
    if (text.consumeInteger(10, kilobytes) || readLine(folder + "/type") == "Instruction")
      continue;
    caches.push_back(
        {kilobytes * (text == "M" ? 1 << 20 : 1 << 10), countProcessors(readLine(folder + "/shared_cpu_list"))});
  }
  llvm::sort(caches, [](const Cache &a, const Cache &b) { return a.bytes < b.bytes; });
  return caches.empty() ? std::vector<Cache>{{32 << 10, 1}, {1 << 20, 1}, {16 << 20, 8}} : caches;
}

/// Bytes of memory for each thread that take long to read, and of which little is in a cache.
int64_t bytesBeyondCaches(ArrayRef<Cache> caches, unsigned threads) {
  constexpr int64_t most = int64_t(1) << 28;
  return std::min(caches.back().bytes * 4 / int64_t(threads), most) / grain * grain;
}

/// More would take turns.
unsigned clampThreads(unsigned threads) {
  return std::clamp(threads, 1u, hardware_concurrency().compute_thread_count());
}

/// The better of one stream and of four, bytes a second.
double readMemory(Slices &slices, const Probe &reading, const Probe &streams) {
  return std::max(slices.readFlushed(reading), slices.readFlushed(streams));
}

} // namespace

struct MemoryReading::Part {
  const ProbeRow *reading, *streams;
  Slices slices;
};

MemoryReading::MemoryReading(unsigned threads) {
  StringMap<bool> features = sys::getHostCPUFeatures();
  const ProbeRow *reading = findRow(readingRows, features);
  threads = clampThreads(threads);
  if (reading != std::end(readingRows))
    part.reset(new Part{reading, findRow(streamRows, features), {threads, bytesBeyondCaches(findCaches(), threads)}});
}

MemoryReading::~MemoryReading() = default;

double MemoryReading::measure() {
  return part ? readMemory(part->slices, part->reading->probe, part->streams->probe) : 0;
}

MachinePeaks measurePeaks(unsigned threads) {
  MachinePeaks peaks;
  StringMap<bool> features = sys::getHostCPUFeatures();
  for (const cpu::CpuLevel &level : cpu::getCpuLevels())
    if (level.hasMatrixRegisters && !cpu::isOfHost(level)) // this process may not use what the processor has
      features["amx-bf16"] = features["amx-int8"] = false;
  threads = clampThreads(threads);
  {
    Slices slices(threads, 0);
    for (const ProbeRow &row : productRows)
      if (features.lookup(row.feature) && !peaks.operations.contains(row.type))
        peaks.operations[row.type] = slices.measure(row.probe, 0) * row.probe.amountOfStep;
  }
  const ProbeRow *reading = findRow(readingRows, features), *streams = findRow(streamRows, features);
  if (reading == std::end(readingRows))
    return peaks;
  std::vector<Cache> caches = findCaches();
  Slices slices(threads, bytesBeyondCaches(caches, threads));
  for (const Cache &cache : caches) { // one that threads share holds the sets of all of them
    unsigned sharers = std::min(cache.sharers, threads);
    int64_t used = cache.bytes / 2 / int64_t(sharers) / grain * grain;
    peaks.bandwidths.push_back(
        {double(cache.bytes) / double(sharers) * double(threads), slices.measure(reading->probe, used) * double(used)});
  }
  double memory = 0;
  for (int slice = 0; slice < Slices::slices; ++slice)
    memory = std::max(memory, readMemory(slices, reading->probe, streams->probe));
  peaks.bandwidths.push_back({std::numeric_limits<double>::infinity(), memory});
  return peaks;
}

} // namespace ptc
