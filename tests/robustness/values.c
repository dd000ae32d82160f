/* Functions over strings and sequences (ir/prim/PrimCalls.def) on values that are easy to get wrong, for the
 * sanitizers: bytes that are no UTF-8, strings of a megabyte, empty strings and tensors, sequences that share their
 * tensors. */
#include "sequences.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
  do                                                                                                                   \
    if (!(condition))                                                                                                  \
      printf("line %d: %s\n", __LINE__, #condition), exit(1);                                                          \
  while (0)

ptc_rt_function_called ptc_rt_string_equal, ptc_rt_string_concat, ptc_rt_string_lookup, ptc_rt_string_rank,
    ptc_rt_string_case, ptc_rt_string_count_pieces, ptc_rt_string_split, ptc_rt_string_match, ptc_rt_string_to_number,
    ptc_rt_string_from_number, ptc_rt_ngram_count, ptc_rt_sequence_construct, ptc_rt_sequence_length,
    ptc_rt_sequence_insert, ptc_rt_sequence_erase, ptc_rt_sequence_dims, ptc_rt_sequence_at,
    ptc_rt_sequence_concat_dims, ptc_rt_sequence_concat, ptc_rt_sequence_split;

static size_t allocations;

static void *allocate(void *state, size_t bytes, size_t alignment) {
  void *block = 0;
  (void)state;
  allocations++;
  return posix_memalign(&block, alignment, bytes) ? 0 : block;
}

static void release(void *state, void *block, size_t bytes) {
  (void)state, (void)bytes;
  free(block);
}

static ptc_model model = {.allocator = {allocate, release, 0}};
static ptc_ctx ctx = {.model = &model};
static ptc_rt_variant variant;
static ptc_rt_call_state state = {.model = &model, .ctx = &ctx, .variant = &variant};
static ptc_rt_call *call = &state.visible;

typedef const ptc_string *handle;

static ptc_string text(const char *bytes) { return (ptc_string){bytes, (int64_t)strlen(bytes)}; }

static bool is(handle given, const char *wanted) {
  ptc_string found = ptc_rt_text(given);
  return found.bytes == (int64_t)strlen(wanted) && memcmp(found.data, wanted, (size_t)found.bytes) == 0;
}

static void concatenate_and_compare(handle large) {
  ptc_string a = text("a\xff"), b = text("\xc3"), empty = {0, 0};
  handle x[] = {&a, 0, &empty, large}, y[] = {&b, &a, 0, large}, sum[4];
  void *joined[] = {x, y, sum};
  CHECK(ptc_rt_string_concat(call, 0, joined, (int64_t[]){4}) == 0);
  CHECK(is(sum[0], "a\xff\xc3") && is(sum[1], "a\xff") && is(sum[2], "") && sum[3]->bytes == 2 * large->bytes);
  uint8_t equal[4];
  void *compared[] = {x, y, equal};
  CHECK(ptc_rt_string_equal(call, 0, compared, (int64_t[]){4}) == 0);
  CHECK(!equal[0] && !equal[1] && equal[2] && equal[3]);
  CHECK(ptc_rt_string_concat(call, 0, joined, (int64_t[]){0}) == 0);
  ptc_string k0 = text(""), k1 = text("a"), k2 = text("a\xff");
  handle keys[] = {&k0, &k1, &k2};
  int64_t places[4];
  void *found[] = {x, keys, places};
  CHECK(ptc_rt_string_lookup(call, 0, found, (int64_t[]){4, 3}) == 0);
  CHECK(places[0] == 2 && places[1] == 0 && places[2] == 0 && places[3] == 3);
  CHECK(ptc_rt_string_lookup(call, 0, found, (int64_t[]){4, 0}) == 0 && places[0] == 0);
  void *ranked[] = {x, places};
  CHECK(ptc_rt_string_rank(call, 0, ranked, (int64_t[]){4}) == 0);
  CHECK(places[1] == 0 && places[2] == 0 && places[0] > 0 && places[3] > 0 && places[0] + places[3] == 3);
  CHECK(ptc_rt_string_rank(call, 0, ranked, (int64_t[]){0}) == 0);
}

static void change_case(void) {
  const char *cases[][3] = {
      {"", "", ""},
      {"aZ\xff\x80", "az\xff\x80", "AZ\xff\x80"},
      {"\xc3\xa9\xc3\x89", "\xc3\xa9\xc3\xa9", "\xc3\x89\xc3\x89"},
      {"\xc8\xba", "\xe2\xb1\xa5", "\xc8\xba"},
      {"\xe2\x82", "\xe2\x82", "\xe2\x82"},
      {"\xed\xa0\x80", "\xed\xa0\x80", "\xed\xa0\x80"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    char *exact = malloc(strlen(cases[i][0]) + 1); /* without room behind it */
    memcpy(exact, cases[i][0], strlen(cases[i][0]));
    ptc_string given = {exact, (int64_t)strlen(cases[i][0])};
    exact = realloc(exact, (size_t)given.bytes + !given.bytes);
    given.data = exact;
    handle x = &given, changed;
    void *buffers[] = {&x, &changed};
    for (int64_t mode = 1; mode <= 2; mode++) {
      CHECK(ptc_rt_string_case(call, 0, buffers, (int64_t[]){1, mode}) == 0);
      CHECK(is(changed, cases[i][mode]));
    }
    free(exact);
  }
}

static void split(const char *given, const char *delimiter, int64_t limit, int64_t wanted, const char *last) {
  ptc_string x = text(given), d = text(delimiter);
  handle xs[] = {&x, 0}, ds = *delimiter ? &d : 0, pieces[64];
  int64_t counts[2], most;
  void *counted[] = {xs, &ds, counts, &most}, *cut[] = {xs, &ds, pieces};
  CHECK(ptc_rt_string_count_pieces(call, 0, counted, (int64_t[]){2, limit}) == 0);
  CHECK(counts[0] == wanted && most >= wanted && most < 32);
  CHECK(ptc_rt_string_split(call, 0, cut, (int64_t[]){2, limit, most}) == 0);
  CHECK(wanted == 0 || is(pieces[wanted - 1], last));
}

static void match(handle large) {
  /* (a|a)*b: SPLIT 3 23, SPLIT 6 11 ... written out: no expression makes this slow */
  int32_t program[] = {1, 3, 17, 1, 6, 11, 2, 0, 1, 'a', 'a', 2, 0, 1, 'a', 'a', 0, 2, 22, 1, 'b', 'b', 0};
  ptc_string some = text("aab"), bad = text("aa\xff"), none = {0, 0};
  handle x[] = {&some, &bad, &none, large};
  uint8_t matches[4];
  void *buffers[] = {x, program, matches};
  CHECK(ptc_rt_string_match(call, 0, buffers, (int64_t[]){4, sizeof(program) / 4}) == 0);
  CHECK(matches[0] && !matches[1] && !matches[2] && !matches[3]);
}

static void convert_numbers(void) {
  ptc_string good[] = {text(" 1.5e3\n"), text("-INF"), text("18446744073709551615"), text("-9223372036854775808")};
  handle x;
  double number;
  void *buffers[] = {&x, &number};
  x = &good[0];
  CHECK(ptc_rt_string_to_number(call, 0, buffers, (int64_t[]){1, 0}) == 0 && number == 1500);
  x = &good[1];
  CHECK(ptc_rt_string_to_number(call, 0, buffers, (int64_t[]){1, 3}) == 0 && number == -__builtin_inf());
  x = &good[2];
  CHECK(ptc_rt_string_to_number(call, 0, buffers, (int64_t[]){1, 2}) == 0);
  CHECK(ptc_rt_string_to_number(call, 0, buffers, (int64_t[]){1, 1}) == PTC_RT_FAULT_VALUE);
  x = &good[3];
  CHECK(ptc_rt_string_to_number(call, 0, buffers, (int64_t[]){1, 1}) == 0);
  for (const char *const *bad = (const char *const[]){"", " ", "x", "1x", "1e", "\xff", "--1", "0x10", 0}; *bad;
       bad++) {
    ptc_string given = text(*bad);
    x = &given;
    CHECK(ptc_rt_string_to_number(call, 0, buffers, (int64_t[]){1, 0}) == PTC_RT_FAULT_VALUE);
  }
  handle written;
  double values[] = {0.1, 1e21, -0.0, 5e-324, 123456, 1e-5, 1e-4, 1e10, 1e16};
  const char *wanted[] = {"0.1", "1e+21", "-0", "5e-324", "123456", "1e-05", "0.0001", "10000000000", "1e+16"};
  for (size_t i = 0; i < 9; i++) {
    void *out[] = {&values[i], &written};
    CHECK(ptc_rt_string_from_number(call, 0, out, (int64_t[]){1, 1}) == 0 && is(written, wanted[i]));
  }
  float singles[] = {0.1f, 1e10f, 12345678, 1e8f, -1e-5f};
  const char *short_ones[] = {"0.1", "1e+10", "12345678", "1e+08", "-1e-05"};
  for (size_t i = 0; i < 5; i++) {
    void *out[] = {&singles[i], &written};
    CHECK(ptc_rt_string_from_number(call, 0, out, (int64_t[]){1, 0}) == 0 && is(written, short_ones[i]));
  }
}

/* numbers of a tensor of si64: type, rank, dims */
#define VECTOR(n) 64, 1, n

static void use_sequences(void) {
  int64_t a[] = {1, 2}, b[] = {3, 4, 5}, position = -1, length, dims[2], got[8];
  ptc_rt_sequence *one, *two, *three, *erased, *branch;
  void *made[] = {a, &one}, *measured[] = {&three, &length};
  CHECK(ptc_rt_sequence_construct(call, 0, made, (int64_t[]){1, VECTOR(2)}) == 0);
  a[0] = 100; /* a copy is in it */
  int64_t end = 1;
  void *inserted[] = {&one, b, &end, &two}, *again[] = {&two, b, &position, &three};
  CHECK(ptc_rt_sequence_insert(call, 0, inserted, (int64_t[]){VECTOR(3)}) == 0);
  CHECK(ptc_rt_sequence_insert(call, 0, again, (int64_t[]){VECTOR(0)}) == 0);
  end = 2;
  void *first[] = {&two, b, &end, &three}, *second[] = {&two, a, &end, &branch};
  CHECK(ptc_rt_sequence_insert(call, 0, first, (int64_t[]){VECTOR(3)}) == 0);
  CHECK(ptc_rt_sequence_insert(call, 0, second, (int64_t[]){VECTOR(2)}) == 0);
  CHECK(three->items[2].count == 3 && branch->items[2].count == 2); /* neither took the other's place */
  CHECK(ptc_rt_sequence_length(call, 0, measured, 0) == 0 && length == 3);
  void *asked[] = {&three, &position, dims}, *taken[] = {&three, &position, got};
  CHECK(ptc_rt_sequence_dims(call, 0, asked, (int64_t[]){1}) == 0 && dims[0] == 3);
  CHECK(ptc_rt_sequence_dims(call, 0, asked, (int64_t[]){2}) == PTC_RT_FAULT_VALUE);
  CHECK(ptc_rt_sequence_at(call, 0, taken, (int64_t[]){VECTOR(3)}) == 0 && got[2] == 5);
  CHECK(ptc_rt_sequence_at(call, 0, taken, (int64_t[]){VECTOR(2)}) == PTC_RT_FAULT_VALUE);
  position = 3;
  CHECK(ptc_rt_sequence_at(call, 0, taken, (int64_t[]){VECTOR(3)}) == PTC_RT_FAULT_VALUE);
  void *joined[] = {&three, dims}, *all[] = {&three, got};
  CHECK(ptc_rt_sequence_concat_dims(call, 0, joined, (int64_t[]){1, 0, 0}) == 0 && dims[0] == 8);
  CHECK(ptc_rt_sequence_concat(call, 0, all, (int64_t[]){1, 0, 0}) == 0 && got[0] == 1 && got[2] == 3 && got[7] == 5);
  CHECK(ptc_rt_sequence_concat_dims(call, 0, joined, (int64_t[]){1, 0, 1}) == PTC_RT_FAULT_VALUE);
  position = 0;
  void *without[] = {&one, &position, &erased}, *empty[] = {&erased, &length}, *twice[] = {&erased, &position, &one};
  CHECK(ptc_rt_sequence_erase(call, 0, without, 0) == 0);
  CHECK(ptc_rt_sequence_length(call, 0, empty, 0) == 0 && length == 0);
  CHECK(ptc_rt_sequence_erase(call, 0, twice, 0) == PTC_RT_FAULT_VALUE);
  int64_t matrix[6] = {0, 1, 2, 3, 4, 5}, lengths[] = {1, 2};
  void *pieces[] = {matrix, lengths, &one};
  CHECK(ptc_rt_sequence_split(call, 0, pieces, (int64_t[]){1, 0, 0, 2, 64, 2, 2, 3}) == 0);
  CHECK(one->count == 2 && ((int64_t *)one->items[1].elements)[2] == 4);
  lengths[0] = 9;
  CHECK(ptc_rt_sequence_split(call, 0, pieces, (int64_t[]){1, 0, 0, 2, 64, 2, 2, 3}) == PTC_RT_FAULT_VALUE);
  lengths[0] = 0;
  CHECK(ptc_rt_sequence_split(call, 0, pieces, (int64_t[]){1, 0, 0, -1, 64, 2, 2, 3}) == PTC_RT_FAULT_VALUE);
}

static void count_grams(void) {
  /* the words 7 and (7 8) */
  int64_t ids[] = {7, 8, 7, 7, 9, 8}, trie[] = {1, 1, 0, -1, 2, 1, 7, 0, 3, 0, 8, 1};
  float counts[4];
  void *buffers[] = {ids, trie, counts};
  CHECK(ptc_rt_ngram_count(call, 0, buffers, (int64_t[]){2, 3, 3, 2, 2, 1, 2}) == 0);
  CHECK(counts[0] == 2 && counts[1] == 1 && counts[2] == 1 && counts[3] == 1);
}

int main(void) {
  size_t bytes = 1 << 20;
  char *letters = malloc(bytes);
  memset(letters, 'a', bytes);
  ptc_string large = {letters, (int64_t)bytes};
  size_t before = 0;
  for (int round = 0; round < 3; round++) {
    concatenate_and_compare(&large);
    change_case();
    split("a b  c ", "", -1, 3, "c");
    split("a b  c ", "", 1, 2, "b  c ");
    split("", "", -1, 0, "");
    split("", ",", -1, 1, "");
    split("a,,b,", ",", -1, 4, "");
    split("a--b", "--", 0, 1, "a--b");
    match(&large);
    convert_numbers();
    use_sequences();
    count_grams();
    CHECK(round == 0 || allocations == before); /* equal runs take what the first one has left */
    before = allocations;
    ptc_rt_forget(&ctx);
  }
  ptc_rt_release_chunks(&ctx);
  free(letters);
  puts("ok");
  return 0;
}
