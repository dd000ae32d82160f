/* What generated code and the runtime say to each other. Private to a library: both sides are linked together, always
 * from the same version of ptc, and nothing of this is exported.
 *
 * The compiler emits one constant `ptc_rt_descriptor` per target of the model (only RELATIVE relocations; they share
 * the public table and the weights), one program function per target, function and variant, one kernel function per
 * kernel and CPU level, and thin typed entry functions that pass the descriptor on to ptc_rt_create and the other
 * functions at the end of this file.
 */
#ifndef PTC_DESCRIPTOR_H
#define PTC_DESCRIPTOR_H

#include "abi.h"
#include "custom_op.h"

#define PTC_RT_VERSION 7

/* One call of run. Generated code may read the members named here, and passes the pointer on. */
typedef struct ptc_rt_call {
  const char *weights;   /* base of the weights, 4096-aligned; where launches run on a device, there */
  char *const *blocks;   /* memory of the context's that grew to what ptc_rt_grow was asked for, by slot */
  const char *constants; /* where launches run on a device: ptc_rt_device_code::constants, there */
  /* The host's side of a program for a device: what ptc_rt_variant::places tells of the arguments, and an arena as
   * large as the device's; NULL where nothing runs on the host. */
  char *host_arena;
  void *const *host_arguments;
  const char *host_weights;
  char *const *host_blocks; /* that grew by ptc_rt_cuda_grow_host */
} ptc_rt_call;

/* Iterations [begin, end) of the kernel's flattened parallel space. `buffers` are in the order of the kernel's buffer
 * arguments, `symbols` in the order of its symbols. `scratch` is this thread's alone, 64-byte aligned. Returns 0 or a
 * fault. */
typedef int32_t ptc_rt_kernel(void *const *buffers, const int64_t *symbols, int64_t begin, int64_t end, void *scratch);

/* Faults: what kernels, launches and programs return when it is not 0. */
enum {
  PTC_RT_FAULT_INDEX = 1,    /* an index out of range */
  PTC_RT_FAULT_GUARD = 2,    /* ptc_rt_fail has written the sentence */
  PTC_RT_FAULT_MEMORY = 3,   /* memory that grows inside a run could not */
  PTC_RT_FAULT_OUTPUT = 4,   /* an output that the caller gave has no room for what the run found */
  PTC_RT_FAULT_VALUE = 5,    /* a value that an operator is not defined for; the sentence is written */
  PTC_RT_FAULT_DEVICE = 6,   /* the device's driver refused; the sentence is written */
  PTC_RT_FAULT_INTERNAL = 7, /* more parameters than a launch can have */
  PTC_RT_FAULT_CUSTOM = 8,   /* an operator of the user's own failed; the sentence is written */
};

/* Processor features that a level needs, beyond the baseline of its architecture. The runtime also requires that the
 * operating system saves the registers they use. */
enum {
  PTC_RT_X86_V2 = 1u << 0, /* CMPXCHG16B, LAHF, POPCNT, SSE3, SSE4.1, SSE4.2, SSSE3 */
  PTC_RT_X86_V3 = 1u << 1, /* AVX, AVX2, BMI1, BMI2, F16C, FMA, LZCNT, MOVBE */
  PTC_RT_X86_V4 = 1u << 2, /* AVX512 F, BW, CD, DQ, VL */
  PTC_RT_X86_AVX_VNNI = 1u << 3,
  PTC_RT_X86_AVX512_VNNI = 1u << 4,
  PTC_RT_X86_AVX512_BF16 = 1u << 5,
  PTC_RT_X86_AVX512_FP16 = 1u << 6,
  PTC_RT_X86_AMX_TILE = 1u << 7,
  PTC_RT_X86_AMX_INT8 = 1u << 8,
  PTC_RT_X86_AMX_BF16 = 1u << 9,
  PTC_RT_X86_AVX512_VBMI = 1u << 10,
  PTC_RT_X86_SSE4A = 1u << 11, /* of AMD alone */
  PTC_RT_ARM_DOTPROD = 1u << 16,
  PTC_RT_ARM_FP16 = 1u << 17,
  PTC_RT_ARM_I8MM = 1u << 18,
  PTC_RT_ARM_BF16 = 1u << 19,
  PTC_RT_ARM_SVE = 1u << 20,
};

/* What a level of a CUDA device needs: compute capability 9.0 is 90. */
enum {
  PTC_RT_CUDA_CAPABILITY = 0xffff, /* mask of the capability */
  PTC_RT_CUDA_EXACT = 1u << 16,    /* no other capability runs it ("sm_90a") */
};

/* Code of one kernel for a device, as the device's driver loads it: a cubin (ELF), or PTX, text that the driver
 * compiles for the device it finds. All kernels of a level are of one kind; one that runs on the host has no bytes. */
typedef struct ptc_rt_image {
  const char *bytes; /* PTX ends with a zero, which `size` counts */
  uint64_t size;
} ptc_rt_image;

typedef struct ptc_rt_level {
  const char *name;              /* "x86-64-v3", "sm_90a" */
  uint64_t features;             /* PTC_RT_X86_V3 | ..., or PTC_RT_CUDA_... */
  ptc_rt_kernel *const *kernels; /* kernel_count functions, NULL for a device; of the host's levels beside a device,
                                    NULL for each kernel that runs there */
  const ptc_rt_image *images;    /* kernel_count images, NULL for this processor */
} ptc_rt_level;

/* A tensor that a kernel's code copies box by box (the driver's CUtensorMap, rows of 128 bytes swizzled): what lies
 * behind the address of a buffer. Dims are innermost first; a stride is the distance of two elements in bytes.
 * Of an image (`axes` is not 0) dims are channels, axes, images, and a copy takes box[0] channels of box[1] pixels
 * (im2col): windows begin at every steps[i]-th position of axis i, from the first one plus lower[i] to the last one
 * plus upper[i]. */
enum { PTC_RT_CUDA_MAPS = 4, PTC_RT_CUDA_MAP_RANK = 5, PTC_RT_CUDA_MAP_AXES = 3 };
typedef struct ptc_rt_tensor_map {
  uint32_t buffer, rank;
  uint32_t element_bytes, axes;
  uint64_t offset; /* bytes */
  uint64_t extents[PTC_RT_CUDA_MAP_RANK];
  uint64_t strides[PTC_RT_CUDA_MAP_RANK];
  uint64_t box[PTC_RT_CUDA_MAP_RANK];
  int64_t lower[PTC_RT_CUDA_MAP_AXES], upper[PTC_RT_CUDA_MAP_AXES], steps[PTC_RT_CUDA_MAP_AXES];
} ptc_rt_tensor_map;

/* A matrix product that cuBLASLt may compute in the place of the kernel's code, where it is found and takes it:
 * result(b, m, n) = sum over k of lhs(b, m, k) * rhs(b, k, n), which is added up in f32; plus bias(n), if there is one;
 * then ReLU, if asked for. A matrix's lines lie along k (of lhs and rhs, if along_k), else along m of lhs and along n
 * of the others; elements of a line are neighbours. */
enum { PTC_RT_F32, PTC_RT_F16, PTC_RT_BF16 };
typedef struct ptc_rt_matrix {
  uint32_t buffer, along_k;
  uint64_t offset;              /* bytes, a multiple of 16 */
  uint64_t pitch, batch_stride; /* elements from line to line, from matrix to matrix */
} ptc_rt_matrix;
typedef struct ptc_rt_product {
  uint32_t type, result_type; /* of lhs and rhs; of result and bias */
  uint32_t has_bias, has_relu;
  uint64_t batch, m, n, k;
  uint64_t workspace; /* bytes, of the launch's scratch */
  ptc_rt_matrix lhs, rhs, result, bias;
} ptc_rt_product;

/* A convolution that cuDNN may compute there: result(i, g * o, p...) = sum over window w... and channels c of
 * input(i, g * c, p * steps + w * dilations - before...) * weights(g * o, c, w...), where there is such an input, and
 * 0 elsewhere; plus residual(i, g * o, p...) and bias(g * o), then ReLU, each if asked for. The groups g are as many as
 * input has times the channels of weights. `behind`: positions behind the input that windows reach. */
enum { PTC_RT_LIBRARY_AXES = 3, PTC_RT_OPERAND_RANK = 2 + PTC_RT_LIBRARY_AXES };
typedef struct ptc_rt_operand {
  uint32_t buffer, reserved;
  uint64_t offset;                                                    /* bytes, a multiple of 16 */
  int64_t extents[PTC_RT_OPERAND_RANK], strides[PTC_RT_OPERAND_RANK]; /* elements; images (columns), channels, axes */
} ptc_rt_operand;
typedef struct ptc_rt_convolution {
  uint32_t type, result_type;                      /* of input and weights; of the others */
  uint32_t has_bias, has_residual, has_relu, axes; /* axes: 2 or 3 */
  uint64_t workspace;
  int64_t steps[PTC_RT_LIBRARY_AXES], dilations[PTC_RT_LIBRARY_AXES];
  int64_t before[PTC_RT_LIBRARY_AXES], behind[PTC_RT_LIBRARY_AXES];
  ptc_rt_operand input, weights, result, residual;
  ptc_rt_matrix bias; /* of one line */
} ptc_rt_convolution;

/* Files of NVIDIA's libraries that may take a kernel's place, the newest first: of those whose interface is known. */
#define PTC_RT_CUBLASLT_FILES "libcublasLt.so.13", "libcublasLt.so.12"
#define PTC_RT_CUDNN_FILES "libcudnn.so.9"

/* How a kernel is launched on a CUDA device: blocks of (threads, rows, 1), one a launch's iteration; where `blocks` is
 * not 0, so many instead, but no more than `together` for each multiprocessor of the device: they share the work.
 * Parameters: the buffers' addresses (multiples of 16), the symbols as int64, then the addresses of a 4-byte word that
 * becomes 1 if an index is out of range, of the launch's scratch, and of PTC_RT_CUDA_COUNTERS words that are zero when
 * the launch begins and when it ends, each only where the kernel has it; then the maps. `shared_bytes`: of a block's
 * shared memory, beside what the code declares. */
enum { PTC_RT_CUDA_COUNTERS = 1024 };
typedef struct ptc_rt_device_kernel {
  uint32_t threads, rows;
  uint32_t buffer_count, symbol_count;
  uint8_t checks_indices, has_scratch, has_counters, map_count;
  uint32_t shared_bytes;
  uint32_t blocks, together;
  const ptc_rt_tensor_map *maps; /* map_count, at most PTC_RT_CUDA_MAPS */
  const ptc_rt_product *product; /* what a library may compute instead; both NULL: nothing */
  const ptc_rt_convolution *convolution;
  const char *entry; /* its name in the code */
} ptc_rt_device_kernel;

/* Devices whose drivers the runtime knows. */
typedef struct ptc_rt_device ptc_rt_device;
extern const ptc_rt_device ptc_rt_device_cuda;

typedef struct ptc_rt_device_code {
  const ptc_rt_device *device;
  const ptc_rt_device_kernel *kernels; /* kernel_count for each level, in the order of levels */
  const char *constants;               /* copied to the device by create */
  uint64_t constant_bytes;
  uint32_t records_graphs; /* the launches of a run are recorded once and replayed */
  uint32_t reserved;
} ptc_rt_device_code;

/* A launch or call of a program: the kernel it runs, and the user's nodes for error sentences and profiles. */
typedef struct ptc_rt_launch_site {
  uint32_t kernel; /* UINT32_MAX: a call */
  uint32_t custom; /* of a call of an operator of the user's own: the node, in ptc_rt_custom_code */
  const char *nodes;
  uint32_t copies; /* 1: each call of the kernel copies operands for its iterations, so a participant has one piece */
} ptc_rt_launch_site;

/* A value that the program shows to an observer. */
typedef struct ptc_rt_tap_site {
  const char *node, *op, *output;
  ptc_dtype dtype;
  uint32_t rank;
  uint32_t number;
  uint32_t launch; /* the launch site that wrote it; UINT32_MAX: none */
} ptc_rt_tap_site;

typedef struct ptc_rt_guard {
  const char *text;  /* "batch <= 64" */
  const char *nodes; /* that need it; NULL: none of the model's */
  uint32_t symbol_count;
  uint32_t reserved;
  const uint32_t *symbols; /* whose values the sentence shows */
} ptc_rt_guard;

/* A symbol that the program binds while it runs: its place is behind the function's own symbols. */
typedef struct ptc_rt_bound_symbol {
  const char *name;
  const char *nodes; /* whose size it is */
} ptc_rt_bound_symbol;

/* In which memories a program for a device uses an argument: ON_BOTH is on the device, with a mirror on the host. */
enum { PTC_RT_ON_DEVICE = 1, PTC_RT_ON_HOST = 2, PTC_RT_ON_BOTH = 3 };

/* A program compiled for dims that satisfy its guards. Symbols are those of the function, in its order. */
typedef struct ptc_rt_variant {
  const char *name; /* "batch=1,seq=128"; "" of the general one */

  /* Runs the model. `arguments` are the inputs, then the outputs (an alias pair has the same pointer in both places; an
   * output that ptc_rt_output is called for may be NULL until then). `symbols` has room for those that the program
   * binds. `arena` is 4096-aligned and has arena_bytes(symbols) bytes. Returns 0 or a fault. */
  int32_t (*program)(ptc_rt_call *call, int64_t *symbols, void *const *arguments, char *arena);

  int64_t (*arena_bytes)(const int64_t *symbols);   /* -1: does not fit 63 bits */
  int64_t (*scratch_bytes)(const int64_t *symbols); /* of one thread, the most of all launches; NULL: none */
  int32_t (*guard)(const int64_t *symbols);         /* index of the first guard that fails, or -1; NULL: none */
  const ptc_rt_guard *guards;
  const ptc_rt_launch_site *launches;
  uint32_t guard_count;
  uint32_t launch_count;
  const ptc_rt_tap_site *taps;
  uint32_t tap_count;
  uint32_t block_count; /* slots of memory that grows */
  const ptc_rt_bound_symbol *bound;
  uint32_t bound_count;
  uint32_t inner_guard_count; /* the last of `guards`, which the program checks itself */
  const int64_t *pins;        /* the only value of each symbol, -1 of those that are free; NULL: all are */
  /* Of a program for a device that does something on the host: PTC_RT_ON_..., of each argument; NULL: of others. */
  const uint8_t *places;
} ptc_rt_variant;

typedef struct ptc_rt_function {
  const ptc_function *interface;  /* entry i of the public table */
  const ptc_rt_variant *variants; /* in order of preference; the most general last, which has no pins */
  uint32_t variant_count;
  uint32_t reserved;
  /* All extents of all inputs / outputs as the symbols say; shapes[i] has room for the value's rank. input_shapes is
   * NULL when every input dim is a constant or one symbol. Of an output whose dims the program learns: the most that
   * each can be, -1 where nothing bounds it. */
  void (*input_shapes)(const int64_t *symbols, int64_t *const *shapes);
  void (*output_shapes)(const int64_t *symbols, int64_t *const *shapes);
} ptc_rt_function;

/* How a stored form is gathered from a dense row-major tensor: over `extents`, row-major,
 *   stored[e0, e1, ...] = tensor[offset + sum of e_i * strides[i]]
 * With panels, dim `lane` continues dim `panel`: elements with e_panel * extents[lane] + e_lane >= limit stay as they
 * are, zero. With a transform (a matrix of so many rows and columns) the outermost dims, one to three, whose extent is
 * the number of columns, each become as many as there are rows: stored = matrix * gathered (* matrix transposed), of
 * floats, summed in double. Of three dims the outermost one has a matrix of its own, behind the other: depth_rows by 3.
 */
#define PTC_RT_RECIPE_DIMS 16
#define PTC_RT_TRANSFORM_ROWS 9
#define PTC_RT_TRANSFORM_COLUMNS 7
typedef struct ptc_rt_recipe {
  uint32_t rank; /* at most PTC_RT_RECIPE_DIMS */
  uint32_t element_bytes;
  int64_t offset; /* in elements, as strides are */
  const int64_t *extents;
  const int64_t *strides;
  int32_t panel; /* -1: no panels */
  int32_t lane;
  int64_t limit;
  const double *transform;    /* row-major; NULL: none */
  uint32_t transform_rows;    /* at most PTC_RT_TRANSFORM_ROWS */
  uint32_t transform_columns; /* at most PTC_RT_TRANSFORM_COLUMNS */
  uint32_t transform_dims;    /* 1, 2 or 3 */
  uint32_t depth_rows;        /* of 3 dims */
} ptc_rt_recipe;

/* To what the floats of a tensor are rounded where they are stored. */
enum { PTC_RT_NARROWS_NOT = 0, PTC_RT_NARROWS_TO_F16 = 1, PTC_RT_NARROWS_TO_BF16 = 2 };

/* One form in which kernels read a weight: `bytes` at weights + offset; recipe NULL: the dense tensor itself. */
typedef struct ptc_rt_stored_form {
  uint64_t offset;
  uint64_t bytes;
  const ptc_rt_recipe *recipe;
  uint32_t narrows; /* PTC_RT_NARROWS_..., of a tensor of f32 */
  uint32_t reserved;
} ptc_rt_stored_form;

/* A weight that can be replaced, and all forms in which it is stored. */
typedef struct ptc_rt_weight {
  const ptc_rt_stored_form *forms;
  uint32_t form_count;
  uint32_t reserved;
} ptc_rt_weight;

/* An operator of the user's own: the library as create looks for it, and the ptc_custom_op in it. */
typedef struct ptc_rt_custom_op {
  const char *library;
  const char *symbol;
} ptc_rt_custom_op;

/* An input or output of a node that uses one. */
typedef struct ptc_rt_custom_value {
  ptc_dtype dtype;
  int32_t rank; /* -1: absent */
} ptc_rt_custom_value;

typedef struct ptc_rt_custom_node {
  ptc_custom_node node;
  const ptc_rt_custom_value *inputs;
  const ptc_rt_custom_value *outputs;
  uint32_t op; /* index into ptc_rt_custom_code::ops */
  uint32_t reserved;
} ptc_rt_custom_node;

typedef struct ptc_rt_custom_runtime ptc_rt_custom_runtime;
extern const ptc_rt_custom_runtime
    ptc_rt_custom; /* named by the descriptor, so that other libraries have nothing of it */

typedef struct ptc_rt_custom_code {
  const ptc_rt_custom_runtime *runtime;
  const ptc_rt_custom_op *ops;
  const ptc_rt_custom_node *nodes;
  uint32_t op_count;
  uint32_t node_count;
} ptc_rt_custom_code;

enum { PTC_RT_WEIGHTS_ABSENT = 0, PTC_RT_WEIGHTS_EMBEDDED = 1, PTC_RT_WEIGHTS_FILE = 2 };

typedef struct ptc_rt_weights {
  uint32_t place; /* PTC_RT_WEIGHTS_...; ABSENT: zeros until set_weight */
  uint32_t reserved;
  uint64_t bytes;        /* of all targets; 0: the model has none */
  const char *embedded;  /* the section, when EMBEDDED */
  const char *file_name; /* without folder, when FILE */
  uint64_t begin, end;   /* of them, those that this descriptor's kernels read */
  const uint8_t *digest; /* 32 bytes, filled in at link: BLAKE3 of the BLAKE3s of the stored bytes in MiB blocks */
  const ptc_rt_weight *weights; /* parallel to ptc_model_table::weights */
} ptc_rt_weights;

/* From so many bytes on weights lie on huge pages, if the system has any for a file that is mapped: they are more than
 * the processor's tables of pages reach, and at each page that these miss a stream from memory stops. */
#define PTC_RT_WEIGHTS_HUGE ((size_t)32 << 20)
#define PTC_RT_HUGE_PAGE ((size_t)2 << 20)

/* Weights file: this header, zeros up to 4096 bytes, then the stored bytes. */
#define PTC_RT_WEIGHTS_MAGIC "PTCWGT1\n"
#define PTC_RT_WEIGHTS_START 4096
typedef struct ptc_rt_weights_header {
  char magic[8];
  uint64_t bytes; /* of the weights, without the first 4096 */
  uint8_t digest[32];
} ptc_rt_weights_header;

/* How parallel launches run. The descriptor names one of the three below, so that the linker drops the others. */
typedef struct ptc_rt_threading ptc_rt_threading;
extern const ptc_rt_threading ptc_rt_threading_pool;   /* the library's own threads */
extern const ptc_rt_threading ptc_rt_threading_openmp; /* the OpenMP runtime of the process (libgomp.so.1) */
extern const ptc_rt_threading ptc_rt_threading_none;   /* the calling thread only */

typedef struct ptc_rt_descriptor {
  uint32_t version; /* PTC_RT_VERSION */
  uint32_t function_count;
  uint32_t level_count;
  uint32_t kernel_count;
  const ptc_model_table *table;
  const ptc_rt_function *functions;
  const ptc_rt_level *levels; /* lowest first; table->levels are those of all targets */
  const char *const *kernel_names;
  const ptc_rt_threading *threading;
  /* Functions of other libraries that `threading` calls, so that the linker asks for those libraries (the runtime's own
   * references are weak); NULL: none. */
  const void *const *required;
  ptc_rt_weights weights;
  const ptc_rt_device_code *device_code; /* NULL: kernels run on this processor */
  const ptc_rt_custom_code *custom_code; /* NULL: no operators of the user's own */
  const struct ptc_rt_descriptor *next;  /* the same model for the library's next target; NULL: there is none */
  /* Beside a device: the processor's levels, lowest first, for kernels that run on the host; none: there are none. */
  const ptc_rt_level *host_levels;
  uint32_t host_level_count;
  uint32_t reserved;
} ptc_rt_descriptor;

/* ---- called by programs ----------------------------------------------------------------------------------------- */

/* Runs launch site `site` of the variant over [0, iterations), in pieces of at least `grain` iterations spread over the
 * threads of the call; scratch_bytes is what each thread's scratch must hold. Returns the first fault, or 0. */
int32_t ptc_rt_launch(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *symbols,
                      int64_t iterations, int64_t grain, int64_t scratch_bytes);

/* The same for iterations of which `phase` at a time are independent: the first `phase` of them, then the next. */
int32_t ptc_rt_launch_phases(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *symbols,
                             int64_t iterations, int64_t phase, int64_t grain, int64_t scratch_bytes);

/* Launches that do not depend on each other, as one parallel loop: at most PTC_RT_MOST_JOINED of them. Their arguments
 * are those of ptc_rt_launch. Returns the fault of the first that has one. */
typedef struct ptc_rt_part {
  void *const *buffers;
  const int64_t *symbols;
  int64_t iterations, grain, scratch_bytes;
  uint32_t site;
} ptc_rt_part;
enum { PTC_RT_MOST_JOINED = 16 };
int32_t ptc_rt_launch_joined(ptc_rt_call *call, const ptc_rt_part *parts, uint32_t count);

/* Shows the value of tap `tap` of the variant to the model's observer, if there is one. `shape` has its extents, then
 * its strides in elements; `value` is its first element. */
void ptc_rt_tap(ptc_rt_call *call, uint32_t tap, void *value, int64_t *shape);

/* Functions that programs call besides kernels: `buffers` are what is read, then what is written, `numbers` sizes and
 * settings. ir/prim/PrimCalls.def lists them, ptc_rt_<name>, and says what they mean. Elements of 128 bits at the ABI
 * are handles inside, 8 bytes: the address of a ptc_string, or NULL for the empty one; of a sequence, NULL for the
 * empty one. */
typedef int32_t ptc_rt_function_called(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers);

/* Calls `function` as site `site` of the variant; returns 0 or a fault. */
int32_t ptc_rt_invoke(ptc_rt_call *call, uint32_t site, ptc_rt_function_called *function, void *const *buffers,
                      const int64_t *numbers);

/* Handles of input `input` in `target`; views or sequences of handles for output `output`, which lie at the beginning
 * of the same memory, or elsewhere. All return 0 or a fault. */
int32_t ptc_rt_open_strings(ptc_rt_call *call, uint32_t input, void *target, const void *views, int64_t count);
int32_t ptc_rt_close_strings(ptc_rt_call *call, uint32_t output, void *views, const void *handles, int64_t count);
int32_t ptc_rt_open_sequence(ptc_rt_call *call, uint32_t input, void *target, const void *sequence, int64_t count);
int32_t ptc_rt_close_sequence(ptc_rt_call *call, uint32_t output, void *sequence, const void *handle, int64_t count);

/* Copies between buffers that do not overlap (or are the same). */
void ptc_rt_copy(void *target, const void *source, int64_t bytes);

/* Elements of 2 or 4 bits lie packed at the ABI, the first in the low bits, and one a byte (the upper bits zero)
 * inside. Both copy `count` elements. */
void ptc_rt_unpack(uint8_t *target, const uint8_t *packed, int64_t count, int32_t bits);
void ptc_rt_pack(uint8_t *packed, const uint8_t *source, int64_t count, int32_t bits);

/* A check inside the program failed: guard `index` of the variant. Returns PTC_RT_FAULT_GUARD. */
int32_t ptc_rt_fail(ptc_rt_call *call, uint32_t index);

/* Gives the variant's bound symbol `index` its value, if that is in [least, most]. Returns 0 or PTC_RT_FAULT_GUARD. */
int32_t ptc_rt_bind_symbol(ptc_rt_call *call, uint32_t index, int64_t value, int64_t least, int64_t most);

/* Makes block `slot` hold at least so many bytes (-1: more than 63 bits hold); what was in it may be lost. Returns 0 or
 * PTC_RT_FAULT_MEMORY. */
int32_t ptc_rt_grow(ptc_rt_call *call, uint32_t slot, int64_t bytes);
/* The same; what was in it stays. */
int32_t ptc_rt_regrow(ptc_rt_call *call, uint32_t slot, int64_t bytes);

/* Says the dims of output `index`, whose rank `extents` has, and gives it memory if the caller gave none. Returns 0 or
 * a fault. */
int32_t ptc_rt_output(ptc_rt_call *call, uint32_t index, const int64_t *extents);

/* ---- the same for programs whose launches run on a CUDA device: buffers are addresses there ---------------------- */

/* Puts launch site `site` on the call's stream, `iterations` blocks; scratch_bytes for all of them. */
int32_t ptc_rt_cuda_launch(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *symbols,
                           int64_t iterations, int64_t grain, int64_t scratch_bytes);
int32_t ptc_rt_cuda_grow(ptc_rt_call *call, uint32_t slot, int64_t bytes);
int32_t ptc_rt_cuda_regrow(ptc_rt_call *call, uint32_t slot, int64_t bytes);
int32_t ptc_rt_cuda_output(ptc_rt_call *call, uint32_t index, const int64_t *extents);
int32_t ptc_rt_cuda_tap(ptc_rt_call *call, uint32_t tap, void *value, int64_t *shape);
int32_t ptc_rt_cuda_unpack(ptc_rt_call *call, void *target, const void *packed, int64_t count, int32_t bits);
int32_t ptc_rt_cuda_pack(ptc_rt_call *call, void *packed, const void *source, int64_t count, int32_t bits);

/* Waits for the launches before and copies `bytes` to the host. Returns 0 or a fault. */
int32_t ptc_rt_cuda_read(ptc_rt_call *call, void *target, const void *source, int64_t bytes);
/* Copies `bytes` to the device; the source may be written when it returns. */
int32_t ptc_rt_cuda_write(ptc_rt_call *call, void *target, const void *source, int64_t bytes);
/* ptc_rt_grow and ptc_rt_regrow of a slot's block on the host. */
int32_t ptc_rt_cuda_grow_host(ptc_rt_call *call, uint32_t slot, int64_t bytes);
int32_t ptc_rt_cuda_regrow_host(ptc_rt_call *call, uint32_t slot, int64_t bytes);

/* ---- called by the typed entry functions; `function` indexes the descriptor's functions ---------------------------
 */

/* Also installed in ptc_model_table (the tensor versions are below). `dims` are the function's symbols in order. */
ptc_status ptc_rt_create(const ptc_rt_descriptor *descriptor, const ptc_options *options, ptc_model **model);
void ptc_rt_destroy(ptc_model *model);
ptc_status ptc_rt_ctx_create(const ptc_model *model, ptc_ctx **ctx);
void ptc_rt_ctx_destroy(ptc_ctx *ctx);
size_t ptc_rt_workspace_size(const ptc_model *model, uint32_t function, const int64_t *dims);
ptc_status ptc_rt_output_shapes(const ptc_model *model, uint32_t function, const int64_t *dims, int64_t *const *shapes);
ptc_status ptc_rt_warmup(ptc_ctx *ctx, uint32_t function, const int64_t *dims);
/* `arguments`: inputs, then the outputs that are no alias of an input; of an output with an extent that the run finds
 * the address of its pointer (ptc_tensor::data says what may stand there; room for what output_shapes tells), then
 * its shape. */
ptc_status ptc_rt_run(ptc_ctx *ctx, uint32_t function, const int64_t *dims, void *const *arguments, void *workspace,
                      void *stream);
ptc_status ptc_rt_set_weight(ptc_model *model, const char *name, const void *tensor, size_t bytes);
const char *ptc_rt_last_error(const ptc_ctx *ctx);

/* The remaining entries of ptc_model_table. */
size_t ptc_rt_tensor_workspace_size(ptc_ctx *ctx, uint32_t function, const ptc_tensor *inputs);
ptc_status ptc_rt_tensor_output_shapes(ptc_ctx *ctx, uint32_t function, const ptc_tensor *inputs,
                                       int64_t *const *shapes);
ptc_status ptc_rt_tensor_warmup(ptc_ctx *ctx, uint32_t function, const ptc_tensor *inputs);
ptc_status ptc_rt_tensor_run(ptc_ctx *ctx, uint32_t function, const ptc_tensor *inputs, ptc_tensor *outputs,
                             void *workspace, void *stream);
ptc_status ptc_rt_tensor_run_call(const ptc_call *call);
const char *ptc_rt_cpu_level(const ptc_model *model);
uint32_t ptc_rt_threads(const ptc_model *model);

#endif /* PTC_DESCRIPTOR_H */
