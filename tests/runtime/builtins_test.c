/* The software conversions against the processor's own, where it has them: every half, and floats that are dense in the
 * mantissa bits that rounding looks at. */
#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

extern float __extendhfsf2(_Float16);
extern _Float16 __truncsfhf2(float);
extern _Float16 __truncdfhf2(double);
extern __bf16 __truncdfbf2(double);

static uint16_t half_bits(_Float16 value) {
  uint16_t bits;
  memcpy(&bits, &value, 2);
  return bits;
}

static float as_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

static uint32_t as_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

__attribute__((target("f16c"))) static int compare(void) {
  for (uint32_t h = 0; h < 0x10000; h++) {
    uint16_t bits = (uint16_t)h;
    _Float16 half;
    memcpy(&half, &bits, 2);
    if (as_bits(__extendhfsf2(half)) != as_bits(_cvtsh_ss(bits)))
      return printf("extend %04x\n", h);
  }
  for (uint64_t f = 0; f < 0x100000000; f += 97) {
    float value = as_float((uint32_t)f);
    if (half_bits(__truncsfhf2(value)) != _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
      return printf("truncate %08x\n", (unsigned)f);
  }
  return 0;
}

/* Just above, at and below the middle of two neighbours, by less than a float can tell. */
static int check_double_rounding(void) {
  const double middle = 1 + 0x1p-11, tiny = 0x1p-40;
  if (half_bits(__truncdfhf2(middle)) != 0x3c00 || half_bits(__truncdfhf2(middle + tiny)) != 0x3c01 ||
      half_bits(__truncdfhf2(middle - tiny)) != 0x3c00 || half_bits(__truncdfhf2(1e300)) != 0x7c00)
    return printf("double to half\n");
  __bf16 above = __truncdfbf2(-(1 + 0x1p-8 + tiny));
  uint16_t bits;
  memcpy(&bits, &above, 2);
  return bits == 0xbf81 ? 0 : printf("double to bfloat: %04x\n", bits);
}

int test_builtins(void) { return (__builtin_cpu_supports("f16c") && compare() != 0) || check_double_rounding() != 0; }
