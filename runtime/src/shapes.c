/* Checks of dims and tensors against what the model declares, and the sentences that say what is wrong.
 *
 * Symbols are bound from the inputs' shapes: the first dim that is a plain symbol gives its value, every other dim is
 * then compared with what it must be. Ranges and divisors are checked next, guards of the variants last. Everything is
 * checked before anything is written for the caller.
 */
#include "sequences.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SAY(error, ...) snprintf(error, PTC_RT_ERROR_SIZE, __VA_ARGS__)
#define SAY_ON(error, ...) snprintf(error + strlen(error), PTC_RT_ERROR_SIZE - strlen(error), __VA_ARGS__)

/* ---- symbols ---- */

/* "batch is 80 (dim 0 of input 'x')", behind what is said already. */
static void say_symbol(const ptc_function *interface, uint32_t symbol, int64_t value, char *error) {
  SAY_ON(error, "%s is %" PRId64, interface->symbols[symbol].name, value);
  for (uint32_t i = 0; i < interface->input_count; i++)
    for (int32_t d = 0; d < interface->inputs[i].rank; d++)
      if (interface->inputs[i].dims[d].symbol == (int32_t)symbol) {
        SAY_ON(error, " (dim %" PRId32 " of input '%s')", d, interface->inputs[i].name);
        return;
      }
}

ptc_status ptc_rt_check_symbols(const ptc_rt_function *function, const int64_t *symbols, char *error) {
  const ptc_function *interface = function->interface;
  if (interface->symbol_count > 0 && !symbols) {
    SAY(error, "dims of '%s' are NULL", interface->name);
    return PTC_INVALID_ARGUMENT;
  }
  for (uint32_t i = 0; i < interface->symbol_count; i++) {
    const ptc_symbol *symbol = &interface->symbols[i];
    int64_t value = symbols[i];
    if (value < symbol->min)
      SAY(error, "%s >= %" PRId64 " is needed, but ", symbol->name, symbol->min);
    else if (value > symbol->max)
      SAY(error, "%s <= %" PRId64 " is needed, but ", symbol->name, symbol->max);
    else if (symbol->divisor > 1 && value % symbol->divisor != 0)
      SAY(error, "%s %% %" PRId64 " == 0 is needed, but ", symbol->name, symbol->divisor);
    else
      continue;
    say_symbol(interface, i, value, error);
    if (value == 0 && symbol->min == 1)
      SAY_ON(error, "; compiled with --dim %s=0.. the model takes empty inputs", symbol->name);
    return PTC_GUARD_FAILED;
  }
  return PTC_OK;
}

static bool is_of_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

/* How much of a text is shown: whole words of at most `most` characters, if its first word is no longer. */
static size_t shown_length(const char *text, size_t most) {
  size_t length = strlen(text);
  if (length <= most)
    return length;
  for (length = most; length > 0 && is_of_word(text[length]);)
    length--;
  return length > 0 ? length : most;
}

/* What the guard's symbols are, as many as there is room for. */
static void say_symbols(const ptc_rt_variant *variant, const ptc_rt_guard *guard, const ptc_function *interface,
                        const int64_t *symbols, char *error) {
  static const char rest[] = " ...";
  for (uint32_t i = 0; i < guard->symbol_count; i++) {
    uint32_t symbol = guard->symbols[i], own = interface->symbol_count;
    size_t said = strlen(error);
    SAY_ON(error, "%s", i == 0 ? ", but " : i + 1 == guard->symbol_count ? " and " : ", ");
    if (symbol < own)
      say_symbol(interface, symbol, symbols[symbol], error);
    else
      SAY_ON(error, "%s is %" PRId64 " (found by node '%s')", variant->bound[symbol - own].name, symbols[symbol],
             variant->bound[symbol - own].nodes);
    if (strlen(error) + sizeof(rest) > PTC_RT_ERROR_SIZE) {
      error[said] = 0;
      SAY_ON(error, "%s", rest);
      return;
    }
  }
}

ptc_status ptc_rt_describe_guard(const ptc_rt_variant *variant, const ptc_function *interface, uint32_t index,
                                 const int64_t *symbols, char *error) {
  enum { MOST_SHOWN = 200 }; /* of a condition, so that there is room for the values */
  if (index >= variant->guard_count) {
    SAY(error, "guard %" PRIu32 " of '%s' failed", index, interface->name);
    return PTC_GUARD_FAILED;
  }
  const ptc_rt_guard *guard = &variant->guards[index];
  error[0] = 0;
  if (guard->nodes)
    SAY_ON(error, "node '%s': ", guard->nodes);
  if (guard->nodes && guard->symbol_count == 0) { /* the text is a sentence */
    SAY_ON(error, "%s", guard->text);
    return PTC_GUARD_FAILED;
  }
  size_t shown = shown_length(guard->text, MOST_SHOWN);
  SAY_ON(error, "%.*s%s is needed", (int)shown, guard->text, guard->text[shown] ? " ..." : "");
  say_symbols(variant, guard, interface, symbols, error);
  return PTC_GUARD_FAILED;
}

ptc_status ptc_rt_pick_variant(const ptc_rt_function *function, const int64_t *symbols, const ptc_rt_variant **variant,
                               char *error) {
  int32_t failed = -1;
  for (uint32_t i = 0; i < function->variant_count; i++) {
    *variant = &function->variants[i];
    failed = (*variant)->guard ? (*variant)->guard(symbols) : -1;
    if (failed < 0)
      return PTC_OK;
  }
  return ptc_rt_describe_guard(*variant, function->interface, (uint32_t)failed, symbols, error);
}

/* ---- tensors ---- */

static const char *code_name(uint8_t code) {
  switch (code) {
  case PTC_INT:
    return "int";
  case PTC_UINT:
    return "uint";
  case PTC_FLOAT:
    return "float";
  case PTC_BFLOAT:
    return "bfloat";
  case PTC_COMPLEX:
    return "complex";
  case PTC_BOOL:
    return "bool";
  default:
    return "type";
  }
}

bool ptc_rt_is_dense(const ptc_tensor *tensor) {
  int64_t expected = 1;
  for (int32_t d = tensor->rank - 1; tensor->strides && d >= 0; d--) {
    if (tensor->shape[d] == 0)
      return true;
    if (tensor->shape[d] != 1 && tensor->strides[d] != expected)
      return false;
    if (__builtin_mul_overflow(expected, tensor->shape[d], &expected))
      return false;
  }
  return true;
}

static bool is_empty(const ptc_tensor *tensor) {
  for (int32_t d = 0; d < tensor->rank; d++)
    if (tensor->shape[d] == 0)
      return true;
  return false;
}

/* Rank and dims only when `data` is false. */
static ptc_status check_tensor(const ptc_model *model, const char *kind, const ptc_value *value,
                               const ptc_tensor *tensor, bool data, char *error) {
  if (tensor->rank != value->rank) {
    SAY(error, "%s '%s' has rank %" PRId32 ", not %" PRId32, kind, value->name, tensor->rank, value->rank);
    return PTC_TYPE_MISMATCH;
  }
  if (tensor->rank > 0 && !tensor->shape) {
    SAY(error, "%s '%s' has no shape", kind, value->name);
    return PTC_INVALID_ARGUMENT;
  }
  if (!data)
    return PTC_OK;
  ptc_dtype found = tensor->dtype, wanted = value->dtype;
  if (found.code != wanted.code || found.bits != wanted.bits || found.lanes != wanted.lanes) {
    SAY(error, "%s '%s' has elements of type %s%u, not %s%u", kind, value->name, code_name(found.code), found.bits,
        code_name(wanted.code), wanted.bits);
    return PTC_TYPE_MISMATCH;
  }
  bool may_be_there = ptc_rt_device_of(model) && !ptc_rt_has_handles(value->dtype);
  if (tensor->device.type != PTC_CPU && tensor->device.type != PTC_CUDA_HOST &&
      !(ptc_rt_is_of_cuda(tensor->device.type) && may_be_there)) {
    SAY(error, "%s '%s' is not in the memory of the CPU%s", kind, value->name, may_be_there ? " or of the device" : "");
    return PTC_UNSUPPORTED;
  }
  if (tensor->device.type == PTC_CUDA && tensor->device.id != model->ordinal) {
    SAY(error, "%s '%s' is in the memory of device %" PRId32 ", and the model runs on device %" PRId32, kind,
        value->name, tensor->device.id, model->ordinal);
    return PTC_UNSUPPORTED;
  }
  if (!ptc_rt_is_dense(tensor)) {
    SAY(error, "%s '%s' is not dense and row-major", kind, value->name);
    return PTC_UNSUPPORTED;
  }
  return PTC_OK;
}

static ptc_status shape_mismatch(const char *kind, const ptc_value *value, int32_t dim, int64_t found, int64_t wanted,
                                 char *error) {
  const ptc_dim *declared = &value->dims[dim];
  SAY(error, "%s '%s' dim %" PRId32 " is %" PRId64 ", not %" PRId64 "%s%s%s", kind, value->name, dim, found, wanted,
      declared->extent < 0 ? " (" : "", declared->extent < 0 ? declared->text : "", declared->extent < 0 ? ")" : "");
  return PTC_SHAPE_MISMATCH;
}

void ptc_rt_lay_out_extents(ptc_ctx *ctx, const ptc_value *values, uint32_t count) {
  int64_t *next = ctx->extents;
  for (uint32_t i = 0; i < count; i++) {
    ctx->shapes[i] = next;
    next += values[i].rank;
  }
}

void ptc_rt_find_input_shapes(ptc_ctx *ctx, const ptc_rt_function *function) {
  const ptc_function *interface = function->interface;
  ptc_rt_lay_out_extents(ctx, interface->inputs, interface->input_count);
  if (function->input_shapes)
    function->input_shapes(ctx->symbols, ctx->shapes);
  for (uint32_t i = 0; i < interface->input_count; i++)
    for (int32_t d = 0; d < interface->inputs[i].rank; d++) {
      const ptc_dim *dim = &interface->inputs[i].dims[d];
      if (dim->extent >= 0)
        ctx->shapes[i][d] = dim->extent;
      else if (dim->symbol >= 0)
        ctx->shapes[i][d] = ctx->symbols[dim->symbol];
    }
}

void ptc_rt_find_output_shapes(ptc_ctx *ctx, const ptc_rt_function *function) {
  ptc_rt_lay_out_extents(ctx, function->interface->outputs, function->interface->output_count);
  function->output_shapes(ctx->symbols, ctx->shapes);
}

ptc_status ptc_rt_output_extents(const ptc_rt_function *function, const int64_t *symbols, int64_t *const *shapes,
                                 char *error) {
  const ptc_function *interface = function->interface;
  function->output_shapes(symbols, shapes);
  for (uint32_t i = 0; i < interface->output_count; i++)
    for (int32_t d = 0; d < interface->outputs[i].rank; d++)
      if (shapes[i][d] < 0 && !(interface->outputs[i].dims[d].flags & PTC_DIM_FOUND)) {
        const ptc_rt_variant *variant; /* a size that is negative has a guard */
        ptc_status status = ptc_rt_pick_variant(function, symbols, &variant, error);
        if (status != PTC_OK)
          return status;
        SAY(error, "output '%s' is too large: the size of its dim %" PRId32 " leaves 64 bits",
            interface->outputs[i].name, d);
        return PTC_OUT_OF_MEMORY;
      }
  return PTC_OK;
}

static void bind_plain_symbols(ptc_ctx *ctx, const ptc_function *interface, const ptc_tensor *inputs) {
  for (uint32_t s = 0; s < interface->symbol_count; s++)
    ctx->symbols[s] = -1;
  for (uint32_t i = 0; i < interface->input_count; i++)
    for (int32_t d = 0; d < interface->inputs[i].rank; d++) {
      int32_t symbol = interface->inputs[i].dims[d].symbol;
      if (symbol >= 0 && ctx->symbols[symbol] < 0)
        ctx->symbols[symbol] = inputs[i].shape[d];
    }
}

static ptc_status check_dims(const ptc_value *value, const ptc_tensor *tensor, const int64_t *symbols,
                             const int64_t *derived, char *error) {
  for (int32_t d = 0; d < value->rank; d++) {
    const ptc_dim *dim = &value->dims[d];
    int64_t wanted = dim->extent >= 0 ? dim->extent : dim->symbol >= 0 ? symbols[dim->symbol] : derived[d];
    if (tensor->shape[d] >= 0 && tensor->shape[d] == wanted)
      continue;
    ptc_status status = shape_mismatch("input", value, d, tensor->shape[d], wanted, error);
    if (dim->extent == 0 && tensor->shape[d] > 0) /* some files say so where they do not know the size */
      SAY_ON(error, "; if the model can take other sizes, compile it with --dim %s[%" PRId32 "]=0..", value->name, d);
    return status;
  }
  return PTC_OK;
}

ptc_status ptc_rt_bind(ptc_ctx *ctx, const ptc_rt_function *function, const ptc_tensor *inputs, bool data) {
  const ptc_function *interface = function->interface;
  if (interface->input_count > 0 && !inputs) {
    SAY(ctx->error, "inputs of '%s' are NULL", interface->name);
    return PTC_INVALID_ARGUMENT;
  }
  for (uint32_t i = 0; i < interface->input_count; i++) {
    ptc_status status = check_tensor(ctx->model, "input", &interface->inputs[i], &inputs[i], data, ctx->error);
    if (status != PTC_OK)
      return status;
    if (data && !inputs[i].data && !is_empty(&inputs[i])) {
      SAY(ctx->error, "input '%s' is NULL", interface->inputs[i].name);
      return PTC_INVALID_ARGUMENT;
    }
    ctx->arguments[i] = (char *)inputs[i].data + inputs[i].byte_offset;
    ctx->places[i] = inputs[i].device.type;
  }
  bind_plain_symbols(ctx, interface, inputs);
  ptc_status status = ptc_rt_check_symbols(function, ctx->symbols, ctx->error);
  if (status != PTC_OK)
    return status;
  ptc_rt_lay_out_extents(ctx, interface->inputs, interface->input_count);
  if (function->input_shapes)
    function->input_shapes(ctx->symbols, ctx->shapes);
  for (uint32_t i = 0; i < interface->input_count && status == PTC_OK; i++)
    status = check_dims(&interface->inputs[i], &inputs[i], ctx->symbols, ctx->shapes[i], ctx->error);
  return status;
}

bool ptc_rt_is_found(const ptc_value *value) {
  for (int32_t d = 0; d < value->rank; d++)
    if (value->dims[d].flags & PTC_DIM_FOUND)
      return true;
  return false;
}

/* An output of a size that the run finds: NULL, or memory for the shape that the tensor has now. */
static ptc_status take_result(ptc_ctx *ctx, const ptc_value *value, ptc_tensor *tensor, uint32_t index, char *error) {
  for (int32_t d = 0; tensor->data && d < value->rank; d++) {
    bool found = (value->dims[d].flags & PTC_DIM_FOUND) != 0;
    if (tensor->shape[d] < 0 || (!found && tensor->shape[d] != ctx->shapes[index][d]))
      return shape_mismatch("output", value, d, tensor->shape[d], ctx->shapes[index][d], error);
  }
  int64_t capacity = tensor->data ? ptc_rt_elements(tensor->shape, value->rank) : 0;
  ctx->results[index] = (ptc_rt_result){&tensor->data, tensor->shape, capacity, 0};
  return PTC_OK;
}

ptc_status ptc_rt_check_outputs(ptc_ctx *ctx, const ptc_rt_function *function, ptc_tensor *outputs) {
  const ptc_function *interface = function->interface;
  if (interface->output_count > 0 && !outputs) {
    SAY(ctx->error, "outputs of '%s' are NULL", interface->name);
    return PTC_INVALID_ARGUMENT;
  }
  ptc_rt_lay_out_extents(ctx, interface->outputs, interface->output_count);
  ptc_status status = ptc_rt_output_extents(function, ctx->symbols, ctx->shapes, ctx->error);
  for (uint32_t i = 0; i < interface->output_count && status == PTC_OK; i++) {
    const ptc_value *value = &interface->outputs[i];
    ptc_tensor *tensor = &outputs[i];
    status = check_tensor(ctx->model, "output", value, tensor, true, ctx->error);
    ctx->results[i].allocated = 0;
    bool found = ptc_rt_is_found(value);
    if (status == PTC_OK && found)
      status = take_result(ctx, value, tensor, i, ctx->error);
    if (status != PTC_OK)
      return status;
    for (int32_t d = 0; d < value->rank && !found; d++)
      if (tensor->shape[d] != ctx->shapes[i][d])
        return shape_mismatch("output", value, d, tensor->shape[d], ctx->shapes[i][d], ctx->error);
    char *data = tensor->data ? (char *)tensor->data + tensor->byte_offset : 0;
    if (value->alias >= 0) {
      char *shared = ctx->arguments[value->alias];
      if (data && data != shared) {
        SAY(ctx->error, "output '%s' must be the buffer of input '%s'", value->name,
            interface->inputs[value->alias].name);
        return PTC_INVALID_ARGUMENT;
      }
      data = shared;
    } else if (!data && !found && !is_empty(tensor)) {
      SAY(ctx->error, "output '%s' is NULL", value->name);
      return PTC_INVALID_ARGUMENT;
    }
    ctx->arguments[interface->input_count + i] = data;
    ctx->places[interface->input_count + i] = tensor->device.type;
  }
  return PTC_OK;
}
