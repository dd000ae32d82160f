// A kernel's benchmark is a table and a driver. The table is what the first launch of the kernel passes with all
// symbols at their hints: buffers with their sizes, symbols, iterations, scratch, and the work that CountWork states.
// The driver is the same text for all: it allocates, fills, picks the best CPU level that is linked in and that the
// processor has, runs, and prints the best time.
//
// Symbols of kernels (`add_3f9a.x86-64-v3`) are no identifiers of C, and compilers differ in how they quote an
// assembler name. Assemblers agree, so the table of functions is a few lines of assembly; weak references leave a level
// that was not linked null.
//
// Inputs decide little about the time of kernels without branches, but two things must hold: floats stay normal, and
// indices stay in range. Floats come from a small generator in [-1, 1), integers wider than a byte, which may be
// indices, are 0.
#include "compiler/KernelBenchmark.h"
#include "runtime/include/ptc/descriptor.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace ptc {

namespace {
constexpr StringLiteral driver = R"c(
/* ---- driver, the same for all kernels ---- */

struct thread_share {
  kernel_function *kernel;
  int64_t begin, end;
  void *scratch;
  int32_t fault;
};

static void *pointers[BUFFERS + 1];

static void *allocate(size_t bytes) {
  void *block = NULL;
  if (posix_memalign(&block, 4096, bytes + 4096) != 0) {
    fprintf(stderr, "out of memory: %zu bytes\n", bytes);
    exit(1);
  }
  memset(block, 0, bytes + 4096);
  return block;
}

/* Floats in [-1, 1), bytes from 0 to 3, booleans; wider integers may be indices and stay 0. */
static void fill(void *block, const struct buffer *buffer) {
  uint32_t state = 12345;
  for (size_t i = 0; i < buffer->elements; i++) {
    state = state * 1664525u + 1013904223u;
    uint32_t top = state >> 25; /* 7 bits */
    switch (buffer->kind) {
    case 'd': ((double *)block)[i] = (double)top / 64 - 1; break;
    case 'f': ((float *)block)[i] = (float)top / 64 - 1; break;
    case 'h': ((uint16_t *)block)[i] = (uint16_t)(0x3400 | (top & 1) << 15 | (top >> 1) << 4); break;
    case 'b': ((uint16_t *)block)[i] = (uint16_t)(0x3e80 | (top & 1) << 15 | top >> 1); break;
    case 'c': ((uint8_t *)block)[i] = top & 3; break;
    case 'o': ((uint8_t *)block)[i] = top & 1; break;
    }
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void *run_share(void *argument) {
  struct thread_share *share = argument;
  share->fault = share->kernel(pointers, symbols, share->begin, share->end, share->scratch);
  return NULL;
}

/* One launch: the iterations in equal shares. Threads are started each time, so small kernels want one. */
static int32_t launch(struct thread_share *shares, int threads) {
  pthread_t handles[64];
  int32_t fault = 0;
  for (int i = 1; i < threads; i++)
    if (pthread_create(&handles[i], NULL, run_share, &shares[i]) != 0)
      exit(1);
  run_share(&shares[0]);
  for (int i = 1; i < threads; i++)
    pthread_join(handles[i], NULL);
  for (int i = 0; i < threads; i++)
    fault |= shares[i].fault;
  return fault;
}

int main(int argc, char **argv) {
  int threads = 1;
  double seconds = 0.3;
  const char *wanted = NULL;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "-t") == 0 && i + 1 < argc)
      threads = atoi(argv[++i]);
    else if (strcmp(argv[i], "-s") == 0 && i + 1 < argc)
      seconds = atof(argv[++i]);
    else if (strcmp(argv[i], "-l") == 0 && i + 1 < argc)
      wanted = argv[++i];
    else
      return fprintf(stderr, "usage: %s [-t THREADS] [-s SECONDS] [-l LEVEL]\n", argv[0]), 2;
  }
  if (threads < 1 || threads > 64)
    return fprintf(stderr, "-t: 1 to 64 threads\n"), 2;

  int level = -1, linked = 0;
  for (int i = 0; i < LEVELS; i++) {
    if (!kernel_table[i] || (wanted && strcmp(wanted, level_names[i]) != 0))
      continue;
    linked = 1;
    if (has_level(i))
      level = i;
  }
  if (level < 0)
    return fprintf(stderr, linked ? "this processor lacks what the level needs\n" : "no such level is linked in\n"), 77;

  size_t total = 0;
  for (int i = 0; i < BUFFERS; i++) {
    pointers[i] = allocate(buffers[i].elements * buffers[i].bytes);
    fill(pointers[i], &buffers[i]);
    total += buffers[i].elements * buffers[i].bytes;
  }
  struct thread_share shares[64];
  for (int i = 0; i < threads; i++) {
    shares[i].kernel = kernel_table[level];
    shares[i].begin = ITERATIONS / threads * i + (i < ITERATIONS % threads ? i : ITERATIONS % threads);
    shares[i].end = shares[i].begin + ITERATIONS / threads + (i < ITERATIONS % threads);
    shares[i].scratch = allocate(SCRATCH);
  }
  if (launch(shares, threads) != 0)
    return fprintf(stderr, "the kernel stopped: an index of these made-up inputs is out of range\n"), 1;

  /* Clocks are read around as many launches as take 20 us. */
  long inner = 1, runs = 0;
  double best = 1e30, sum = 0;
  while (sum < seconds || runs < 3) {
    double start = now();
    for (long i = 0; i < inner; i++)
      launch(shares, threads);
    double time = now() - start;
    if (time < 20e-6 && inner < 1 << 20) {
      inner *= 2;
      continue;
    }
    best = time / inner < best ? time / inner : best;
    sum += time;
    runs += inner;
  }
  printf("%s, %s, %d thread(s), %.1f KB of buffers: best %.3f us, mean %.3f us of %ld runs", KERNEL, level_names[level],
         threads, (double)total / 1024, best * 1e6, sum / runs * 1e6, runs);
  if (FLOPS > 0)
    printf("; %.3f GFLOP/s", FLOPS / best * 1e-9);
  if (BYTES > 0)
    printf("; %.3f GB/s", BYTES / best * 1e-9);
  printf("\n");
  return 0;
}
)c";

/// Values of the kernel's symbols.
SymbolValues valuesAt(loop::KernelOp kernel, loop::LaunchOp launch, const SymbolValues &hints) {
  SymbolValues values;
  for (auto [name, value] : llvm::zip_equal(kernel.getSymbols(), prim::getExprs(launch.getSymbols())))
    values[mlir::cast<mlir::StringAttr>(name).getValue()] = value.evaluate(hints).value_or(1);
  return values;
}

char kindOf(mlir::Type type) {
  if (type.isF64())
    return 'd';
  if (type.isF32())
    return 'f';
  if (type.isF16())
    return 'h';
  if (type.isBF16())
    return 'b';
  if (type.isInteger(1))
    return 'o';
  return type.getIntOrFloatBitWidth() <= 8 ? 'c' : 'i';
}

/// How C asks for a feature of a level: by words of __builtin_cpu_supports of GCC and clang, or by a test.
struct FeatureRow {
  uint64_t feature;
  StringLiteral words, test = "";
};

constexpr FeatureRow featureRows[] = {
    {PTC_RT_X86_V2, "sse4.2 popcnt"},
    {PTC_RT_X86_V3, "avx2 fma bmi bmi2"},
    {PTC_RT_X86_V4, "avx512f avx512bw avx512cd avx512dq avx512vl"},
    {PTC_RT_X86_AVX512_VNNI, "avx512vnni"},
    {PTC_RT_X86_AVX512_BF16, "avx512bf16"},
    {PTC_RT_X86_AVX512_VBMI, "avx512vbmi"},
    {PTC_RT_X86_SSE4A, "sse4a"},
    // Compilers of 2022 know no words for these.
    {PTC_RT_X86_AVX_VNNI, "", "leaf7(1, 0, 4)"},
    {PTC_RT_X86_AMX_INT8, "", "leaf7(0, 3, 25)"},
    {PTC_RT_X86_AMX_BF16, "", "leaf7(0, 3, 22)"},
    {PTC_RT_X86_AMX_TILE, "", "leaf7(0, 3, 24) && syscall(SYS_arch_prctl, 0x1023, 18) == 0 /* may use it */"},
};

constexpr StringLiteral leaf7 = R"(
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
static int leaf7(unsigned subleaf, int word, int bit) {
  unsigned words[4] = {0, 0, 0, 0};
  return __get_cpuid_count(7, subleaf, words, words + 1, words + 2, words + 3) && (words[word] >> bit & 1);
}
)";

std::string featureTest(uint64_t features) {
  std::vector<std::string> tests;
  for (const FeatureRow &row : featureRows) {
    if (!(features & row.feature))
      continue;
    SmallVector<StringRef> words;
    row.words.split(words, ' ', -1, /*KeepEmpty=*/false);
    for (StringRef word : words)
      tests.push_back(("__builtin_cpu_supports(\"" + word + "\")").str());
    if (!row.test.empty())
      tests.push_back(row.test.str());
  }
  return tests.empty() ? "1" : llvm::join(tests, " && ");
}

void writeLevels(raw_ostream &os, StringRef kernel, ArrayRef<host::Level> levels) {
  os << "typedef int32_t kernel_function(void *const *buffers, const int64_t *symbols, int64_t begin, int64_t end,\n"
        "                                void *scratch);\n"
        "__asm__(\".section .data.rel.ro,\\\"aw\\\"\\n\"\n        \".p2align 3\\n\"\n        \".globl "
        "kernel_table\\n\"\n        \".hidden kernel_table\\n\"\n        \"kernel_table:\\n\"\n";
  for (const host::Level &level : levels) {
    std::string symbol = "\\\"" + host::kernelSymbol(kernel, level.codeLevel(kernel)) + "\\\"";
    os << "        \".weak " << symbol << "\\n\"\n        \".quad " << symbol << "\\n\"\n";
  }
  os << "        \".text\\n\");\n"
     << "extern kernel_function *const kernel_table[] __attribute__((visibility(\"hidden\")));\n"
     << "#define LEVELS " << levels.size() << "\n"
     << "static const char *const level_names[] = {";
  for (const host::Level &level : levels)
    os << '"' << level.name << "\", ";
  os << "NULL};\n";
  if (llvm::any_of(levels,
                   [](const host::Level &level) { return StringRef(featureTest(level.features)).contains("leaf7"); }))
    os << leaf7;
  os << "\nstatic int has_level(int level) {\n  switch (level) {\n";
  for (auto [index, level] : llvm::enumerate(levels))
    os << "  case " << index << ":\n    return " << featureTest(level.features) << ";\n";
  os << "  }\n  return 0;\n}\n";
}

} // namespace

std::string writeKernelBenchmark(loop::KernelOp kernel, loop::LaunchOp launch, const SymbolValues &hints,
                                 ArrayRef<host::Level> levels) {
  SymbolValues values = valuesAt(kernel, launch, hints);
  auto evaluate = [&](std::optional<ExprAttr> expr) {
    return expr ? std::max<int64_t>(Expr(*expr).evaluate(values).value_or(0), 0) : 0;
  };
  std::string text;
  raw_string_ostream os(text);
  os << "/* Times " << kernel.getSymName() << " alone, as the program launches it at the hints of its symbols:\n *\n"
     << " *     cc -O2 bench.c " << levels.front().name << ".s -o bench -lpthread && ./bench\n *\n"
     << " * With *.s the best level of this processor is taken, or -l LEVEL; -t THREADS, -s SECONDS. */\n"
     << "#define _GNU_SOURCE\n#include <pthread.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        "#include <string.h>\n#include <time.h>\n\n"
     << "#define KERNEL \"" << kernel.getSymName() << "\"\n"
     << "#define ITERATIONS INT64_C(" << evaluate(kernel.getIterations()) << ")\n"
     << "#define SCRATCH " << evaluate(kernel.getScratch()) << " /* bytes, of each thread */\n"
     << "#define FLOPS " << evaluate(kernel.getFlops()) << ".0\n"
     << "#define BYTES " << evaluate(kernel.getBytesRead()) + evaluate(kernel.getBytesWritten())
     << ".0 /* read and written */\n#define BUFFERS " << launch.getBuffers().size() << "\n\n"
     << "static const int64_t symbols[] = {";
  for (mlir::Attribute name : kernel.getSymbols())
    os << values.lookup(mlir::cast<mlir::StringAttr>(name).getValue()) << ", ";
  os << "0};\n\n/* kind: d, f, h, b: floats of 64, 32, 16 bits, bfloat16; o: booleans; c: bytes; i: wider integers */\n"
     << "static const struct buffer {\n  size_t elements, bytes; /* bytes of one element */\n  char kind;\n} buffers[] "
        "= {\n";
  for (mlir::Value buffer : launch.getBuffers()) {
    auto type = mlir::cast<loop::BufferType>(buffer.getType());
    os << "    {" << std::max<int64_t>(type.getElementCount().evaluate(hints).value_or(1), 0) << ", "
       << type.getElementBytes() << ", '" << kindOf(type.getElementType()) << "'},\n";
  }
  os << "    {0, 0, 0}};\n\n";
  writeLevels(os, kernel.getSymName(), levels);
  os << driver;
  return text;
}

} // namespace ptc
