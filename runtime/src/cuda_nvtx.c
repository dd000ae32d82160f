/* Ranges for NVIDIA's profilers: each launch between a push and a pop that name its nodes, each run likewise.
 *
 * A profiler that wants ranges has a library of its own in the process (Nsight Compute loads one before the program's
 * own), with a function InitializeInjectionNvtx2; libraries of models read no environment, where others find its path.
 * Without it there is nothing here but a comparison a launch. What is agreed on (nvtxDetail/nvtxTypes.h of CUDA's
 * headers): the function is given one that hands out tables by number. Table 1 has a function that gives, for a
 * module's number, an array of addresses of function pointers; the profiler puts its functions there. It is asked once
 * in the life of this library: the tables have no owner that could be told apart.
 */
#define _GNU_SOURCE
#include "cuda.h"

#include <dlfcn.h>
#include <stdatomic.h>

enum {
  TABLE_CALLBACKS = 1,
  TABLE_VERSION = 3,
  MODULE_CORE = 1,
  MODULES = 7, /* number 0 is none */
  PUSH = 9,    /* of the core: nvtxRangePushA */
  POP = 11,    /* nvtxRangePop */
  MOST_FUNCTIONS = 16,
  VERSION = 3
};

typedef void (*function)(void);

/* Of each module, number 0 of its functions included, which is none. A profiler expects all modules; what it puts into
 * the others is not called. */
static const unsigned sizes[MODULES] = {0, 16, 9, 15, 7, 16, 7};
static function functions[MODULES][MOST_FUNCTIONS];
static function *tables[MODULES][MOST_FUNCTIONS + 1];

static int module_table(int module, function ***table, unsigned *size) {
  if (module <= 0 || module >= MODULES)
    return 0;
  *table = tables[module];
  *size = sizes[module];
  return 1;
}

static void ignore_version(uint32_t version) { (void)version; }

static const struct {
  size_t struct_size;
  int (*module_table)(int, function ***, unsigned *);
} callbacks = {sizeof(callbacks), module_table};

static const struct {
  size_t struct_size;
  uint32_t version, reserved;
  void (*set_version)(uint32_t);
} version = {sizeof(version), VERSION, 0, ignore_version};

static const void *export_table(uint32_t number) {
  return number == TABLE_CALLBACKS ? (const void *)&callbacks : number == TABLE_VERSION ? &version : 0;
}

static bool attach(void) {
  int (*initialize)(const void *(*)(uint32_t)) = 0;
  *(void **)&initialize = dlsym(RTLD_DEFAULT, "InitializeInjectionNvtx2");
  for (int module = 1; module < MODULES; module++)
    for (unsigned i = 1; i < sizes[module]; i++)
      tables[module][i] = &functions[module][i];
  return initialize && initialize(export_table) && functions[MODULE_CORE][PUSH] && functions[MODULE_CORE][POP];
}

bool ptc_cuda_attach_profiler(void) {
  enum { FRESH, ATTACHING, ABSENT, PRESENT };
  static atomic_int state;
  int found = FRESH;
  if (atomic_compare_exchange_strong(&state, &found, ATTACHING)) {
    found = attach() ? PRESENT : ABSENT;
    atomic_store(&state, found);
  }
  return found == PRESENT; /* a model that is made while another thread attaches goes without */
}

void ptc_cuda_push_range(const char *name) { ((int (*)(const char *))functions[MODULE_CORE][PUSH])(name); }

void ptc_cuda_pop_range(void) { ((int (*)(void))functions[MODULE_CORE][POP])(); }
