/* Ranges for NVIDIA's profilers: each launch between a push and a pop that name its nodes, each run likewise.
 *
 * A profiler that wants ranges names its own library in NVTX_INJECTION64_PATH before the program starts; without it
 * there is nothing here but a comparison a launch. What is agreed on (nvtxDetail/nvtxTypes.h of CUDA's headers): the
 * library has a function InitializeInjectionNvtx2, which is given a function that hands out tables by number. Table 1
 * has a function that gives, for a module's number, an array of addresses of function pointers; the profiler puts its
 * functions there. It is asked once in the life of this library: the tables have no owner that could be told apart.
 */
#include "cuda.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
  TABLE_CALLBACKS = 1,
  TABLE_VERSION = 3,
  MODULE_CORE = 1,
  MODULE_DOMAINS = 5,
  PUSH = 9, /* nvtxRangePushA */
  POP = 11, /* nvtxRangePop */
  CORE_FUNCTIONS = 16,
  DOMAIN_FUNCTIONS = 16,
  VERSION = 3
};

typedef void (*function)(void);

static function core[CORE_FUNCTIONS], domains[DOMAIN_FUNCTIONS]; /* the profiler's; NULL: it has none */
static function *core_table[CORE_FUNCTIONS + 1], *domain_table[DOMAIN_FUNCTIONS + 1];

static int module_table(int module, function ***table, unsigned *size) {
  bool is_core = module == MODULE_CORE;
  if (!is_core && module != MODULE_DOMAINS)
    return 0;
  *table = is_core ? core_table : domain_table;
  *size = is_core ? CORE_FUNCTIONS : DOMAIN_FUNCTIONS;
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

static bool attach(const char *path) {
  void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL); /* stays: its functions are called until the end */
  int (*initialize)(const void *(*)(uint32_t)) = 0;
  if (library)
    *(void **)&initialize = dlsym(library, "InitializeInjectionNvtx2");
  for (int i = 1; i < CORE_FUNCTIONS; i++) /* number 0 is no function */
    core_table[i] = &core[i];
  for (int i = 1; i < DOMAIN_FUNCTIONS; i++)
    domain_table[i] = &domains[i];
  return initialize && initialize(export_table) && core[PUSH] && core[POP];
}

bool ptc_cuda_attach_profiler(void) {
  enum { FRESH, ATTACHING, ABSENT, PRESENT };
  static atomic_int state;
  int found = FRESH;
  if (atomic_compare_exchange_strong(&state, &found, ATTACHING)) {
    const char *path = getenv("NVTX_INJECTION64_PATH");
    found = path && attach(path) ? PRESENT : ABSENT;
    atomic_store(&state, found);
  }
  return found == PRESENT; /* a model that is made while another thread attaches goes without */
}

void ptc_cuda_push_range(const char *name) { ((int (*)(const char *))core[PUSH])(name); }

void ptc_cuda_pop_range(void) { ((int (*)(void))core[POP])(); }
