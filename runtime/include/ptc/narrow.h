/* The bits of a float rounded to f16 and bf16: to nearest, ties to even; NaNs stay NaNs, quiet. The compiler rounds
 * weights with the same functions, so that set_weight stores what a compile does. */
#ifndef PTC_NARROW_H
#define PTC_NARROW_H

#include <stdint.h>

static inline uint16_t ptc_rt_half_bits(uint32_t bits) {
  uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x1ff));
  if (magnitude >= 0x477ff000) /* 65520 and above round to infinity */
    return (uint16_t)(sign | 0x7c00);
  if (magnitude < 0x33000001) /* up to half of the smallest denormal */
    return (uint16_t)sign;
  uint32_t exponent = magnitude >> 23, mantissa = (magnitude & 0x7fffff) | 0x800000;
  uint32_t shift = exponent < 113 ? 126 - exponent : 13; /* bits dropped from the mantissa */
  uint32_t kept = mantissa >> shift, lost = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
  kept += lost > half || (lost == half && (kept & 1));
  /* A carry moves into the exponent, which is what rounding up to the next binade means. */
  return (uint16_t)(sign | (exponent < 113 ? kept : kept + ((exponent - 113) << 10)));
}

static inline uint16_t ptc_rt_bfloat_bits(uint32_t bits) {
  if ((bits & 0x7fffffff) > 0x7f800000)
    return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif /* PTC_NARROW_H */
