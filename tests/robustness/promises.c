/* What ptc/abi.h promises of a run, checked on a library as a user gets it: promises LIBRARY KIND. KIND is that of
 * --threads. The model has one f32 input and one f32 output, their first dim free.
 *
 * Allocations are counted by this program's own malloc, mmap and pthread_create, which the library finds before the C
 * library's (link with -rdynamic). Prints one line a promise.
 */
#define _GNU_SOURCE
#include "ptc/abi.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xmmintrin.h>

/* ---- the interposer ---- */

static int armed, counted;
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

static void count(void) { __atomic_fetch_add(&counted, __atomic_load_n(&armed, __ATOMIC_RELAXED), __ATOMIC_RELAXED); }

void *malloc(size_t bytes) { return count(), __libc_malloc(bytes); }
void *calloc(size_t n, size_t bytes) { return count(), __libc_calloc(n, bytes); }
void *realloc(void *block, size_t bytes) { return count(), __libc_realloc(block, bytes); }
int posix_memalign(void **block, size_t alignment, size_t bytes) {
  count();
  *block = __libc_memalign(alignment, bytes);
  return *block ? 0 : 12;
}
void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
  static void *(*next)(void *, size_t, int, int, int, off_t);
  if (!next)
    next = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
  count();
  return next(address, bytes, protection, flags, file, offset);
}
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
  static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (!next)
    next = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
  count();
  return next(thread, attributes, body, argument);
}

/* ---- the model ---- */

enum { BATCH = 512, WIDEST = 64 };

static const ptc_model_table *table;
static ptc_model *model;
static ptc_ctx *context;
static float x[BATCH * WIDEST], y[BATCH * WIDEST], expected[BATCH * WIDEST];
static int64_t x_shape[2], y_shape[2];
static ptc_tensor input = {x, {PTC_CPU, 0}, 2, {PTC_FLOAT, 32, 1}, x_shape, 0, 0};
static ptc_tensor output = {y, {PTC_CPU, 0}, 2, {PTC_FLOAT, 32, 1}, y_shape, 0, 0};
static ptc_status (*typed_run)(ptc_ctx *, const int64_t *dims, const float *, float *, void *workspace, void *stream);
static int failures;

static void report(const char *promise, int holds, const char *unit, long figure) {
  printf("%s: %s (%ld %s)\n", promise, holds ? "ok" : "FAILED", figure, unit);
  failures += !holds;
}

static int run(int64_t batch, void *workspace) {
  x_shape[0] = y_shape[0] = batch;
  return table->run(context, 0, &input, &output, workspace, 0) == PTC_OK;
}

static int run_typed(int64_t batch, void *workspace) {
  return typed_run(context, &batch, x, y, workspace, 0) == PTC_OK;
}

static int right(int64_t batch) { return memcmp(y, expected, (size_t)(batch * y_shape[1]) * 4) == 0; }

static void open_model(void) {
  ptc_options options = {.struct_size = sizeof(options), .threads = 4};
  if (table->create(&options, &model) != PTC_OK || table->ctx_create(model, &context) != PTC_OK)
    abort();
  x_shape[1] = table->functions[0].inputs[0].dims[1].extent;
  y_shape[1] = table->functions[0].outputs[0].dims[1].extent;
  for (int i = 0; i < BATCH * WIDEST; i++)
    x[i] = (float)(i * 37 % 101) / 50 - 1;
}

/* ---- promises ---- */

static int count_threads(void) {
  int threads = 0;
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *task; (task = readdir(tasks));)
    threads += task->d_name[0] != '.';
  closedir(tasks);
  return threads;
}

/* Nothing has run yet: the child starts threads of its own. */
static void check_fork(void) {
  report("create starts no thread", count_threads() == 1, "threads", count_threads());
  fflush(stdout);
  pid_t child = fork();
  if (child == 0)
    _exit(run(BATCH, 0) && run_typed(BATCH, 0) ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  report("a fork after load runs in the child", status == 0, "its status", status);
}

static void check_allocations(void *workspace) {
  int good = 1;
  x_shape[0] = BATCH;
  table->warmup(context, 0, &input);
  armed = 1;
  for (int i = 0; i < 200; i++) {
    int64_t batch = 1 + i * 97 % BATCH;
    void *memory = i % 3 == 2 ? workspace : 0;
    good &= (i & 1 ? run_typed(batch, memory) : run(batch, memory)) && right(batch);
  }
  armed = 0;
  report("runs after warm-up allocate nothing, typed or not, with workspace or without", good && counted == 0,
         "allocations, mappings and threads", counted);
}

/* A context that has seen nothing, with a workspace. */
static void check_workspace(void *workspace) {
  ptc_ctx *kept = context;
  counted = 0;
  armed = 1;
  table->ctx_create(model, &context);
  report("what the library allocates is counted", counted == 1, "allocations of a context", counted);
  counted = 0;
  int good = run(BATCH, workspace) && right(BATCH);
  armed = 0;
  report("a run with a workspace allocates nothing on a fresh context", good && counted == 0, "allocations", counted);
  table->ctx_destroy(context);
  context = kept;
}

static void check_floating_point_mode(void) {
  unsigned before = _mm_getcsr(), odd = before | 0xe040; /* to zero, denormals flushed in and out */
  _mm_setcsr(odd);
  int good = run(BATCH, 0);
  unsigned after = _mm_getcsr() | (odd & 0x3f), flags = 0x3f;
  _mm_setcsr(before);
  report("a run keeps the floating-point mode and does not depend on it",
         good && (after & ~flags) == (odd & ~flags) && right(BATCH), "mode", after & ~flags);
}

static char *deepest;
enum { STACK = 1 << 18, PAINT = 0x5a };

static void *run_on_painted_stack(void *stack) {
  char *here = __builtin_frame_address(0);
  memset(stack, PAINT, (size_t)(here - (char *)stack) - 512);
  int good = run(BATCH, 0) && run_typed(BATCH, 0);
  char *low = stack;
  while (*low == PAINT)
    low++;
  deepest = (char *)(here - low);
  return good ? stack : 0;
}

static void check_stack(void) {
  void *stack = mmap(0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *result = 0;
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, STACK);
  pthread_create(&thread, &attributes, run_on_painted_stack, stack);
  pthread_join(thread, &result);
  report("a run needs at most 64 KB of stack", result && (size_t)deepest <= 65536, "bytes", (long)deepest);
}

/* Processor time, so that it does not depend on who else is there. */
static void check_idle(void) {
  struct timespec pause = {0, 300000000}, before, after;
  run(BATCH, 0);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  nanosleep(&pause, 0);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  long us = (after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000;
  report("threads without work sleep", us < 20000, "us of processor time in 0.3 s", us);
}

static void check_unload(void *library, int leaves) {
  table->ctx_destroy(context);
  table->destroy(model);
  if (!leaves)
    return;
  report("destroying the last model ends its threads", count_threads() == 1, "threads", count_threads());
  open_model();
  int good = run(BATCH, 0) && right(BATCH);
  void *address = (void *)table;
  dlclose(library); /* with a model alive */
  Dl_info unused;
  report("dlclose joins the threads and leaves nothing", good && count_threads() == 1 && !dladdr(address, &unused),
         "threads", count_threads());
}

int main(int count_of_arguments, char **arguments) {
  void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  table = library ? dlsym(library, "ptc_model_v1") : 0;
  if (count_of_arguments < 3 || !table)
    return 2;
  char name[256];
  snprintf(name, sizeof(name), "%s_run", table->name);
  typed_run = (ptc_status (*)(ptc_ctx *, const int64_t *, const float *, float *, void *, void *))dlsym(library, name);
  int openmp = strcmp(arguments[2], "openmp") == 0, pool = strcmp(arguments[2], "pool") == 0;
  open_model();
  check_fork();
  x_shape[0] = BATCH;
  void *workspace = __libc_malloc(table->workspace_size(context, 0, &input));
  if (!run(BATCH, 0))
    return 2;
  memcpy(expected, y, sizeof(y));
  if (pool)
    report("a run uses the threads that it may", count_threads() == 4, "threads", count_threads());
  if (!openmp) { /* what libgomp allocates is its own affair */
    check_allocations(workspace);
    check_workspace(workspace);
  }
  check_floating_point_mode();
  check_stack();
  if (!openmp) /* its threads spin as OMP_WAIT_POLICY says */
    check_idle();
  check_unload(library, !openmp);
  return failures != 0;
}
