/* The runtime driven through a model written by hand: creation, both entries, threads, errors, memory, fork. */
#define _GNU_SOURCE
#include "fake_model.h"
#include "runtime.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmmintrin.h>

static int failures;
#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                                                   \
      if (++failures == 20)                                                                                            \
        exit(1);                                                                                                       \
    }                                                                                                                  \
  } while (0)

enum { MOST = 1000 };

static float x[MOST * FAKE_COLUMNS];
static uint8_t twice[2 * MOST];

static ptc_model *create(const ptc_rt_descriptor *descriptor, uint32_t threads) {
  ptc_options options = {.struct_size = sizeof(options), .threads = threads};
  ptc_model *model = 0;
  CHECK(ptc_rt_create(descriptor, &options, &model) == PTC_OK);
  return model;
}

static ptc_status run_scale(ptc_ctx *ctx, int64_t batch, float *y, int64_t *runs, void *workspace) {
  void *arguments[] = {x, runs, twice, y};
  return ptc_rt_run(ctx, 0, &batch, arguments, workspace, 0);
}

static bool right(const float *y, int64_t batch) {
  for (int64_t i = 0; i < batch * FAKE_COLUMNS; i++)
    if (y[i] != 2 * x[i] + 0.5f)
      return false;
  return true;
}

static void test_levels(void) {
  const ptc_rt_descriptor *descriptor = fake_descriptor(&ptc_rt_threading_none, false);
  char error[128];
  ptc_options options = {.struct_size = sizeof(options), .error = error, .error_size = sizeof(error)};
  ptc_model *model = 0;
  CHECK(ptc_rt_create(descriptor, &options, &model) == PTC_OK);
  CHECK(strcmp(ptc_rt_cpu_level(model), "x86-64-v2") == 0);
  CHECK(ptc_rt_threads(model) == 1);
  ptc_rt_destroy(model);
  options.cpu_level = "impossible";
  CHECK(ptc_rt_create(descriptor, &options, &model) == PTC_CPU_UNSUPPORTED && !model);
  CHECK(strcmp(error, "this processor lacks what CPU level 'impossible' needs") == 0);
  options.cpu_level = "x86-64-v9";
  CHECK(ptc_rt_create(descriptor, &options, &model) == PTC_INVALID_ARGUMENT);
  CHECK(strcmp(error, "the model was not compiled for CPU level 'x86-64-v9'") == 0);
  /* A caller with older, shorter options: the level asked for is beyond what it knows. */
  options.struct_size = offsetof(ptc_options, cpu_level);
  CHECK(ptc_rt_create(descriptor, &options, &model) == PTC_OK);
  ptc_rt_destroy(model);
  /* A caller that forgot the size: options that would be ignored are refused. */
  options.struct_size = 0;
  CHECK(ptc_rt_create(descriptor, &options, &model) == PTC_INVALID_ARGUMENT && !model);
}

static void test_typed_run(void) {
  ptc_model *model = create(fake_descriptor(&ptc_rt_threading_pool, true), 2);
  ptc_ctx *ctx = 0;
  static float y[MOST * FAKE_COLUMNS];
  int64_t runs = 0, batch = 64, shape[2], other[1], *shapes[] = {shape, other};
  CHECK(ptc_rt_ctx_create(model, &ctx) == PTC_OK);
  CHECK(ptc_rt_output_shapes(model, 0, &batch, shapes) == PTC_OK && shape[0] == 64 && shape[1] == FAKE_COLUMNS);
  CHECK(ptc_rt_warmup(ctx, 0, &batch) == PTC_OK);
  CHECK(run_scale(ctx, 64, y, &runs, 0) == PTC_OK && right(y, 64) && runs == 1);
  CHECK(run_scale(ctx, 80, y, &runs, 0) == PTC_GUARD_FAILED && runs == 1);
  CHECK(strcmp(ptc_rt_last_error(ctx), "batch <= 64 is needed, but batch is 80 (dim 0 of input 'x:0')") == 0);
  CHECK(run_scale(ctx, 0, y, &runs, 0) == PTC_GUARD_FAILED);
  CHECK(
      strcmp(
          ptc_rt_last_error(ctx),
          "batch >= 1 is needed, but batch is 0 (dim 0 of input 'x:0'); compiled with --dim batch=0.. the model takes "
          "empty inputs") == 0);
  batch = 80;
  CHECK(ptc_rt_workspace_size(model, 0, &batch) == PTC_NO_SIZE);
  batch = 7;
  size_t bytes = ptc_rt_workspace_size(model, 0, &batch);
  char *workspace = malloc(bytes + 3);
  CHECK(bytes != PTC_NO_SIZE && run_scale(ctx, 7, y, &runs, workspace + 3 - 2) == PTC_OK && right(y, 7));
  CHECK(strcmp(ptc_rt_last_error(ctx), "") == 0);
  free(workspace);
  ptc_rt_ctx_destroy(ctx);
  ptc_rt_destroy(model);
}

typedef struct seen_taps {
  int count;
  bool right;
} seen_taps;

static void observe(void *state, const ptc_tap *tap) {
  seen_taps *seen = state;
  const ptc_tensor *value = tap->tensor;
  const float *sum = value->data;
  seen->count++;
  seen->right = strcmp(tap->node, "layer1/add") == 0 && strcmp(tap->op, "Add") == 0 &&
                strcmp(tap->output, "sum") == 0 && strcmp(tap->kernel, "scale_1") == 0 &&
                strcmp(tap->nodes, "layer1/mul, layer1/add") == 0 && tap->launch == 0 && tap->number == 3 &&
                tap->struct_size == sizeof(*tap) && value->rank == 2 && value->shape[0] == FAKE_COLUMNS &&
                value->shape[1] == 9 && value->strides[0] == 1 &&
                sum[value->strides[1] * 8 + 1] == 2 * x[8 * FAKE_COLUMNS + 1] + 0.5f &&
                (_mm_getcsr() & _MM_FLUSH_ZERO_ON) != 0; /* the caller's floating-point mode */
}

static void test_taps(void) {
  static float y[MOST * FAKE_COLUMNS];
  seen_taps seen = {0};
  ptc_options options = {.struct_size = sizeof(options), .threads = 2, .tap = observe, .tap_state = &seen};
  for (int known = 0; known < 2; known++) { /* a caller whose options end before `tap` sees nothing */
    options.struct_size = known ? sizeof(options) : offsetof(ptc_options, tap);
    ptc_model *model = 0;
    ptc_ctx *ctx = 0;
    int64_t runs = 0;
    CHECK(ptc_rt_create(fake_descriptor(&ptc_rt_threading_pool, false), &options, &model) == PTC_OK);
    CHECK(ptc_rt_ctx_create(model, &ctx) == PTC_OK);
    unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | _MM_FLUSH_ZERO_ON);
    CHECK(run_scale(ctx, 9, y, &runs, 0) == PTC_OK && right(y, 9));
    CHECK(_mm_getcsr() == (mode | _MM_FLUSH_ZERO_ON));
    _mm_setcsr(mode);
    CHECK(seen.count == known && seen.right == (known == 1));
    ptc_rt_ctx_destroy(ctx);
    ptc_rt_destroy(model);
  }
}

static ptc_tensor tensor(void *data, uint8_t code, uint8_t bits, int32_t rank, int64_t *shape) {
  return (ptc_tensor){data, {PTC_CPU, 0}, rank, {code, bits, 1}, shape, 0, 0};
}

static void test_tensor_run(void) {
  ptc_model *model = create(fake_descriptor(&ptc_rt_threading_pool, false), 2);
  ptc_ctx *ctx = 0;
  CHECK(ptc_rt_ctx_create(model, &ctx) == PTC_OK);
  static float y[MOST * FAKE_COLUMNS];
  int64_t runs = 5, shape[] = {100, FAKE_COLUMNS}, one[] = {1}, two[] = {200};
  ptc_tensor in[] = {tensor(x, PTC_FLOAT, 32, 2, shape), tensor(&runs, PTC_INT, 64, 1, one),
                     tensor(twice, PTC_UINT, 8, 1, two)};
  ptc_tensor out[] = {tensor(y, PTC_FLOAT, 32, 2, shape), tensor(0, PTC_INT, 64, 1, one)};
  CHECK(ptc_rt_tensor_warmup(ctx, 0, in) == PTC_OK);
  CHECK(ptc_rt_tensor_run(ctx, 0, in, out, 0, 0) == PTC_OK && right(y, 100) && runs == 6);
  two[0] = 199;
  CHECK(ptc_rt_tensor_run(ctx, 0, in, out, 0, 0) == PTC_SHAPE_MISMATCH);
  CHECK(strcmp(ptc_rt_last_error(ctx), "input 'twice' dim 0 is 199, not 200 (2 * batch)") == 0);
  two[0] = 200;
  in[0].dtype.bits = 16;
  CHECK(ptc_rt_tensor_run(ctx, 0, in, out, 0, 0) == PTC_TYPE_MISMATCH);
  CHECK(strcmp(ptc_rt_last_error(ctx), "input 'x:0' has elements of type float16, not float32") == 0);
  in[0].dtype.bits = 32;
  int64_t transposed[] = {1, 100};
  in[0].strides = transposed;
  CHECK(ptc_rt_tensor_run(ctx, 0, in, out, 0, 0) == PTC_UNSUPPORTED);
  int64_t endless[] = {INT64_MAX, FAKE_COLUMNS}, rows[] = {FAKE_COLUMNS, 1}; /* its size is no int64_t */
  in[0].shape = endless;
  in[0].strides = rows;
  CHECK(ptc_rt_tensor_run(ctx, 0, in, out, 0, 0) == PTC_UNSUPPORTED);
  in[0].shape = shape;
  in[0].strides = 0;
  out[1].data = &one;
  CHECK(ptc_rt_tensor_run(ctx, 0, in, out, 0, 0) == PTC_INVALID_ARGUMENT);
  CHECK(strcmp(ptc_rt_last_error(ctx), "output 'runs_out' must be the buffer of input 'runs'") == 0);
  CHECK(ptc_rt_tensor_run(ctx, 7, in, out, 0, 0) == PTC_INVALID_ARGUMENT && runs == 6);
  out[1].data = 0;
  ptc_call call = {.ctx = ctx, .inputs = in, .outputs = out};
  CHECK(ptc_rt_tensor_run_call(&call) == PTC_INVALID_ARGUMENT && ptc_rt_tensor_run_call(0) == PTC_INVALID_ARGUMENT);
  call.struct_size = sizeof(call);
  memset(y, 0, sizeof(y));
  CHECK(ptc_rt_tensor_run_call(&call) == PTC_OK && right(y, 100) && runs == 7);
  in[0].dtype.bits = 16; /* what it points to is read in each call */
  CHECK(ptc_rt_tensor_run_call(&call) == PTC_TYPE_MISMATCH && runs == 7);
  ptc_rt_ctx_destroy(ctx);
  ptc_rt_destroy(model);
}

static void test_floating_point_mode(void) {
  ptc_model *model = create(fake_descriptor(&ptc_rt_threading_pool, false), 2);
  ptc_ctx *ctx = 0;
  ptc_rt_ctx_create(model, &ctx);
  static float y[MOST * FAKE_COLUMNS];
  int64_t runs = 0;
  float kept = x[FAKE_COLUMNS - 1];
  x[FAKE_COLUMNS - 1] = 0x1p-149f; /* doubled and added: only its own product is a denormal */
  unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040 | 0x6000); /* flush to zero, denormals are zero, toward zero */
  CHECK(run_scale(ctx, 100, y, &runs, 0) == PTC_OK);
  CHECK((_mm_getcsr() & 0xe040) == 0xe040);
  _mm_setcsr(mode);
  CHECK(right(y, 100));
  x[FAKE_COLUMNS - 1] = kept;
  ptc_rt_ctx_destroy(ctx);
  ptc_rt_destroy(model);
}

static void test_weights(void) {
  ptc_model *one = create(fake_descriptor(&ptc_rt_threading_none, false), 1);
  ptc_model *two = create(fake_descriptor(&ptc_rt_threading_none, false), 1);
  ptc_ctx *ctx1 = 0, *ctx2 = 0;
  ptc_rt_ctx_create(one, &ctx1);
  ptc_rt_ctx_create(two, &ctx2);
  static float y[FAKE_COLUMNS];
  int64_t runs = 0;
  float bias = 8;
  CHECK(ptc_rt_set_weight(one, "bias", &bias, 4) == PTC_OK);
  CHECK(ptc_rt_set_weight(one, "bias", &bias, 8) == PTC_INVALID_ARGUMENT);
  CHECK(ptc_rt_set_weight(one, "none", &bias, 4) == PTC_INVALID_ARGUMENT);
  CHECK(run_scale(ctx1, 1, y, &runs, 0) == PTC_OK && y[3] == 2 * x[3] + 8);
  CHECK(run_scale(ctx2, 1, y, &runs, 0) == PTC_OK && y[3] == 2 * x[3] + 0.5f);
  ptc_rt_ctx_destroy(ctx1);
  ptc_rt_ctx_destroy(ctx2);
  ptc_rt_destroy(one);
  ptc_rt_destroy(two);
}

typedef struct host {
  size_t blocks, calls;
} host;

static void *host_allocate(void *state, size_t bytes, size_t alignment) {
  ((host *)state)->blocks++;
  return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void host_release(void *state, void *block, size_t bytes) {
  ((host *)state)->blocks--;
  free(block);
}

static void host_parallel(void *state, size_t count, void (*body)(void *, size_t), void *argument) {
  ((host *)state)->calls++;
  for (size_t i = count; i-- > 0;)
    body(argument, i);
}

static void test_hooks(void) {
  host h = {0, 0};
  ptc_options options = {.struct_size = sizeof(options),
                         .threads = 5,
                         .allocator = {host_allocate, host_release, &h},
                         .pool = {host_parallel, &h}};
  ptc_model *model = 0;
  ptc_ctx *ctx = 0;
  static float y[MOST * FAKE_COLUMNS];
  int64_t runs = 0;
  CHECK(ptc_rt_create(fake_descriptor(&ptc_rt_threading_none, false), &options, &model) == PTC_OK);
  CHECK(ptc_rt_ctx_create(model, &ctx) == PTC_OK && h.blocks == 1);
  CHECK(run_scale(ctx, 500, y, &runs, 0) == PTC_OK && right(y, 500) && h.blocks == 2 && h.calls == 1);
  CHECK(run_scale(ctx, 400, y, &runs, 0) == PTC_OK && h.blocks == 2 && h.calls == 2);
  ptc_rt_ctx_destroy(ctx);
  ptc_rt_destroy(model);
  CHECK(h.blocks == 0);
}

/* Two launches in one loop: all iterations of both run, and the first fault names its own. */
static void check_joined(const ptc_options *options, const ptc_rt_threading *threading) {
  ptc_model *model = 0;
  ptc_ctx *ctx = 0;
  static int64_t indices[MOST];
  static float y[MOST];
  CHECK(ptc_rt_create(fake_descriptor(threading, false), options, &model) == PTC_OK);
  ptc_rt_ctx_create(model, &ctx);
  for (int64_t batch = 1; batch <= MOST; batch = batch * 3 + 1) {
    void *arguments[] = {indices, y};
    for (int64_t i = 0; i < batch; i++) {
      indices[i] = i % 10;
      y[i] = -1;
    }
    CHECK(ptc_rt_run(ctx, 1, &batch, arguments, 0, 0) == PTC_OK);
    for (int64_t i = 0; i < batch; i++)
      CHECK(y[i] == (float)(i % 10) * 10);
    indices[batch - 1] = 10;
    CHECK(ptc_rt_run(ctx, 1, &batch, arguments, 0, 0) == PTC_INDEX_OUT_OF_RANGE);
    CHECK(strcmp(ptc_rt_last_error(ctx), "index out of range in node 'lookup_rest' (kernel gather_2)") == 0);
    indices[0] = batch == 1 ? 10 : -1;
    CHECK(ptc_rt_run(ctx, 1, &batch, arguments, 0, 0) == PTC_INDEX_OUT_OF_RANGE);
    CHECK(batch == 1 || strcmp(ptc_rt_last_error(ctx), "index out of range in node 'lookup' (kernel gather_2)") == 0);
  }
  ptc_rt_ctx_destroy(ctx);
  ptc_rt_destroy(model);
}

static void test_joined(void) {
  host h = {0, 0};
  ptc_options options = {.struct_size = sizeof(options)};
  for (options.threads = 1; options.threads <= 5; options.threads++) {
    check_joined(&options, &ptc_rt_threading_pool);
    check_joined(&options, &ptc_rt_threading_openmp);
    check_joined(&options, &ptc_rt_threading_none);
  }
  options.pool = (ptc_thread_pool){host_parallel, &h};
  check_joined(&options, &ptc_rt_threading_none);
  CHECK(h.calls > 0);
}

static void *many_runs(void *argument) {
  ptc_ctx *ctx = 0;
  int64_t runs = 0;
  float *y = malloc(sizeof(x));
  CHECK(ptc_rt_ctx_create(argument, &ctx) == PTC_OK);
  for (int i = 0; i < 2000; i++) {
    int64_t batch = 1 + i * 37 % MOST;
    memset(y, 0, sizeof(x));
    CHECK(run_scale(ctx, batch, y, &runs, 0) == PTC_OK);
    CHECK(right(y, batch));
  }
  CHECK(runs == 2000);
  ptc_rt_ctx_destroy(ctx);
  free(y);
  return 0;
}

/* Calls at once on one model: one has the pool, the others run alone, all with the right results. */
static void test_concurrent_calls(void) {
  ptc_model *model = create(fake_descriptor(&ptc_rt_threading_pool, false), 3);
  pthread_t threads[3];
  for (int i = 0; i < 3; i++)
    pthread_create(&threads[i], 0, many_runs, model);
  for (int i = 0; i < 3; i++)
    pthread_join(threads[i], 0);
  ptc_rt_destroy(model);
}

typedef struct taken_away {
  pthread_t caller;
  atomic_uint elsewhere; /* pieces that others have begun */
} taken_away;

/* The caller's piece waits until the worker has one, which then sleeps: its processor time stands still, as if another
 * process had its core. */
static int32_t lose_processor(void *const *buffers, const int64_t *symbols, int64_t begin, int64_t end, void *scratch) {
  taken_away *state = buffers[0];
  uint64_t start = ptc_rt_now();
  if (!pthread_equal(pthread_self(), state->caller)) {
    atomic_fetch_add(&state->elsewhere, 1);
    usleep(2000);
  } else {
    while (!atomic_load(&state->elsewhere) && ptc_rt_now() - start < 20000000) {
    }
  }
  return 0;
}

/* Returns whether the worker took part. */
static bool run_beside(const ptc_rt_threading *threading, taken_away *state) {
  void *buffers[] = {state};
  ptc_rt_task task = {.kernel = lose_processor, .buffers = buffers, .iterations = 2, .pieces = 2};
  atomic_store(&state->elsewhere, 0);
  CHECK(threading->parallel(&task, 2, 2));
  return atomic_load(&state->elsewhere) != 0;
}

/* A worker that is taken away again and again rests, and comes back later. */
static void test_worker_taken_away(void) {
  const ptc_rt_threading *threading = &ptc_rt_threading_pool;
  taken_away state = {pthread_self(), 0};
  threading->prepare(2);
  int loops = 0;
  while (loops < 200 && run_beside(threading, &state))
    loops++;
  CHECK(loops > 0 && loops < 200);
  usleep(1000000); /* the longest rest there is */
  CHECK(run_beside(threading, &state));
  threading->shutdown();
  threading->prepare(2); /* new workers have nothing held against them */
  CHECK(run_beside(threading, &state));
  threading->shutdown();
}

/* The child of a fork has no workers and starts its own. */
static void test_fork(void) {
  ptc_model *model = create(fake_descriptor(&ptc_rt_threading_pool, false), 2);
  ptc_ctx *ctx = 0;
  static float y[MOST * FAKE_COLUMNS];
  int64_t runs = 0;
  ptc_rt_ctx_create(model, &ctx);
  CHECK(run_scale(ctx, 900, y, &runs, 0) == PTC_OK);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    memset(y, 0, sizeof(y));
    _exit(run_scale(ctx, 900, y, &runs, 0) == PTC_OK && right(y, 900) ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  ptc_rt_ctx_destroy(ctx);
  ptc_rt_destroy(model);
}

/* Every iteration is in one piece, pieces lie within their launch, launches within their run. */
static void check_spans(const ptc_span *spans, size_t count, const ptc_ctx *ctx, int64_t iterations) {
  const ptc_span *run = &spans[count - 1], *launch = &spans[count - 2];
  CHECK(run->kind == PTC_SPAN_RUN && !run->kernel && run->ctx == ctx && run->begin_ns <= launch->begin_ns);
  CHECK(launch->kind == PTC_SPAN_LAUNCH && launch->end_ns <= run->end_ns && launch->end == iterations);
  CHECK(strcmp(launch->kernel, "scale_1") == 0 && strcmp(launch->nodes, "layer1/mul, layer1/add") == 0);
  int64_t covered = 0;
  for (const ptc_span *piece = spans; piece < launch; piece++) {
    CHECK(piece->kind == PTC_SPAN_PIECE && piece->ctx == ctx && piece->thread < 3 && piece->launch == 0);
    CHECK(launch->begin_ns <= piece->begin_ns && piece->begin_ns <= piece->end_ns && piece->end_ns <= launch->end_ns);
    covered += piece->end - piece->begin;
  }
  CHECK(covered == iterations);
}

/* The first thread of a host's pool that comes, here its last index, runs the pieces of those that do not. */
static void check_late_threads(ptc_options options) {
  host h = {0, 0};
  options.pool = (ptc_thread_pool){host_parallel, &h};
  ptc_model *model = 0;
  ptc_ctx *ctx = 0;
  static float y[MOST * FAKE_COLUMNS];
  int64_t runs = 0;
  ptc_profile *profile = options.profile;
  profile->count = 0;
  CHECK(ptc_rt_create(fake_descriptor(&ptc_rt_threading_none, false), &options, &model) == PTC_OK);
  CHECK(ptc_rt_ctx_create(model, &ctx) == PTC_OK);
  CHECK(run_scale(ctx, 1000, y, &runs, 0) == PTC_OK && right(y, 1000) && h.calls == 1 && profile->count == 14);
  check_spans(profile->spans, profile->count, ctx, 1000);
  for (size_t i = 0; i < 12; i++)
    CHECK(profile->spans[i].thread == 2);
  ptc_rt_ctx_destroy(ctx);
  ptc_rt_destroy(model);
}

static void test_profile(void) {
  static ptc_span spans[64];
  ptc_profile profile = {sizeof(ptc_span), spans, 64, 0};
  ptc_options options = {.struct_size = sizeof(options), .threads = 3, .profile = &profile};
  ptc_model *model = 0;
  ptc_ctx *ctx = 0;
  static float y[MOST * FAKE_COLUMNS];
  int64_t runs = 0;
  CHECK(ptc_rt_create(fake_descriptor(&ptc_rt_threading_pool, false), &options, &model) == PTC_OK);
  CHECK(ptc_rt_ctx_create(model, &ctx) == PTC_OK);
  for (int64_t batch = 1; batch <= 1000; batch += 333) {
    profile.count = 0;
    CHECK(run_scale(ctx, batch, y, &runs, 0) == PTC_OK && profile.count >= 3 && profile.count <= 14);
    check_spans(spans, profile.count, ctx, batch);
  }
  check_late_threads(options);
  /* What does not fit is counted, and nothing is written behind the end. */
  profile = (ptc_profile){sizeof(ptc_span), spans, 2, 0};
  spans[2].kernel = "untouched";
  CHECK(run_scale(ctx, 1000, y, &runs, 0) == PTC_OK && profile.count == 14);
  CHECK(strcmp(spans[2].kernel, "untouched") == 0 && spans[1].kind == PTC_SPAN_PIECE);
  /* A caller whose spans are shorter. */
  struct {
    uint64_t begin_ns, end_ns;
  } times[14];
  profile = (ptc_profile){sizeof(times[0]), (ptc_span *)times, 14, 0};
  CHECK(run_scale(ctx, 1000, y, &runs, 0) == PTC_OK && profile.count == 14);
  for (int i = 0; i < 14; i++)
    CHECK(times[i].begin_ns <= times[i].end_ns && times[13].begin_ns <= times[i].begin_ns);
  ptc_rt_ctx_destroy(ctx);
  ptc_rt_destroy(model);
  profile.span_size = 0;
  CHECK(ptc_rt_create(fake_descriptor(&ptc_rt_threading_pool, false), &options, &model) == PTC_INVALID_ARGUMENT);
}

static void test_openmp(void) {
  ptc_model *model = create(fake_descriptor(&ptc_rt_threading_openmp, false), 3);
  many_runs(model);
  ptc_rt_destroy(model);
}

extern int test_builtins(void);

int main(void) {
  for (int i = 0; i < MOST * FAKE_COLUMNS; i++)
    x[i] = (float)(i % 977) / 7;
  test_levels();
  test_typed_run();
  test_taps();
  test_tensor_run();
  test_floating_point_mode();
  test_weights();
  test_hooks();
  test_joined();
  test_concurrent_calls();
  test_worker_taken_away();
  test_fork();
  test_profile();
  test_openmp();
  CHECK(test_builtins() == 0);
  printf(failures ? "%d failures\n" : "all passed\n", failures);
  return failures != 0;
}
