/* Strings that are numbers, and numbers as strings, whatever the locale of the process says.
 *
 * Reading. A decimal is D * 10^e, D an integer of as many digits as the string has (of more than 800 the rest only
 * tells whether D is exact: no double lies between two decimals of so many equal digits). It is computed exactly, as a
 * large integer over a power of two: multiplied by 10 where e > 0; where e < 0 shifted to the left until dividing by
 * 10^-e leaves 128 bits at least, what is left over noted in the last bit. So it rounds once, to nearest, ties to even.
 *
 * Writing. snprintf gives correctly rounded digits; the fewest that read back as the same number are the text.
 */
#include "runtime.h"
#include "utf8.h"

#include <stdio.h>
#include <string.h>

/* ---- large integers ---- */

enum { MOST_LIMBS = 320, MOST_DIGITS = 800 };

/* limb[0] is the lowest. 800 digits have 2,660 bits, the largest power of ten that is not certainly infinite 1,030, the
 * longest shift, for 10^-1200, 4,120: 7,000 bits are at most needed, and there are 10,240. */
typedef struct large {
  uint32_t limbs[MOST_LIMBS];
  int count;
} large;

static void multiply_add(large *x, uint32_t factor, uint32_t addend) {
  uint64_t carry = addend;
  for (int i = 0; i < x->count; i++) {
    carry += (uint64_t)x->limbs[i] * factor;
    x->limbs[i] = (uint32_t)carry;
    carry >>= 32;
  }
  if (carry && x->count < MOST_LIMBS)
    x->limbs[x->count++] = (uint32_t)carry;
}

static uint32_t divide(large *x, uint32_t divisor) {
  uint64_t rest = 0;
  for (int i = x->count - 1; i >= 0; i--) {
    rest = rest << 32 | x->limbs[i];
    x->limbs[i] = (uint32_t)(rest / divisor);
    rest %= divisor;
  }
  while (x->count > 0 && x->limbs[x->count - 1] == 0)
    x->count--;
  return (uint32_t)rest;
}

static void shift_limbs(large *x, int limbs) {
  memmove(x->limbs + limbs, x->limbs, (size_t)x->count * sizeof(uint32_t));
  memset(x->limbs, 0, (size_t)limbs * sizeof(uint32_t));
  x->count += limbs;
}

static int bit_length(const large *x) { return x->count ? 32 * x->count - __builtin_clz(x->limbs[x->count - 1]) : 0; }

static bool bit_at(const large *x, int bit) { return bit >= 0 && (x->limbs[bit / 32] >> (bit % 32) & 1); }

static bool any_below(const large *x, int bit) {
  for (int i = 0; i < bit; i += 32) {
    uint32_t mask = bit - i >= 32 ? UINT32_MAX : (1u << (bit - i)) - 1;
    if (x->limbs[i / 32] & mask)
      return true;
  }
  return false;
}

/* ---- reading ---- */

/* x * 2^-shift, and a little more where `more`, as a double rounded to `precision` bits with exponents of `least` and
 * more (-1074 or -149: of the last bit), infinity from 2^limit on. */
static double round_large(const large *x, int shift, bool more, int precision, int least, int limit) {
  int length = bit_length(x);
  int drop = length - precision; /* bits behind the last that is kept */
  if (drop - shift < least)
    drop = least + shift;
  if (drop > length + 1)
    return 0;
  uint64_t kept = 0;
  for (int bit = length - 1; bit >= drop && bit >= 0; bit--)
    kept = kept << 1 | bit_at(x, bit);
  if (drop < 0)
    kept <<= -drop;
  bool half = drop > 0 && drop <= length && bit_at(x, drop - 1);
  bool rest = more || (drop > 1 && any_below(x, drop - 1 < length ? drop - 1 : length));
  if (half && (rest || (kept & 1)))
    kept++;
  double value = (double)kept; /* at most 2^53: exact */
  int exponent = drop - shift;
  if (kept && exponent + 64 - __builtin_clzll(kept) > limit)
    return __builtin_inf();
  for (; exponent > 0; exponent -= exponent > 30 ? 30 : 1)
    value *= exponent > 30 ? 0x1p30 : 2;
  for (; exponent < 0; exponent += exponent < -30 ? 30 : 1) /* exact: no bit is below the smallest denormal */
    value *= exponent < -30 ? 0x1p-30 : 0.5;
  return value;
}

typedef struct decimal {
  char digits[MOST_DIGITS];
  int count;
  int64_t exponent; /* of the last digit */
  bool isInexact, isNegative;
} decimal;

static double to_double(const decimal *number, int precision, int least, int limit) {
  int64_t magnitude = number->exponent + number->count; /* below 10^magnitude */
  if (number->count == 0 || magnitude < -400)
    return 0;
  if (magnitude > 400)
    return __builtin_inf();
  large x = {.count = 0};
  for (int i = 0; i < number->count; i++)
    multiply_add(&x, 10, (uint32_t)(number->digits[i] - '0'));
  bool more = number->isInexact;
  int64_t exponent = number->exponent;
  for (; exponent > 0; exponent--)
    multiply_add(&x, 10, 0);
  int limbs = exponent < 0 ? (int)(-exponent * 10 / 96) + 5 : 0; /* log2(10) / 32 < 10 / 96 */
  if (limbs)
    shift_limbs(&x, limbs);
  for (; exponent <= -9; exponent += 9)
    more |= divide(&x, 1000000000) != 0;
  for (; exponent < 0; exponent++)
    more |= divide(&x, 10) != 0;
  return round_large(&x, 32 * limbs, more, precision, least, limit);
}

static bool matches(const char *text, int64_t bytes, const char *word) {
  for (int64_t i = 0; i < bytes; i++)
    if (!word[i] || (text[i] | 0x20) != word[i])
      return false;
  return !word[bytes];
}

/* Digits of "-12.5e3"; false if that is not all of the text. */
static bool read_decimal(const char *text, int64_t bytes, decimal *number) {
  int64_t at = 0, digits = 0;
  bool isBehindPoint = false;
  *number = (decimal){.count = 0};
  if (at < bytes && (text[at] == '+' || text[at] == '-'))
    number->isNegative = text[at++] == '-';
  for (; at < bytes; at++) {
    if (text[at] == '.' && !isBehindPoint) {
      isBehindPoint = true;
      continue;
    }
    if (text[at] < '0' || text[at] > '9')
      break;
    digits++;
    number->exponent -= isBehindPoint;
    if (number->count == 0 && text[at] == '0')
      continue;
    if (number->count < MOST_DIGITS) {
      number->digits[number->count++] = text[at];
    } else {
      number->isInexact |= text[at] != '0';
      number->exponent++;
    }
  }
  if (digits == 0 || at == bytes)
    return digits > 0;
  if ((text[at] | 0x20) != 'e')
    return false;
  at++;
  bool isNegative = at < bytes && text[at] == '-';
  at += at < bytes && (text[at] == '+' || text[at] == '-');
  int64_t exponent = 0, start = at;
  for (; at < bytes && text[at] >= '0' && text[at] <= '9'; at++)
    exponent = exponent < 1000000000 ? exponent * 10 + (text[at] - '0') : exponent;
  number->exponent += isNegative ? -exponent : exponent;
  return at == bytes && at > start;
}

static bool read_float(const char *text, int64_t bytes, bool isSingle, double *value) {
  decimal number;
  if (read_decimal(text, bytes, &number)) {
    double magnitude = isSingle ? to_double(&number, 24, -149, 128) : to_double(&number, 53, -1074, 1024);
    *value = number.isNegative ? -magnitude : magnitude;
    return true;
  }
  bool isSigned = bytes > 0 && (text[0] == '+' || text[0] == '-'), isNegative = isSigned && text[0] == '-';
  text += isSigned;
  bytes -= isSigned;
  if (matches(text, bytes, "nan"))
    *value = __builtin_nan("");
  else if (matches(text, bytes, "inf") || matches(text, bytes, "infinity"))
    *value = isNegative ? -__builtin_inf() : __builtin_inf();
  else
    return false;
  return true;
}

/* Whole numbers exactly; "2.5" and "1e3" by way of a double, the fraction dropped. False if the type does not hold it.
 */
static bool read_integer(const char *text, int64_t bytes, bool isUnsigned, uint64_t *value) {
  bool isNegative = bytes > 0 && text[0] == '-', isWhole = true;
  int64_t start = bytes > 0 && (text[0] == '+' || text[0] == '-');
  uint64_t magnitude = 0, most = isUnsigned ? isNegative ? 0 : UINT64_MAX : (uint64_t)INT64_MAX + isNegative;
  for (int64_t i = start; i < bytes && isWhole; i++)
    isWhole = text[i] >= '0' && text[i] <= '9';
  if (isWhole && start < bytes) {
    for (int64_t i = start; i < bytes; i++)
      if (__builtin_mul_overflow(magnitude, 10, &magnitude) ||
          __builtin_add_overflow(magnitude, (uint64_t)(text[i] - '0'), &magnitude))
        return false;
  } else {
    double number;
    if (!read_float(text, bytes, false, &number))
      return false;
    double size = isNegative ? -number : number;
    if (!(size >= 0 && size < 0x1p64))
      return false;
    magnitude = (uint64_t)size;
  }
  *value = isNegative ? 0 - magnitude : magnitude;
  return magnitude <= most;
}

/* numbers[1]: 0 and 3 f64 (3: rounded as an f32), 1 si64, 2 ui64. */
int32_t ptc_rt_string_to_number(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  const ptc_string *const *x = buffers[0];
  int64_t kind = numbers[1];
  for (int64_t i = 0; i < numbers[0]; i++) {
    ptc_string text = ptc_rt_text(x[i]);
    while (text.bytes > 0 && ptc_rt_is_space(text.data[0]))
      text.data++, text.bytes--;
    while (text.bytes > 0 && ptc_rt_is_space(text.data[text.bytes - 1]))
      text.bytes--;
    bool isNumber = kind == 1 || kind == 2 ? read_integer(text.data, text.bytes, kind == 2, (uint64_t *)buffers[1] + i)
                                           : read_float(text.data, text.bytes, kind == 3, (double *)buffers[1] + i);
    if (!isNumber)
      return ptc_rt_refuse(call, site, "element %lld, '%.*s', is no %s", (long long)i,
                           (int)(text.bytes < 60 ? text.bytes : 60), text.bytes ? text.data : "",
                           kind == 1   ? "integer of 64 bits"
                           : kind == 2 ? "unsigned integer of 64 bits"
                                       : "number");
  }
  return 0;
}

/* ---- writing ---- */

enum { MOST_CHARACTERS = 32 };

/* Plain notation from 1e-4 up to 1e16, of single precision, which has no more than 9 digits, up to 1e8; else with an
 * exponent. */
static int write_float(double value, bool isSingle, char *to) {
  if (value != value)
    return snprintf(to, MOST_CHARACTERS, "NaN");
  if (value - value != 0)
    return snprintf(to, MOST_CHARACTERS, value < 0 ? "-INF" : "INF");
  char text[40], digits[20];
  int count = 0, exponent = 0;
  for (int precision = 1; precision <= 17; precision++) {
    int length = snprintf(text, sizeof(text), "%.*e", precision - 1, value);
    int at = count = exponent = 0;
    for (; at < length && (text[at] | 0x20) != 'e'; at++) /* the point may be any character */
      if (text[at] >= '0' && text[at] <= '9')
        digits[count++] = text[at];
    bool isBelow = text[at + 1] == '-';
    for (at += 2; at < length; at++)
      exponent = exponent * 10 + (text[at] - '0');
    exponent = isBelow ? -exponent : exponent;
    decimal number = {.count = count, .exponent = exponent - count + 1};
    memcpy(number.digits, digits, (size_t)count);
    double found = isSingle ? to_double(&number, 24, -149, 128) : to_double(&number, 53, -1074, 1024);
    if (found == (value < 0 ? -value : value))
      break;
  }
  while (count > 1 && digits[count - 1] == '0')
    count--;
  int used = 0;
  if (__builtin_signbit(value))
    to[used++] = '-';
  if (exponent < -4 || exponent >= (isSingle ? 8 : 16)) {
    to[used++] = digits[0];
    if (count > 1)
      to[used++] = '.';
    memcpy(to + used, digits + 1, (size_t)(count - 1));
    used += count - 1;
    return used + snprintf(to + used, 8, "e%c%02d", exponent < 0 ? '-' : '+', exponent < 0 ? -exponent : exponent);
  }
  for (int place = exponent < 0 ? 0 : exponent; place > exponent - count || place >= 0; place--) {
    if (place == -1)
      to[used++] = '.';
    int digit = exponent - place;
    to[used++] = digit >= 0 && digit < count ? digits[digit] : '0';
  }
  return used;
}

static int write_number(const void *x, int64_t i, int64_t kind, char *to) {
  switch (kind) {
  case 0:
    return write_float((double)((const float *)x)[i], true, to);
  case 1:
    return write_float(((const double *)x)[i], false, to);
  case 2:
    return snprintf(to, MOST_CHARACTERS, "%lld", (long long)((const int64_t *)x)[i]);
  case 3:
    return snprintf(to, MOST_CHARACTERS, "%llu", (unsigned long long)((const uint64_t *)x)[i]);
  default:
    return snprintf(to, MOST_CHARACTERS, "%d", ((const uint8_t *)x)[i] != 0);
  }
}

int32_t ptc_rt_string_from_number(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  (void)site;
  int64_t count = numbers[0];
  const ptc_string **result = buffers[1];
  ptc_string *views = ptc_rt_take(call, (size_t)count, sizeof(ptc_string));
  char *next = ptc_rt_take(call, (size_t)count, MOST_CHARACTERS);
  if (!views || !next)
    return PTC_RT_FAULT_MEMORY;
  for (int64_t i = 0; i < count; i++, next += MOST_CHARACTERS) {
    views[i] = (ptc_string){next, write_number(buffers[0], i, numbers[1], next)};
    result[i] = &views[i];
  }
  return 0;
}
