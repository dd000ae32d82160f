/* Contexts and runs through the typed entry: checked dims, memory, floating-point mode, the program.
 *
 * Memory of a call is one block: the arena at its start, then one scratch area per thread. It is the caller's workspace
 * or the context's own block, which grows when dims do and is never given back before the context is.
 */
#define _GNU_SOURCE
#include "fpmode.h"
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SAY(error, ...) snprintf(error, PTC_RT_ERROR_SIZE, __VA_ARGS__)

/* ---- memory ---- */

static char *up_to(char *address, uintptr_t step) { return address + (step - (uintptr_t)address % step) % step; }

/* Blocks of a huge page or more consist of such pages as far as they go: rows of tensors lie in as many small pages as
 * there are rows. What is left over at the ends stays small, so that no block takes more than its bytes. The context's
 * own begin with one. An output does not: it is the caller's to free, and the C library keeps for the next run what it
 * is asked for again, but gives back each time, to be cleared each time, what is padded for an alignment of that size.
 */
void *ptc_rt_allocate(const ptc_model *model, size_t bytes, size_t alignment) {
  void *block = 0;
  if (model->allocator.allocate)
    return model->allocator.allocate(model->allocator.state, bytes, alignment);
  bool is_large = bytes >= PTC_RT_HUGE_PAGE;
  if (posix_memalign(&block, is_large && alignment >= PTC_RT_PAGE ? PTC_RT_HUGE_PAGE : alignment, bytes) != 0)
    return 0;
  if (is_large) {
    char *first = up_to(block, PTC_RT_HUGE_PAGE);
    size_t left = (size_t)((char *)block + bytes - first);
    if (left >= PTC_RT_HUGE_PAGE)
      (void)madvise(first, left / PTC_RT_HUGE_PAGE * PTC_RT_HUGE_PAGE, MADV_HUGEPAGE);
  }
  return block;
}

void ptc_rt_release(const ptc_model *model, void *block, size_t bytes) {
  if (!block)
    return;
  if (model->allocator.allocate)
    model->allocator.release(model->allocator.state, block, bytes);
  else
    free(block);
}

/* Arena and scratch of one call; false if a size does not fit. */
typedef struct sizes {
  size_t arena, stride, total;
} sizes;

static bool measure(const ptc_model *model, const ptc_rt_variant *variant, const int64_t *symbols, sizes *result) {
  int64_t arena = variant->arena_bytes(symbols);
  int64_t scratch = variant->scratch_bytes ? variant->scratch_bytes(symbols) : 0;
  const int64_t limit = INT64_MAX / 4;
  if (arena < 0 || arena > limit || scratch < 0 || scratch > limit / PTC_RT_MAX_THREADS)
    return false;
  result->arena = ((size_t)arena + PTC_RT_PAGE - 1) & ~(size_t)(PTC_RT_PAGE - 1);
  /* Whole pages keep threads off each other's lines and give every kernel the same alignment. */
  result->stride = ((size_t)scratch + PTC_RT_PAGE - 1) & ~(size_t)(PTC_RT_PAGE - 1);
  result->total = result->arena + result->stride * (ptc_rt_device_of(model) ? 1 : model->threads);
  return true;
}

/* Whether dims that are nowhere above `symbols` may be the variant's. */
static bool may_serve_below(const ptc_rt_variant *variant, const int64_t *symbols, uint32_t count) {
  for (uint32_t i = 0; variant->pins && i < count; i++)
    if (variant->pins[i] > symbols[i])
      return false;
  return true;
}

/* What `variant` needs, and what any other needs at dims that are no larger: a context that has seen large dims has
 * room for small ones, whichever program serves them. */
static bool measure_most(const ptc_model *model, const ptc_rt_function *function, const int64_t *symbols,
                         const ptc_rt_variant *variant, size_t *most) {
  sizes needed;
  if (!measure(model, variant, symbols, &needed))
    return false;
  *most = needed.total;
  for (uint32_t i = 0; i < function->variant_count; i++)
    if (&function->variants[i] != variant &&
        may_serve_below(&function->variants[i], symbols, function->interface->symbol_count) &&
        measure(model, &function->variants[i], symbols, &needed) && needed.total > *most)
      *most = needed.total;
  return true;
}

size_t ptc_rt_needed_bytes(const ptc_model *model, const ptc_rt_function *function, const int64_t *symbols,
                           char *error) {
  const ptc_rt_variant *variant;
  size_t needed;
  if (ptc_rt_pick_variant(function, symbols, &variant, error) != PTC_OK)
    return PTC_NO_SIZE;
  if (!measure_most(model, function, symbols, variant, &needed)) {
    SAY(error, "the memory that '%s' needs at these dims exceeds 63 bits", function->interface->name);
    return PTC_NO_SIZE;
  }
  return needed ? needed + PTC_RT_PAGE : 0; /* so that any workspace can be aligned */
}

static ptc_status grow(ptc_ctx *ctx, size_t bytes) {
  if (bytes <= ctx->memory.bytes)
    return PTC_OK;
  ptc_rt_release(ctx->model, ctx->memory.base, ctx->memory.bytes);
  ctx->memory.base = ptc_rt_allocate(ctx->model, bytes, PTC_RT_PAGE);
  ctx->memory.bytes = ctx->memory.base ? bytes : 0;
  if (ctx->memory.base)
    return PTC_OK;
  SAY(ctx->error, "no memory: %zu bytes", bytes);
  return PTC_OUT_OF_MEMORY;
}

ptc_status ptc_rt_reserve(ptc_ctx *ctx, const ptc_rt_function *function, const int64_t *symbols) {
  size_t before = ctx->memory.bytes;
  size_t bytes = ptc_rt_needed_bytes(ctx->model, function, symbols, ctx->error);
  if (bytes == PTC_NO_SIZE)
    return PTC_GUARD_FAILED;
  if (ptc_rt_device_of(ctx->model))
    return ptc_rt_device_of(ctx->model)->reserve(ctx, function, symbols, bytes);
  ptc_status status = grow(ctx, bytes);
  if (status == PTC_OK && ctx->memory.bytes > before)
    memset(ctx->memory.base, 0, ctx->memory.bytes); /* touch it now, not in the first run */
  return status;
}

/* ---- the call ---- */

/* A context is one call's. Two calls at once on one context are refused instead of corrupting each other. */
bool ptc_rt_enter(ptc_ctx *ctx) {
  if (atomic_exchange_explicit(&ctx->busy, 1, memory_order_acquire))
    return false;
  ctx->error[0] = 0;
  return true;
}

void ptc_rt_leave(ptc_ctx *ctx) { atomic_store_explicit(&ctx->busy, 0, memory_order_release); }

ptc_status ptc_rt_translate_fault(const ptc_rt_call_state *call, int32_t fault) {
  char *error = call->ctx->error;
  const ptc_rt_descriptor *descriptor = call->model->descriptor;
  const char *nodes = "", *kernel = "";
  if (call->site < call->variant->launch_count) {
    const ptc_rt_launch_site *site = &call->variant->launches[call->site];
    nodes = site->nodes ? site->nodes : "";
    kernel = descriptor->kernel_names && site->kernel != UINT32_MAX ? descriptor->kernel_names[site->kernel] : "";
  }
  switch (fault) {
  case PTC_RT_FAULT_INDEX:
    SAY(error, "index out of range in node '%s' (kernel %s)", nodes, kernel);
    return PTC_INDEX_OUT_OF_RANGE;
  case PTC_RT_FAULT_GUARD:
    return PTC_GUARD_FAILED;
  case PTC_RT_FAULT_OUTPUT:
    return PTC_SHAPE_MISMATCH;
  case PTC_RT_FAULT_VALUE:
    return PTC_INVALID_ARGUMENT;
  case PTC_RT_FAULT_MEMORY:
    SAY(error, "no memory for a value that grows during the run");
    return PTC_OUT_OF_MEMORY;
  case PTC_RT_FAULT_CUSTOM:
    return PTC_CUSTOM_OP_FAILED;
  case PTC_RT_FAULT_DEVICE:
    return PTC_DEVICE_ERROR;
  default:
    SAY(error, "fault %d in node '%s' (kernel %s)", (int)fault, nodes, kernel);
    return PTC_INTERNAL_ERROR;
  }
}

ptc_status ptc_rt_execute(ptc_ctx *ctx, const ptc_rt_function *function, void *workspace, void *stream) {
  const ptc_model *model = ctx->model;
  const int64_t *symbols = ctx->symbols;
  const ptc_rt_variant *variant;
  sizes needed;
  ptc_status status = ptc_rt_pick_variant(function, symbols, &variant, ctx->error);
  if (status != PTC_OK)
    return status;
  if (!measure(model, variant, symbols, &needed)) {
    SAY(ctx->error, "the memory that '%s' needs at these dims exceeds 63 bits", function->interface->name);
    return PTC_GUARD_FAILED;
  }
  const ptc_rt_device *device = ptc_rt_device_of(model);
  size_t most = needed.total;
  if (!workspace && (device || most + PTC_RT_PAGE > ctx->memory.bytes))
    measure_most(model, function, symbols, variant, &most);
  most += most ? PTC_RT_PAGE : 0;
  if (!device && !workspace && (status = grow(ctx, most)) != PTC_OK)
    return status;
  ptc_rt_call_state call = {.visible = {.weights = model->weights, .blocks = ctx->blocks},
                            .model = model,
                            .ctx = ctx,
                            .function = function,
                            .variant = variant,
                            .kernels = model->kernels,
                            .arena_bytes = needed.arena,
                            .scratch_stride = needed.stride,
                            .site = UINT32_MAX};
  ptc_rt_forget(ctx);
  ptc_rt_fpmode mode = ptc_rt_fpmode_set_default();
  uint64_t start = model->profile ? ptc_rt_now() : 0;
  call.caller_mode = &mode;
  if (device) {
    status = device->run(&call, workspace, most, stream);
  } else {
    char *base = ptc_rt_align(workspace ? workspace : ctx->memory.base, PTC_RT_PAGE);
    call.scratch = base + needed.arena;
    int32_t fault = variant->program(&call.visible, ctx->symbols, ctx->arguments, base);
    status = fault == 0 ? PTC_OK : ptc_rt_translate_fault(&call, fault);
  }
  if (model->profile)
    ptc_rt_record_run(&call, start);
  ptc_rt_fpmode_restore(mode);
  if (status != PTC_OK)
    ptc_rt_drop_results(ctx, function);
  return status;
}

/* ---- typed entries ---- */

static const ptc_rt_function *function_of(const ptc_model *model, uint32_t index) {
  return &model->descriptor->functions[index];
}

/* An output of a size that the run finds: memory that the caller gives has room for the most that it can be. */
static ptc_status take_result(ptc_ctx *ctx, const ptc_rt_function *function, uint32_t index, void **data,
                              int64_t *shape) {
  const ptc_function *interface = function->interface;
  const ptc_value *value = &interface->outputs[index];
  if (!data || !shape) {
    SAY(ctx->error, "the pointer or the shape of output '%s' is NULL", value->name);
    return PTC_INVALID_ARGUMENT;
  }
  ptc_rt_lay_out_extents(ctx, interface->outputs, interface->output_count);
  function->output_shapes(ctx->symbols, ctx->shapes);
  int64_t capacity = ptc_rt_elements(ctx->shapes[index], value->rank);
  if (*data && capacity < 0) {
    SAY(ctx->error, "nothing bounds the size of output '%s': let the run allocate it", value->name);
    return PTC_INVALID_ARGUMENT;
  }
  ctx->results[index] = (ptc_rt_result){data, shape, capacity, 0};
  ctx->arguments[interface->input_count + index] = *data;
  return PTC_OK;
}

ptc_status ptc_rt_run(ptc_ctx *ctx, uint32_t index, const int64_t *dims, void *const *arguments, void *workspace,
                      void *stream) {
  if (!ctx || !ptc_rt_enter(ctx))
    return PTC_INVALID_ARGUMENT;
  const ptc_rt_function *function = function_of(ctx->model, index);
  const ptc_function *interface = function->interface;
  ptc_status status = ptc_rt_check_symbols(function, dims, ctx->error);
  uint32_t given = interface->input_count;
  for (uint32_t i = 0; i < interface->input_count; i++)
    ctx->arguments[i] = arguments[i];
  if (status == PTC_OK && interface->symbol_count > 0)
    memcpy(ctx->symbols, dims, interface->symbol_count * sizeof(int64_t));
  for (uint32_t i = 0; i < interface->output_count && status == PTC_OK; i++) {
    const ptc_value *value = &interface->outputs[i];
    void **place = &ctx->arguments[interface->input_count + i];
    ctx->results[i].allocated = 0;
    if (ptc_rt_is_found(value)) {
      status = take_result(ctx, function, i, arguments[given], arguments[given + 1]);
      given += 2;
    } else {
      *place = value->alias >= 0 ? arguments[value->alias] : arguments[given++];
    }
  }
  memset(ctx->places, 0, sizeof(*ctx->places) * (interface->input_count + interface->output_count));
  if (status == PTC_OK)
    status = ptc_rt_execute(ctx, function, workspace, stream);
  ptc_rt_leave(ctx);
  return status;
}

ptc_status ptc_rt_warmup(ptc_ctx *ctx, uint32_t index, const int64_t *dims) {
  if (!ctx || !ptc_rt_enter(ctx))
    return PTC_INVALID_ARGUMENT;
  const ptc_rt_function *function = function_of(ctx->model, index);
  ptc_status status = ptc_rt_check_symbols(function, dims, ctx->error);
  if (status == PTC_OK)
    status = ptc_rt_reserve(ctx, function, dims);
  if (status == PTC_OK)
    ptc_rt_prepare(ctx->model);
  ptc_rt_leave(ctx);
  return status;
}

size_t ptc_rt_workspace_size(const ptc_model *model, uint32_t index, const int64_t *dims) {
  char error[PTC_RT_ERROR_SIZE];
  if (!model || ptc_rt_check_symbols(function_of(model, index), dims, error) != PTC_OK)
    return PTC_NO_SIZE;
  return ptc_rt_needed_bytes(model, function_of(model, index), dims, error);
}

ptc_status ptc_rt_output_shapes(const ptc_model *model, uint32_t index, const int64_t *dims, int64_t *const *shapes) {
  char error[PTC_RT_ERROR_SIZE];
  if (!model)
    return PTC_INVALID_ARGUMENT;
  ptc_status status = ptc_rt_check_symbols(function_of(model, index), dims, error);
  if (status == PTC_OK)
    status = ptc_rt_output_extents(function_of(model, index), dims, shapes, error);
  return status;
}

/* ---- life ---- */

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

static uint32_t total_rank(const ptc_value *values, uint32_t count) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < count; i++)
    sum += (uint32_t)values[i].rank;
  return sum;
}

/* One block: the context, then its arrays, each of 8-byte elements. */
ptc_status ptc_rt_ctx_create(const ptc_model *model, ptc_ctx **result) {
  if (!result)
    return PTC_INVALID_ARGUMENT;
  *result = 0;
  if (!model)
    return PTC_INVALID_ARGUMENT;
  uint32_t symbols = 0, values = 0, arguments = 0, extents = 0, outputs = 0, blocks = 0;
  for (uint32_t i = 0; i < model->descriptor->function_count; i++) {
    const ptc_rt_function *function = &model->descriptor->functions[i];
    const ptc_function *interface = function->interface;
    for (uint32_t v = 0; v < function->variant_count; v++) {
      symbols = larger(symbols, interface->symbol_count + function->variants[v].bound_count);
      blocks = larger(blocks, function->variants[v].block_count);
    }
    outputs = larger(outputs, interface->output_count);
    arguments = larger(arguments, interface->input_count + interface->output_count);
    values = larger(values, larger(interface->input_count, interface->output_count));
    extents = larger(extents, larger(total_rank(interface->inputs, interface->input_count),
                                     total_rank(interface->outputs, interface->output_count)));
  }
  size_t bytes = sizeof(ptc_ctx) + 8 * ((size_t)symbols + 2 * arguments + extents + values + 2 * (size_t)blocks) +
                 sizeof(ptc_rt_result) * outputs;
  ptc_ctx *ctx = ptc_rt_allocate(model, bytes, PTC_RT_LINE);
  if (!ctx)
    return PTC_OUT_OF_MEMORY;
  memset(ctx, 0, bytes);
  ctx->model = model;
  ctx->symbols = (int64_t *)(ctx + 1);
  ctx->extents = ctx->symbols + symbols;
  ctx->shapes = (int64_t **)(ctx->extents + extents);
  ctx->arguments = (void **)(ctx->shapes + values);
  ctx->places = (int64_t *)(ctx->arguments + arguments);
  ctx->blocks = (char **)(ctx->places + arguments);
  ctx->block_bytes = (size_t *)(ctx->blocks + blocks);
  ctx->results = (ptc_rt_result *)(ctx->block_bytes + blocks);
  ctx->block_count = blocks;
  ctx->bytes = bytes;
  *result = ctx;
  return PTC_OK;
}

void ptc_rt_ctx_destroy(ptc_ctx *ctx) {
  if (!ctx)
    return;
  if (ptc_rt_device_of(ctx->model))
    ptc_rt_device_of(ctx->model)->ctx_close(ctx);
  ptc_rt_release(ctx->model, ctx->memory.base, ctx->memory.bytes);
  ptc_rt_release(ctx->model, ctx->scratch.base, ctx->scratch.bytes);
  for (uint32_t i = 0; i < ctx->block_count; i++)
    ptc_rt_release(ctx->model, ctx->blocks[i], ctx->block_bytes[i]);
  ptc_rt_release_chunks(ctx);
  ptc_rt_release(ctx->model, ctx, ctx->bytes);
}

const char *ptc_rt_last_error(const ptc_ctx *ctx) { return ctx ? ctx->error : ""; }
