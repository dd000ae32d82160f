/* 10^5 calls from 4 threads on one model, for sanitizers: the runtime's sources and the model written by hand of
 * tests/runtime, all of it instrumented. Every result is checked. Some calls share the pool, some find it taken, some
 * fail; a round runs on threads of the program's own; profiles are taken of a part; models come and go.
 */
#include "fake_model.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, CALLS = 25000, ROUNDS = 5, MOST = 24 };

static float x[MOST * FAKE_COLUMNS];
static uint8_t twice[2 * MOST];
static int wrong;

static void expect(int holds) {
  if (!holds)
    __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void call_scale(ptc_ctx *ctx, int64_t batch, void *workspace) {
  float y[MOST * FAKE_COLUMNS];
  int64_t runs = 0;
  void *arguments[] = {x, &runs, twice, y};
  expect(ptc_rt_run(ctx, 0, &batch, arguments, workspace, 0) == PTC_OK && runs == 1);
  for (int64_t i = 0; i < batch * FAKE_COLUMNS; i++)
    expect(y[i] == 2 * x[i] + 0.5f);
}

static void call_gather(ptc_ctx *ctx, int64_t batch, int64_t bad) {
  int64_t indices[MOST] = {0};
  float y[MOST];
  void *arguments[] = {indices, y};
  indices[batch - 1] = bad;
  ptc_status status = ptc_rt_run(ctx, 1, &batch, arguments, 0, 0);
  expect(status == (bad < 10 ? PTC_OK : PTC_INDEX_OUT_OF_RANGE));
}

typedef struct host_index {
  void (*body)(void *argument, size_t index);
  void *argument;
  size_t index;
} host_index;

static void *run_index(void *argument) {
  const host_index *own = argument;
  own->body(own->argument, own->index);
  return 0;
}

/* A thread for each index but the first, which is the caller's and comes last. */
static void parallel_for(void *state, size_t count, void (*body)(void *argument, size_t index), void *argument) {
  host_index indices[THREADS];
  pthread_t threads[THREADS];
  for (size_t i = 1; i < count; i++) {
    indices[i] = (host_index){body, argument, i};
    pthread_create(&threads[i], 0, run_index, &indices[i]);
  }
  body(argument, 0);
  for (size_t i = 1; i < count; i++)
    pthread_join(threads[i], 0);
}

static void *call_many(void *model) {
  ptc_ctx *ctx = 0;
  expect(ptc_rt_ctx_create(model, &ctx) == PTC_OK);
  int64_t most = MOST;
  size_t bytes = ptc_rt_workspace_size(model, 0, &most);
  void *workspace = malloc(bytes);
  for (int i = 0; i < CALLS / ROUNDS; i++) {
    int64_t batch = 1 + i * 7 % MOST;
    if (i % 4 == 3)
      call_gather(ctx, batch, i % 16);
    else
      call_scale(ctx, batch, i % 4 == 2 ? workspace : 0);
  }
  free(workspace);
  ptc_rt_ctx_destroy(ctx);
  return 0;
}

int main(void) {
  static ptc_span spans[1000];
  for (int i = 0; i < MOST * FAKE_COLUMNS; i++)
    x[i] = (float)(i % 97) / 7;
  for (int round = 0; round < ROUNDS; round++) {
    ptc_profile profile = {sizeof(ptc_span), spans, 1000, 0};
    ptc_options options = {.struct_size = sizeof(options), .threads = 2 + (uint32_t)round % 2};
    options.profile = round == 1 ? &profile : 0;
    options.pool.parallel_for = round == 3 ? parallel_for : 0;
    ptc_model *model = 0;
    expect(ptc_rt_create(fake_descriptor(&ptc_rt_threading_pool, false), &options, &model) == PTC_OK);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
      pthread_create(&threads[i], 0, call_many, model);
    for (int i = 0; i < THREADS; i++)
      pthread_join(threads[i], 0);
    expect(round != 1 || profile.count > THREADS * CALLS / ROUNDS);
    ptc_rt_destroy(model);
  }
  printf("%d calls, %d wrong\n", THREADS * CALLS, wrong);
  return wrong != 0;
}
