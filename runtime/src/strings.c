/* Functions over strings (ir/prim/PrimCalls.def says what they mean). Buffers hold handles; a string that is made is a
 * view in memory of the run, its bytes behind it. Bytes are bytes: only case and the cuts between characters read them
 * as UTF-8, where a byte that is none stands for itself.
 */
#include "runtime.h"
#include "utf8.h"

#include <string.h>

typedef const ptc_string *handle;

static bool same(ptc_string a, ptc_string b) {
  return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, (size_t)a.bytes) == 0);
}

/* By bytes, then by length: the order of std::string, in which the compiler sorts keys. */
static int compare(ptc_string a, ptc_string b) {
  size_t least = (size_t)(a.bytes < b.bytes ? a.bytes : b.bytes);
  int order = least ? memcmp(a.data, b.data, least) : 0;
  return order ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

int32_t ptc_rt_string_equal(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  (void)call, (void)site;
  const handle *x = buffers[0], *y = buffers[1];
  for (int64_t i = 0; i < numbers[0]; i++)
    ((uint8_t *)buffers[2])[i] = same(ptc_rt_text(x[i]), ptc_rt_text(y[i]));
  return 0;
}

int32_t ptc_rt_string_concat(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  (void)site;
  const handle *x = buffers[0], *y = buffers[1];
  handle *result = buffers[2];
  int64_t count = numbers[0];
  size_t bytes = 0;
  for (int64_t i = 0; i < count; i++)
    bytes += (size_t)ptc_rt_text(x[i]).bytes + (size_t)ptc_rt_text(y[i]).bytes;
  ptc_string *views = ptc_rt_take(call, (size_t)count, sizeof(ptc_string));
  char *next = ptc_rt_take(call, 1, bytes);
  if (!views || !next)
    return PTC_RT_FAULT_MEMORY;
  for (int64_t i = 0; i < count; i++) {
    ptc_string a = ptc_rt_text(x[i]), b = ptc_rt_text(y[i]);
    views[i] = (ptc_string){next, a.bytes + b.bytes};
    if (a.bytes)
      memcpy(next, a.data, (size_t)a.bytes);
    if (b.bytes)
      memcpy(next + a.bytes, b.data, (size_t)b.bytes);
    next += views[i].bytes;
    result[i] = &views[i];
  }
  return 0;
}

int32_t ptc_rt_string_lookup(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  (void)call, (void)site;
  const handle *x = buffers[0], *keys = buffers[1];
  int64_t *places = buffers[2], count = numbers[0], known = numbers[1];
  for (int64_t i = 0; i < count; i++) {
    ptc_string text = ptc_rt_text(x[i]);
    int64_t low = 0, high = known; /* the first key that is not before the text lies in [low, high] */
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      if (compare(ptc_rt_text(keys[middle]), text) < 0)
        low = middle + 1;
      else
        high = middle;
    }
    places[i] = low < known && same(ptc_rt_text(keys[low]), text) ? low : known;
  }
  return 0;
}

/* Sorted by merging runs of 1, 2, 4, ... strings. */
int32_t ptc_rt_string_rank(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  (void)site;
  const handle *x = buffers[0];
  int64_t *ranks = buffers[1], count = numbers[0], rank = 0;
  int64_t *order = ptc_rt_take(call, (size_t)count, sizeof(int64_t));
  int64_t *merged = ptc_rt_take(call, (size_t)count, sizeof(int64_t));
  if (!order || !merged)
    return PTC_RT_FAULT_MEMORY;
  for (int64_t i = 0; i < count; i++)
    order[i] = i;
  for (int64_t run = 1; run < count; run *= 2) {
    for (int64_t begin = 0; begin < count; begin += 2 * run) {
      int64_t middle = begin + run < count ? begin + run : count;
      int64_t end = begin + 2 * run < count ? begin + 2 * run : count, a = begin, b = middle;
      for (int64_t to = begin; to < end; to++) {
        bool isFirst = b == end || (a < middle && compare(ptc_rt_text(x[order[a]]), ptc_rt_text(x[order[b]])) <= 0);
        merged[to] = order[isFirst ? a++ : b++];
      }
    }
    int64_t *done = merged;
    merged = order;
    order = done;
  }
  for (int64_t i = 0; i < count; i++) {
    rank += i > 0 && !same(ptc_rt_text(x[order[i - 1]]), ptc_rt_text(x[order[i]]));
    ranks[order[i]] = rank;
  }
  return 0;
}

int32_t ptc_rt_string_is_any(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  (void)call, (void)site;
  const handle *x = buffers[0], *words = buffers[1];
  for (int64_t i = 0; i < numbers[0]; i++) {
    bool isAny = false;
    for (int64_t w = 0; w < numbers[1] && !isAny; w++)
      isAny = same(ptc_rt_text(x[i]), ptc_rt_text(words[w]));
    ((uint8_t *)buffers[2])[i] = isAny;
  }
  return 0;
}

/* ---- case ---- */

int32_t ptc_rt_string_case(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  (void)site;
  const handle *x = buffers[0];
  handle *result = buffers[1];
  int64_t count = numbers[0];
  bool isUpper = numbers[1] == 2;
  size_t bytes = 0;
  for (int64_t i = 0; i < count; i++) /* no character gets longer by more than half: U+023A, 2 bytes, becomes 3 */
    bytes += (size_t)ptc_rt_text(x[i]).bytes * 2;
  ptc_string *views = ptc_rt_take(call, (size_t)count, sizeof(ptc_string));
  char *next = ptc_rt_take(call, 1, bytes);
  if (!views || !next)
    return PTC_RT_FAULT_MEMORY;
  for (int64_t i = 0; i < count; i++) {
    ptc_string text = ptc_rt_text(x[i]);
    char *start = next;
    for (int64_t at = 0; at < text.bytes;) {
      int32_t character;
      int64_t length = ptc_rt_decode(text.data + at, text.bytes - at, &character);
      int32_t changed = character < 0 ? character : ptc_rt_change_case(character, isUpper);
      if (changed == character) {
        memcpy(next, text.data + at, (size_t)length);
        next += length;
      } else {
        next += ptc_rt_encode(changed, next);
      }
      at += length;
    }
    views[i] = (ptc_string){start, next - start};
    result[i] = &views[i];
  }
  return 0;
}

/* ---- pieces ---- */

/* The next piece of `text` from *at, and where to go on; false at the end. Without a delimiter pieces are what lies
 * between runs of white space, of which none is at the ends; with one, everything between two of them. */
static bool next_piece(ptc_string text, ptc_string delimiter, bool isLast, int64_t *at, ptc_string *piece) {
  if (delimiter.bytes == 0) {
    while (*at < text.bytes && ptc_rt_is_space(text.data[*at]))
      ++*at;
    if (*at >= text.bytes)
      return false;
    int64_t end = *at;
    while (end < text.bytes && (isLast || !ptc_rt_is_space(text.data[end])))
      end++;
    *piece = (ptc_string){text.data + *at, end - *at};
    *at = end;
    return true;
  }
  if (*at > text.bytes)
    return false;
  int64_t end = *at;
  while (!isLast && end + delimiter.bytes <= text.bytes &&
         memcmp(text.data + end, delimiter.data, (size_t)delimiter.bytes) != 0)
    end++;
  bool isFound = !isLast && end + delimiter.bytes <= text.bytes;
  if (!isFound)
    end = text.bytes;
  *piece = (ptc_string){text.data + *at, end - *at};
  *at = isFound ? end + delimiter.bytes : text.bytes + 1;
  return true;
}

/* The number of pieces of each string, and the most of all. */
int32_t ptc_rt_string_count_pieces(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  (void)call, (void)site;
  const handle *x = buffers[0];
  ptc_string delimiter = ptc_rt_text(*(const handle *)buffers[1]), piece;
  int64_t *counts = buffers[2], *most = buffers[3], limit = numbers[1];
  *most = 0;
  for (int64_t i = 0; i < numbers[0]; i++) {
    ptc_string text = ptc_rt_text(x[i]);
    int64_t at = 0, count = 0;
    while (next_piece(text, delimiter, count == limit, &at, &piece))
      count++;
    counts[i] = count;
    if (count > *most)
      *most = count;
  }
  return 0;
}

/* The pieces of each string in a row of numbers[2], empty strings behind them. */
int32_t ptc_rt_string_split(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  (void)site;
  const handle *x = buffers[0];
  ptc_string delimiter = ptc_rt_text(*(const handle *)buffers[1]), piece;
  handle *result = buffers[2];
  int64_t limit = numbers[1], width = numbers[2];
  int64_t total = 0;
  for (int64_t i = 0; i < numbers[0]; i++) {
    ptc_string text = ptc_rt_text(x[i]);
    int64_t at = 0, count = 0;
    while (next_piece(text, delimiter, count == limit, &at, &piece))
      count++;
    total += count;
  }
  ptc_string *views = ptc_rt_take(call, (size_t)total, sizeof(ptc_string));
  if (!views)
    return PTC_RT_FAULT_MEMORY;
  for (int64_t i = 0; i < numbers[0]; i++) {
    ptc_string text = ptc_rt_text(x[i]);
    int64_t at = 0, count = 0;
    while (count < width && next_piece(text, delimiter, count == limit, &at, &piece)) {
      *views = piece;
      result[i * width + count++] = views++;
    }
    for (; count < width; count++)
      result[i * width + count] = 0;
  }
  return 0;
}
