/* What a program finds out while it runs: values of symbols, dims of outputs, sizes of values that nothing bounds.
 *
 * Memory of such values belongs to the context: one block a slot, which only grows. A block that must grow grows by
 * half at least, so that a value that gets longer in each round of a loop costs a few allocations and not one a round.
 */
#include "runtime.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SAY(error, ...) snprintf(error, PTC_RT_ERROR_SIZE, __VA_ARGS__)

int32_t ptc_rt_bind_symbol(ptc_rt_call *call, uint32_t index, int64_t value, int64_t least, int64_t most) {
  ptc_rt_call_state *state = (ptc_rt_call_state *)call;
  state->ctx->symbols[state->function->interface->symbol_count + index] = value;
  if (value >= least && value <= most)
    return 0;
  const ptc_rt_bound_symbol *symbol = &state->variant->bound[index];
  SAY(state->ctx->error, "node '%s': size %s is %" PRId64 ", which is not in %" PRId64 "..%" PRId64,
      symbol->nodes ? symbol->nodes : "", symbol->name, value, least, most);
  return PTC_RT_FAULT_GUARD;
}

int32_t ptc_rt_fail(ptc_rt_call *call, uint32_t index) {
  ptc_rt_call_state *state = (ptc_rt_call_state *)call;
  ptc_rt_describe_guard(state->variant, state->function->interface, index, state->ctx->symbols, state->ctx->error);
  return PTC_RT_FAULT_GUARD;
}

/* ---- memory that grows ---- */

static bool grow_block(const ptc_model *model, char **base, size_t *have, int64_t wanted, bool keeps) {
  if (wanted < 0)
    return false;
  if ((size_t)wanted <= *have)
    return true;
  char *old = *base;
  size_t held = *have, more = held + held / 2, bytes = (size_t)wanted > more ? (size_t)wanted : more;
  bytes = (bytes + PTC_RT_PAGE - 1) & ~(size_t)(PTC_RT_PAGE - 1);
  if (!keeps)
    ptc_rt_release(model, old, held);
  *base = ptc_rt_allocate(model, bytes, PTC_RT_PAGE);
  *have = *base ? bytes : 0;
  if (keeps && *base && held)
    memcpy(*base, old, held);
  if (keeps)
    ptc_rt_release(model, old, held);
  return *base != 0;
}

bool ptc_rt_grow_block(const ptc_model *model, char **base, size_t *have, int64_t wanted) {
  return grow_block(model, base, have, wanted, false);
}

bool ptc_rt_regrow_block(const ptc_model *model, char **base, size_t *have, int64_t wanted) {
  return grow_block(model, base, have, wanted, true);
}

int32_t ptc_rt_grow(ptc_rt_call *call, uint32_t slot, int64_t bytes) {
  ptc_ctx *ctx = ((ptc_rt_call_state *)call)->ctx;
  bool done = ptc_rt_grow_block(ctx->model, &ctx->blocks[slot], &ctx->block_bytes[slot], bytes);
  return done ? 0 : PTC_RT_FAULT_MEMORY;
}

int32_t ptc_rt_regrow(ptc_rt_call *call, uint32_t slot, int64_t bytes) {
  ptc_ctx *ctx = ((ptc_rt_call_state *)call)->ctx;
  bool done = ptc_rt_regrow_block(ctx->model, &ctx->blocks[slot], &ctx->block_bytes[slot], bytes);
  return done ? 0 : PTC_RT_FAULT_MEMORY;
}

bool ptc_rt_grow_scratch(ptc_rt_call_state *call, int64_t bytes) {
  ptc_rt_block *block = &call->ctx->scratch;
  int64_t stride, total;
  if (__builtin_add_overflow(bytes, PTC_RT_PAGE - 1, &stride))
    return false;
  stride &= ~(int64_t)(PTC_RT_PAGE - 1);
  if (__builtin_mul_overflow(stride, (int64_t)call->model->threads, &total) ||
      !ptc_rt_grow_block(call->model, &block->base, &block->bytes, total))
    return false;
  call->scratch = block->base;
  call->scratch_stride = (size_t)stride;
  return true;
}

/* ---- outputs ---- */

int64_t ptc_rt_elements(const int64_t *shape, int32_t rank) {
  int64_t count = 1;
  for (int32_t d = 0; d < rank; d++)
    if (shape[d] < 0 || __builtin_mul_overflow(count, shape[d], &count))
      return -1;
  return count;
}

/* At least one line, in whole lines. */
static size_t bytes_of(int64_t count, uint32_t bits) {
  size_t bytes = ((size_t)count * bits + 7) / 8;
  bytes = (bytes + PTC_RT_LINE - 1) & ~(size_t)(PTC_RT_LINE - 1);
  return bytes ? bytes : PTC_RT_LINE;
}

int32_t ptc_rt_output(ptc_rt_call *call, uint32_t index, const int64_t *extents) {
  ptc_rt_call_state *state = (ptc_rt_call_state *)call;
  ptc_ctx *ctx = state->ctx;
  const ptc_function *interface = state->function->interface;
  const ptc_value *value = &interface->outputs[index];
  ptc_rt_result *result = &ctx->results[index];
  int64_t count = ptc_rt_elements(extents, value->rank);
  if (count < 0 || count > INT64_MAX / 256) {
    SAY(ctx->error, "output '%s' has a negative dim, or more elements than memory can hold", value->name);
    return PTC_RT_FAULT_GUARD;
  }
  if (*result->data && count > result->capacity) {
    SAY(ctx->error, "output '%s' has %" PRId64 " elements, and there is room for %" PRId64, value->name, count,
        result->capacity);
    return PTC_RT_FAULT_OUTPUT;
  }
  if (!*result->data) {
    size_t bytes = bytes_of(count, value->dtype.bits);
    *result->data = ptc_rt_allocate(state->model, bytes, PTC_RT_LINE);
    if (!*result->data)
      return PTC_RT_FAULT_MEMORY;
    result->allocated = bytes;
    ctx->arguments[interface->input_count + index] = *result->data;
  }
  for (int32_t d = 0; d < value->rank; d++)
    result->shape[d] = extents[d];
  return 0;
}

void ptc_rt_drop_results(ptc_ctx *ctx, const ptc_rt_function *function) {
  for (uint32_t i = 0; i < function->interface->output_count; i++) {
    ptc_rt_result *result = &ctx->results[i];
    if (!result->allocated)
      continue;
    ptc_rt_release(ctx->model, *result->data, result->allocated);
    *result->data = 0;
    result->allocated = 0;
  }
}
