/* Whether an expression matches all of a string: a nondeterministic automaton, all of whose states at a character are
 * followed at once (K. Thompson, Regular Expression Search Algorithm, CACM 1968). The time is at most the string's
 * length times the program's, whatever the expression: there is nothing to go back to.
 *
 * The compiler writes the program (lowering/decomp/RegexProgram.h): instructions of si32 words,
 *   MATCH            the expression ends here
 *   SPLIT a b        go on at a and at b
 *   CHAR next n (low high)*n   take a character that lies in one of n ranges, ascending
 *   ASSERT next what           go on where `what` holds between two characters
 * A byte that is not UTF-8 lies in no range.
 */
#include "runtime.h"
#include "utf8.h"

#include <string.h>

enum { MATCH = 0, SPLIT = 1, CHAR = 2, ASSERT = 3 };
enum { TEXT_BEGIN = 0, TEXT_END = 1, LINE_BEGIN = 2, LINE_END = 3, WORD_BOUNDARY = 4, NO_WORD_BOUNDARY = 5 };

/* A set of places in the program that is cleared in no time: place[i] is in it if place[i] < count and list[place[i]]
 * is i (P. Briggs, L. Torczon, An Efficient Representation for Sparse Sets, 1993). */
typedef struct states {
  int32_t *list, *place;
  int32_t count;
} states;

static bool add(states *set, int32_t at) {
  int32_t place = set->place[at];
  if (place >= 0 && place < set->count && set->list[place] == at)
    return false;
  set->place[at] = set->count;
  set->list[set->count++] = at;
  return true;
}

static bool is_word(int32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* Between two characters; -2 is the border of the text. */
static bool holds(int32_t what, int32_t before, int32_t behind) {
  switch (what) {
  case TEXT_BEGIN:
    return before == -2;
  case TEXT_END:
    return behind == -2;
  case LINE_BEGIN:
    return before == -2 || before == '\n';
  case LINE_END:
    return behind == -2 || behind == '\n';
  default:
    return (is_word(before) != is_word(behind)) == (what == WORD_BOUNDARY);
  }
}

/* Adds a place and all that it leads to without a character; the new ones of `set->list` are what is to do. */
static bool follow(const int32_t *program, states *set, int32_t from, int32_t before, int32_t behind) {
  bool isMatch = false;
  int32_t next = set->count;
  add(set, from);
  for (; next < set->count; next++) {
    const int32_t *op = program + set->list[next];
    if (op[0] == MATCH) {
      isMatch = true;
    } else if (op[0] == SPLIT) {
      add(set, op[1]);
      add(set, op[2]);
    } else if (op[0] == ASSERT && holds(op[2], before, behind)) {
      add(set, op[1]);
    }
  }
  return isMatch;
}

static bool takes(const int32_t *op, int32_t c) {
  if (op[0] != CHAR || c < 0)
    return false;
  int32_t low = 0, high = op[2];
  while (low < high) { /* the first range that does not end before the character */
    int32_t middle = (low + high) / 2;
    if (op[3 + 2 * middle + 1] < c)
      low = middle + 1;
    else
      high = middle;
  }
  return low < op[2] && op[3 + 2 * low] <= c;
}

static bool match(const int32_t *program, ptc_string text, states *now, states *then) {
  int32_t before = -2, c = -2;
  int64_t length = text.bytes > 0 ? ptc_rt_decode(text.data, text.bytes, &c) : 0;
  now->count = 0;
  bool isMatch = follow(program, now, 0, before, c);
  for (int64_t at = 0; at < text.bytes && now->count > 0;) {
    int32_t behind = -2;
    at += length;
    if (at < text.bytes)
      length = ptc_rt_decode(text.data + at, text.bytes - at, &behind);
    then->count = 0;
    isMatch = false;
    for (int32_t i = 0; i < now->count; i++) {
      const int32_t *op = program + now->list[i];
      if (takes(op, c))
        isMatch |= follow(program, then, op[1], c, behind);
    }
    states *swap = now;
    now = then;
    then = swap;
    c = behind;
  }
  return isMatch && now->count > 0;
}

int32_t ptc_rt_string_match(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  (void)site;
  const ptc_string *const *x = buffers[0];
  size_t places = (size_t)numbers[1];
  int32_t *memory = ptc_rt_take(call, 4 * places, sizeof(int32_t));
  if (!memory)
    return PTC_RT_FAULT_MEMORY;
  memset(memory, 0, 4 * places * sizeof(int32_t));
  states now = {memory, memory + places, 0}, then = {memory + 2 * places, memory + 3 * places, 0};
  for (int64_t i = 0; i < numbers[0]; i++)
    ((uint8_t *)buffers[2])[i] = match(buffers[1], ptc_rt_text(x[i]), &now, &then);
  return 0;
}
