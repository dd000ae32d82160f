/* A CUDA driver without a device, for tests of the host's part: memory is the host's, launches run nothing, and every
 * call that matters is a line of the file FAKE_CUDA_LOG. Other variables:
 *   FAKE_CUDA_DEVICES     how many there are (1)
 *   FAKE_CUDA_CAPABILITY  of all of them (90)
 *   FAKE_CUDA_MULTIPROCESSORS  of all of them (132)
 *   FAKE_CUDA_FAIL        a function that fails with error 999
 *   FAKE_CUDA_COPY        A,B,N: a launch copies N bytes from its parameter A to its parameter B
 *   FAKE_CUDA_FILL        the bytes of new memory (165)
 *   FAKE_CUDA_SET         A: a launch writes 1 into the word that its parameter A points to
 *   FAKE_CUDA_BLOCK_NS    what a launch takes for each of its blocks, on the clock of events and on the caller's; work
 *                         of another library takes as long as a block
 * Compiled with OLD it lacks what drivers before 12.0 lack.
 */
#include "fake_log.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uint64_t address;

static int number(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text ? atoi(text) : otherwise;
}

static int fails(const char *function) {
  const char *name = getenv("FAKE_CUDA_FAIL");
  return name && strcmp(name, function) == 0 ? 999 : 0;
}

#define TRY                                                                                                            \
  if (fails(__func__))                                                                                                 \
  return 999

/* Memory: blocks are told apart by their order, so that the log does not depend on addresses. */
static struct {
  address base;
  size_t bytes;
} blocks[4096];
static int block_count;

static const char *place(address pointer, char *text) {
  for (int i = block_count; i-- > 0;)
    if (pointer >= blocks[i].base && pointer <= blocks[i].base + blocks[i].bytes) {
      sprintf(text, "m%d+%llu", i, (unsigned long long)(pointer - blocks[i].base));
      return text;
    }
  sprintf(text, "%llu", (unsigned long long)pointer);
  return text;
}

int cuInit(unsigned flags) {
  (void)flags;
  TRY;
  return number("FAKE_CUDA_DEVICES", 1) ? 0 : 100;
}
int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuDeviceGetCount(int *count) { return *count = number("FAKE_CUDA_DEVICES", 1), 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char *name, int length, int device) { return snprintf(name, length, "Fake %d", device), 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = 1 << 30, (void)device, 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  int capability = number("FAKE_CUDA_CAPABILITY", 90);
  *value = attribute == 75   ? capability / 10
           : attribute == 76 ? capability % 10
           : attribute == 16 ? number("FAKE_CUDA_MULTIPROCESSORS", 132)
                             : 1;
  return (void)device, 0;
}

static int depth; /* of the stack of contexts */
int cuDevicePrimaryCtxRetain(void **context, int device) {
  TRY;
  *context = blocks;
  say("retain %d", device);
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { return say("release %d, depth %d", device, depth), 0; }
int cuCtxPushCurrent_v2(void *context) { return depth++, context == blocks ? 0 : 201; }
int cuCtxPopCurrent_v2(void **context) { return *context = blocks, depth-- > 0 ? 0 : 201; }
int cuCtxSynchronize(void) { return say("wait for all"), 0; }

/* A module is its text; a function the entry of that name in it. */
int cuModuleLoadData(void **module, const void *image) {
  TRY;
  const char *bytes = image;
  if (bytes[0] != 0x7f && !strstr(bytes, ".version"))
    return 218;
  *module = (void *)image;
  say("load %s", bytes[0] == 0x7f ? "cubin" : "ptx");
  return 0;
}
int cuModuleUnload(void *module) { return say("unload"), (void)module, 0; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
  TRY;
  (void)module;
  *function = strdup(name);
  return 0;
}

int cuMemAlloc_v2(address *pointer, size_t bytes) {
  TRY;
  if (bytes > (size_t)1 << 33)
    return 2;
  void *memory = 0;
  if (bytes == 0 || block_count == 4096 || posix_memalign(&memory, 4096, bytes))
    return 1;
  memset(memory, number("FAKE_CUDA_FILL", 0xa5), bytes);
  blocks[block_count].base = *pointer = (uintptr_t)memory;
  blocks[block_count].bytes = bytes;
  say("allocate m%d %zu", block_count++, bytes);
  return 0;
}
int cuMemFree_v2(address pointer) {
  char text[64];
  say("free %s", place(pointer, text));
  return 0; /* kept, so that a later use is seen as one of this block */
}

static int copy(const char *what, void *target, const void *source, size_t bytes, address shown, void *stream) {
  char text[64];
  memcpy(target, source, bytes);
  say("%s %s %zu on %llu", what, place(shown, text), bytes, (unsigned long long)(uintptr_t)stream);
  return 0;
}
int cuMemcpyHtoDAsync_v2(address target, const void *source, size_t bytes, void *stream) {
  TRY;
  return copy("in", (void *)target, source, bytes, target, stream);
}
int cuMemcpyDtoHAsync_v2(void *target, address source, size_t bytes, void *stream) {
  TRY;
  return copy("out", target, (void *)source, bytes, source, stream);
}
int cuMemcpyDtoDAsync_v2(address target, address source, size_t bytes, void *stream) {
  return copy("within", (void *)target, (void *)source, bytes, target, stream);
}
int cuMemsetD8Async(address target, unsigned char value, size_t bytes, void *stream) {
  char text[64];
  memset((void *)target, value, bytes);
  say("fill %s %zu on %llu", place(target, text), bytes, (unsigned long long)(uintptr_t)stream);
  return 0;
}
int cuPointerGetAttribute(void *value, int attribute, address pointer) {
  char text[64];
  if (attribute != 2 || place(pointer, text)[0] != 'm')
    return 1;
  *(unsigned *)value = 2;
  return 0;
}

int cuStreamCreate(void **stream, unsigned flags) {
  TRY;
  static uintptr_t next = 7;
  *stream = (void *)next++;
  return (void)flags, 0;
}
int cuStreamSynchronize(void *stream) {
  TRY;
  return say("wait %llu", (unsigned long long)(uintptr_t)stream), 0;
}
int cuStreamIsCapturing(void *stream, int *captures) { return *captures = stream == (void *)1000, 0; }
int cuStreamDestroy_v2(void *stream) { return (void)stream, 0; }

/* The device's time; it stands still unless launches take some. */
static uint64_t device_ns;

static uint64_t caller_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
static void pass(unsigned launched) {
  uint64_t ns = (uint64_t)number("FAKE_CUDA_BLOCK_NS", 0) * launched, begin = caller_ns();
  device_ns += ns;
  while (caller_ns() - begin < ns)
    ;
}

int cuEventCreate(void **event, unsigned flags) { return *event = calloc(1, sizeof(uint64_t)), (void)flags, 0; }
int cuEventRecord(void *event, void *stream) { return *(uint64_t *)event = device_ns, (void)stream, 0; }
int cuEventElapsedTime(float *milliseconds, void *begin, void *end) {
  *milliseconds = (float)(*(uint64_t *)end - *(uint64_t *)begin) * 1e-6f;
  return getenv("FAKE_CUDA_BLOCK_NS") ? 0 : (*milliseconds = 0.5f, 0);
}
int cuEventDestroy_v2(void *event) { return free(event), 0; }

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
  TRY;
  char first[64], second[64], name[64];
  snprintf(name, sizeof(name), "%s", (const char *)function);
  address *const *values = (address *const *)parameters;
  say("launch %s grid %u,%u,%u block %u,%u,%u shared %u on %llu: %s %s%s", name, gx, gy, gz, bx, by, bz, shared,
      (unsigned long long)(uintptr_t)stream, place(*values[0], first), place(*values[1], second),
      extra ? " extra" : "");
  int from, to, bytes;
  if (getenv("FAKE_CUDA_COPY") && sscanf(getenv("FAKE_CUDA_COPY"), "%d,%d,%d", &from, &to, &bytes) == 3)
    memcpy((void *)*values[to], (void *)*values[from], (size_t)bytes);
  if (getenv("FAKE_CUDA_SET"))
    *(uint32_t *)*values[number("FAKE_CUDA_SET", 0)] = 1;
  pass(gx);
  return 0;
}

#ifndef OLD
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *start, const uint64_t *extents,
                           const uint64_t *strides, const unsigned *box, const unsigned *steps, int interleave,
                           int swizzle, int promotion, int fill) {
  TRY;
  char text[64], dims[256];
  int used = 0;
  if ((uintptr_t)map % 64 || (uintptr_t)start % 16 || rank < 2 || rank > 5 || interleave || fill || promotion < 0)
    return 1;
  for (unsigned d = 0; d < rank; d++) {
    if (steps[d] != 1 || extents[d] == 0 || box[d] > 256 || (d + 1 < rank && strides[d] % 16))
      return 1;
    used += snprintf(dims + used, sizeof(dims) - (size_t)used, " %llu/%u", (unsigned long long)extents[d], box[d]);
  }
  memset(map, 0x5a, 128);
  say("map of %s type %d swizzle %d:%s", place((address)(uintptr_t)start, text), type, swizzle, dims);
  return 0;
}

int cuTensorMapEncodeIm2col(void *map, int type, unsigned rank, void *start, const uint64_t *extents,
                            const uint64_t *strides, const int *lower, const int *upper, unsigned channels,
                            unsigned pixels, const unsigned *steps, int interleave, int swizzle, int promotion,
                            int fill) {
  TRY;
  char text[64], dims[256];
  int used = 0;
  if ((uintptr_t)map % 64 || (uintptr_t)start % 16 || rank < 3 || rank > 5 || interleave || fill || promotion < 0 ||
      channels > 256 || pixels > 1024)
    return 1;
  for (unsigned d = 0; d < rank; d++) {
    int is_axis = d > 0 && d + 1 < rank;
    if (extents[d] == 0 || (d + 1 < rank && strides[d] % 16) || steps[d] < 1 || steps[d] > (is_axis ? 8 : 1))
      return 1;
    used += snprintf(dims + used, sizeof(dims) - (size_t)used, " %llu", (unsigned long long)extents[d]);
    if (is_axis)
      used += snprintf(dims + used, sizeof(dims) - (size_t)used, "(%d,%d,%u)", lower[d - 1], upper[d - 1], steps[d]);
  }
  memset(map, 0x5a, 128);
  say("map of %s type %d swizzle %d, %u channels of %u pixels:%s", place((address)(uintptr_t)start, text), type,
      swizzle, channels, pixels, dims);
  return 0;
}
#endif

int cuFuncSetAttribute(void *function, int attribute, int value) {
  return say("function %s attribute %d is %d", (const char *)function, attribute, value), 0;
}

/* Work of other libraries on a stream (fake_cublaslt.c): done at once, or by the graph that the stream is captured to.
 */
struct work {
  void (*function)(void *);
  void *argument;
  struct work *next;
};
static struct work *captured;
static int captures;

static void do_works(const struct work *works) {
  for (; works; works = works->next) {
    works->function(works->argument);
    pass(1);
  }
}
void fake_enqueue(void *stream, void (*function)(void *), const void *argument, size_t bytes) {
  struct work *work = malloc(sizeof(*work)), **end = &captured;
  *work = (struct work){function, memcpy(malloc(bytes), argument, bytes), 0};
  (void)stream;
  if (!captures) {
    do_works(work);
    return;
  }
  while (*end)
    end = &(*end)->next;
  *end = work;
}

/* Graphs: nodes hold the first two parameters, which a launch of the graph shows (and copies, see above), or works. */
struct params {
  void *function;
  unsigned grid[3], block[3], shared;
  void **parameters, **extra;
};
static struct {
  const char *name;
  unsigned grid;
  address values[2];
  struct work *works;
} nodes[4096];
static int node_count, graph_count;
struct graph {
  int first, end; /* of its nodes */
  struct work *works;
};

static void hold(int node, const struct params *params) {
  nodes[node].name = params->function;
  nodes[node].grid = params->grid[0];
  nodes[node].works = 0;
  for (int i = 0; i < 2; i++)
    nodes[node].values[i] = *((address *const *)params->parameters)[i];
}
int cuGraphCreate(void **graph, unsigned flags) {
  TRY;
  struct graph *made = malloc(sizeof(*made));
  *made = (struct graph){.first = node_count, .end = node_count};
  return *graph = made, graph_count++, (void)flags, say("graph"), 0;
}
int cuGraphAddKernelNode(void **node, void *graph, void *const *before, size_t count, const struct params *params) {
  TRY;
  struct graph *own = graph;
  if (node_count == 4096 || own->end != node_count || (count && *before != (void *)(uintptr_t)node_count))
    return 1;
  hold(node_count++, params);
  own->end = node_count;
  *node = (void *)(uintptr_t)node_count;
  return say("node %d behind %d", node_count, (int)count), 0;
}
#ifndef OLD
int cuGraphAddDependencies_v2(void *graph, void *const *from, void *const *to, const unsigned char (*edges)[8],
                              size_t count) {
  TRY;
  if (!graph || count != 1)
    return 1;
  return say("edge %d to %d port %d type %d", (int)(uintptr_t)*from, (int)(uintptr_t)*to, (*edges)[0], (*edges)[2]), 0;
}
#endif
int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags) {
  TRY;
  return *exec = graph, (void)flags, say("instantiate"), 0;
}
int cuGraphExecKernelNodeSetParams(void *exec, void *node, const struct params *params) {
  TRY;
  hold((int)(uintptr_t)node - 1, params);
  return (void)exec, say("change node %d", (int)(uintptr_t)node), 0;
}
int cuStreamBeginCapture_v2(void *stream, int mode) {
  TRY;
  if (captures++ || !stream || mode != 2)
    return 1;
  return captured = 0, 0;
}
int cuStreamEndCapture(void *stream, void **graph) {
  TRY;
  if (!captures-- || !stream)
    return 1;
  int code = cuGraphCreate(graph, 0);
  ((struct graph *)*graph)->works = captured;
  return code;
}
int cuGraphAddChildGraphNode(void **node, void *graph, void *const *before, size_t count, void *child) {
  TRY;
  struct graph *own = graph;
  if (node_count == 4096 || own->end != node_count || (count && *before != (void *)(uintptr_t)node_count))
    return 1;
  nodes[node_count++].works = ((struct graph *)child)->works;
  own->end = node_count;
  *node = (void *)(uintptr_t)node_count;
  return say("child %d behind %d", node_count, (int)count), 0;
}
int cuGraphExecChildGraphNodeSetParams(void *exec, void *node, void *child) {
  TRY;
  nodes[(uintptr_t)node - 1].works = ((struct graph *)child)->works;
  return (void)exec, say("change child %d", (int)(uintptr_t)node), 0;
}
int cuGraphLaunch(void *exec, void *stream) {
  TRY;
  int from, to, bytes;
  say("replay on %llu", (unsigned long long)(uintptr_t)stream);
  const struct graph *own = exec;
  do_works(own->works);
  for (int i = own->first; i < own->end; i++)
    if (nodes[i].works)
      do_works(nodes[i].works);
    else if (getenv("FAKE_CUDA_COPY") && sscanf(getenv("FAKE_CUDA_COPY"), "%d,%d,%d", &from, &to, &bytes) == 3)
      memcpy((void *)nodes[i].values[to], (void *)nodes[i].values[from], (size_t)bytes);
  for (int i = own->first; i < own->end; i++)
    pass(nodes[i].grid);
  return 0;
}
int cuGraphExecDestroy(void *exec) { return (void)exec, 0; } /* the graph itself, which is destroyed later */
int cuGraphDestroy(void *graph) {
  free(graph);
  say("graph ends");
  if (--graph_count == 0)
    node_count = 0;
  return 0;
}

int cuGetErrorName(int error, const char **name) {
  return *name = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN", 0;
}
int cuGetErrorString(int error, const char **text) { return *text = error == 2 ? "out of memory" : "unknown error", 0; }
