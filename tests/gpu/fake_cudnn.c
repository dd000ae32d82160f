/* A cuDNN that computes on the host, for tests beside fake_cuda.c: graphs of a convolution, sums and a ReLU, in f32,
 * f16 and bf16, of tensors with any strides. It does its work when the driver's stream does (fake_enqueue), and takes
 * notes in FAKE_CUDA_LOG.
 *   FAKE_CUDA_LIBRARY_FAILS  a function that fails: cudnnCreate, cudnnBackendFinalize (of a graph), cudnnBackendExecute
 *   FAKE_CUDA_NEEDS_RESIDUAL  sums with a bias alone are refused
 * Attributes are kept as they come, and read when a graph is finished and when it runs. Of its engines, the first uses
 * tensor cores, the second has Winograd's algorithm, the third takes more scratch than there is, and the last is listed
 * as a fallback.
 */
enum { TYPE_F32 = 0, TYPE_F16 = 2, TYPE_BF16 = 9 };
#include "fake_library.h"

enum { INVALID = 2000, UNSUPPORTED = 3000, WORKSPACE = 4096, RANK = 5 };
enum {
  POINTWISE = 0,
  ENGINE = 2,
  CONFIG = 3,
  HEURISTICS = 4,
  PLAN = 5,
  CONVOLVE = 10,
  POINT = 13,
  GRAPH = 15,
  PACK = 16
};
enum { TENSOR_CORES, DOWN_CONVERTS, REDUCED, FOURIER, NONDETERMINISTIC, WINOGRAD };
enum { ENGINES = 4, FALLBACK = 3 };

typedef struct attribute {
  int name, type;
  int64_t count;
  char bytes[64];
} attribute;
typedef struct object {
  int kind, finished, count;
  attribute attributes[12];
  int number;                 /* of an engine */
  const struct object *graph; /* of its configuration */
} object;

static size_t size_of(int type) {
  switch (type) {
  case 2: /* boolean */
    return 1;
  case 0:  /* handle */
  case 3:  /* int64 */
  case 6:  /* pointer */
  case 15: /* object */
    return 8;
  }
  return 4;
}
static const attribute *find(const object *of, int name) {
  for (int i = 0; i < of->count; i++)
    if (of->attributes[i].name == name)
      return &of->attributes[i];
  return 0;
}
static int64_t count_of(const object *of, int name) { return find(of, name) ? find(of, name)->count : 0; }
static const object *object_of(const object *of, int name, int64_t index) {
  const attribute *found = find(of, name);
  return found && index < found->count ? ((object *const *)found->bytes)[index] : 0;
}
static int64_t i64_of(const object *of, int name, int64_t index, int64_t otherwise) {
  const attribute *found = find(of, name);
  return found && index < found->count ? ((const int64_t *)found->bytes)[index] : otherwise;
}
static int i32_of(const object *of, int name) { return *(const int *)find(of, name)->bytes; }
static float float_of(const object *of, int name, float otherwise) {
  return find(of, name) ? *(const float *)find(of, name)->bytes : otherwise;
}

/* ---- graphs ---- */

static int type_of(const object *tensor) { return i32_of(tensor, 901); }
static int64_t extent(const object *tensor, int d) { return i64_of(tensor, 902, d, 1); }
static int64_t stride(const object *tensor, int d) { return i64_of(tensor, 903, d, 0); }
static int is_virtual(const object *tensor) { return find(tensor, 907)->bytes[0]; }

static int fits(const object *convolve) {
  const object *how = object_of(convolve, 702, 0), *w = object_of(convolve, 703, 0), *x = object_of(convolve, 704, 0);
  const object *y = object_of(convolve, 705, 0);
  int64_t axes = count_of(how, 102);
  if (i32_of(how, 100) != TYPE_F32 || i32_of(how, 101) != 1 || i64_of(how, 106, 0, 0) != axes || axes < 2 ||
      float_of(convolve, 700, 0) != 1 || float_of(convolve, 701, 1) != 0 || type_of(x) != type_of(w))
    return 0;
  for (int d = 0; d < axes; d++) {
    int64_t reach = i64_of(how, 102, d, 1) * (extent(w, 2 + d) - 1) + 1;
    int64_t room = extent(x, 2 + d) + i64_of(how, 105, d, 0) + i64_of(how, 104, d, 0) - reach;
    if (room < 0 || room / i64_of(how, 103, d, 1) + 1 != extent(y, 2 + d))
      return 0;
  }
  return extent(x, 0) == extent(y, 0) && extent(w, 0) == extent(y, 1) && extent(x, 1) % extent(w, 1) == 0 &&
         extent(y, 1) % (extent(x, 1) / extent(w, 1)) == 0;
}

static void describe(char *text, const char *name, const object *of) {
  text += sprintf(text, "%s ", name);
  for (int64_t d = 0; d < count_of(of, 902); d++)
    text += sprintf(text, "%s%lld:%lld", d ? " " : "", (long long)extent(of, (int)d), (long long)stride(of, (int)d));
}

/* Each operation reads what the one before has computed. */
static int check_graph(const object *graph) {
  const object *convolve = object_of(graph, 801, 0), *last = object_of(convolve, 705, 0);
  int64_t count = count_of(graph, 801);
  char x[256], w[256], y[256], more[64] = "";
  if (!find(graph, 800) || convolve->kind != CONVOLVE || !fits(convolve))
    return INVALID;
  int has_residual = 0, has_bias = 0;
  for (int64_t i = 1; i < count; i++) {
    const object *point = object_of(graph, 801, i), *second = object_of(point, 752, 0);
    if (point->kind != POINT || object_of(point, 751, 0) != last || !is_virtual(last) || type_of(last) != TYPE_F32)
      return INVALID;
    int is_bias = second && extent(second, 2) == 1 && extent(second, 0) == 1;
    has_bias |= is_bias;
    has_residual |= second && !is_bias;
    strcat(more, !second ? " relu" : is_bias ? " bias" : float_of(point, 755, 1) == 0 ? " nothing" : " residual");
    last = object_of(point, 753, 0);
  }
  if (is_virtual(last) || (getenv("FAKE_CUDA_NEEDS_RESIDUAL") && has_bias && !has_residual))
    return UNSUPPORTED;
  describe(x, "input", object_of(convolve, 704, 0));
  describe(w, "weights", object_of(convolve, 703, 0));
  describe(y, "result", last);
  say("graph of type %d: %s, %s, %s,%s", type_of(object_of(convolve, 704, 0)), x, w, y, more);
  return 0;
}

/* ---- the interface ---- */

int cudnnCreate(void **handle) {
  TRY;
  return say("library opened"), make(handle, 8);
}
int cudnnDestroy(void *handle) { return end(handle); }
int cudnnSetStream(void **handle, void *stream) { return *handle = stream, 0; }
int cudnnBackendCreateDescriptor(int kind, object **result) {
  int code = make((void **)result, sizeof(object));
  (*result)->kind = kind;
  return code;
}
int cudnnBackendDestroyDescriptor(object *of) { return end(of); }

int cudnnBackendSetAttribute(object *of, int name, int type, int64_t count, const void *values) {
  if (of->finished || of->count == 12 || count * (int64_t)size_of(type) > 64)
    return INVALID;
  attribute *next = &of->attributes[of->count++];
  *next = (attribute){.name = name, .type = type, .count = count};
  memcpy(next->bytes, values, (size_t)count * size_of(type));
  return 0;
}

int cudnnBackendFinalize(object *of) {
  if (of->kind == GRAPH)
    TRY;
  int code = of->kind == GRAPH ? check_graph(of) : 0;
  if (code != 0 || of->finished)
    return code ? code : INVALID;
  for (int i = 0; i < of->count; i++) /* what it is made of is finished */
    for (int64_t j = 0; of->attributes[i].type == 15 && j < of->attributes[i].count; j++) {
      const object *part = object_of(of, of->attributes[i].name, j);
      if (!part || !part->finished)
        return INVALID;
    }
  return of->finished = 1, 0;
}

static int list(const object *heuristics, int64_t most, int64_t *count, object **configs) {
  int is_fallback = i32_of(heuristics, 200) == 2;
  int first = is_fallback ? FALLBACK : 0, last = is_fallback ? ENGINES : FALLBACK;
  *count = 0;
  for (int number = first; number < last && *count < most; number++) {
    object *next = configs[(*count)++];
    next->number = number;
    next->graph = object_of(heuristics, 201, 0);
    next->finished = 1;
  }
  return 0;
}

int cudnnBackendGetAttribute(object *of, int name, int type, int64_t most, int64_t *count, void *values) {
  if (of->kind == HEURISTICS && name == 202 && type == 15)
    return list(of, most, count, values);
  if (!of->finished)
    return INVALID;
  *count = 1;
  if (of->kind == CONFIG && name == 300 && type == 15) {
    (*(object **)values)->number = of->number;
    return (*(object **)values)->finished = 1, 0;
  }
  if (of->kind == ENGINE && name == 1303 && type == 11) {
    static const int notes[ENGINES] = {TENSOR_CORES, WINOGRAD, -1, -1};
    *count = notes[of->number] >= 0;
    return *(int *)values = notes[of->number], 0;
  }
  if (of->kind == PLAN && name == 402 && type == 3)
    return *(int64_t *)values = object_of(of, 401, 0)->number == 2 ? (int64_t)1 << 40 : WORKSPACE, 0;
  return INVALID;
}

/* ---- arithmetic ---- */

typedef struct operand {
  int type;
  int64_t extents[RANK], strides[RANK];
  char *place;
} operand;
typedef struct call {
  operand x, w, y, addends[2]; /* in the order of their sums */
  float factors[2];
  int count, has_relu;
  int64_t steps[3], dilations[3], before[3];
} call;

static operand operand_of(const object *tensor, const object *pack) {
  operand made = {.type = type_of(tensor)};
  for (int d = 0; d < RANK; d++) {
    made.extents[d] = extent(tensor, d);
    made.strides[d] = extent(tensor, d) > 1 ? stride(tensor, d) : 0;
  }
  for (int64_t i = 0; i < count_of(pack, 1000); i++)
    if (i64_of(pack, 1000, i, 0) == i64_of(tensor, 906, 0, 0))
      made.place = ((char *const *)find(pack, 1001)->bytes)[i];
  return made;
}
static int64_t index_of(const operand *of, const int64_t *at) {
  int64_t index = 0;
  for (int d = 0; d < RANK; d++)
    index += at[d] * of->strides[d];
  return index;
}

static float sum_at(const call *c, const int64_t *at) {
  int64_t per_group = c->y.extents[1] / (c->x.extents[1] / c->w.extents[1]), group = at[1] / per_group;
  int64_t k[RANK] = {at[1]};
  float sum = 0;
  for (k[1] = 0; k[1] < c->w.extents[1]; k[1]++)
    for (k[2] = 0; k[2] < c->w.extents[2]; k[2]++)
      for (k[3] = 0; k[3] < c->w.extents[3]; k[3]++)
        for (k[4] = 0; k[4] < c->w.extents[4]; k[4]++) {
          int64_t from[RANK] = {at[0], group * c->w.extents[1] + k[1]};
          int is_inside = 1;
          for (int d = 2; d < RANK; d++) {
            from[d] = at[d] * c->steps[d - 2] + k[d] * c->dilations[d - 2] - c->before[d - 2];
            is_inside &= from[d] >= 0 && from[d] < c->x.extents[d];
          }
          if (is_inside)
            sum += get(c->x.place, c->x.type, index_of(&c->x, from)) * get(c->w.place, c->w.type, index_of(&c->w, k));
        }
  return sum;
}

static void convolve_all(void *argument) {
  const call *c = argument;
  int64_t at[RANK];
  for (at[0] = 0; at[0] < c->y.extents[0]; at[0]++)
    for (at[1] = 0; at[1] < c->y.extents[1]; at[1]++)
      for (at[2] = 0; at[2] < c->y.extents[2]; at[2]++)
        for (at[3] = 0; at[3] < c->y.extents[3]; at[3]++)
          for (at[4] = 0; at[4] < c->y.extents[4]; at[4]++) {
            float sum = sum_at(c, at);
            for (int i = 0; i < c->count; i++)
              if (c->factors[i] != 0)
                sum += c->factors[i] * get(c->addends[i].place, c->addends[i].type, index_of(&c->addends[i], at));
            put(c->y.place, c->y.type, index_of(&c->y, at), c->has_relu && sum < 0 ? 0 : sum);
          }
}

static void add_operation(call *c, const object *point, const object *pack) {
  const object *second = object_of(point, 752, 0);
  c->has_relu |= !second;
  if (!second)
    return;
  c->factors[c->count] = float_of(point, 755, 1);
  c->addends[c->count++] = operand_of(second, pack);
}

int cudnnBackendExecute(void **handle, const object *plan, const object *pack) {
  TRY;
  const object *graph = object_of(plan, 401, 0)->graph, *convolve = object_of(graph, 801, 0);
  const object *how = object_of(convolve, 702, 0), *last = object_of(convolve, 705, 0);
  call c = {.x = operand_of(object_of(convolve, 704, 0), pack), .w = operand_of(object_of(convolve, 703, 0), pack)};
  void *workspace = *(void *const *)find(pack, 1003)->bytes;
  if (!plan->finished || !pack->finished || object_of(plan, 400, 0) != (const object *)handle || !workspace)
    return INVALID;
  for (int64_t i = 1; i < count_of(graph, 801); i++) {
    add_operation(&c, object_of(graph, 801, i), pack);
    last = object_of(object_of(graph, 801, i), 753, 0);
  }
  c.y = operand_of(last, pack);
  for (int d = 0; d < 3; d++) {
    c.steps[d] = i64_of(how, 103, d, 1);
    c.dilations[d] = i64_of(how, 102, d, 1);
    c.before[d] = i64_of(how, 105, d, 0);
  }
  const operand *const all[] = {&c.x, &c.w, &c.y, &c.addends[0], &c.addends[1]};
  for (int i = 0; i < 3 + c.count; i++)
    if (!all[i]->place || (uintptr_t)all[i]->place % 16)
      return INVALID;
  memset(workspace, 0x5a, WORKSPACE);
  say("convolve on %llu", (unsigned long long)(uintptr_t)*handle);
  enqueue(*handle, convolve_all, &c, sizeof(c));
  return 0;
}
