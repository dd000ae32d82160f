/* Matrix products by cuBLASLt, in the place of kernels for which a tuning found it faster (ptc_rt_product).
 *
 * The library is opened by name when a model is created, as the driver is, and only for a model that has such kernels.
 * A context describes its products to it when it is first used: the algorithm is the first of those that the library
 * proposes for the device whose sums do not meet in 16 bits, which is the same each time. Where the library is absent,
 * refuses a product or fails at one, the kernel's own code does the work, and a caller who asked for a log reads why.
 *
 * Matrices are the library's, whose lines are columns: what it multiplies is result' = rhs' lhs', so that `n` is its
 * first dim. Sums are in f32, by f32 arithmetic where operands are f32.
 */
#include "cuda.h"

#include <dlfcn.h>
#include <stdio.h>
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

static void say(const ptc_model *model, const char *what) {
  char text[256];
  if (!model->log)
    return;
  snprintf(text, sizeof(text), "cuBLASLt %s: kernels' own code computes what it was chosen for", what);
  model->log(model->log_state, PTC_LOG_WARNING, text);
}

/* It stays in the process: it registers what runs at the process's end. */
static bool open_library(ptc_cublaslt *library, const char *name, int flags) {
  void *opened = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | flags);
  if (!opened)
    return false;
  bool complete = true;
#define PTC_CUBLASLT_FIND(member, symbol, parameters)                                                                  \
  *(void **)&library->member = dlsym(opened, #symbol);                                                                 \
  complete &= library->member != 0;
  PTC_CUBLASLT_FUNCTIONS(PTC_CUBLASLT_FIND)
#undef PTC_CUBLASLT_FIND
  library->library = opened;
  if (complete && library->create(&library->handle) == 0)
    return true;
  library->handle = 0;
  dlclose(opened);
  return false;
}

static bool asks_for_library(const ptc_model *model) {
  for (uint32_t i = 0; i < model->descriptor->kernel_count; i++)
    if (ptc_cuda_kernel_of(model, i)->product)
      return true;
  return false;
}

void ptc_cuda_open_products(const ptc_model *model, ptc_cublaslt *library) {
  static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
  if (!asks_for_library(model))
    return;
  for (int round = 0; round < 2; round++) /* first one that the process has */
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
      if (open_library(library, names[i], round == 0 ? RTLD_NOLOAD : 0))
        return;
  say(model, "is not found, or does not start");
}

void ptc_cuda_close_products(ptc_cublaslt *library) {
  if (!library->handle)
    return;
  library->destroy(library->handle);
  dlclose(library->library);
  library->handle = 0;
}

/* ---- the products of a context ---- */

static void drop(const ptc_cublaslt *library, ptc_cuda_product *product) {
  void *const matrices[] = {product->lhs, product->rhs, product->result};
  for (size_t i = 0; i < sizeof(matrices) / sizeof(matrices[0]); i++)
    if (matrices[i])
      library->matrix_destroy(matrices[i]);
  if (product->operation)
    library->operation_destroy(product->operation);
  *product = (ptc_cuda_product){0};
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

static bool describe(const ptc_cublaslt *library, ptc_cuda_product *product, const ptc_rt_product *of) {
  const ptc_rt_matrix *lhs = &of->lhs, *rhs = &of->rhs;
  return describe_operation(library, product, of) &&
         describe_matrix(library, &product->rhs, of->type, rhs->along_k ? of->k : of->n, rhs->along_k ? of->n : of->k,
                         rhs, of->batch) &&
         describe_matrix(library, &product->lhs, of->type, lhs->along_k ? of->k : of->m, lhs->along_k ? of->m : of->k,
                         lhs, of->batch) &&
         describe_matrix(library, &product->result, of->result_type, of->n, of->m, &of->result, of->batch) &&
         choose(library, product, of);
}

void ptc_cuda_describe_products(const ptc_model *model, ptc_cuda_product *products) {
  const ptc_cuda_model *device = model->device_model;
  for (uint32_t i = 0; i < model->descriptor->kernel_count && device->cublaslt.handle; i++) {
    const ptc_rt_product *of = ptc_cuda_kernel_of(model, i)->product;
    if (!of || describe(&device->cublaslt, &products[i], of))
      continue;
    drop(&device->cublaslt, &products[i]);
    say(model, "refuses a product");
  }
}

void ptc_cuda_drop_products(const ptc_model *model, ptc_cuda_product *products) {
  const ptc_cuda_model *device = model->device_model;
  for (uint32_t i = 0; i < model->descriptor->kernel_count && device->cublaslt.handle; i++)
    drop(&device->cublaslt, &products[i]);
}

/* ---- a launch ---- */

void ptc_cuda_place_product(ptc_cuda_product *product, const ptc_rt_product *of, void *const *buffers,
                            ptc_cuda_address scratch) {
  const ptc_rt_matrix *matrices[] = {&of->lhs, &of->rhs, &of->result, &of->bias};
  for (size_t i = 0; i < sizeof(matrices) / sizeof(matrices[0]); i++)
    product->places[i] = (uint64_t)(uintptr_t)buffers[matrices[i]->buffer] + matrices[i]->offset;
  product->places[3] = of->has_bias ? product->places[3] : 0;
  product->places[4] = scratch;
}

int ptc_cuda_multiply(const ptc_cublaslt *library, ptc_cuda_product *product, void *stream) {
  const float one = 1, zero = 0;
  void *places[PTC_CUDA_PLACES];
  for (int i = 0; i < PTC_CUDA_PLACES; i++)
    places[i] = (void *)(uintptr_t)product->places[i];
  if (places[3]) {
    int code = library->operation_set(product->operation, BIAS_POINTER, &places[3], sizeof(places[3]));
    if (code != 0)
      return code;
  }
  return library->multiply(library->handle, product->operation, &one, places[1], product->rhs, places[0], product->lhs,
                           &zero, places[2], product->result, places[2], product->result, product->algorithm, places[4],
                           product->workspace_bytes, stream);
}

void ptc_cuda_refuse_product(const ptc_model *model, ptc_cuda_product *product) {
  const ptc_cuda_model *device = model->device_model;
  drop(&device->cublaslt, product);
  say(model, "fails at a product");
}
