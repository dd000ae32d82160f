/* Floating-point mode of the calling thread. Generated code is compiled for round-to-nearest with denormals and masked
 * exceptions; whatever the host has set (flush-to-zero is common in audio code) must neither change results nor be
 * lost. */
#ifndef PTC_FPMODE_H
#define PTC_FPMODE_H

#include <stdint.h>

#if defined(__x86_64__)

#include <xmmintrin.h>

typedef uint32_t ptc_rt_fpmode;

static inline ptc_rt_fpmode ptc_rt_fpmode_set_default(void) {
  ptc_rt_fpmode old = _mm_getcsr();
  _mm_setcsr(0x1f80); /* all exceptions masked, nearest, no FTZ, no DAZ */
  return old;
}

static inline void ptc_rt_fpmode_restore(ptc_rt_fpmode mode) { _mm_setcsr(mode); }

#elif defined(__aarch64__)

typedef uint64_t ptc_rt_fpmode;

static inline void ptc_rt_fpmode_restore(ptc_rt_fpmode mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode)); }

static inline ptc_rt_fpmode ptc_rt_fpmode_set_default(void) {
  ptc_rt_fpmode old;
  __asm__ volatile("mrs %0, fpcr" : "=r"(old));
  ptc_rt_fpmode_restore(0);
  return old;
}

#else
#error "no floating-point mode for this processor"
#endif

#endif /* PTC_FPMODE_H */
