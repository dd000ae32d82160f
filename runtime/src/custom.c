/* Operators of the user's own: their libraries, and calls of their functions (ptc/custom_op.h).
 *
 * A library that was named by an absolute path is that file, or, where there is none, one of that name in the places
 * below. Any other name says a file: in the folder of the options, else beside the model's library; else where the
 * loader looks (RUNPATH, LD_LIBRARY_PATH, the system's folders). Never in the current folder.
 *
 * Values go in and out as the ABI has them. Inside, elements below 8 bits lie one a byte and strings are handles: such
 * values are converted in memory of the run, all others are passed as they lie.
 */
#define _GNU_SOURCE
#include "runtime.h"
#include "sequences.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SENTENCE_SIZE = PTC_RT_ERROR_SIZE / 2 };

typedef struct custom_ops {
  void **libraries; /* of each operator */
  const ptc_custom_op **ops;
  void **states; /* of each node */
  uint32_t created;
} custom_ops;

static ptc_status fail(const ptc_options *options, const char *format, const char *what, const char *name,
                       const char *why) {
  if (options->error && options->error_size > 0)
    snprintf(options->error, options->error_size, format, what, name, why);
  return PTC_CUSTOM_OP_FAILED;
}

/* ---- libraries ---- */

static const char *file_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool is_file(const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file >= 0)
    close(file);
  return file >= 0;
}

/* Where the library is; the bare name, for the loader, if it is in none of the places that are ptc's to look in. */
static const char *find_library(const char *name, const ptc_options *options, char *path, size_t size) {
  const char *file = file_of(name);
  if (options->custom_op_folder && snprintf(path, size, "%s/%s", options->custom_op_folder, file) < (int)size &&
      is_file(path))
    return path;
  if (name[0] == '/' && is_file(name))
    return name;
  if (ptc_rt_path_beside(file, path, size) && is_file(path))
    return path;
  return file;
}

static ptc_status open_library(const ptc_rt_custom_op *wanted, const ptc_options *options, void **library,
                               const ptc_custom_op **op) {
  char path[PATH_MAX];
  const char *found = find_library(wanted->library, options, path, sizeof(path));
  *library = dlopen(found, RTLD_NOW | RTLD_LOCAL);
  if (!*library) {
    const char *reason = dlerror();
    return fail(options, "the library '%s' of the custom operator '%s' cannot be opened: %s", wanted->library,
                wanted->symbol, reason ? reason : "no reason is given");
  }
  *op = dlsym(*library, wanted->symbol);
  if (!*op)
    return fail(options, "the library '%s' has no '%s'%s", found, wanted->symbol, "");
  if ((*op)->version != PTC_CUSTOM_OP_VERSION || (*op)->struct_size < sizeof(ptc_custom_op) || !(*op)->run)
    return fail(options, "'%s' of '%s' is no ptc_custom_op of the version that the model was compiled with%s",
                wanted->symbol, found, "");
  return PTC_OK;
}

static ptc_status create_state(const ptc_rt_custom_node *node, const ptc_custom_op *op, const ptc_options *options,
                               void **state) {
  char sentence[SENTENCE_SIZE] = "";
  if (!op->create || op->create(&node->node, state, sentence, sizeof(sentence)) == PTC_OK)
    return PTC_OK;
  return fail(options, "node '%s': custom operator %s: %s", node->node.name, node->node.op,
              sentence[0] ? sentence : "create failed");
}

static void close_all(ptc_model *model) {
  const ptc_rt_custom_code *code = model->descriptor->custom_code;
  custom_ops *own = model->custom_ops;
  for (uint32_t i = own->created; i-- > 0;)
    if (own->ops[code->nodes[i].op]->create && own->ops[code->nodes[i].op]->destroy)
      own->ops[code->nodes[i].op]->destroy(own->states[i]);
  for (uint32_t i = code->op_count; i-- > 0;)
    if (own->libraries[i])
      dlclose(own->libraries[i]);
  free(own);
}

static ptc_status open_all(ptc_model *model, const ptc_options *options) {
  const ptc_rt_custom_code *code = model->descriptor->custom_code;
  char *block = calloc(1, sizeof(custom_ops) + sizeof(void *) * (2 * (size_t)code->op_count + code->node_count));
  if (!block)
    return PTC_OUT_OF_MEMORY;
  custom_ops *own = model->custom_ops = (custom_ops *)block;
  own->libraries = (void **)(own + 1);
  own->ops = (const ptc_custom_op **)(own->libraries + code->op_count);
  own->states = (void **)(own->ops + code->op_count);
  ptc_status status = PTC_OK;
  for (uint32_t i = 0; i < code->op_count && status == PTC_OK; i++)
    status = open_library(&code->ops[i], options, &own->libraries[i], &own->ops[i]);
  for (; own->created < code->node_count && status == PTC_OK; own->created += status == PTC_OK) {
    const ptc_rt_custom_node *node = &code->nodes[own->created];
    status = create_state(node, own->ops[node->op], options, &own->states[own->created]);
  }
  if (status != PTC_OK)
    close_all(model);
  return status;
}

const ptc_rt_custom_runtime ptc_rt_custom = {open_all, close_all};

/* ---- calls ---- */

static void *allocate(const ptc_custom_call *call, size_t bytes) { return ptc_rt_take(call->reserved, 1, bytes); }

static void parallel_for(const ptc_custom_call *call, int64_t count, void (*body)(void *argument, int64_t index),
                         void *argument) {
  ptc_rt_parallel_for(call->reserved, count, body, argument);
}

static int64_t outer_bytes(ptc_dtype dtype, int64_t count) {
  return dtype.bits < 8 ? (count * dtype.bits + 7) / 8 : count * (dtype.bits / 8);
}

static bool is_converted(ptc_dtype dtype) { return dtype.bits < 8 || dtype.code == PTC_STRING; }

/* Describes the values that are there; their dims are the next numbers. Their data are the next buffers, if there are
 * any. */
static void describe(const ptc_rt_custom_value *values, uint32_t count, ptc_tensor *tensors, void *const **buffers,
                     const int64_t **numbers) {
  for (uint32_t i = 0; i < count; i++) {
    tensors[i] = (ptc_tensor){.device = {PTC_CPU, 0}, .rank = values[i].rank, .dtype = values[i].dtype};
    if (values[i].rank < 0)
      continue;
    tensors[i].shape = (int64_t *)*numbers;
    *numbers += values[i].rank;
    if (buffers)
      tensors[i].data = *(*buffers)++;
  }
}

/* The ABI's form of an input. */
static bool convert_input(ptc_rt_call *call, ptc_tensor *tensor) {
  if (tensor->rank < 0 || !is_converted(tensor->dtype))
    return true;
  int64_t count = ptc_count_elements(tensor);
  void *outer = ptc_rt_take(call, 1, (size_t)outer_bytes(tensor->dtype, count));
  if (!outer)
    return false;
  if (tensor->dtype.code == PTC_STRING)
    ptc_rt_close_strings(call, 0, outer, tensor->data, count);
  else
    ptc_rt_pack(outer, tensor->data, count, tensor->dtype.bits);
  tensor->data = outer;
  return true;
}

/* From the form that the function wrote to the inner one. A string that was never written is the empty one. */
static void convert_output(const ptc_tensor *outer, void *inner) {
  int64_t count = ptc_count_elements(outer);
  if (outer->dtype.code != PTC_STRING) {
    ptc_rt_unpack(inner, outer->data, count, outer->dtype.bits);
    return;
  }
  const ptc_string *views = outer->data;
  for (int64_t i = 0; i < count; i++)
    ((const ptc_string **)inner)[i] = views[i].bytes > 0 ? &views[i] : 0;
}

/* What a call of either function has in common. */
typedef struct prepared {
  const ptc_rt_custom_node *node;
  const ptc_custom_op *op;
  ptc_custom_call call;
  void *const *rest; /* buffers behind the inputs */
  char sentence[SENTENCE_SIZE];
} prepared;

static int32_t prepare(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t **numbers,
                       prepared *made) {
  ptc_rt_call_state *state = (ptc_rt_call_state *)call;
  const ptc_model *model = state->model;
  uint32_t index = state->variant->launches[site].custom;
  const ptc_rt_custom_node *node = &model->descriptor->custom_code->nodes[index];
  const custom_ops *own = model->custom_ops;
  uint32_t input_count = node->node.input_count, output_count = node->node.output_count;
  ptc_tensor *tensors = ptc_rt_take(call, (size_t)input_count + output_count + 1, sizeof(ptc_tensor));
  if (!tensors)
    return PTC_RT_FAULT_MEMORY;
  made->node = node;
  made->op = own->ops[node->op];
  made->sentence[0] = 0;
  describe(node->inputs, input_count, tensors, &buffers, numbers);
  for (uint32_t i = 0; i < input_count; i++)
    if (!convert_input(call, &tensors[i]))
      return PTC_RT_FAULT_MEMORY;
  made->rest = buffers;
  made->call = (ptc_custom_call){.struct_size = sizeof(ptc_custom_call),
                                 .node = &node->node,
                                 .state = own->states[index],
                                 .inputs = tensors,
                                 .outputs = tensors + input_count,
                                 .error = made->sentence,
                                 .error_size = sizeof(made->sentence),
                                 .allocate = allocate,
                                 .parallel_for = parallel_for,
                                 .reserved = call};
  return 0;
}

static int32_t refuse(ptc_rt_call *call, uint32_t site, const prepared *made, ptc_status status) {
  if (made->sentence[0])
    ptc_rt_refuse(call, site, "custom operator %s: %s", made->node->node.op, made->sentence);
  else
    ptc_rt_refuse(call, site, "custom operator %s reports status %d", made->node->node.op, (int)status);
  return PTC_RT_FAULT_CUSTOM;
}

int32_t ptc_rt_custom_dims(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  prepared made;
  int32_t fault = prepare(call, site, buffers, &numbers, &made);
  if (fault != 0)
    return fault;
  const ptc_custom_node *node = made.call.node;
  size_t rank = 0;
  for (uint32_t i = 0; i < node->output_count; i++)
    rank += made.node->outputs[i].rank > 0 ? (size_t)made.node->outputs[i].rank : 0;
  int64_t *shape = ptc_rt_take(call, rank, sizeof(int64_t)), *found = made.rest[0];
  if (!shape)
    return PTC_RT_FAULT_MEMORY;
  for (size_t i = 0; i < rank; i++)
    shape[i] = numbers[i];
  const int64_t *next = shape;
  void *kept = 0;
  describe(made.node->outputs, node->output_count, made.call.outputs, 0, &next);
  made.call.kept = &kept;
  if (!made.op->measure)
    return ptc_rt_refuse(call, site, "custom operator %s has no function `measure`", node->op), PTC_RT_FAULT_CUSTOM;
  ptc_status status = made.op->measure(&made.call);
  if (status != PTC_OK)
    return refuse(call, site, &made, status);
  for (size_t i = 0; i < rank; i++) {
    if (numbers[i] < 0 && shape[i] < 0)
      return ptc_rt_refuse(call, site, "custom operator %s leaves a size open", node->op), PTC_RT_FAULT_CUSTOM;
    if (numbers[i] < 0)
      *found++ = shape[i];
  }
  *found = (int64_t)(intptr_t)kept;
  return 0;
}

int32_t ptc_rt_custom_run(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  prepared made;
  int32_t fault = prepare(call, site, buffers, &numbers, &made);
  if (fault != 0)
    return fault;
  int64_t open = *numbers++; /* how many sizes custom_dims has found, -1 if it did not run */
  void *kept = open < 0 ? 0 : (void *)(intptr_t)((const int64_t *)made.rest[0])[open];
  made.rest += open >= 0;
  made.call.kept = &kept;
  void *const *results = made.rest;
  uint32_t count = made.call.node->output_count;
  ptc_tensor *outputs = made.call.outputs;
  describe(made.node->outputs, count, outputs, &made.rest, &numbers);
  for (uint32_t i = 0; i < count; i++) {
    if (outputs[i].rank < 0 || !is_converted(outputs[i].dtype))
      continue;
    size_t bytes = (size_t)outer_bytes(outputs[i].dtype, ptc_count_elements(&outputs[i]));
    if (!(outputs[i].data = ptc_rt_take(call, 1, bytes)))
      return PTC_RT_FAULT_MEMORY;
    memset(outputs[i].data, 0, bytes);
  }
  ptc_status status = made.op->run(&made.call);
  if (status != PTC_OK)
    return refuse(call, site, &made, status);
  for (uint32_t i = 0; i < count; i++) {
    if (outputs[i].rank < 0)
      continue;
    if (is_converted(outputs[i].dtype))
      convert_output(&outputs[i], *results);
    results++;
  }
  return 0;
}
