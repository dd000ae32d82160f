//===- CpuLevels.cpp - the table of CPU levels ----------------------------===//
#include "codegen/cpu/CpuLevels.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

using namespace ptc;
using namespace ptc::cpu;

static constexpr llvm::StringLiteral x86Triple = "x86_64-unknown-linux-gnu";

// The psABI's micro-architecture levels, and beside them what these do not promise. v4 forces 512-bit vectors: LLVM's
// default prefers 256 where old processors lowered their clock. VNNI, dot products of bytes, came with 256 bits alone
// to Intel's clients (from 2021 on), and with 512 bits and those of bf16 to servers; above these are the matrix
// registers of Intel's servers from 2023 on (Sapphire Rapids), where bf16 dot products of vectors are half as fast as
// f32's products. SSE4A tells AMD's processors from others: those of 256 bits (up to Zen 3) follow streams by
// themselves, those of 512 (from Zen 4 on) have units for additions beside those for multiply-adds. Of Arm's
// extensions, dot products of signed bytes came in 2017 (Cortex-A76, Neoverse N1), mixed ones and those of bf16 with
// Armv8.6 (Neoverse V1 and N2).
static constexpr CpuLevel levels[] = {
    {.name = "x86-64-v2",
     .triple = x86Triple,
     .cpu = "x86-64-v2",
     .tuneCpu = "generic",
     .features = "",
     .vectorBits = 128,
     .vectorRegisters = 16,
     .maskedElementBits = 0,
     .hasFma = false,
     .hasGather = false,
     .hasHalfConversions = false,
     .hasByteDot = false,
     .hasSignedByteDot = false,
     .hasBf16Dot = false},
    {.name = "x86-64-v3",
     .triple = x86Triple,
     .cpu = "x86-64-v3",
     .tuneCpu = "haswell",
     .features = "",
     .vectorBits = 256,
     .vectorRegisters = 16,
     .maskedElementBits = 32,
     .hasFma = true,
     .hasGather = false,
     .hasHalfConversions = true,
     .hasByteDot = false,
     .hasSignedByteDot = false,
     .hasBf16Dot = false},
    {.name = "x86-64-v3-zen",
     .triple = x86Triple,
     .cpu = "x86-64-v3",
     .tuneCpu = "haswell",
     .features = "+sse4a",
     .vectorBits = 256,
     .vectorRegisters = 16,
     .maskedElementBits = 32,
     .hasFma = true,
     .hasGather = false,
     .hasHalfConversions = true,
     .hasByteDot = false,
     .hasSignedByteDot = false,
     .hasBf16Dot = false,
     .followsStreams = true,
     .base = "x86-64-v3"},
    {.name = "x86-64-v3-vnni",
     .triple = x86Triple,
     .cpu = "x86-64-v3",
     .tuneCpu = "haswell",
     .features = "+avxvnni",
     .vectorBits = 256,
     .vectorRegisters = 16,
     .maskedElementBits = 32,
     .hasFma = true,
     .hasGather = false,
     .hasHalfConversions = true,
     .hasByteDot = true,
     .hasSignedByteDot = false,
     .hasBf16Dot = false,
     .base = "x86-64-v3"},
    {.name = "x86-64-v4",
     .triple = x86Triple,
     .cpu = "x86-64-v4",
     .tuneCpu = "znver4",
     .features = "-prefer-256-bit",
     .vectorBits = 512,
     .vectorRegisters = 32,
     .maskedElementBits = 8,
     .hasFma = true,
     .hasGather = true,
     .hasHalfConversions = true,
     .hasByteDot = false,
     .hasSignedByteDot = false,
     .hasBf16Dot = false,
     .hasScalef = true},
    {.name = "x86-64-v4-vnni-bf16",
     .triple = x86Triple,
     .cpu = "x86-64-v4",
     .tuneCpu = "znver4",
     .features = "-prefer-256-bit,+avx512vnni,+avx512bf16,+avx512vbmi",
     .vectorBits = 512,
     .vectorRegisters = 32,
     .maskedElementBits = 8,
     .hasFma = true,
     .hasGather = true,
     .hasHalfConversions = true,
     .hasByteDot = true,
     .hasSignedByteDot = false,
     .hasBf16Dot = true,
     .hasScalef = true,
     .base = "x86-64-v4"},
    {.name = "x86-64-v4-zen4",
     .triple = x86Triple,
     .cpu = "x86-64-v4",
     .tuneCpu = "znver4",
     .features = "-prefer-256-bit,+avx512vnni,+avx512bf16,+avx512vbmi,+sse4a",
     .vectorBits = 512,
     .vectorRegisters = 32,
     .maskedElementBits = 8,
     .hasFma = true,
     .hasGather = true,
     .hasHalfConversions = true,
     .hasByteDot = true,
     .hasSignedByteDot = false,
     .hasBf16Dot = true,
     .hasScalef = true,
     .addsBesideProducts = true,
     .base = "x86-64-v4-vnni-bf16"},
    {.name = "x86-64-v4-amx",
     .triple = x86Triple,
     .cpu = "x86-64-v4",
     .tuneCpu = "sapphirerapids",
     .features = "-prefer-256-bit,+avx512vnni,+avx512bf16,+avx512vbmi,+amx-tile,+amx-bf16,+amx-int8",
     .vectorBits = 512,
     .vectorRegisters = 32,
     .maskedElementBits = 8,
     .hasFma = true,
     .hasGather = true,
     .hasHalfConversions = true,
     .hasByteDot = true,
     .hasSignedByteDot = false,
     .hasBf16Dot = true,
     .hasScalef = true,
     .hasMatrixRegisters = true},
    {.name = "aarch64",
     .triple = "aarch64-unknown-linux-gnu",
     .cpu = "generic",
     .tuneCpu = "neoverse-n1",
     .features = "+neon",
     .vectorBits = 128,
     .vectorRegisters = 32,
     .maskedElementBits = 0,
     .hasFma = true,
     .hasGather = false,
     .hasHalfConversions = true,
     .hasByteDot = false,
     .hasSignedByteDot = false,
     .hasBf16Dot = false},
    {.name = "aarch64-dotprod",
     .triple = "aarch64-unknown-linux-gnu",
     .cpu = "generic",
     .tuneCpu = "neoverse-n1",
     .features = "+neon,+dotprod",
     .vectorBits = 128,
     .vectorRegisters = 32,
     .maskedElementBits = 0,
     .hasFma = true,
     .hasGather = false,
     .hasHalfConversions = true,
     .hasByteDot = false,
     .hasSignedByteDot = true,
     .hasBf16Dot = false},
    {.name = "aarch64-i8mm-bf16",
     .triple = "aarch64-unknown-linux-gnu",
     .cpu = "generic",
     .tuneCpu = "neoverse-v1",
     .features = "+neon,+dotprod,+i8mm,+bf16",
     .vectorBits = 128,
     .vectorRegisters = 32,
     .maskedElementBits = 0,
     .hasFma = true,
     .hasGather = false,
     .hasHalfConversions = true,
     .hasByteDot = true,
     .hasSignedByteDot = true,
     .hasBf16Dot = true},
};

llvm::ArrayRef<CpuLevel> cpu::getCpuLevels() { return levels; }

namespace {
/// LLVM's intrinsics for an operation on vectors of so many bits; empty: there is none.
struct Intrinsics {
  llvm::StringLiteral x86Of128, x86Of256, x86Of512, armOf128;

  llvm::StringRef of(const CpuLevel &level, int64_t bits) const {
    if (bits > level.vectorBits)
      return "";
    bool isX86 = level.triple == x86Triple;
    switch (bits) {
    case 128:
      return isX86 ? x86Of128 : armOf128;
    case 256:
      return x86Of256;
    case 512:
      return x86Of512;
    default:
      return "";
    }
  }
};
} // namespace

static constexpr Intrinsics byteDots = {"llvm.x86.avx512.vpdpbusd.128", "llvm.x86.avx512.vpdpbusd.256",
                                        "llvm.x86.avx512.vpdpbusd.512", "llvm.aarch64.neon.usdot.v4i32.v16i8"};
static constexpr Intrinsics signedByteDots = {"", "", "", "llvm.aarch64.neon.sdot.v4i32.v16i8"};
static constexpr Intrinsics bf16Dots = {"llvm.x86.avx512bf16.dpbf16ps.128", "llvm.x86.avx512bf16.dpbf16ps.256",
                                        "llvm.x86.avx512bf16.dpbf16ps.512", "llvm.aarch64.neon.bfdot.v4f32.v8bf16"};
static constexpr Intrinsics pairProducts = {"llvm.x86.sse2.pmadd.wd", "llvm.x86.avx2.pmadd.wd",
                                            "llvm.x86.avx512.pmaddw.d.512", ""};
static constexpr Intrinsics bytePairs = {"llvm.x86.ssse3.pmadd.ub.sw.128", "llvm.x86.avx2.pmadd.ub.sw",
                                         "llvm.x86.avx512.pmaddubs.w.512", ""};
static constexpr Intrinsics lookUps = {"", "llvm.x86.avx2.permps", "llvm.x86.avx512.permvar.sf.512", ""};

llvm::StringRef CpuLevel::byteDotOf(int64_t bits) const { return hasByteDot ? byteDots.of(*this, bits) : ""; }

llvm::StringRef CpuLevel::signedByteDotOf(int64_t bits) const {
  return hasSignedByteDot ? signedByteDots.of(*this, bits) : "";
}

llvm::StringRef CpuLevel::bf16DotOf(int64_t bits) const { return hasBf16Dot ? bf16Dots.of(*this, bits) : ""; }

llvm::StringRef CpuLevel::pairProductOf(int64_t bits) const { return pairProducts.of(*this, bits); }

llvm::StringRef CpuLevel::bytePairsOf(int64_t bits) const { return bytePairs.of(*this, bits); }

llvm::StringRef CpuLevel::lookUpOf(int64_t bits) const { return lookUps.of(*this, bits); }

llvm::StringRef CpuLevel::loadFloatMode() const { return triple == x86Triple ? "llvm.x86.sse.ldmxcsr" : ""; }

const CpuLevel *cpu::findCpuLevel(llvm::StringRef name) {
  for (const CpuLevel &level : levels)
    if (level.name == name)
      return &level;
  return nullptr;
}

/// What the psABI asks of a level beyond the one below it, by LLVM's names.
static llvm::ArrayRef<llvm::StringRef> featuresOf(llvm::StringRef cpu) {
  static constexpr llvm::StringRef v2[] = {"cx16", "sahf", "popcnt", "sse4.1", "sse4.2", "ssse3"};
  static constexpr llvm::StringRef v3[] = {"cx16", "sahf", "popcnt", "sse4.2", "avx",   "avx2",
                                           "bmi",  "bmi2", "f16c",   "fma",    "lzcnt", "movbe"};
  static constexpr llvm::StringRef v4[] = {"avx2",    "bmi2",     "f16c",     "fma",      "lzcnt",   "movbe",
                                           "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};
  return cpu == "x86-64-v2"   ? llvm::ArrayRef(v2)
         : cpu == "x86-64-v3" ? llvm::ArrayRef(v3)
         : cpu == "x86-64-v4" ? llvm::ArrayRef(v4)
                              : llvm::ArrayRef<llvm::StringRef>();
}

/// Linux wants to be asked for the use of matrix registers.
static bool mayUseMatrixRegisters() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long requestPermission = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
#else
  return false;
#endif
}

bool cpu::isOfHost(const CpuLevel &level) {
  llvm::Triple host(llvm::sys::getProcessTriple());
  llvm::StringMap<bool> has = llvm::sys::getHostCPUFeatures();
  llvm::SmallVector<llvm::StringRef> wanted;
  level.features.split(wanted, ',', -1, /*KeepEmpty=*/false);
  llvm::erase_if(wanted, [](llvm::StringRef feature) { return !feature.consume_front("+"); });
  for (llvm::StringRef &feature : wanted)
    feature.consume_front("+");
  llvm::append_range(wanted, featuresOf(level.cpu));
  return llvm::Triple(level.triple).getArch() == host.getArch() &&
         llvm::all_of(wanted, [&](llvm::StringRef feature) { return has.lookup(feature); }) &&
         (!level.hasMatrixRegisters || mayUseMatrixRegisters());
}

const CpuLevel *cpu::findHostLevel() {
  for (const CpuLevel &level : llvm::reverse(levels))
    if (isOfHost(level))
      return &level;
  return nullptr;
}
