/* Times what threads.py asks for, in nanoseconds, one number a line:
 *
 *     threads fork pool|openmp THREADS               a parallel loop with nothing to do, the median of many in a row
 *     threads run LIBRARY own|host THREADS SECONDS   the median run of a library, on its own threads or the program's
 *
 * The program's threads are another copy of the runtime's pool, which the library reaches through the hook alone.
 */
#include "ptc/abi.h"
#include "runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 64, MOST_DIMS = 16, LOOPS = 20000, MOST_RUNS = 1 << 20 };

static void require(int holds, const char *what) {
  if (holds)
    return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static int by_size(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static void print_median(uint64_t *times, size_t count) {
  qsort(times, count, sizeof(*times), by_size);
  printf("%llu\n", (unsigned long long)times[count / 2]);
}

static int32_t nothing(void *const *buffers, const int64_t *symbols, int64_t begin, int64_t end, void *scratch) {
  return 0;
}

static void time_forks(const ptc_rt_threading *threading, uint32_t threads) {
  static uint64_t times[LOOPS];
  threading->prepare(threads);
  for (int i = 0; i < LOOPS; i++) {
    ptc_rt_task task = {.kernel = nothing, .iterations = threads, .pieces = threads};
    uint64_t begin = ptc_rt_now();
    require(threading->parallel(&task, threads, threads), "there are no threads of this kind");
    times[i] = ptc_rt_now() - begin;
  }
  print_median(times, LOOPS);
  threading->shutdown();
}

typedef struct host_call {
  void (*body)(void *argument, size_t index);
  void *argument;
} host_call;

static int32_t call_host(void *const *buffers, const int64_t *symbols, int64_t begin, int64_t end, void *scratch) {
  const host_call *call = buffers[0];
  for (int64_t i = begin; i < end; i++)
    call->body(call->argument, (size_t)i);
  return 0;
}

static void parallel_for(void *state, size_t count, void (*body)(void *argument, size_t index), void *argument) {
  host_call call = {body, argument};
  void *buffers[] = {&call};
  ptc_rt_task task = {.kernel = call_host, .buffers = buffers, .iterations = (int64_t)count, .pieces = (int64_t)count};
  require(ptc_rt_threading_pool.parallel(&task, (int64_t)count, (uint32_t)count), "the pool is taken");
}

/* Zeros of the declared sizes. */
static void fill(const ptc_value *values, uint32_t count, ptc_tensor *tensors) {
  for (uint32_t i = 0; i < count; i++) {
    int64_t *shape = calloc(MOST_DIMS, sizeof(int64_t));
    size_t bits = values[i].dtype.bits;
    for (int32_t axis = 0; axis < values[i].rank; axis++) {
      require(values[i].dims[axis].extent >= 0, "dims are open: --dim NAME=N for each");
      shape[axis] = values[i].dims[axis].extent;
      bits *= (size_t)shape[axis];
    }
    size_t bytes = (bits / 8 + 128) / 64 * 64;
    tensors[i] = (ptc_tensor){.data = aligned_alloc(64, bytes),
                              .device = {PTC_CPU, 0},
                              .rank = values[i].rank,
                              .dtype = values[i].dtype,
                              .shape = shape};
    memset(tensors[i].data, 0, bytes);
  }
}

static void time_runs(const char *path, int on_host, uint32_t threads, double seconds) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  require(library != 0, library ? "" : dlerror());
  const ptc_model_table *table = dlsym(library, "ptc_model_v1");
  require(table && table->abi_version == PTC_ABI_VERSION, "the library has no table of this version");
  char error[1024] = "";
  ptc_options options = {
      .struct_size = sizeof(options), .error = error, .error_size = sizeof(error), .threads = threads};
  if (on_host)
    options.pool = (ptc_thread_pool){.parallel_for = parallel_for};
  ptc_model *model = 0;
  ptc_ctx *ctx = 0;
  require(table->create(&options, &model) == PTC_OK, error);
  require(table->ctx_create(model, &ctx) == PTC_OK, "no context");
  const ptc_function *function = &table->functions[0];
  ptc_tensor inputs[MOST_VALUES], outputs[MOST_VALUES];
  require(function->input_count <= MOST_VALUES && function->output_count <= MOST_VALUES, "too many values");
  fill(function->inputs, function->input_count, inputs);
  fill(function->outputs, function->output_count, outputs);
  uint64_t *times = malloc(MOST_RUNS * sizeof(*times)), end = ptc_rt_now() + (uint64_t)(seconds * 1e9);
  size_t count = 0;
  for (int warm = 0; warm < 3 || ptc_rt_now() < end; warm++) {
    uint64_t begin = ptc_rt_now();
    require(table->run(ctx, 0, inputs, outputs, 0, 0) == PTC_OK, table->last_error(ctx));
    if (warm >= 2 && count < MOST_RUNS)
      times[count++] = ptc_rt_now() - begin;
  }
  print_median(times, count);
}

static uint32_t number_of_threads(const char *text) {
  int threads = atoi(text);
  require(threads >= 1 && threads <= PTC_RT_MAX_THREADS, "1 to 256 threads");
  return (uint32_t)threads;
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "fork") == 0)
    time_forks(strcmp(argv[2], "openmp") == 0 ? &ptc_rt_threading_openmp : &ptc_rt_threading_pool,
               number_of_threads(argv[3]));
  else if (argc == 6 && strcmp(argv[1], "run") == 0)
    time_runs(argv[2], strcmp(argv[3], "host") == 0, number_of_threads(argv[4]), atof(argv[5]));
  else
    require(0, "threads fork pool|openmp THREADS, or threads run LIBRARY own|host THREADS SECONDS");
  return 0;
}
