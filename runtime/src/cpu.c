/* What this processor has, and how many of it this process may use.
 *
 * A register file counts as present only if the operating system saves it on a context switch (XCR0), so that a level
 * never ends in SIGILL on a kernel or hypervisor that has switched AVX-512 off. AMX needs a permission that a process
 * must ask the kernel for, once for all of its threads, those that run already too. It is asked for when a model wants
 * a level that has it and nothing else is missing: from then on the kernel refuses alternate signal stacks too small
 * for the registers, which a process that does without them need not be told.
 */
#define _GNU_SOURCE
#include "runtime.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)

#include <cpuid.h>

typedef struct leaf {
  uint32_t a, b, c, d;
} leaf;

static leaf cpuid(uint32_t number, uint32_t sub) {
  leaf l = {0, 0, 0, 0};
  uint32_t highest = __get_cpuid_max(number & 0x80000000u, 0);
  if (highest >= number)
    __cpuid_count(number, sub, l.a, l.b, l.c, l.d);
  return l;
}

static uint64_t saved_registers(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static bool has(uint32_t word, uint32_t bits) { return (word & bits) == bits; }

#define BIT(n) (1u << (n))

static bool amx_allowed(void) {
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18 };
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
}

static uint64_t present_features(void) {
  leaf one = cpuid(1, 0), seven = cpuid(7, 0), seven1 = cpuid(7, 1), extended = cpuid(0x80000001u, 0);
  uint64_t features = 0;
  /* SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF */
  if (!has(one.c, BIT(0) | BIT(9) | BIT(13) | BIT(19) | BIT(20) | BIT(23)) || !has(extended.c, BIT(0)))
    return features;
  features |= PTC_RT_X86_V2;
  if (has(extended.c, BIT(6)))
    features |= PTC_RT_X86_SSE4A;
  bool xsave = has(one.c, BIT(27)); /* OSXSAVE */
  uint64_t saved = xsave ? saved_registers() : 0;
  if ((saved & 0x6) != 0x6)
    return features;
  /* FMA, MOVBE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT */
  if (!has(one.c, BIT(12) | BIT(22) | BIT(28) | BIT(29)) || !has(seven.b, BIT(3) | BIT(5) | BIT(8)) ||
      !has(extended.c, BIT(5)))
    return features;
  features |= PTC_RT_X86_V3;
  if (has(seven1.a, BIT(4)))
    features |= PTC_RT_X86_AVX_VNNI;
  /* AVX-512 F, DQ, CD, BW, VL */
  if ((saved & 0xe6) != 0xe6 || !has(seven.b, BIT(16) | BIT(17) | BIT(28) | BIT(30) | BIT(31)))
    return features;
  features |= PTC_RT_X86_V4;
  if (has(seven.c, BIT(1)))
    features |= PTC_RT_X86_AVX512_VBMI;
  if (has(seven.c, BIT(11)))
    features |= PTC_RT_X86_AVX512_VNNI;
  if (has(seven1.a, BIT(5)))
    features |= PTC_RT_X86_AVX512_BF16;
  if (has(seven.d, BIT(23)))
    features |= PTC_RT_X86_AVX512_FP16;
  if (has(seven.d, BIT(24)) && (saved & 0x60000) == 0x60000) {
    features |= PTC_RT_X86_AMX_TILE;
    if (has(seven.d, BIT(25)))
      features |= PTC_RT_X86_AMX_INT8;
    if (has(seven.d, BIT(22)))
      features |= PTC_RT_X86_AMX_BF16;
  }
  return features;
}

static bool is_allowed(uint64_t features) { return !(features & PTC_RT_X86_AMX_TILE) || amx_allowed(); }

#elif defined(__aarch64__)

#include <sys/auxv.h>

static uint64_t present_features(void) {
  uint64_t one = getauxval(AT_HWCAP), two = getauxval(AT_HWCAP2), features = 0;
  if (one & (1ull << 20)) /* ASIMDDP */
    features |= PTC_RT_ARM_DOTPROD;
  if (one & (1ull << 10)) /* ASIMDHP */
    features |= PTC_RT_ARM_FP16;
  if (one & (1ull << 22))
    features |= PTC_RT_ARM_SVE;
  if (two & (1ull << 13))
    features |= PTC_RT_ARM_I8MM;
  if (two & (1ull << 14))
    features |= PTC_RT_ARM_BF16;
  return features;
}

static bool is_allowed(uint64_t features) {
  (void)features;
  return true;
}

#endif

bool ptc_rt_cpu_has(uint64_t features) { return (features & ~present_features()) == 0 && is_allowed(features); }

uint32_t ptc_rt_cpu_count(void) {
  unsigned long mask[128]; /* 8192 processors */
  long bytes = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);
  uint32_t count = 0;
  for (long i = 0; i < bytes / (long)sizeof(mask[0]); i++)
    count += (uint32_t)__builtin_popcountl(mask[i]);
  if (count < 1)
    return 1;
  return count < PTC_RT_MAX_THREADS ? count : PTC_RT_MAX_THREADS;
}
