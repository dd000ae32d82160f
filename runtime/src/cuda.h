/* The CUDA driver as the runtime sees it: functions of libcuda.so.1, found at create, and what a model and a context
 * keep on a device. Nothing of CUDA's own headers is used; the driver's binary interface does not change. */
#ifndef PTC_RUNTIME_CUDA_H
#define PTC_RUNTIME_CUDA_H

#include "runtime.h"

typedef uint64_t ptc_cuda_address;

/* FUNCTION(member, name in the library, parameters); all return 0 or an error. */
#define PTC_CUDA_FUNCTIONS(FUNCTION)                                                                                   \
  FUNCTION(init, cuInit, (unsigned))                                                                                   \
  FUNCTION(driver_version, cuDriverGetVersion, (int *))                                                                \
  FUNCTION(device_count, cuDeviceGetCount, (int *))                                                                    \
  FUNCTION(device_get, cuDeviceGet, (int *, int))                                                                      \
  FUNCTION(device_name, cuDeviceGetName, (char *, int, int))                                                           \
  FUNCTION(device_attribute, cuDeviceGetAttribute, (int *, int, int))                                                  \
  FUNCTION(context_retain, cuDevicePrimaryCtxRetain, (void **, int))                                                   \
  FUNCTION(context_release, cuDevicePrimaryCtxRelease_v2, (int))                                                       \
  FUNCTION(context_push, cuCtxPushCurrent_v2, (void *))                                                                \
  FUNCTION(context_pop, cuCtxPopCurrent_v2, (void **))                                                                 \
  FUNCTION(context_wait, cuCtxSynchronize, (void))                                                                     \
  FUNCTION(module_load, cuModuleLoadData, (void **, const void *))                                                     \
  FUNCTION(module_unload, cuModuleUnload, (void *))                                                                    \
  FUNCTION(module_function, cuModuleGetFunction, (void **, void *, const char *))                                      \
  FUNCTION(function_set, cuFuncSetAttribute, (void *, int, int))                                                       \
  FUNCTION(allocate, cuMemAlloc_v2, (ptc_cuda_address *, size_t))                                                      \
  FUNCTION(release, cuMemFree_v2, (ptc_cuda_address))                                                                  \
  FUNCTION(copy_in, cuMemcpyHtoDAsync_v2, (ptc_cuda_address, const void *, size_t, void *))                            \
  FUNCTION(copy_out, cuMemcpyDtoHAsync_v2, (void *, ptc_cuda_address, size_t, void *))                                 \
  FUNCTION(copy_within, cuMemcpyDtoDAsync_v2, (ptc_cuda_address, ptc_cuda_address, size_t, void *))                    \
  FUNCTION(fill, cuMemsetD8Async, (ptc_cuda_address, unsigned char, size_t, void *))                                   \
  FUNCTION(pointer_attribute, cuPointerGetAttribute, (void *, int, ptc_cuda_address))                                  \
  FUNCTION(stream_create, cuStreamCreate, (void **, unsigned))                                                         \
  FUNCTION(stream_wait, cuStreamSynchronize, (void *))                                                                 \
  FUNCTION(stream_captures, cuStreamIsCapturing, (void *, int *))                                                      \
  FUNCTION(stream_destroy, cuStreamDestroy_v2, (void *))                                                               \
  FUNCTION(event_create, cuEventCreate, (void **, unsigned))                                                           \
  FUNCTION(event_record, cuEventRecord, (void *, void *))                                                              \
  FUNCTION(event_elapsed, cuEventElapsedTime, (float *, void *, void *))                                               \
  FUNCTION(event_destroy, cuEventDestroy_v2, (void *))                                                                 \
  FUNCTION(launch, cuLaunchKernel,                                                                                     \
           (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))   \
  FUNCTION(graph_create, cuGraphCreate, (void **, unsigned))                                                           \
  FUNCTION(graph_add_kernel, cuGraphAddKernelNode,                                                                     \
           (void **, void *, void *const *, size_t, const struct ptc_cuda_launch *))                                   \
  FUNCTION(graph_instantiate, cuGraphInstantiateWithFlags, (void **, void *, unsigned long long))                      \
  FUNCTION(graph_set_kernel, cuGraphExecKernelNodeSetParams, (void *, void *, const struct ptc_cuda_launch *))         \
  FUNCTION(graph_add_child, cuGraphAddChildGraphNode, (void **, void *, void *const *, size_t, void *))                \
  FUNCTION(graph_set_child, cuGraphExecChildGraphNodeSetParams, (void *, void *, void *))                              \
  FUNCTION(capture_begin, cuStreamBeginCapture_v2, (void *, int))                                                      \
  FUNCTION(capture_end, cuStreamEndCapture, (void *, void **))                                                         \
  FUNCTION(graph_launch, cuGraphLaunch, (void *, void *))                                                              \
  FUNCTION(graph_exec_destroy, cuGraphExecDestroy, (void *))                                                           \
  FUNCTION(graph_destroy, cuGraphDestroy, (void *))                                                                    \
  FUNCTION(error_name, cuGetErrorName, (int, const char **))                                                           \
  FUNCTION(error_text, cuGetErrorString, (int, const char **))

/* CUDA_KERNEL_NODE_PARAMS */
typedef struct ptc_cuda_launch {
  void *function;
  unsigned grid[3], block[3], shared_bytes;
  void **parameters;
  void **extra;
} ptc_cuda_launch;

/* CUgraphEdgeData: how a node waits for another. */
typedef struct ptc_cuda_edge {
  unsigned char from_port, to_port, type, reserved[5];
} ptc_cuda_edge;

typedef struct ptc_cuda_driver {
  void *library;
#define PTC_CUDA_MEMBER(member, name, parameters) int(*member) parameters;
  PTC_CUDA_FUNCTIONS(PTC_CUDA_MEMBER)
#undef PTC_CUDA_MEMBER
  /* cuTensorMapEncodeTiled; NULL in a driver older than 12.0 */
  int (*map_encode)(void *map, int type, uint32_t rank, void *address, const uint64_t *extents, const uint64_t *strides,
                    const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill);
  /* cuTensorMapEncodeIm2col; NULL there, too */
  int (*map_encode_image)(void *map, int type, uint32_t rank, void *address, const uint64_t *extents,
                          const uint64_t *strides, const int *lower, const int *upper, uint32_t channels,
                          uint32_t pixels, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill);
  /* cuGraphAddDependencies_v2; NULL in a driver older than 12.3 */
  int (*graph_add_edges)(void *graph, void *const *from, void *const *to, const ptc_cuda_edge *edges, size_t count);
} ptc_cuda_driver;

/* Libraries of NVIDIA's, for kernels that a tuning chose them for (cuda_library.c); all functions return 0 or an error.
 * A library's file finds its own, `opened` being the library: `complete` tells whether all are there. */
#define PTC_CUDA_LIBRARY_FIND(member, symbol, parameters)                                                              \
  *(void **)&library->member = dlsym(opened, #symbol);                                                                 \
  complete &= library->member != 0;

/* cuda_product.c */
#define PTC_CUBLASLT_FUNCTIONS(FUNCTION)                                                                               \
  FUNCTION(create, cublasLtCreate, (void **))                                                                          \
  FUNCTION(destroy, cublasLtDestroy, (void *))                                                                         \
  FUNCTION(operation_create, cublasLtMatmulDescCreate, (void **, int, int))                                            \
  FUNCTION(operation_set, cublasLtMatmulDescSetAttribute, (void *, int, const void *, size_t))                         \
  FUNCTION(operation_destroy, cublasLtMatmulDescDestroy, (void *))                                                     \
  FUNCTION(matrix_create, cublasLtMatrixLayoutCreate, (void **, int, uint64_t, uint64_t, int64_t))                     \
  FUNCTION(matrix_set, cublasLtMatrixLayoutSetAttribute, (void *, int, const void *, size_t))                          \
  FUNCTION(matrix_destroy, cublasLtMatrixLayoutDestroy, (void *))                                                      \
  FUNCTION(preference_create, cublasLtMatmulPreferenceCreate, (void **))                                               \
  FUNCTION(preference_set, cublasLtMatmulPreferenceSetAttribute, (void *, int, const void *, size_t))                  \
  FUNCTION(preference_destroy, cublasLtMatmulPreferenceDestroy, (void *))                                              \
  FUNCTION(propose, cublasLtMatmulAlgoGetHeuristic,                                                                    \
           (void *, void *, void *, void *, void *, void *, void *, int, void *, int *))                               \
  FUNCTION(algorithm_get, cublasLtMatmulAlgoConfigGetAttribute, (const void *, int, void *, size_t, size_t *))         \
  FUNCTION(multiply, cublasLtMatmul,                                                                                   \
           (void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *,      \
            void *, void *, void *, const void *, void *, size_t, void *))

typedef struct ptc_cublaslt {
  void *handle;
#define PTC_CUBLASLT_MEMBER(member, name, parameters) int(*member) parameters;
  PTC_CUBLASLT_FUNCTIONS(PTC_CUBLASLT_MEMBER)
#undef PTC_CUBLASLT_MEMBER
} ptc_cublaslt;

typedef struct ptc_cuda_product {
  void *operation, *lhs, *rhs, *result;
  uint64_t algorithm[8];
  size_t workspace_bytes;
} ptc_cuda_product;

/* cuda_convolution.c */
#define PTC_CUDNN_FUNCTIONS(FUNCTION)                                                                                  \
  FUNCTION(create, cudnnCreate, (void **))                                                                             \
  FUNCTION(destroy, cudnnDestroy, (void *))                                                                            \
  FUNCTION(set_stream, cudnnSetStream, (void *, void *))                                                               \
  FUNCTION(object_create, cudnnBackendCreateDescriptor, (int, void **))                                                \
  FUNCTION(object_destroy, cudnnBackendDestroyDescriptor, (void *))                                                    \
  FUNCTION(object_set, cudnnBackendSetAttribute, (void *, int, int, int64_t, const void *))                            \
  FUNCTION(object_get, cudnnBackendGetAttribute, (void *, int, int, int64_t, int64_t *, void *))                       \
  FUNCTION(object_finish, cudnnBackendFinalize, (void *))                                                              \
  FUNCTION(execute, cudnnBackendExecute, (void *, void *, void *))

typedef struct ptc_cudnn {
#define PTC_CUDNN_MEMBER(member, name, parameters) int(*member) parameters;
  PTC_CUDNN_FUNCTIONS(PTC_CUDNN_MEMBER)
#undef PTC_CUDNN_MEMBER
} ptc_cudnn;

enum { PTC_CUDNN_OBJECTS = 256 }; /* of a plan, those that were tried on the way included */
typedef struct ptc_cuda_convolution {
  void *handle, *plan;
  bool adds_nothing; /* the graph has a residual that counts 0 times */
  uint32_t object_count;
  void **objects; /* room for all */
} ptc_cuda_convolution;

/* A kernel's work as a context describes it to a library. */
enum { /* 0: none */
       PTC_CUDA_LHS,
       PTC_CUDA_RHS,
       PTC_CUDA_RESULT,
       PTC_CUDA_BIAS,
       PTC_CUDA_RESIDUAL,
       PTC_CUDA_SCRATCH,
       PTC_CUDA_PLACES
};
typedef struct ptc_cuda_library ptc_cuda_library;
typedef struct ptc_cuda_work {
  const ptc_cuda_library *library; /* NULL: the kernel's own code runs */
  bool has_run;
  uint64_t places[PTC_CUDA_PLACES]; /* of the launch under way */
  union {
    ptc_cuda_product product;
    ptc_cuda_convolution convolution;
  } as;
} ptc_cuda_work;

enum { PTC_CUDA_LIBRARIES = 2, PTC_CUDA_LIBRARY_NAMES = 2 };

/* CUtensorMap */
typedef struct ptc_cuda_map {
  _Alignas(64) uint64_t words[16];
} ptc_cuda_map;

typedef struct ptc_cuda_model {
  ptc_cuda_driver driver;
  int device;
  int multiprocessors;
  void *context;    /* the device's primary one, which other libraries of the process use too */
  void **modules;   /* by kernel */
  void **functions; /* by kernel */
  ptc_cuda_address weights, constants;
  void *libraries[PTC_CUDA_LIBRARIES]; /* open ones; NULL: not in use */
  ptc_cublaslt cublaslt;
  ptc_cudnn cudnn;
  bool has_profiler; /* that wants ranges (cuda_nvtx.c) */
} ptc_cuda_model;

/* Memory of the device that only grows. */
typedef struct ptc_cuda_block {
  ptc_cuda_address base;
  size_t bytes;
} ptc_cuda_block;

/* Events around a launch, for a profile. */
typedef struct ptc_cuda_span {
  void *begin, *end;
  int64_t blocks;
  uint32_t site;
} ptc_cuda_span;

/* The launches of a run for one variant and one set of dims, as a graph of the driver (cuda_graph.c). */
typedef struct ptc_cuda_node {
  void *node;
  uint32_t kernel, grid, first, count; /* parameters: where they begin among the graph's, and how many */
  bool is_work;                        /* a graph of a library's launches; parameters: its places */
} ptc_cuda_node;

typedef enum ptc_cuda_graph_state {
  PTC_CUDA_GRAPH_NONE,
  PTC_CUDA_GRAPH_RECORDS,  /* launches run, and become nodes */
  PTC_CUDA_GRAPH_REPLAYS,  /* launches change nodes where they differ */
  PTC_CUDA_GRAPH_UNUSABLE, /* the host looks at values on the way: nothing can be put off */
} ptc_cuda_graph_state;

typedef struct ptc_cuda_graph {
  const ptc_rt_variant *variant; /* NULL: a free place */
  int64_t *symbols;
  uint32_t symbol_count;
  ptc_cuda_graph_state state; /* REPLAYS or UNUSABLE when no run is under way */
  void *graph, *exec;
  ptc_cuda_node *nodes;
  uint64_t *parameters;
  uint32_t node_count, node_capacity, parameter_count, parameter_capacity, next;
  bool starts_early; /* its kernels wait for the launch in front of them themselves */
} ptc_cuda_graph;

/* Kernels of levels from this compute capability on wait for the launch in front of them, and may begin before it has
 * ended. */
enum { PTC_CUDA_CAPABILITY_OF_EARLY_STARTS = 90 };

enum { PTC_CUDA_GRAPHS = 8 };

typedef struct ptc_cuda_ctx {
  void *stream;
  void *under_way;        /* the stream of a run that returned before its end; NULL: none did */
  ptc_cuda_block memory;  /* arena, then scratch */
  ptc_cuda_block staging; /* arguments that the caller has elsewhere */
  ptc_cuda_block faults;  /* a word for each launch of the largest program */
  uint32_t *host_faults;
  ptc_cuda_address *staged; /* by argument: its copy on the device; 0: none */
  size_t *argument_bytes;
  ptc_cuda_block *found; /* by argument: its copy, of outputs whose size the run finds */
  void **placed;         /* of the call under way, by argument: its address on the device */
  void **on_host;        /* and on the host, where the program uses it there */
  char **host_blocks;    /* as the context's blocks, on the host */
  size_t *host_block_bytes;
  ptc_cuda_address program_scratch; /* of the call under way */
  size_t program_scratch_bytes;
  ptc_cuda_block scratch;  /* of kernels whose sizes nothing bounds */
  ptc_cuda_block counters; /* zeros, for kernels that count the blocks that arrive */
  ptc_cuda_graph graphs[PTC_CUDA_GRAPHS];
  ptc_cuda_graph *graph;                 /* of the run under way; NULL: its launches go to the stream */
  uint32_t oldest_graph;                 /* the place that is taken when all are */
  uint32_t launch_count, argument_count; /* that there is room for */
  ptc_cuda_work *works;                  /* by kernel */
  void *cudnn;                           /* its handle, once it is used */
  uint32_t span_count, span_capacity;
  ptc_cuda_span *spans;
  void *origin; /* event at the beginning of the run */
  size_t bytes; /* of this block */
} ptc_cuda_ctx;

/* cuda.c. Writes what failed to `error`, PTC_RT_ERROR_SIZE bytes. */
ptc_status ptc_cuda_fail(const ptc_cuda_driver *driver, int code, const char *what, char *error);

static inline const ptc_rt_device_kernel *ptc_cuda_kernel_of(const ptc_model *model, uint32_t kernel) {
  const ptc_rt_descriptor *descriptor = model->descriptor;
  return &descriptor->device_code->kernels[(size_t)model->level * descriptor->kernel_count + kernel];
}

/* cuda_graph.c */
void ptc_cuda_graph_begin(ptc_rt_call_state *call);
/* Whether the next launch of a graph that is replayed is this one: its parameters beside maps need no look then. */
bool ptc_cuda_graph_has(const ptc_cuda_ctx *own, const ptc_cuda_launch *launch, uint32_t count);
/* What a launch does with the graph; `done`: that is all. `count`: parameters of 8 bytes, before others, which follow
 * from these. Returns the driver's error. */
int ptc_cuda_graph_add(ptc_rt_call_state *call, uint32_t kernel, const ptc_cuda_launch *launch, uint32_t count,
                       bool *done);
/* The same of a library's work, which was done already if the graph records. */
int ptc_cuda_graph_add_work(ptc_rt_call_state *call, uint32_t kernel, ptc_cuda_work *work);
/* The work as a graph of its own, which the caller destroys; NULL where there is none. */
void *ptc_cuda_graph_of_work(const ptc_rt_call_state *call, ptc_cuda_work *work, void **graph);
/* The host needs a value of the device now. */
void ptc_cuda_graph_give_up(ptc_rt_call_state *call);
/* Behind the program; a replayed graph is launched. */
int ptc_cuda_graph_end(ptc_rt_call_state *call, bool failed);
void ptc_cuda_graph_close(const ptc_cuda_driver *driver, ptc_cuda_ctx *own);

/* One of the libraries: cuda_product.c, cuda_convolution.c. */
struct ptc_cuda_library {
  const char *title, *refuses, *fails;       /* "cuBLASLt", "refuses a product", "fails at a product" */
  const char *names[PTC_CUDA_LIBRARY_NAMES]; /* the newest first */
  bool (*computes)(const ptc_rt_device_kernel *kernel);
  /* Of a model: finds the library's functions. */
  bool (*open)(ptc_cuda_model *device, void *opened);
  void (*close)(ptc_cuda_model *device);
  /* Of a context; `drop` also where describe was half done, `leave` when all work is dropped. */
  bool (*describe)(const ptc_cuda_model *device, ptc_cuda_ctx *own, ptc_cuda_work *work,
                   const ptc_rt_device_kernel *kernel);
  void (*drop)(const ptc_cuda_model *device, ptc_cuda_work *work);
  void (*leave)(const ptc_cuda_model *device, ptc_cuda_ctx *own);
  /* Where tensors lie; puts the work on a stream and returns the library's error. */
  void (*place)(ptc_cuda_work *work, const ptc_rt_device_kernel *kernel, void *const *buffers);
  int (*run)(const ptc_cuda_model *device, ptc_cuda_work *work, void *stream);
};
extern const ptc_cuda_library ptc_cuda_cublaslt, ptc_cuda_cudnn;

static inline uint64_t ptc_cuda_place(void *const *buffers, uint32_t buffer, uint64_t offset) {
  return (uint64_t)(uintptr_t)buffers[buffer] + offset;
}

/* cuda_library.c */
void ptc_cuda_open_libraries(const ptc_model *model, ptc_cuda_model *device);
void ptc_cuda_close_libraries(ptc_cuda_model *device);
void ptc_cuda_describe_works(const ptc_model *model, ptc_cuda_ctx *own);
void ptc_cuda_drop_works(const ptc_model *model, ptc_cuda_ctx *own);
/* Where the tensors of the next launch lie. */
void ptc_cuda_place_work(ptc_cuda_work *work, const ptc_rt_device_kernel *kernel, void *const *buffers,
                         ptc_cuda_address scratch);
/* Puts the work on the stream; returns the library's error. */
int ptc_cuda_do_work(const ptc_cuda_model *device, ptc_cuda_work *work, void *stream);
/* The kernel's own code runs from now on. */
void ptc_cuda_refuse_work(const ptc_model *model, ptc_cuda_work *work);

/* cuda_run.c, cuda_profile.c */
ptc_status ptc_cuda_reserve(ptc_ctx *ctx, const ptc_rt_function *function, const int64_t *symbols, size_t bytes);
ptc_status ptc_cuda_run(ptc_rt_call_state *call, char *workspace, size_t bytes, void *stream);
void ptc_cuda_ctx_close(ptc_ctx *ctx);
void ptc_cuda_begin_spans(ptc_rt_call_state *call);
ptc_cuda_span *ptc_cuda_begin_span(ptc_rt_call_state *call, uint32_t site, int64_t blocks);
void ptc_cuda_end_span(ptc_rt_call_state *call, ptc_cuda_span *span);
void ptc_cuda_record_spans(ptc_rt_call_state *call, uint64_t begin_ns);
void ptc_cuda_drop_spans(const ptc_cuda_driver *driver, ptc_cuda_ctx *own);

/* cuda_nvtx.c. Whether a profiler wants ranges; push and pop are for when one does, on one thread and nested. */
bool ptc_cuda_attach_profiler(void);
void ptc_cuda_push_range(const char *name);
void ptc_cuda_pop_range(void);

#endif /* PTC_RUNTIME_CUDA_H */
