/* A cuBLASLt that computes on the host, for tests beside fake_cuda.c: products in f32, f16 and bf16 of matrices whose
 * lines are columns. It does its work when the driver's stream does (fake_enqueue), and takes notes in FAKE_CUDA_LOG.
 *   FAKE_CUDA_LIBRARY_FAILS  a function that fails: cublasLtCreate, cublasLtMatmulAlgoGetHeuristic, cublasLtMatmul
 * What a real one would refuse or read wrongly, it refuses.
 */
enum { TYPE_F32 = 0, TYPE_F16 = 2, TYPE_BF16 = 14 };
#include "fake_library.h"

enum { INVALID = 7, WORKSPACE = 4096, MARK = 0x5eed };

typedef struct operation {
  int32_t compute, scale, turned[2];
  uint32_t epilogue;
  void *bias;
} operation;
typedef struct matrix {
  int32_t type, batch;
  uint64_t rows, columns; /* columns are lines */
  int64_t pitch, stride;
} matrix;
typedef struct preference {
  uint64_t workspace;
  uint32_t schemes, alignments[4];
} preference;

static int set(void *member, size_t size, const void *value, size_t bytes) {
  if (size != bytes)
    return INVALID;
  memcpy(member, value, bytes);
  return 0;
}

int cublasLtCreate(void **handle) {
  TRY;
  return say("library opened"), make(handle, 1);
}
int cublasLtDestroy(void *handle) { return end(handle); }

int cublasLtMatmulDescCreate(void **result, int compute, int scale) {
  int code = make(result, sizeof(operation));
  *(operation *)*result = (operation){.compute = compute, .scale = scale, .epilogue = 1};
  return code;
}
int cublasLtMatmulDescSetAttribute(operation *of, int attribute, const void *value, size_t bytes) {
  switch (attribute) {
  case 3:
  case 4:
    return set(&of->turned[attribute - 3], sizeof(int32_t), value, bytes);
  case 7:
    return set(&of->epilogue, sizeof(uint32_t), value, bytes);
  case 8:
    return set(&of->bias, sizeof(void *), value, bytes);
  }
  return INVALID;
}
int cublasLtMatmulDescDestroy(void *of) { return end(of); }

int cublasLtMatrixLayoutCreate(void **result, int type, uint64_t rows, uint64_t columns, int64_t pitch) {
  int code = make(result, sizeof(matrix));
  *(matrix *)*result = (matrix){.type = type, .batch = 1, .rows = rows, .columns = columns, .pitch = pitch};
  return pitch < (int64_t)rows ? INVALID : code;
}
int cublasLtMatrixLayoutSetAttribute(matrix *of, int attribute, const void *value, size_t bytes) {
  if (attribute == 5)
    return set(&of->batch, sizeof(int32_t), value, bytes);
  return attribute == 6 ? set(&of->stride, sizeof(int64_t), value, bytes) : INVALID;
}
int cublasLtMatrixLayoutDestroy(void *of) { return end(of); }

int cublasLtMatmulPreferenceCreate(void **result) { return make(result, sizeof(preference)); }
int cublasLtMatmulPreferenceSetAttribute(preference *of, int attribute, const void *value, size_t bytes) {
  if (attribute == 1)
    return set(&of->workspace, sizeof(uint64_t), value, bytes);
  if (attribute == 3)
    return set(&of->schemes, sizeof(uint32_t), value, bytes);
  return attribute >= 5 && attribute <= 8 ? set(&of->alignments[attribute - 5], sizeof(uint32_t), value, bytes)
                                          : INVALID;
}
int cublasLtMatmulPreferenceDestroy(void *of) { return end(of); }

static int fits(const operation *of, const matrix *a, const matrix *b, const matrix *d) {
  uint64_t m = of->turned[0] ? a->columns : a->rows, k = of->turned[0] ? a->rows : a->columns;
  uint64_t n = of->turned[1] ? b->rows : b->columns, other = of->turned[1] ? b->columns : b->rows;
  return m == d->rows && n == d->columns && k == other && a->type == b->type && a->batch == d->batch &&
         b->batch == d->batch && of->compute == 68 && of->scale == 0;
}

static void describe(char *text, const matrix *of) {
  sprintf(text, "%llux%llu pitch %lld type %d batch %d every %lld", (unsigned long long)of->rows,
          (unsigned long long)of->columns, (long long)of->pitch, of->type, of->batch, (long long)of->stride);
}

/* cublasLtMatmulHeuristicResult_t */
typedef struct proposal {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} proposal;

int cublasLtMatmulAlgoGetHeuristic(void *handle, operation *of, matrix *a, matrix *b, matrix *c, matrix *d,
                                   preference *how, int most, proposal *results, int *found) {
  TRY;
  char first[128], second[128], third[128];
  *found = 0;
  for (int i = 0; i < 4; i++)
    if (how->alignments[i] != 16)
      return INVALID;
  if (!handle || c != d || most < 2 || how->schemes != 2 || how->workspace < WORKSPACE || !fits(of, a, b, d))
    return INVALID;
  describe(first, a);
  describe(second, b);
  describe(third, d);
  say("propose %s%s, %s%s, %s, epilogue %u", first, of->turned[0] ? " turned" : "", second,
      of->turned[1] ? " turned" : "", third, of->epilogue);
  memset(results, 0, 2 * sizeof(*results));
  results[0].algorithm[1] = 4; /* sums meet in the result's type, which was not asked for */
  results[1].algorithm[0] = MARK;
  results[1].algorithm[1] = 2;
  results[1].workspace = WORKSPACE;
  *found = 2;
  return 0;
}
int cublasLtMatmulAlgoConfigGetAttribute(const uint64_t *algorithm, int attribute, uint32_t *value, size_t bytes,
                                         size_t *written) {
  if (attribute != 3 || bytes != sizeof(*value))
    return INVALID;
  *value = (uint32_t)algorithm[1];
  *written = bytes;
  return 0;
}

/* ---- arithmetic ---- */

typedef struct call {
  operation of;
  matrix a, b, d;
  const char *from_a, *from_b;
  char *to;
} call;

static void multiply(void *argument) {
  const call *c = argument;
  uint64_t depth = c->of.turned[0] ? c->a.rows : c->a.columns;
  for (int64_t batch = 0; batch < c->d.batch; batch++)
    for (int64_t i = 0; i < (int64_t)c->d.rows; i++)
      for (int64_t j = 0; j < (int64_t)c->d.columns; j++) {
        float sum = 0;
        for (int64_t k = 0; k < (int64_t)depth; k++) {
          int64_t in_a = c->of.turned[0] ? k + i * c->a.pitch : i + k * c->a.pitch;
          int64_t in_b = c->of.turned[1] ? j + k * c->b.pitch : k + j * c->b.pitch;
          sum += get(c->from_a, c->a.type, in_a + batch * c->a.stride) *
                 get(c->from_b, c->b.type, in_b + batch * c->b.stride);
        }
        if (c->of.epilogue & 4)
          sum += get(c->of.bias, c->d.type, i);
        if (c->of.epilogue & 2 && sum < 0)
          sum = 0;
        put(c->to, c->d.type, i + j * c->d.pitch + batch * c->d.stride, sum);
      }
}

int cublasLtMatmul(void *handle, operation *of, const float *alpha, const void *from_a, matrix *a, const void *from_b,
                   matrix *b, const float *beta, const void *from_c, matrix *c, void *to, matrix *d,
                   const uint64_t *algorithm, void *workspace, size_t bytes, void *stream) {
  TRY;
  uintptr_t all = (uintptr_t)from_a | (uintptr_t)from_b | (uintptr_t)to | (uintptr_t)workspace;
  if (!handle || !fits(of, a, b, d) || *alpha != 1 || *beta != 0 || from_c != to || c != d || algorithm[0] != MARK ||
      bytes != WORKSPACE || !workspace || all % 16 || (of->epilogue & 4 && (uintptr_t)of->bias % 16))
    return INVALID;
  const call work = {*of, *a, *b, *d, from_a, from_b, to};
  memset(workspace, 0x5a, bytes);
  say("multiply on %llu", (unsigned long long)(uintptr_t)stream);
  enqueue(stream, multiply, &work, sizeof(work));
  return 0;
}
