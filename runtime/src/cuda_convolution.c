/* Convolutions by cuDNN (cuda_library.c).
 *
 * Of its two interfaces this is the one by graphs of operations, the only one whose functions for convolutions are not
 * on their way out: objects that get attributes and are finished. A convolution is the graph
 *
 *   sum = input * weights    sum + residual    + bias    ReLU
 *
 * of what the kernel has of it; what lies between is in f32 and nowhere in memory. The library lists engines that
 * compute the graph, the fastest by its estimate first. Taken is the first whose arithmetic is the kernel's: operands
 * as they are (no TF32), sums in f32, not by Winograd or Fourier, the same bits each time; and whose scratch fits.
 * Where it has none for a sum with a bias alone, it is asked for one with a residual that counts 0 times, the pattern
 * that its fastest engines are made for. That is the result's own memory, which engines do not read then: PyTorch's
 * fused convolutions rest on the same.
 *
 * A handle is one thread's at a time, so that each context has its own. Objects are kept as long as the plan that was
 * made of them. Places of tensors come with a launch.
 */
#include "cuda.h"

#include <dlfcn.h>
#include <stdlib.h>

/* cudnnBackendDescriptorType_t */
enum {
  POINTWISE = 0,
  CONVOLUTION = 1,
  ENGINE = 2,
  ENGINE_CONFIG = 3,
  HEURISTICS = 4,
  PLAN = 5,
  DO_CONVOLUTION = 10,
  DO_POINTWISE = 13,
  GRAPH = 15,
  PACK = 16,
  TENSOR = 17
};
/* cudnnBackendAttributeType_t */
enum {
  HANDLE = 0,
  DATA_TYPE = 1,
  BOOLEAN = 2,
  INT64 = 3,
  FLOAT = 4,
  POINTER = 6,
  CONVOLUTION_MODE = 7,
  HEURISTIC_MODE = 8,
  NUMERICAL_NOTE = 11,
  POINTWISE_MODE = 14,
  OBJECT = 15
};
/* cudnnBackendAttributeName_t */
enum {
  POINTWISE_OPERATION = 0,
  POINTWISE_PRECISION = 1,
  CONVOLUTION_PRECISION = 100,
  CONVOLUTION_KIND = 101,
  CONVOLUTION_DILATIONS = 102,
  CONVOLUTION_STEPS = 103,
  CONVOLUTION_BEHIND = 104,
  CONVOLUTION_BEFORE = 105,
  CONVOLUTION_AXES = 106,
  HEURISTICS_MODE = 200,
  HEURISTICS_GRAPH = 201,
  HEURISTICS_RESULTS = 202,
  CONFIG_ENGINE = 300,
  PLAN_HANDLE = 400,
  PLAN_CONFIG = 401,
  PLAN_WORKSPACE = 402,
  DO_CONVOLUTION_ALPHA = 700,
  DO_CONVOLUTION_BETA = 701,
  DO_CONVOLUTION_AS = 702,
  DO_CONVOLUTION_WEIGHTS = 703,
  DO_CONVOLUTION_INPUT = 704,
  DO_CONVOLUTION_RESULT = 705,
  DO_POINTWISE_AS = 750,
  DO_POINTWISE_FIRST = 751,
  DO_POINTWISE_SECOND = 752,
  DO_POINTWISE_RESULT = 753,
  DO_POINTWISE_FACTOR_OF_SECOND = 755,
  GRAPH_HANDLE = 800,
  GRAPH_OPERATIONS = 801,
  TENSOR_ALIGNMENT = 900,
  TENSOR_TYPE = 901,
  TENSOR_EXTENTS = 902,
  TENSOR_STRIDES = 903,
  TENSOR_NUMBER = 906,
  TENSOR_IS_VIRTUAL = 907,
  PACK_NUMBERS = 1000,
  PACK_PLACES = 1001,
  PACK_WORKSPACE = 1003,
  ENGINE_NOTES = 1303
};
/* cudnnConvolutionMode_t, cudnnPointwiseMode_t, cudnnBackendHeurMode_t */
enum { CROSS_CORRELATION = 1, ADD = 0, RELU = 100, BY_FALLBACK = 2, BY_ESTIMATE = 3 };
/* Bits of cudnnBackendNumericalNote_t. */
enum {
  ON_TENSOR_CORES = 1 << 0,
  CONVERTS_INPUTS = 1 << 1,
  SUMS_BELOW_F32 = 1 << 2,
  BY_FOURIER = 1 << 3,
  NOT_REPEATABLE = 1 << 4,
  BY_WINOGRAD = 1 << 5
};
enum { ALIGNMENT = 16, TYPE_F32 = 0 };

/* ---- objects ---- */

/* A plan under way; after a failure nothing more is done. */
typedef struct builder {
  const ptc_cudnn *library;
  ptc_cuda_convolution *work;
  const ptc_rt_convolution *of;
  bool failed;
} builder;

static void *make(builder *b, int kind) {
  void *object = 0;
  b->failed |= b->work->object_count == PTC_CUDNN_OBJECTS;
  b->failed |= !b->failed && b->library->object_create(kind, &object) != 0;
  if (b->failed)
    return 0;
  b->work->objects[b->work->object_count++] = object;
  return object;
}

static void set(builder *b, void *object, int attribute, int type, int64_t count, const void *values) {
  b->failed |= !b->failed && b->library->object_set(object, attribute, type, count, values) != 0;
}

static void finish(builder *b, void *object) { b->failed |= !b->failed && b->library->object_finish(object) != 0; }

static void drop_objects(const ptc_cudnn *library, ptc_cuda_convolution *work) {
  while (work->object_count > 0)
    library->object_destroy(work->objects[--work->object_count]);
}

/* ---- the graph ---- */

static int data_type(uint32_t type) {
  static const int types[] = {[PTC_RT_F32] = TYPE_F32, [PTC_RT_F16] = 2, [PTC_RT_BF16] = 9};
  return types[type];
}

/* Tensors have numbers, not 0, by which a launch says where they lie: their place's, and behind those the ones of
 * values on the way. */
static int64_t number_of(int64_t place) { return place + 1; }

static void *tensor(builder *b, int64_t place, int type, const int64_t *extents, const int64_t *strides) {
  int64_t alignment = ALIGNMENT, rank = 2 + (int64_t)b->of->axes, number = number_of(place);
  bool is_virtual = place >= PTC_CUDA_PLACES;
  void *made = make(b, TENSOR);
  set(b, made, TENSOR_ALIGNMENT, INT64, 1, &alignment);
  set(b, made, TENSOR_TYPE, DATA_TYPE, 1, &type);
  set(b, made, TENSOR_EXTENTS, INT64, rank, extents);
  set(b, made, TENSOR_STRIDES, INT64, rank, strides);
  set(b, made, TENSOR_NUMBER, INT64, 1, &number);
  set(b, made, TENSOR_IS_VIRTUAL, BOOLEAN, 1, &is_virtual);
  finish(b, made);
  return made;
}

static void *image(builder *b, int64_t place, uint32_t type, const ptc_rt_operand *of) {
  return tensor(b, place, data_type(type), of->extents, of->strides);
}

/* A value on the way to the result, or that. */
static void *value(builder *b, int64_t step, bool is_last) {
  const ptc_rt_operand *result = &b->of->result;
  if (is_last)
    return image(b, PTC_CUDA_RESULT, b->of->result_type, result);
  return tensor(b, PTC_CUDA_PLACES + step, TYPE_F32, result->extents, result->strides);
}

static void *bias(builder *b) {
  int64_t columns = b->of->result.extents[1];
  const int64_t extents[PTC_RT_OPERAND_RANK] = {1, columns, 1, 1, 1},
                strides[] = {columns, 1, columns, columns, columns};
  return tensor(b, PTC_CUDA_BIAS, data_type(b->of->result_type), extents, strides);
}

static void *convolve(builder *b, void *result) {
  const ptc_rt_convolution *of = b->of;
  int64_t axes = of->axes;
  int precision = TYPE_F32, kind = CROSS_CORRELATION;
  float one = 1, zero = 0;
  void *how = make(b, CONVOLUTION);
  set(b, how, CONVOLUTION_AXES, INT64, 1, &axes);
  set(b, how, CONVOLUTION_PRECISION, DATA_TYPE, 1, &precision);
  set(b, how, CONVOLUTION_KIND, CONVOLUTION_MODE, 1, &kind);
  set(b, how, CONVOLUTION_DILATIONS, INT64, axes, of->dilations);
  set(b, how, CONVOLUTION_STEPS, INT64, axes, of->steps);
  set(b, how, CONVOLUTION_BEFORE, INT64, axes, of->before);
  set(b, how, CONVOLUTION_BEHIND, INT64, axes, of->behind);
  finish(b, how);
  void *input = image(b, PTC_CUDA_LHS, of->type, &of->input);
  void *weights = image(b, PTC_CUDA_RHS, of->type, &of->weights);
  void *made = make(b, DO_CONVOLUTION);
  set(b, made, DO_CONVOLUTION_AS, OBJECT, 1, &how);
  set(b, made, DO_CONVOLUTION_INPUT, OBJECT, 1, &input);
  set(b, made, DO_CONVOLUTION_WEIGHTS, OBJECT, 1, &weights);
  set(b, made, DO_CONVOLUTION_RESULT, OBJECT, 1, &result);
  set(b, made, DO_CONVOLUTION_ALPHA, FLOAT, 1, &one);
  set(b, made, DO_CONVOLUTION_BETA, FLOAT, 1, &zero);
  finish(b, made);
  return made;
}

/* second NULL: of one operand */
static void *point(builder *b, int operation, void *first, void *second, float factor, void *result) {
  int precision = TYPE_F32;
  void *how = make(b, POINTWISE);
  set(b, how, POINTWISE_OPERATION, POINTWISE_MODE, 1, &operation);
  set(b, how, POINTWISE_PRECISION, DATA_TYPE, 1, &precision);
  finish(b, how);
  void *made = make(b, DO_POINTWISE);
  set(b, made, DO_POINTWISE_AS, OBJECT, 1, &how);
  set(b, made, DO_POINTWISE_FIRST, OBJECT, 1, &first);
  if (second) {
    set(b, made, DO_POINTWISE_SECOND, OBJECT, 1, &second);
    set(b, made, DO_POINTWISE_FACTOR_OF_SECOND, FLOAT, 1, &factor);
  }
  set(b, made, DO_POINTWISE_RESULT, OBJECT, 1, &result);
  finish(b, made);
  return made;
}

static void *draw(builder *b) {
  const ptc_rt_convolution *of = b->of;
  bool has_addend = of->has_residual || b->work->adds_nothing;
  int64_t count = 1 + has_addend + of->has_bias + of->has_relu, step = 0;
  void *operations[4], *values[4];
  for (int64_t i = 0; i < count; i++)
    values[i] = value(b, i, i + 1 == count);
  operations[step++] = convolve(b, values[0]);
  if (has_addend) {
    void *addend = image(b, PTC_CUDA_RESIDUAL, of->result_type, of->has_residual ? &of->residual : &of->result);
    operations[step] = point(b, ADD, values[step - 1], addend, of->has_residual ? 1 : 0, values[step]);
    step++;
  }
  if (of->has_bias) {
    void *addend = bias(b);
    operations[step] = point(b, ADD, values[step - 1], addend, 1, values[step]);
    step++;
  }
  if (of->has_relu) {
    operations[step] = point(b, RELU, values[step - 1], 0, 1, values[step]);
    step++;
  }
  void *graph = make(b, GRAPH);
  set(b, graph, GRAPH_HANDLE, HANDLE, 1, &b->work->handle);
  set(b, graph, GRAPH_OPERATIONS, OBJECT, step, operations);
  finish(b, graph);
  return graph;
}

/* ---- the plan ---- */

/* A list that cannot be read has everything in it. */
static bool has_own_arithmetic(const builder *b, const void *config, void *engine) {
  enum { MOST = 10 }; /* as many as there are */
  int notes[MOST];
  int64_t count = 0;
  unsigned all = 0, refused = CONVERTS_INPUTS | SUMS_BELOW_F32 | BY_FOURIER | NOT_REPEATABLE | BY_WINOGRAD;
  if (b->of->type == PTC_RT_F32)
    refused |= ON_TENSOR_CORES;
  if (b->library->object_get((void *)config, CONFIG_ENGINE, OBJECT, 1, &count, &engine) != 0 ||
      b->library->object_get(engine, ENGINE_NOTES, NUMERICAL_NOTE, MOST, &count, notes) != 0 || count > MOST)
    return false;
  for (int64_t i = 0; i < count; i++)
    all |= notes[i] >= 0 && notes[i] < 31 ? 1u << notes[i] : 0;
  return (all & refused) == 0;
}

static bool take(builder *b, void *config) {
  int64_t workspace = 0, count = 0;
  void *engine = make(b, ENGINE);
  if (b->failed || !has_own_arithmetic(b, config, engine))
    return false;
  void *plan = make(b, PLAN);
  set(b, plan, PLAN_HANDLE, HANDLE, 1, &b->work->handle);
  set(b, plan, PLAN_CONFIG, OBJECT, 1, &config);
  finish(b, plan);
  bool done = !b->failed && b->library->object_get(plan, PLAN_WORKSPACE, INT64, 1, &count, &workspace) == 0 &&
              workspace <= (int64_t)b->of->workspace;
  b->work->plan = done ? plan : 0;
  b->failed = false; /* the next one may do */
  return done;
}

static bool choose(builder *b, void *graph, int mode) {
  enum { MOST = 64 }; /* those without tensor cores come late */
  void *configs[MOST], *heuristics = make(b, HEURISTICS);
  int64_t count = 0;
  set(b, heuristics, HEURISTICS_GRAPH, OBJECT, 1, &graph);
  set(b, heuristics, HEURISTICS_MODE, HEURISTIC_MODE, 1, &mode);
  finish(b, heuristics);
  for (int i = 0; i < MOST; i++)
    configs[i] = make(b, ENGINE_CONFIG);
  if (b->failed || b->library->object_get(heuristics, HEURISTICS_RESULTS, OBJECT, MOST, &count, configs) != 0)
    return false;
  for (int64_t i = 0; i < count && i < MOST; i++)
    if (take(b, configs[i]))
      return true;
  return false;
}

static bool plan(const ptc_cudnn *library, ptc_cuda_convolution *work, const ptc_rt_convolution *of) {
  static const int modes[] = {BY_ESTIMATE, BY_FALLBACK};
  for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
    builder b = {.library = library, .work = work, .of = of};
    void *graph = draw(&b);
    if (!b.failed && choose(&b, graph, modes[i]))
      return true;
    drop_objects(library, work);
  }
  return false;
}

/* ---- the library ---- */

static bool computes(const ptc_rt_device_kernel *kernel) { return kernel->convolution != 0; }

static bool open(ptc_cuda_model *device, void *opened) {
  ptc_cudnn *library = &device->cudnn;
  bool complete = true;
  PTC_CUDNN_FUNCTIONS(PTC_CUDA_LIBRARY_FIND)
  return complete;
}

static void close(ptc_cuda_model *device) { device->cudnn = (ptc_cudnn){0}; }

static void leave(const ptc_cuda_model *device, ptc_cuda_ctx *own) {
  if (own->cudnn)
    device->cudnn.destroy(own->cudnn);
  own->cudnn = 0;
}

static bool describe(const ptc_cuda_model *device, ptc_cuda_ctx *own, ptc_cuda_work *work,
                     const ptc_rt_device_kernel *kernel) {
  const ptc_rt_convolution *of = kernel->convolution;
  ptc_cuda_convolution *convolution = &work->as.convolution;
  if (!own->cudnn && device->cudnn.create(&own->cudnn) != 0)
    own->cudnn = 0;
  convolution->objects = malloc(PTC_CUDNN_OBJECTS * sizeof(void *));
  if (!own->cudnn || !convolution->objects)
    return false;
  convolution->handle = own->cudnn;
  convolution->adds_nothing = false;
  if (plan(&device->cudnn, convolution, of))
    return true;
  convolution->adds_nothing = of->has_bias && !of->has_residual;
  return convolution->adds_nothing && plan(&device->cudnn, convolution, of);
}

static void drop(const ptc_cuda_model *device, ptc_cuda_work *work) {
  drop_objects(&device->cudnn, &work->as.convolution);
  free(work->as.convolution.objects);
}

/* ---- a launch ---- */

static void place(ptc_cuda_work *work, const ptc_rt_device_kernel *kernel, void *const *buffers) {
  const ptc_rt_convolution *of = kernel->convolution;
  const ptc_rt_operand *residual = of->has_residual                    ? &of->residual
                                   : work->as.convolution.adds_nothing ? &of->result
                                                                       : 0;
  uint64_t *places = work->places;
  places[PTC_CUDA_LHS] = ptc_cuda_place(buffers, of->input.buffer, of->input.offset);
  places[PTC_CUDA_RHS] = ptc_cuda_place(buffers, of->weights.buffer, of->weights.offset);
  places[PTC_CUDA_RESULT] = ptc_cuda_place(buffers, of->result.buffer, of->result.offset);
  places[PTC_CUDA_BIAS] = of->has_bias ? ptc_cuda_place(buffers, of->bias.buffer, of->bias.offset) : 0;
  places[PTC_CUDA_RESIDUAL] = residual ? ptc_cuda_place(buffers, residual->buffer, residual->offset) : 0;
}

static int execute(const ptc_cudnn *library, const ptc_cuda_work *work, void *pack, void *stream) {
  int64_t numbers[PTC_CUDA_PLACES], count = 0;
  void *places[PTC_CUDA_PLACES], *workspace = (void *)(uintptr_t)work->places[PTC_CUDA_SCRATCH];
  for (int i = 0; i < PTC_CUDA_SCRATCH; i++) {
    if (!work->places[i])
      continue;
    numbers[count] = number_of(i);
    places[count++] = (void *)(uintptr_t)work->places[i];
  }
  int code = library->object_set(pack, PACK_NUMBERS, INT64, count, numbers);
  if (code == 0)
    code = library->object_set(pack, PACK_PLACES, POINTER, count, places);
  if (code == 0)
    code = library->object_set(pack, PACK_WORKSPACE, POINTER, 1, &workspace);
  if (code == 0)
    code = library->object_finish(pack);
  if (code == 0)
    code = library->set_stream(work->as.convolution.handle, stream);
  return code == 0 ? library->execute(work->as.convolution.handle, work->as.convolution.plan, pack) : code;
}

static int run(const ptc_cuda_model *device, ptc_cuda_work *work, void *stream) {
  void *pack = 0;
  int code = device->cudnn.object_create(PACK, &pack);
  if (code != 0)
    return code;
  code = execute(&device->cudnn, work, pack, stream);
  device->cudnn.object_destroy(pack);
  return code;
}

const ptc_cuda_library ptc_cuda_cudnn = {.title = "cuDNN",
                                         .refuses = "refuses a convolution",
                                         .fails = "fails at a convolution",
                                         .names = {PTC_RT_CUDNN_FILES},
                                         .computes = computes,
                                         .open = open,
                                         .close = close,
                                         .describe = describe,
                                         .drop = drop,
                                         .leave = leave,
                                         .place = place,
                                         .run = run};
