/* Characters of UTF-8, and the few classes that strings' functions ask for. Tables: casetable.h. */
#ifndef PTC_UTF8_H
#define PTC_UTF8_H

#include <stdbool.h>
#include <stdint.h>

/* The code point at `text`, of which `bytes` (at least 1) are left, and its length. A byte that begins no well-formed
 * sequence (overlong ones and surrogates are none) has the code -1 and the length 1. */
static inline int64_t ptc_rt_decode(const char *text, int64_t bytes, int32_t *character) {
  const uint8_t *at = (const uint8_t *)text;
  uint8_t lead = at[0];
  int64_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  *character = -1;
  if (length == 0 || length > bytes)
    return 1;
  if (length == 1) {
    *character = lead;
    return 1;
  }
  int32_t code = lead & (0xff >> (length + 1));
  for (int64_t i = 1; i < length; i++) {
    if ((at[i] & 0xc0) != 0x80)
      return 1;
    code = code << 6 | (at[i] & 0x3f);
  }
  bool isValid = length == 2 || (length == 3 ? code >= 0x800 && (code < 0xd800 || code > 0xdfff)
                                             : code >= 0x10000 && code <= 0x10ffff);
  if (!isValid)
    return 1;
  *character = code;
  return length;
}

/* Writes at most 4 bytes; returns how many. */
static inline int64_t ptc_rt_encode(int32_t character, char *to) {
  if (character < 0x80) {
    to[0] = (char)character;
    return 1;
  }
  int64_t length = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
  for (int64_t i = length - 1; i > 0; i--, character >>= 6)
    to[i] = (char)(0x80 | (character & 0x3f));
  to[0] = (char)((0xf00 >> length) | character);
  return length;
}

/* White space of ASCII. */
static inline bool ptc_rt_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* case.c: Unicode's simple mapping, one character to one. */
int32_t ptc_rt_change_case(int32_t character, bool isUpper);

#endif /* PTC_UTF8_H */
