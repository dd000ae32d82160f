/* Values that are no numbers: strings and sequences at the border of a program, and the memory they live in.
 *
 * Inside a program an element is a handle of 8 bytes (descriptor.h), so that whatever moves elements moves strings, and
 * no kernel knows that there are any. Handles of an input's strings are the addresses of the caller's own views:
 * nothing is copied on the way in, nor on the way out, where views are.
 *
 * Memory is taken from chunks of the context, one after the other, and never given back before the context is: a run
 * begins by calling all of it free. Equal runs take equal amounts in equal order, so that the second finds every chunk
 * that it needs.
 */
#include "runtime.h"
#include "sequences.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- memory ---- */

enum { SMALLEST_CHUNK = 1 << 16 };

static ptc_rt_chunk *add_chunk(ptc_ctx *ctx, size_t bytes) {
  ptc_rt_chunk *last = ctx->chunk;
  size_t wanted = last ? 2 * last->bytes : SMALLEST_CHUNK;
  if (wanted < bytes + PTC_RT_LINE)
    wanted = bytes + PTC_RT_LINE;
  ptc_rt_chunk *chunk = ptc_rt_allocate(ctx->model, wanted, PTC_RT_LINE);
  if (!chunk)
    return 0;
  *chunk = (ptc_rt_chunk){.bytes = wanted, .used = PTC_RT_LINE};
  if (last)
    last->next = chunk;
  else
    ctx->chunks = chunk;
  return chunk;
}

void *ptc_rt_take(ptc_rt_call *call, size_t count, size_t bytes) {
  ptc_ctx *ctx = ((ptc_rt_call_state *)call)->ctx;
  size_t needed;
  if (__builtin_mul_overflow(count, bytes, &needed) || needed > SIZE_MAX / 4)
    return 0;
  needed = (needed + PTC_RT_LINE - 1) & ~(size_t)(PTC_RT_LINE - 1);
  while (!ctx->chunk || ctx->chunk->bytes - ctx->chunk->used < needed) {
    ptc_rt_chunk *next = ctx->chunk ? ctx->chunk->next : ctx->chunks;
    if (!next && !(next = add_chunk(ctx, needed)))
      return 0;
    ctx->chunk = next;
  }
  char *result = (char *)ctx->chunk + ctx->chunk->used;
  ctx->chunk->used += needed;
  return result;
}

void ptc_rt_forget(ptc_ctx *ctx) {
  for (ptc_rt_chunk *chunk = ctx->chunks; chunk; chunk = chunk->next)
    chunk->used = PTC_RT_LINE;
  ctx->chunk = ctx->chunks;
}

void ptc_rt_release_chunks(ptc_ctx *ctx) {
  for (ptc_rt_chunk *chunk = ctx->chunks, *next; chunk; chunk = next) {
    next = chunk->next;
    ptc_rt_release(ctx->model, chunk, chunk->bytes);
  }
  ctx->chunks = ctx->chunk = 0;
}

/* ---- calls ---- */

int32_t ptc_rt_refuse(ptc_rt_call *call, uint32_t site, const char *format, ...) {
  ptc_rt_call_state *state = (ptc_rt_call_state *)call;
  char *error = state->ctx->error;
  const char *nodes = site < state->variant->launch_count ? state->variant->launches[site].nodes : 0;
  int used = nodes ? snprintf(error, PTC_RT_ERROR_SIZE, "node '%.100s': ", nodes) : 0;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error + used, (size_t)(PTC_RT_ERROR_SIZE - used), format, arguments);
  va_end(arguments);
  return PTC_RT_FAULT_VALUE;
}

int32_t ptc_rt_invoke(ptc_rt_call *call, uint32_t site, ptc_rt_function_called *function, void *const *buffers,
                      const int64_t *numbers) {
  int32_t fault = function(call, site, buffers, numbers);
  if (fault != 0)
    ((ptc_rt_call_state *)call)->site = site;
  return fault;
}

/* ---- strings ---- */

int32_t ptc_rt_open_strings(ptc_rt_call *call, uint32_t input, void *target, const void *views, int64_t count) {
  const ptc_value *value = &((ptc_rt_call_state *)call)->function->interface->inputs[input];
  const ptc_string **handles = target;
  const ptc_string *strings = views;
  for (int64_t i = 0; i < count; i++) {
    if (strings[i].bytes < 0 || (strings[i].bytes > 0 && !strings[i].data))
      return ptc_rt_refuse(call, UINT32_MAX, "input '%.100s': element %lld is no string: %lld bytes at %s", value->name,
                           (long long)i, (long long)strings[i].bytes, strings[i].data ? "an address" : "NULL");
    handles[i] = &strings[i];
  }
  return 0;
}

int32_t ptc_rt_close_strings(ptc_rt_call *call, uint32_t output, void *views, const void *handles, int64_t count) {
  (void)call, (void)output;
  const ptc_string *const *strings = handles;
  for (int64_t i = count - 1; i >= 0; i--) /* the last first: the handles may lie where the views go */
    ((ptc_string *)views)[i] = ptc_rt_text(strings[i]);
  return 0;
}

/* ---- sequences ---- */

int64_t ptc_rt_inner_bytes(ptc_dtype dtype) {
  return ptc_rt_has_handles(dtype) ? 8 : dtype.bits < 8 ? 1 : dtype.bits / 8;
}

static bool same_type(ptc_dtype a, ptc_dtype b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

static int32_t open_sequence(ptc_rt_call *call, const char *name, const ptc_value *declared,
                             const ptc_sequence *sequence, ptc_rt_sequence **result);

/* The elements of a tensor as they are inside: the caller's own where the forms are the same. */
static int32_t open_elements(ptc_rt_call *call, const char *name, const ptc_value *declared, const ptc_tensor *tensor,
                             ptc_rt_item *item) {
  void *given = (char *)tensor->data + tensor->byte_offset;
  ptc_dtype dtype = tensor->dtype;
  item->elements = given;
  bool isPacked = dtype.bits < 8, isHandle = ptc_rt_inner_bytes(dtype) * 8 != dtype.bits && !isPacked;
  if (!isPacked && !isHandle)
    return 0;
  if (!(item->elements = ptc_rt_take(call, (size_t)item->count, isPacked ? 1 : 8)))
    return PTC_RT_FAULT_MEMORY;
  if (isPacked)
    ptc_rt_unpack(item->elements, given, item->count, dtype.bits);
  else if (dtype.code == PTC_SEQUENCE)
    return open_sequence(call, name, declared->element, given, item->elements);
  const ptc_string *strings = given;
  for (int64_t i = 0; !isPacked && i < item->count; i++) {
    if (strings[i].bytes < 0 || (strings[i].bytes > 0 && !strings[i].data))
      return ptc_rt_refuse(call, UINT32_MAX, "input '%.100s': an element of its tensors is no string", name);
    ((const ptc_string **)item->elements)[i] = &strings[i];
  }
  return 0;
}

static int32_t open_item(ptc_rt_call *call, const char *name, const ptc_value *declared, const ptc_tensor *tensor,
                         int64_t index, ptc_rt_item *item) {
  long long i = index;
  if (!same_type(tensor->dtype, declared->dtype))
    return ptc_rt_refuse(call, UINT32_MAX, "input '%.100s': tensor %lld has elements of another type", name, i);
  if (tensor->rank < 0 || (declared->rank >= 0 && tensor->rank != declared->rank) ||
      (tensor->rank > 0 && !tensor->shape))
    return ptc_rt_refuse(call, UINT32_MAX, "input '%.100s': tensor %lld has rank %d, not %d", name, i,
                         (int)tensor->rank, (int)declared->rank);
  if (!ptc_rt_is_dense(tensor))
    return ptc_rt_refuse(call, UINT32_MAX, "input '%.100s': tensor %lld is not dense and row-major", name, i);
  *item = (ptc_rt_item){.dtype = tensor->dtype, .rank = tensor->rank, .count = 1, .dims = tensor->shape};
  for (int32_t d = 0; d < tensor->rank; d++) {
    int64_t extent = tensor->shape[d], wanted = declared->rank >= 0 ? declared->dims[d].extent : -1;
    if (extent < 0 || (wanted >= 0 && extent != wanted) || __builtin_mul_overflow(item->count, extent, &item->count))
      return ptc_rt_refuse(call, UINT32_MAX, "input '%.100s': dim %d of tensor %lld is %lld", name, (int)d, i,
                           (long long)extent);
  }
  if (!tensor->data && item->count > 0)
    return ptc_rt_refuse(call, UINT32_MAX, "input '%.100s': tensor %lld is NULL", name, i);
  return open_elements(call, name, declared, tensor, item);
}

static int32_t open_sequence(ptc_rt_call *call, const char *name, const ptc_value *declared,
                             const ptc_sequence *sequence, ptc_rt_sequence **result) {
  *result = 0;
  if (sequence->count < 0 || (sequence->count > 0 && !sequence->tensors))
    return ptc_rt_refuse(call, UINT32_MAX, "input '%.100s' is no sequence: %lld tensors at %s", name,
                         (long long)sequence->count, sequence->tensors ? "an address" : "NULL");
  if (sequence->count == 0)
    return 0;
  ptc_rt_sequence *made = ptc_rt_new_sequence(call, sequence->count);
  if (!made)
    return PTC_RT_FAULT_MEMORY;
  int32_t fault = 0;
  for (int64_t i = 0; i < sequence->count && fault == 0; i++)
    fault = open_item(call, name, declared, &sequence->tensors[i], i, &made->items[i]);
  *result = made;
  return fault;
}

int32_t ptc_rt_open_sequence(ptc_rt_call *call, uint32_t input, void *target, const void *sequence, int64_t count) {
  (void)count;
  const ptc_value *value = &((ptc_rt_call_state *)call)->function->interface->inputs[input];
  const ptc_sequence *given = sequence;
  if (value->role == PTC_OPTIONAL && given->count > 1)
    return ptc_rt_refuse(call, UINT32_MAX, "input '%.100s' is optional and has %lld tensors", value->name,
                         (long long)given->count);
  return open_sequence(call, value->name, value->element, given, target);
}

static int32_t close_sequence(ptc_rt_call *call, const ptc_rt_sequence *made, ptc_sequence *sequence);

static int32_t close_item(ptc_rt_call *call, const ptc_rt_item *item, ptc_tensor *tensor) {
  *tensor = (ptc_tensor){
      .data = item->elements, .device = {PTC_CPU, 0}, .rank = item->rank, .dtype = item->dtype, .shape = item->dims};
  ptc_dtype dtype = item->dtype;
  if (ptc_rt_inner_bytes(dtype) * 8 == dtype.bits)
    return 0;
  size_t bytes = dtype.bits < 8 ? ((size_t)item->count * dtype.bits + 7) / 8 : (size_t)item->count * sizeof(ptc_string);
  if (!(tensor->data = ptc_rt_take(call, 1, bytes)))
    return PTC_RT_FAULT_MEMORY;
  if (dtype.code == PTC_SEQUENCE)
    return close_sequence(call, *(ptc_rt_sequence **)item->elements, tensor->data);
  if (dtype.code == PTC_STRING)
    return ptc_rt_close_strings(call, 0, tensor->data, item->elements, item->count);
  ptc_rt_pack(tensor->data, item->elements, item->count, dtype.bits);
  return 0;
}

static int32_t close_sequence(ptc_rt_call *call, const ptc_rt_sequence *made, ptc_sequence *sequence) {
  *sequence = (ptc_sequence){.count = made ? made->count : 0};
  if (sequence->count == 0)
    return 0;
  sequence->tensors = ptc_rt_take(call, (size_t)sequence->count, sizeof(ptc_tensor));
  if (!sequence->tensors)
    return PTC_RT_FAULT_MEMORY;
  int32_t fault = 0;
  for (int64_t i = 0; i < sequence->count && fault == 0; i++)
    fault = close_item(call, &made->items[i], &sequence->tensors[i]);
  return fault;
}

int32_t ptc_rt_close_sequence(ptc_rt_call *call, uint32_t output, void *sequence, const void *handle, int64_t count) {
  (void)output, (void)count;
  const ptc_rt_sequence *made = *(ptc_rt_sequence *const *)handle; /* which may lie where the struct goes */
  return close_sequence(call, made, sequence);
}
