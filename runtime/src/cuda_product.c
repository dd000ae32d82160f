/* Matrix products by cuBLASLt (cuda_library.c).
 *
 * The algorithm is the first of those that the library proposes for the device whose sums do not meet in 16 bits, which
 * is the same each time.
 *
 * Matrices are the library's, whose lines are columns: what it multiplies is result' = rhs' lhs', so that `n` is its
 * first dim. Sums are in f32, by f32 arithmetic where operands are f32.
 */
#include "cuda.h"

#include <dlfcn.h>
#include <string.h>

enum {
  COMPUTE_F32 = 68, /* cublasComputeType_t: no TF32 */
  TRANSPOSE_A = 3,  /* cublasLtMatmulDescAttributes_t */
  TRANSPOSE_B = 4,
  EPILOGUE = 7,
  BIAS_POINTER = 8,
  BATCH_COUNT = 5, /* cublasLtMatrixLayoutAttribute_t */
  BATCH_STRIDE = 6,
  MOST_WORKSPACE = 1, /* cublasLtMatmulPreferenceAttributes_t */
  REDUCTION_SCHEMES = 3,
  ALIGNMENT_OF_A = 5,
  ALIGNMENT_OF_D = 8,
  REDUCTION_SCHEME = 3,    /* cublasLtMatmulAlgoConfigAttributes_t */
  SUM_IN_COMPUTE_TYPE = 2, /* cublasLtReductionScheme_t */
  EPILOGUE_NONE = 1,       /* cublasLtEpilogue_t; the others together are both */
  EPILOGUE_RELU = 2,
  EPILOGUE_BIAS = 4,
  ALIGNMENT = 16
};

/* cublasLtMatmulHeuristicResult_t */
typedef struct proposal {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} proposal;

/* ---- the library ---- */

static bool computes(const ptc_rt_device_kernel *kernel) { return kernel->product != 0; }

static bool open(ptc_cuda_model *device, void *opened) {
  ptc_cublaslt *library = &device->cublaslt;
  bool complete = true;
  PTC_CUBLASLT_FUNCTIONS(PTC_CUDA_LIBRARY_FIND)
  return complete && library->create(&library->handle) == 0;
}

static void close(ptc_cuda_model *device) {
  device->cublaslt.destroy(device->cublaslt.handle);
  device->cublaslt = (ptc_cublaslt){0};
}

/* What a context has of it is its products. */
static void leave(const ptc_cuda_model *device, ptc_cuda_ctx *own) {
  (void)device;
  (void)own;
}

/* ---- the products of a context ---- */

static void drop(const ptc_cuda_model *device, ptc_cuda_work *work) {
  const ptc_cublaslt *library = &device->cublaslt;
  const ptc_cuda_product *product = &work->as.product;
  void *const matrices[] = {product->lhs, product->rhs, product->result};
  for (size_t i = 0; i < sizeof(matrices) / sizeof(matrices[0]); i++)
    if (matrices[i])
      library->matrix_destroy(matrices[i]);
  if (product->operation)
    library->operation_destroy(product->operation);
}

static int data_type(uint32_t type) {
  static const int types[] = {[PTC_RT_F32] = 0, [PTC_RT_F16] = 2, [PTC_RT_BF16] = 14};
  return types[type];
}

/* `lines` of `length` elements. */
static bool describe_matrix(const ptc_cublaslt *library, void **result, uint32_t type, uint64_t length, uint64_t lines,
                            const ptc_rt_matrix *matrix, uint64_t batch) {
  int32_t count = (int32_t)batch;
  int64_t stride = (int64_t)matrix->batch_stride;
  return library->matrix_create(result, data_type(type), length, lines, (int64_t)matrix->pitch) == 0 &&
         (batch == 1 || (library->matrix_set(*result, BATCH_COUNT, &count, sizeof(count)) == 0 &&
                         library->matrix_set(*result, BATCH_STRIDE, &stride, sizeof(stride)) == 0));
}

static bool describe_operation(const ptc_cublaslt *library, ptc_cuda_product *product, const ptc_rt_product *of) {
  int32_t rhs_turned = of->rhs.along_k != 0, lhs_turned = of->lhs.along_k == 0;
  uint32_t bias = of->has_bias ? EPILOGUE_BIAS : 0, relu = of->has_relu ? EPILOGUE_RELU : 0;
  uint32_t epilogue = bias | relu ? bias | relu : EPILOGUE_NONE;
  const void *aligned = (const void *)(uintptr_t)ALIGNMENT; /* tells no more of the bias than that */
  return library->operation_create(&product->operation, COMPUTE_F32, data_type(PTC_RT_F32)) == 0 &&
         library->operation_set(product->operation, TRANSPOSE_A, &rhs_turned, sizeof(rhs_turned)) == 0 &&
         library->operation_set(product->operation, TRANSPOSE_B, &lhs_turned, sizeof(lhs_turned)) == 0 &&
         library->operation_set(product->operation, EPILOGUE, &epilogue, sizeof(epilogue)) == 0 &&
         (!bias || library->operation_set(product->operation, BIAS_POINTER, &aligned, sizeof(aligned)) == 0);
}

/* A preference is no promise. */
static bool sums_in_f32(const ptc_cublaslt *library, const proposal *of) {
  uint32_t scheme = 0;
  size_t written = 0;
  return library->algorithm_get(of->algorithm, REDUCTION_SCHEME, &scheme, sizeof(scheme), &written) == 0 &&
         (scheme & ~(uint32_t)SUM_IN_COMPUTE_TYPE) == 0;
}

static bool choose(const ptc_cublaslt *library, ptc_cuda_product *product, const ptc_rt_product *of) {
  uint64_t most = of->workspace;
  uint32_t schemes = SUM_IN_COMPUTE_TYPE, alignment = ALIGNMENT;
  enum { MOST = 16 };
  proposal proposals[MOST];
  void *preference = 0;
  int found = 0;
  if (library->preference_create(&preference) != 0)
    return false;
  bool done = library->preference_set(preference, MOST_WORKSPACE, &most, sizeof(most)) == 0 &&
              library->preference_set(preference, REDUCTION_SCHEMES, &schemes, sizeof(schemes)) == 0;
  for (int matrix = ALIGNMENT_OF_A; done && matrix <= ALIGNMENT_OF_D; matrix++)
    done = library->preference_set(preference, matrix, &alignment, sizeof(alignment)) == 0;
  done = done && library->propose(library->handle, product->operation, product->rhs, product->lhs, product->result,
                                  product->result, preference, MOST, proposals, &found) == 0;
  library->preference_destroy(preference);
  for (int i = 0; done && i < found; i++) {
    const proposal *each = &proposals[i];
    if (each->state != 0 || each->workspace > most || !sums_in_f32(library, each))
      continue;
    memcpy(product->algorithm, each->algorithm, sizeof(each->algorithm));
    product->workspace_bytes = each->workspace;
    return true;
  }
  return false;
}

static bool describe(const ptc_cuda_model *device, ptc_cuda_ctx *own, ptc_cuda_work *work,
                     const ptc_rt_device_kernel *kernel) {
  const ptc_cublaslt *library = &device->cublaslt;
  const ptc_rt_product *of = kernel->product;
  ptc_cuda_product *product = &work->as.product;
  (void)own;
  const ptc_rt_matrix *lhs = &of->lhs, *rhs = &of->rhs;
  return describe_operation(library, product, of) &&
         describe_matrix(library, &product->rhs, of->type, rhs->along_k ? of->k : of->n, rhs->along_k ? of->n : of->k,
                         rhs, of->batch) &&
         describe_matrix(library, &product->lhs, of->type, lhs->along_k ? of->k : of->m, lhs->along_k ? of->m : of->k,
                         lhs, of->batch) &&
         describe_matrix(library, &product->result, of->result_type, of->n, of->m, &of->result, of->batch) &&
         choose(library, product, of);
}

/* ---- a launch ---- */

static void place(ptc_cuda_work *work, const ptc_rt_device_kernel *kernel, void *const *buffers) {
  const ptc_rt_product *of = kernel->product;
  uint64_t *places = work->places;
  places[PTC_CUDA_LHS] = ptc_cuda_place(buffers, of->lhs.buffer, of->lhs.offset);
  places[PTC_CUDA_RHS] = ptc_cuda_place(buffers, of->rhs.buffer, of->rhs.offset);
  places[PTC_CUDA_RESULT] = ptc_cuda_place(buffers, of->result.buffer, of->result.offset);
  places[PTC_CUDA_BIAS] = of->has_bias ? ptc_cuda_place(buffers, of->bias.buffer, of->bias.offset) : 0;
}

static int run(const ptc_cuda_model *device, ptc_cuda_work *work, void *stream) {
  const ptc_cublaslt *library = &device->cublaslt;
  const ptc_cuda_product *product = &work->as.product;
  const float one = 1, zero = 0;
  void *places[PTC_CUDA_PLACES];
  for (int i = 0; i < PTC_CUDA_PLACES; i++)
    places[i] = (void *)(uintptr_t)work->places[i];
  if (places[PTC_CUDA_BIAS]) {
    int code = library->operation_set(product->operation, BIAS_POINTER, &places[PTC_CUDA_BIAS], sizeof(void *));
    if (code != 0)
      return code;
  }
  void *result = places[PTC_CUDA_RESULT];
  return library->multiply(library->handle, product->operation, &one, places[PTC_CUDA_RHS], product->rhs,
                           places[PTC_CUDA_LHS], product->lhs, &zero, result, product->result, result, product->result,
                           product->algorithm, places[PTC_CUDA_SCRATCH], product->workspace_bytes, stream);
}

const ptc_cuda_library ptc_cuda_cublaslt = {.title = "cuBLASLt",
                                            .refuses = "refuses a product",
                                            .fails = "fails at a product",
                                            .names = {PTC_RT_CUBLASLT_FILES},
                                            .computes = computes,
                                            .open = open,
                                            .close = close,
                                            .describe = describe,
                                            .drop = drop,
                                            .leave = leave,
                                            .place = place,
                                            .run = run};
