/* Conversions of f16 and bf16 that LLVM calls where the processor has no instruction for them (levels without F16C or
 * AVX512-BF16). Names and signatures are those of the compiler's support library. Round to nearest, ties to even; NaNs
 * stay NaNs, quiet.
 *
 * The narrowing of a double goes through a float rounded to odd: its last bit records that something was lost, so that
 * the second rounding sees the truth.
 */
#include "ptc/narrow.h"

#include <stdint.h>
#include <string.h>

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static _Float16 half_of(uint16_t bits) {
  _Float16 value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static __bf16 bfloat_of(uint16_t bits) {
  __bf16 value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static uint32_t round_to_odd(double value) {
  float near = (float)value;
  uint32_t bits = bits_of(near);
  if (value != value || (double)near == value)
    return bits;
  double magnitude = value < 0 ? -value : value, found = near < 0 ? -(double)near : (double)near;
  if (found > magnitude) /* truncate */
    bits -= 1;
  return bits | 1;
}

float __extendhfsf2(_Float16 value) {
  uint16_t half;
  memcpy(&half, &value, sizeof(half));
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
  if (exponent == 0x1f)
    return float_of(sign | 0x7f800000 | mantissa << 13 | (mantissa ? 0x400000 : 0));
  if (exponent == 0) {
    float magnitude = (float)mantissa * 0x1p-24f;
    return float_of(sign | bits_of(magnitude));
  }
  return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
}

double __extendhfdf2(_Float16 value) { return __extendhfsf2(value); }

_Float16 __truncsfhf2(float value) { return half_of(ptc_rt_half_bits(bits_of(value))); }

_Float16 __truncdfhf2(double value) { return half_of(ptc_rt_half_bits(round_to_odd(value))); }

__bf16 __truncsfbf2(float value) { return bfloat_of(ptc_rt_bfloat_bits(bits_of(value))); }

__bf16 __truncdfbf2(double value) { return bfloat_of(ptc_rt_bfloat_bits(round_to_odd(value))); }
