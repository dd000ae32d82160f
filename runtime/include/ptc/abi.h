/* The C interface of every library that ptc writes.
 *
 * A compiled model NAME offers two views of the same code:
 *  - typed functions, declared in the header that is written beside the library (NAME_create, NAME_run, ...);
 *  - one table of functions, `ptc_model_v1` in a shared library and `NAME_model_v1` in a static one, that describes
 *    the model and runs it over tensors, so that a tool or a language binding needs no header of the model.
 *
 * Objects and threads
 *  - A model is constant after create: any number of threads may use it at once. It owns the weights.
 *  - A context is what one call at a time needs: memory for intermediate values and the last error sentence. Use one
 *    context per concurrent call; a context that is in use by another call refuses with PTC_INVALID_ARGUMENT.
 *  - Destroy contexts before their model. set_weight may be called while no call of that model runs.
 *
 * Memory
 *  - Every pointer that is passed in stays the caller's. Tensors are dense, row-major ("C order") and need the natural
 *    alignment of their elements only. Results are written to memory of the caller, which must not overlap that of
 *    another result, nor an input unless the two are an alias pair (one buffer that is read and updated).
 *  - run allocates nothing once the context has seen dims as large as the present ones (see warmup), and nothing at
 *    all when a workspace is passed, but for outputs whose size it finds and values whose size nothing bounds. The
 * bytes of computed strings and sequences that grow lie in memory of the context besides, which is kept: a run that
 * needs no more of it than one before allocates nothing.
 *
 * A run keeps the caller's floating-point mode, prints nothing, calls no exit, waits on no other call and needs at most
 * 64 KB of stack. A failed check of arguments touches no output. All functions are safe to call from C and C++.
 * Functions of the caller's that the library calls must return: no exception, no longjmp.
 */
#ifndef PTC_ABI_H
#define PTC_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PTC_ABI_VERSION 1

/* ---- status ------------------------------------------------------------------------------------------------- */

typedef int32_t ptc_status;

enum {
  PTC_OK = 0,
  PTC_INVALID_ARGUMENT = 1,   /* NULL where a value is needed, an unknown name, a wrong number of tensors */
  PTC_TYPE_MISMATCH = 2,      /* a tensor's element type or rank is not the declared one */
  PTC_SHAPE_MISMATCH = 3,     /* a tensor's dim is not what the declaration and the other dims say */
  PTC_GUARD_FAILED = 4,       /* dims outside what the model was compiled for */
  PTC_INDEX_OUT_OF_RANGE = 5, /* an index computed inside the model (Gather, ...) left its range; outputs undefined */
  PTC_OUT_OF_MEMORY = 6,
  PTC_CPU_UNSUPPORTED = 7,     /* this processor lacks what the model, or the level asked for, needs */
  PTC_WEIGHTS_UNAVAILABLE = 8, /* the weights file is missing, truncated or belongs to another build */
  PTC_UNSUPPORTED = 9,         /* the request is valid, but not for this model */
  PTC_DEVICE_ERROR = 10,       /* the device or its driver failed, or is too old for the model */
  PTC_INTERNAL_ERROR = 11,     /* a defect of ptc */
  PTC_NO_DEVICE = 12, /* the model needs a device, and this machine shows none: no driver, or no such ordinal */
  PTC_CUSTOM_OP_FAILED =
      13 /* an operator of your own: its library is missing or does not fit, or it reports a failure */
};

/* What a size function returns when there is no size: failed guard, negative dim, overflow. */
#define PTC_NO_SIZE ((size_t)-1)

/* ---- element types and tensors: bit-compatible with DLPack (DLDataType, DLDevice, DLTensor) -------------------- */

enum {
  PTC_INT = 0,
  PTC_UINT = 1,
  PTC_FLOAT = 2,
  PTC_BFLOAT = 4,
  PTC_COMPLEX = 5,
  PTC_BOOL = 6, /* one byte, 0 or 1 */
  PTC_FLOAT8_E4M3FN = 10,
  PTC_FLOAT8_E4M3FNUZ = 11,
  PTC_FLOAT8_E5M2 = 12,
  PTC_FLOAT8_E5M2FNUZ = 13,
  PTC_FLOAT8_E8M0FNU = 14,
  PTC_FLOAT6_E2M3FN = 15,
  PTC_FLOAT6_E3M2FN = 16,
  PTC_FLOAT4_E2M1FN = 17,
  /* Not of DLPack: elements that hold addresses. 128 bits each. */
  PTC_STRING = 200,  /* ptc_string */
  PTC_SEQUENCE = 201 /* ptc_sequence, in a tensor of rank 0 */
};

typedef struct ptc_dtype {
  uint8_t code;   /* PTC_INT, ... */
  uint8_t bits;   /* of one element; below 8: packed, first element in the low bits */
  uint16_t lanes; /* 1 */
} ptc_dtype;

enum { PTC_CPU = 1, PTC_CUDA = 2, PTC_CUDA_HOST = 3, PTC_CUDA_MANAGED = 13 };

typedef struct ptc_device {
  int32_t type;
  int32_t id;
} ptc_device;

typedef struct ptc_tensor {
  void *data;
  ptc_device device;
  int32_t rank;
  ptc_dtype dtype;
  int64_t *shape;       /* rank extents */
  int64_t *strides;     /* in elements; NULL: dense row-major, which is also all that is accepted */
  uint64_t byte_offset; /* added to data */
} ptc_tensor;

/* An element of a tensor of strings: any bytes, UTF-8 by convention. `data` may be NULL where there are none.
 * Inputs must stay as they are during the run. Of an output the caller owns the array of views alone; the run writes
 * the views, and the bytes that they show lie in the context, in an input, or in the library. Those in the context stay
 * until its next run or its end. */
typedef struct ptc_string {
  const char *data;
  int64_t bytes;
} ptc_string;

/* A list of tensors; of an optional value, none or one. An input's tensors are described as all inputs are. Of an
 * output the caller owns the struct alone: the run fills it in, and tensors, shapes and elements lie where the bytes of
 * strings do. */
typedef struct ptc_sequence {
  int64_t count;
  ptc_tensor *tensors;
} ptc_sequence;

/* In C++ and in plain C there is no common type for these; the bits are what counts. */
typedef uint16_t ptc_float16;
typedef uint16_t ptc_bfloat16;
typedef uint8_t ptc_float8;
typedef uint8_t ptc_bool;

typedef struct ptc_model ptc_model; /* NAME_model */
typedef struct ptc_ctx ptc_ctx;     /* NAME_ctx */

/* ---- profiles ------------------------------------------------------------------------------------------------ */

enum {
  PTC_SPAN_RUN = 0,    /* a whole program: from the first launch's preparation to the last one's end */
  PTC_SPAN_LAUNCH = 1, /* one launch, as the calling thread sees it: handing out pieces and waiting included */
  PTC_SPAN_PIECE = 2   /* iterations [begin, end) of a launch on one thread */
};

/* What took how long. The strings belong to the library. */
typedef struct ptc_span {
  uint64_t begin_ns; /* of CLOCK_MONOTONIC */
  uint64_t end_ns;
  const ptc_ctx *ctx; /* the call's */
  const char *kernel; /* as in the manifest; of a run the variant that ran, "seq=128", NULL: the general one */
  const char *nodes;  /* the nodes of the source model that the launch computes; NULL for a run */
  int64_t begin;      /* iterations; 0 for a run */
  int64_t end;
  uint32_t kind;     /* PTC_SPAN_... */
  uint32_t function; /* index into ptc_model_table::functions */
  uint32_t launch;   /* number in the function's program; 0 for a run */
  uint32_t thread;   /* 0: the calling thread, else which of its helpers */
} ptc_span;

/* Where runs leave their spans: memory of the caller, to which all threads of all contexts of a model append in the
 * order of their ends. It must live as long as the model. Set `count` to 0 to begin anew, while no call runs. */
typedef struct ptc_profile {
  size_t span_size; /* sizeof(ptc_span): what a later, longer version of it appends is left out */
  ptc_span *spans;
  size_t capacity;
  size_t count; /* of spans that there were; those beyond the capacity are lost */
} ptc_profile;

/* ---- options of create -------------------------------------------------------------------------------------- */

/* Memory of contexts. Both functions may be called from any thread that creates, runs or destroys; allocate returns
 * NULL when there is none. `alignment` is a power of two, at most 4096. */
typedef struct ptc_allocator {
  void *(*allocate)(void *state, size_t bytes, size_t alignment);
  void (*release)(void *state, void *block, size_t bytes);
  void *state;
} ptc_allocator;

/* A thread pool of the host. parallel_for calls body(argument, i) once for every i in [0, count), on any threads and
 * in any order, and returns when all have returned. body never blocks on another index. Whichever index runs takes what
 * work is left: the others may come late. */
typedef struct ptc_thread_pool {
  void (*parallel_for)(void *state, size_t count, void (*body)(void *argument, size_t index), void *argument);
  void *state;
} ptc_thread_pool;

enum { PTC_LOG_WARNING = 1, PTC_LOG_INFO = 2 };

/* A value inside the model, as `ptc compile --tap` asked for it. Everything here is valid during the call alone. */
typedef struct ptc_tap {
  size_t struct_size;       /* of this struct: later versions append members */
  const char *node;         /* "layer3/conv2", "" if the node has no name */
  const char *op;           /* its operator, "Conv" */
  const char *output;       /* the value's name in the model */
  const char *kernel;       /* the kernel that wrote it, "" for what no kernel wrote (an input passed through) */
  const char *nodes;        /* all nodes of that launch, with commas: what the kernel was fused from */
  uint32_t launch;          /* which launch of the program, so that equal kernels are told apart; UINT32_MAX: none */
  uint32_t number;          /* place of the value in the order of the model's graph; rounds of a loop differ in it */
  const ptc_tensor *tensor; /* a view into the model's memory, read only. `strides` may be set, and negative; elements
                               below 8 bits lie one a byte and have the type int8 or uint8 */
} ptc_tap;

/* Zero-initialise it and set struct_size = sizeof(ptc_options); a later, longer version stays compatible with that.
 * NULL instead of an options pointer means all defaults. */
typedef struct ptc_options {
  size_t struct_size;
  char *error;           /* receives the sentence of a failed create, always terminated; may be NULL */
  size_t error_size;     /* bytes at `error` */
  uint32_t threads;      /* threads a run may use, the caller's included; 0: one per processor this process may use */
  int32_t device;        /* ordinal, for models compiled for a device; see device_type */
  const char *cpu_level; /* one of the model's levels, "x86-64-v3" or "sm_90a" say; NULL: the best there is here */
  const char *weights_path; /* where the weights file is; NULL: beside the library */
  ptc_allocator allocator;  /* allocate == NULL: the C library's */
  ptc_thread_pool pool;     /* parallel_for == NULL: the library's own pool */
  void (*log)(void *state, int32_t severity, const char *message); /* NULL: silent */
  void *log_state;
  ptc_profile *profile; /* NULL: nothing is timed, at the cost of a comparison a launch */
  /* Called by each run, on its thread and in the caller's floating-point mode, once for every tapped value, right after
   * the launch that wrote it: another kernel may reuse the memory next. NULL: taps cost the stores alone. It must not
   * use the run's context. */
  void (*tap)(void *state, const ptc_tap *tap);
  void *tap_state;
  /* Where libraries of operators of your own (ptc/custom_op.h) are looked for first; NULL: beside the model's library.
   */
  const char *custom_op_folder;
  /* What the model is to run on: PTC_CPU or PTC_CUDA. 0: what it was compiled for; of a library for both the device
   * where there is one that its code runs on, else this processor. A cpu_level that only one of them has decides, too,
   * and an ordinal other than 0 asks for a device. With PTC_CPU no driver is looked for. */
  int32_t device_type;
} ptc_options;

/* ---- what a model says about itself --------------------------------------------------------------------------- */

/* The extent is known only when the model has run: how many elements of a tensor are not 0, say. */
#define PTC_DIM_FOUND 1

/* An extent: a constant (extent >= 0), one symbol (symbol >= 0), or an expression of symbols (both -1). */
typedef struct ptc_dim {
  int64_t extent;
  int32_t symbol;
  uint32_t flags;   /* PTC_DIM_FOUND or 0 */
  const char *text; /* "3", "batch", "2 * batch + 1" */
} ptc_dim;

/* A symbolic extent: min <= value <= max and value % divisor == 0. `hint` is the value that sizes were tuned for. */
typedef struct ptc_symbol {
  const char *name;
  int64_t min;
  int64_t max; /* INT64_MAX: no limit */
  int64_t divisor;
  int64_t hint;
} ptc_symbol;

/* What a value is to the source model. */
enum {
  PTC_PLAIN = 0,    /* an input or output of its own */
  PTC_OPTIONAL = 1, /* a sequence that stands for a value which may be absent: it has at most one tensor */
  PTC_MAP_KEYS = 2, /* of the map NAME, `name` being "NAME.keys": [n], each key once */
  PTC_MAP_VALUES =
      3 /* of the map NAME, `name` being "NAME.values": [n]; of a list of maps with these keys: [maps, n] */
};

typedef struct ptc_value {
  const char *name;   /* as in the source model */
  const char *c_name; /* as in the header: parameters and dims */
  ptc_dtype dtype;
  int32_t rank;
  const ptc_dim *dims;
  int32_t alias; /* index of the output (input) that shares this input's (output's) buffer, or -1 */
  int32_t role;  /* PTC_PLAIN, ... */
  /* Of a sequence: what its tensors are, without names. An extent that is not the same in all of them is -1, as its
   * symbol is; a rank of -1: nor is the rank. Otherwise NULL. */
  const struct ptc_value *element;
} ptc_value;

typedef struct ptc_function {
  const char *name;
  uint32_t input_count;
  uint32_t output_count;
  const ptc_value *inputs;
  const ptc_value *outputs;
  uint32_t symbol_count; /* members of NAME_dims, in order */
  uint32_t guard_count;
  const ptc_symbol *symbols;
  const char *const *guards; /* "batch <= 64" */
} ptc_function;

typedef struct ptc_weight {
  const char *name;
  ptc_dtype dtype;
  int32_t rank;
  const int64_t *shape;
  uint64_t bytes; /* of the dense row-major tensor that set_weight takes */
} ptc_weight;

/* ---- the generic entry ---------------------------------------------------------------------------------------- */

/* The arguments of the table's run. Zero-initialise it and set struct_size = sizeof(ptc_call); with less the call is
 * refused, and last_error does not say so. */
typedef struct ptc_call {
  size_t struct_size;
  ptc_ctx *ctx;
  const ptc_tensor *inputs;
  ptc_tensor *outputs;
  void *workspace;
  void *stream;
  uint32_t function;
  uint32_t reserved; /* 0 */
} ptc_call;

/* `function` indexes `functions`. `inputs` and `outputs` are arrays of as many tensors as the function declares, in
 * its order. Element types, ranks, dims, devices and guards are checked on every call. */
typedef struct ptc_model_table {
  uint32_t struct_size; /* of this table */
  uint32_t abi_version; /* PTC_ABI_VERSION */
  const char *name;
  const char *compiler; /* "ptc 0.1.0" */
  uint32_t function_count;
  uint32_t level_count;
  const ptc_function *functions;
  const char *const *levels; /* CPU levels inside, lowest first */
  uint32_t weight_count;
  uint32_t reserved;
  const ptc_weight *weights;

  /* *model is the new model, or NULL on failure (sentence in options->error). Does no work on threads: a fork between
   * create and the first run is safe. */
  ptc_status (*create)(const ptc_options *options, ptc_model **model);
  void (*destroy)(ptc_model *model); /* NULL is allowed */
  ptc_status (*ctx_create)(const ptc_model *model, ptc_ctx **ctx);
  void (*ctx_destroy)(ptc_ctx *ctx); /* NULL is allowed */

  /* Bytes of workspace for a run on inputs of these shapes (only rank and shape are read); PTC_NO_SIZE if they do not
   * fit the model, with the sentence in last_error. */
  size_t (*workspace_size)(ptc_ctx *ctx, uint32_t function, const ptc_tensor *inputs);

  /* Writes the extents of output i to shapes[i], which has room for the output's rank. Of an extent that a run finds:
   * the most that it can be, or -1 where nothing bounds it. */
  ptc_status (*output_shapes)(ptc_ctx *ctx, uint32_t function, const ptc_tensor *inputs, int64_t *const *shapes);

  /* Makes every later run with no larger dims free of allocations, thread starts and first touches of weights, but for
   * outputs that a run allocates and for values inside the model whose size nothing bounds. */
  ptc_status (*warmup)(ptc_ctx *ctx, uint32_t function, const ptc_tensor *inputs);

  /* Outputs must have the shapes that output_shapes tells. The output of an alias pair is the input's buffer: its
   * `data` is that of the input, or NULL.
   * An output with an extent that the run finds (PTC_DIM_FOUND) may have `data` NULL: the run allocates it from the
   * options' allocator (64-byte aligned; its elements' bytes rounded up to a multiple of 64, at least 64; without an
   * allocator: free() it), and it is the caller's. Or `data` has room for `shape`, which must hold what the run finds.
   * Either way the run writes the extents to `shape`. A run that fails leaves `data` as it was. workspace: at least
   * workspace_size bytes, or NULL for the context's own memory. stream: NULL for CPUs.
   *
   * A model for a CUDA device takes tensors in host memory (copied in and out) and in the device's; what the run
   * allocates is host memory. stream: a CUstream of the device's primary context, (void *)1 for its legacy default
   * stream, or NULL for one of the context's own, which waits for no other. With NULL, or with a tensor in host memory,
   * results are there when run returns; else they are there when the stream has come so far, unless the model checks
   * indices or finds sizes, for which run waits. A later run of the context may be on another stream: it waits for
   * this one. A workspace is the device's memory. */
  ptc_status (*run)(ptc_ctx *ctx, uint32_t function, const ptc_tensor *inputs, ptc_tensor *outputs, void *workspace,
                    void *stream);

  /* Replaces the weight `name` by a dense row-major tensor of exactly its bytes. */
  ptc_status (*set_weight)(ptc_model *model, const char *name, const void *tensor, size_t bytes);

  /* The sentence of the last failed call on this context ("batch <= 64 is needed, but batch is 80 (dim 0 of input
   * 'x')"), "" if none. Valid until the next call on the context. */
  const char *(*last_error)(const ptc_ctx *ctx);

  const char *(*cpu_level)(const ptc_model *model); /* the level that was chosen */
  uint32_t (*threads)(const ptc_model *model);      /* the number of threads a run may use */

  /* run with these arguments, which are read anew in each call: a struct that is filled once may be called many times.
   * For languages that convert arguments one by one, which takes longer than a small model. A table whose struct_size
   * ends before it (of an earlier compiler) has none. */
  ptc_status (*run_call)(const ptc_call *call);
} ptc_model_table;

#ifdef __cplusplus
}
#endif
#endif /* PTC_ABI_H */
