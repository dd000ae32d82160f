/* What the runtime's files share. Everything here is hidden. */
#ifndef PTC_RUNTIME_H
#define PTC_RUNTIME_H

#include "fpmode.h"
#include "ptc/descriptor.h"

#include <stdatomic.h>
#include <stdbool.h>

enum {
  PTC_RT_MAX_THREADS = 256,
  PTC_RT_PAGE = 4096, /* alignment of arenas: random placement costs up to 10 % */
  PTC_RT_LINE = 64,
  PTC_RT_ERROR_SIZE = 512,
};

struct ptc_model {
  const ptc_rt_descriptor *descriptor;
  uint32_t level;                /* index into descriptor->levels */
  ptc_rt_kernel *const *kernels; /* functions of the processor's level: of all kernels, or of those beside a device */
  uint32_t threads;
  const char *weights;
  char *own_weights;        /* writable copy, made by the first set_weight */
  const char *file_weights; /* in the mapped file, after its header; NULL if there is none */
  size_t mapped;            /* bytes of that mapping, header included */
  ptc_allocator allocator;
  ptc_thread_pool pool;
  void (*log)(void *state, int32_t severity, const char *message);
  void *log_state;
  ptc_profile *profile;
  void (*tap)(void *state, const ptc_tap *tap);
  void *tap_state;
  void *device_model; /* what the device's part of the runtime keeps, of models for one */
  int32_t ordinal;    /* of the device */
  void *custom_ops;   /* what custom.c keeps */
};

/* A block that only grows. */
typedef struct ptc_rt_block {
  char *base;
  size_t bytes;
} ptc_rt_block;

/* An output whose dims the program finds: where its pointer and its dims go. */
typedef struct ptc_rt_result {
  void **data;
  int64_t *shape;
  int64_t capacity; /* elements that *data has room for, if it is not NULL */
  size_t allocated; /* bytes that this run has allocated */
} ptc_rt_result;
/* Memory for what a run makes up as it goes, bytes of strings say: chunks that are filled one after the other, and
 * filled anew by the next run. */
typedef struct ptc_rt_chunk {
  struct ptc_rt_chunk *next;
  size_t bytes; /* of the whole block */
  size_t used;
} ptc_rt_chunk;

struct ptc_ctx {
  const ptc_model *model;
  atomic_uint busy;
  ptc_rt_block memory;    /* arena, then one scratch per thread */
  ptc_rt_block scratch;   /* of kernels whose sizes nothing bounds */
  int64_t *symbols;       /* room for the most symbols of any function, those that a program binds behind its own */
  void **arguments;       /* room for the most inputs + outputs of any function */
  int64_t *places;        /* where each argument lies: a ptc_device's type, 0 where the caller did not say */
  int64_t *extents;       /* room for the extents of all inputs, or all outputs, of any function */
  int64_t **shapes;       /* room for as many pointers as there are inputs, or outputs, of any function */
  ptc_rt_result *results; /* room for the most outputs of any function */
  char **blocks;          /* memory of values whose size nothing bounds, */
  size_t *block_bytes;    /* and how much of it there is */
  uint32_t block_count;
  void *device_ctx;     /* what the device's part of the runtime keeps, of models for one */
  ptc_rt_chunk *chunks; /* memory of what has no size that dims tell */
  ptc_rt_chunk *chunk;  /* the one being filled */
  size_t bytes;         /* of this block */
  char error[PTC_RT_ERROR_SIZE];
};

typedef struct ptc_rt_call_state ptc_rt_call_state;

/* What a parallel loop runs, alone or with others: pieces of [first, first + iterations) that any participant may
 * run. */
typedef struct ptc_rt_task {
  ptc_rt_kernel *kernel;
  void *const *buffers;
  const int64_t *symbols;
  int64_t first, iterations;
  int64_t pieces;
  char *scratch;
  size_t scratch_stride; /* participant p works in scratch + p * scratch_stride */
  atomic_int fault;      /* the first that occurred */
  uint32_t site;
  const ptc_rt_call_state *profiled; /* whose pieces are timed; NULL: nobody's */
} ptc_rt_task;

struct ptc_rt_threading {
  void (*prepare)(uint32_t threads); /* starts what a run with that many threads needs */
  /* Runs all pieces of some tasks in a row, `pieces` in all, with at most `participants` threads and returns true, or
   * returns false at once if the threads are taken; then the caller runs the tasks alone. */
  bool (*parallel)(ptc_rt_task *tasks, int64_t pieces, uint32_t participants);
  void (*shutdown)(void); /* joins all threads; they may be started again */
};

/* The call as the runtime sees it: generated code knows the first member. */
struct ptc_rt_call_state {
  ptc_rt_call visible;
  const ptc_model *model;
  ptc_ctx *ctx;
  const ptc_rt_function *function;
  const ptc_rt_variant *variant;
  ptc_rt_kernel *const *kernels;
  size_t arena_bytes; /* whole pages; scratch lies behind them */
  char *scratch;
  size_t scratch_stride;
  uint32_t site; /* of the launch that failed */
  const ptc_rt_fpmode *caller_mode;
  void *stream; /* of a device */
};

/* A device that runs launches in place of this processor. All but open write their sentence to the context's error. */
struct ptc_rt_device {
  int32_t type;                                                     /* PTC_CUDA, ... */
  ptc_status (*open)(ptc_model *model, const ptc_options *options); /* chooses the level, loads code and weights */
  void (*close)(ptc_model *model);
  ptc_status (*upload)(const ptc_model *model, uint64_t offset, uint64_t bytes); /* of the weights, as they are now */
  ptc_status (*reserve)(ptc_ctx *ctx, const ptc_rt_function *function, const int64_t *symbols, size_t bytes);
  ptc_status (*run)(ptc_rt_call_state *call, char *workspace, size_t bytes, void *stream);
  void (*ctx_close)(ptc_ctx *ctx);
};

/* Operators of the user's own. */
struct ptc_rt_custom_runtime {
  ptc_status (*open)(ptc_model *model, const ptc_options *options);
  void (*close)(ptc_model *model);
};

/* cpu.c */
/* Whether this processor has them, and this process may use them: asks for permission where there has to be one. */
bool ptc_rt_cpu_has(uint64_t features);
uint32_t ptc_rt_cpu_count(void);

/* model.c: threads started, weights read */
void ptc_rt_prepare(const ptc_model *model);

/* weights.c */
ptc_status ptc_rt_weights_open(ptc_model *model, const ptc_options *options);
void ptc_rt_weights_close(ptc_model *model);
/* The path of a file in the folder of this library; false if it cannot be told. */
bool ptc_rt_path_beside(const char *name, char *path, size_t size);

/* profile.c */
uint64_t ptc_rt_now(void); /* nanoseconds */
void ptc_rt_record_run(const ptc_rt_call_state *call, uint64_t begin_ns);
void ptc_rt_record_launch(const ptc_rt_task *task, uint64_t begin_ns);
void ptc_rt_record_span(const ptc_rt_call_state *call, uint32_t site, uint64_t begin_ns, uint64_t end_ns,
                        int64_t iterations);
void ptc_rt_record_piece(const ptc_rt_task *task, int64_t begin, int64_t end, uint32_t participant, uint64_t begin_ns);

/* launch.c */
/* body(argument, i) for every i in [0, count). */
void ptc_rt_parallel_for(ptc_rt_call_state *call, int64_t count, void (*body)(void *argument, int64_t index),
                         void *argument);
void ptc_rt_run_piece(ptc_rt_task *task, int64_t piece, uint32_t participant);

/* Elements that only the host can look into. */
static inline bool ptc_rt_has_handles(ptc_dtype dtype) {
  return dtype.code == PTC_STRING || dtype.code == PTC_SEQUENCE;
}

/* values.c: memory of a run for what has no size that dims tell; NULL if there is none. Aligned to 64 bytes. Valid
 * until the context's next run. */
void *ptc_rt_take(ptc_rt_call *call, size_t count, size_t bytes);
void ptc_rt_forget(ptc_ctx *ctx); /* before a run: everything taken is free again */
void ptc_rt_release_chunks(ptc_ctx *ctx);
/* Writes the sentence "node '...': ..." for a fault of a call, and returns PTC_RT_FAULT_VALUE. */
int32_t ptc_rt_refuse(ptc_rt_call *call, uint32_t site, const char *format, ...);

/* A string inside: NULL is the empty one. */
static inline ptc_string ptc_rt_text(const ptc_string *handle) {
  static const ptc_string empty = {"", 0};
  return handle ? *handle : empty;
}

/* shapes.c: checks of dims and tensors. All write a sentence to `error` (PTC_RT_ERROR_SIZE bytes) when they fail. */
ptc_status ptc_rt_check_symbols(const ptc_rt_function *function, const int64_t *symbols, char *error);
ptc_status ptc_rt_pick_variant(const ptc_rt_function *function, const int64_t *symbols, const ptc_rt_variant **variant,
                               char *error);
ptc_status ptc_rt_bind(ptc_ctx *ctx, const ptc_rt_function *function, const ptc_tensor *inputs, bool data);
ptc_status ptc_rt_check_outputs(ptc_ctx *ctx, const ptc_rt_function *function, ptc_tensor *outputs);
/* Points ctx->shapes at the extents of all inputs, or outputs, and fills them in. */
void ptc_rt_find_input_shapes(ptc_ctx *ctx, const ptc_rt_function *function);
/* The shapes of the outputs for these symbols. Where one is negative, the guard that fails, or PTC_OUT_OF_MEMORY: it
 * leaves 64 bits. */
ptc_status ptc_rt_output_extents(const ptc_rt_function *function, const int64_t *symbols, int64_t *const *shapes,
                                 char *error);
void ptc_rt_find_output_shapes(ptc_ctx *ctx, const ptc_rt_function *function);
ptc_status ptc_rt_describe_guard(const ptc_rt_variant *variant, const ptc_function *interface, uint32_t guard,
                                 const int64_t *symbols, char *error);
/* Points ctx->shapes[i] into ctx->extents. */
void ptc_rt_lay_out_extents(ptc_ctx *ctx, const ptc_value *values, uint32_t count);
/* Whether a run finds one of the value's extents. */
bool ptc_rt_is_found(const ptc_value *value);
/* Of the dims, -1 if a dim is not known or the number exceeds 63 bits. */
int64_t ptc_rt_elements(const int64_t *shape, int32_t rank);

/* found.c: what the program finds out while it runs */
bool ptc_rt_grow_block(const ptc_model *model, char **base, size_t *have, int64_t wanted);
/* Keeps what the block held. */
bool ptc_rt_regrow_block(const ptc_model *model, char **base, size_t *have, int64_t wanted);
bool ptc_rt_grow_scratch(ptc_rt_call_state *call, int64_t bytes);
/* Takes back what a failed run has allocated for the caller. */
void ptc_rt_drop_results(ptc_ctx *ctx, const ptc_rt_function *function);

/* context.c: the part of run that both entries share; symbols are checked, and lie with the arguments in the context.
 */
ptc_status ptc_rt_execute(ptc_ctx *ctx, const ptc_rt_function *function, void *workspace, void *stream);
ptc_status ptc_rt_translate_fault(const ptc_rt_call_state *call, int32_t fault);
size_t ptc_rt_needed_bytes(const ptc_model *model, const ptc_rt_function *function, const int64_t *symbols,
                           char *error);
ptc_status ptc_rt_reserve(ptc_ctx *ctx, const ptc_rt_function *function, const int64_t *symbols);
bool ptc_rt_enter(ptc_ctx *ctx);
void ptc_rt_leave(ptc_ctx *ctx);
void *ptc_rt_allocate(const ptc_model *model, size_t bytes, size_t alignment);
void ptc_rt_release(const ptc_model *model, void *block, size_t bytes);

/* Types of a tensor's device whose memory CUDA's devices reach. */
static inline bool ptc_rt_is_of_cuda(int64_t type) { return type == PTC_CUDA || type == PTC_CUDA_MANAGED; }

static inline const ptc_rt_device *ptc_rt_device_of(const ptc_model *model) {
  const ptc_rt_device_code *code = model->descriptor->device_code;
  return code ? code->device : 0;
}

static inline char *ptc_rt_align(char *pointer, size_t alignment) {
  return (char *)(((uintptr_t)pointer + alignment - 1) & ~(uintptr_t)(alignment - 1));
}

static inline void ptc_rt_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#endif /* PTC_RUNTIME_H */
