/* Operators of your own: what a library holds that `ptc compile --custom-op DOMAIN.OP=LIBRARY:SYMBOL` names.
 *
 * SYMBOL is an exported constant of type ptc_custom_op, a table of functions:
 *
 *   infer     types and dims of the outputs. Called when a model is compiled.
 *   run       computes the outputs. Called by each run of the model, for each node.
 *   measure   for operators whose sizes depend on values: says them, in each run, before `run`. May be NULL.
 *   create    once for each node, when a model is created: what `run` finds in `state`. May be NULL.
 *   destroy   undoes create, when the model is destroyed. May be NULL.
 *
 * The library needs nothing of ptc but this header. Its functions see values as they lie in the model's memory: dense,
 * row-major, on the processor.
 *
 * Dims are texts, so that one function serves sizes that are known when the model is compiled and sizes that a call
 * chooses: infer is given "3", "batch" or a name for a longer expression, and answers with expressions of what it was
 * given, "2 * batch + 1". The language: integers, names, + - *, floordiv(a, b), ceildiv(a, b), mod(a, b), min(a, b),
 * max(a, b), lt(a, b), eq(a, b), select(condition, a, b). A dim that depends on values is "?", or "<= EXPRESSION" where
 * it has a bound, for which memory is planned then; measure says what it is.
 *
 * Promises. An operator is a function of its inputs and attributes: equal calls may be made once, and a call whose
 * results nobody needs not at all. `run` and `measure` are called on the thread that runs the model, never twice at a
 * time for one run, but at the same time by runs of several contexts, with the same `state`; parallel_for uses the
 * threads of the run, and results should not depend on their number. The floating-point mode is the default one. Inputs
 * must not be written, and no pointer of a call be kept after it. A status that is not PTC_OK ends the run (or the
 * create, or the compilation) with the sentence in `error`; C++ exceptions must not leave the functions.
 */
#ifndef PTC_CUSTOM_OP_H
#define PTC_CUSTOM_OP_H

#include "abi.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PTC_CUSTOM_OP_VERSION 1
#define PTC_CUSTOM_OP_MAX_RANK 16
#define PTC_CUSTOM_OP_DIM_SIZE 256

/* What `values` of an attribute points at. */
enum {
  PTC_ATTRIBUTE_INTS = 1,    /* int64_t */
  PTC_ATTRIBUTE_FLOATS = 2,  /* float */
  PTC_ATTRIBUTE_STRINGS = 3, /* ptc_string, each followed by a zero byte that `bytes` does not count */
  PTC_ATTRIBUTE_TENSORS = 4  /* ptc_tensor */
};

typedef struct ptc_custom_attribute {
  const char *name;
  uint32_t kind;    /* PTC_ATTRIBUTE_... */
  uint32_t is_list; /* 0: the model gives one value (count is 1); 1: a list */
  int64_t count;
  const void *values;
} ptc_custom_attribute;

/* A node of the model. */
typedef struct ptc_custom_node {
  const char *name; /* the node's; "" if it has none */
  const char *domain;
  const char *op;
  int64_t version; /* of the domain's operators, as the model imports them */
  uint32_t input_count;
  uint32_t output_count;
  uint32_t attribute_count;
  uint32_t reserved;
  const ptc_custom_attribute *attributes;
} ptc_custom_node;

/* An input or output for infer. */
typedef struct ptc_custom_type {
  ptc_dtype dtype;
  int32_t rank;     /* -1: absent */
  const void *data; /* of an input: the elements, where the model fixes them and they have 4 KB at most; else NULL */
  char dims[PTC_CUSTOM_OP_MAX_RANK][PTC_CUSTOM_OP_DIM_SIZE];
} ptc_custom_type;

/* One call of run or measure. */
typedef struct ptc_custom_call ptc_custom_call;
struct ptc_custom_call {
  size_t struct_size; /* of this struct: later versions append members */
  const ptc_custom_node *node;
  void *state; /* create's */
  /* As many as the node has. One that is absent has a rank of -1. In measure, outputs have no data, and -1 where an
   * extent is open: that is where it goes. */
  const ptc_tensor *inputs;
  ptc_tensor *outputs;
  /* What measure leaves here, run finds: work that need not be done twice. It should lie in memory of `allocate`. */
  void **kept;
  char *error; /* the sentence of a failure, without the node's name */
  size_t error_size;
  /* Memory that lives until the run ends, and for strings until the context's next run; 64-byte aligned. Not to be
   * called inside of parallel_for. NULL if there is none. */
  void *(*allocate)(const ptc_custom_call *call, size_t bytes);
  /* Calls body(argument, i) for every i in [0, count) on the threads of the run, in any order. */
  void (*parallel_for)(const ptc_custom_call *call, int64_t count, void (*body)(void *argument, int64_t index),
                       void *argument);
  void *reserved; /* the runtime's own */
};

typedef struct ptc_custom_op {
  uint32_t struct_size; /* sizeof(ptc_custom_op) */
  uint32_t version;     /* PTC_CUSTOM_OP_VERSION */
  ptc_status (*infer)(const ptc_custom_node *node, const ptc_custom_type *inputs, ptc_custom_type *outputs, char *error,
                      size_t error_size);
  ptc_status (*run)(const ptc_custom_call *call);
  ptc_status (*measure)(const ptc_custom_call *call);
  ptc_status (*create)(const ptc_custom_node *node, void **state, char *error, size_t error_size);
  void (*destroy)(void *state);
} ptc_custom_op;

/* ---- for infer and run ------------------------------------------------------------------------------------------ */

/* The attribute of this name and kind, or NULL. */
static inline const ptc_custom_attribute *ptc_find_attribute(const ptc_custom_node *node, const char *name,
                                                             uint32_t kind) {
  for (uint32_t i = 0; i < node->attribute_count; i++)
    if (node->attributes[i].kind == kind && strcmp(node->attributes[i].name, name) == 0)
      return &node->attributes[i];
  return 0;
}

static inline int64_t ptc_int_attribute(const ptc_custom_node *node, const char *name, int64_t otherwise) {
  const ptc_custom_attribute *found = ptc_find_attribute(node, name, PTC_ATTRIBUTE_INTS);
  return found && found->count > 0 ? *(const int64_t *)found->values : otherwise;
}

static inline float ptc_float_attribute(const ptc_custom_node *node, const char *name, float otherwise) {
  const ptc_custom_attribute *found = ptc_find_attribute(node, name, PTC_ATTRIBUTE_FLOATS);
  return found && found->count > 0 ? *(const float *)found->values : otherwise;
}

static inline const char *ptc_text_attribute(const ptc_custom_node *node, const char *name, const char *otherwise) {
  const ptc_custom_attribute *found = ptc_find_attribute(node, name, PTC_ATTRIBUTE_STRINGS);
  return found && found->count > 0 ? ((const ptc_string *)found->values)->data : otherwise;
}

/* Says type and rank of an output; its dims are to be written. */
static inline void ptc_set_type(ptc_custom_type *output, ptc_dtype dtype, int32_t rank) {
  output->dtype = dtype;
  output->rank = rank;
}

/* The output is what the input is, but for the values. */
static inline void ptc_set_same_type(ptc_custom_type *output, const ptc_custom_type *input) {
  ptc_set_type(output, input->dtype, input->rank);
  memcpy(output->dims, input->dims, sizeof(output->dims));
}

/* Says a dim, as printf does: ptc_set_dim(&outputs[0], 1, "floordiv(%s, 2)", inputs[0].dims[1]). */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static inline void ptc_set_dim(ptc_custom_type *output, int32_t axis, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(output->dims[axis], PTC_CUSTOM_OP_DIM_SIZE, format, arguments);
  va_end(arguments);
}

static inline int64_t ptc_count_elements(const ptc_tensor *tensor) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < tensor->rank; axis++)
    count *= tensor->shape[axis];
  return count;
}

#ifdef __cplusplus
}
#endif

#endif /* PTC_CUSTOM_OP_H */
