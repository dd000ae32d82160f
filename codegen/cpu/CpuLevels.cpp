//===- CpuLevels.cpp - the table of CPU levels ----------------------------===//
#include "codegen/cpu/CpuLevels.h"

using namespace ptc;
using namespace ptc::cpu;

static constexpr llvm::StringLiteral x86Triple = "x86_64-unknown-linux-gnu";

// The psABI's micro-architecture levels. v4 forces 512-bit vectors: LLVM's default prefers 256 where old processors
// lowered their clock. VNNI and bf16 dot products are a level of their own because v4 does not promise them.
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
     .hasVnni = false,
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
     .hasVnni = false,
     .hasBf16Dot = false},
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
     .hasVnni = false,
     .hasBf16Dot = false},
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
     .hasVnni = true,
     .hasBf16Dot = true},
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
     .hasVnni = false,
     .hasBf16Dot = false},
};

llvm::ArrayRef<CpuLevel> cpu::getCpuLevels() { return levels; }

const CpuLevel *cpu::findCpuLevel(llvm::StringRef name) {
  for (const CpuLevel &level : levels)
    if (level.name == name)
      return &level;
  return nullptr;
}
