/* Runs on a CUDA device: memory, arguments, launches, faults.
 *
 * A run puts everything on one stream, in order: copies of what the caller has in host memory, the program's launches,
 * copies of results, the words in which kernels report indices out of range (one a launch, so that the sentence names
 * the node). It waits at the end, unless the caller gave a stream and everything lies on the device already and no
 * kernel of the program reports anything: then it returns as soon as all is enqueued.
 *
 * Kernels want addresses that are multiples of 16, so that an argument on the device that is not goes through a copy.
 *
 * A program may do a part of its work on the host (ptc_rt_variant::places). That part has an arena of its own, with the
 * same offsets. An argument that the host alone uses stays where the caller has it, if that is the host; others have a
 * copy there for the time of the run, which the program fills where it needs it.
 */
#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAY(error, ...) snprintf(error, PTC_RT_ERROR_SIZE, __VA_ARGS__)

enum { POINTER_MEMORY_TYPE = 2, MEMORY_DEVICE = 2, STREAM_NON_BLOCKING = 1, ALIGNMENT = 256, MOST_PARAMETERS = 512 };

static const ptc_cuda_model *model_of(const ptc_model *model) { return model->device_model; }

static size_t round_up(size_t bytes) { return (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1); }

/* ---- memory ---- */

/* Takes longer blocks only: what a run has seen, a later one finds. Releasing waits for work that still uses it. */
static ptc_status grow(const ptc_cuda_driver *driver, ptc_cuda_block *block, size_t bytes, char *error) {
  if (bytes <= block->bytes)
    return PTC_OK;
  if (block->base)
    driver->release(block->base);
  *block = (ptc_cuda_block){0};
  int code = driver->allocate(&block->base, bytes);
  if (code == 0) {
    block->bytes = bytes;
    return PTC_OK;
  }
  char what[64];
  snprintf(what, sizeof(what), "allocate %zu bytes", bytes);
  return ptc_cuda_fail(driver, code, what, error);
}

static bool has_counters(const ptc_model *model) {
  for (uint32_t i = 0; i < model->descriptor->kernel_count; i++)
    if (ptc_cuda_kernel_of(model, i)->has_counters)
      return true;
  return false;
}

/* Room for what a context keeps on the host. */
static ptc_status allocate_ctx(ptc_ctx *ctx) {
  const ptc_rt_descriptor *descriptor = ctx->model->descriptor;
  uint32_t launches = 0, arguments = 0;
  for (uint32_t i = 0; i < descriptor->function_count; i++) {
    const ptc_rt_function *function = &descriptor->functions[i];
    uint32_t values = function->interface->input_count + function->interface->output_count;
    arguments = values > arguments ? values : arguments;
    for (uint32_t v = 0; v < function->variant_count; v++)
      launches = function->variants[v].launch_count > launches ? function->variants[v].launch_count : launches;
  }
  size_t each = sizeof(ptc_cuda_address) + sizeof(size_t) + sizeof(ptc_cuda_block) + 2 * sizeof(void *);
  size_t each_block = sizeof(char *) + sizeof(size_t);
  size_t works = descriptor->kernel_count * sizeof(ptc_cuda_work);
  size_t bytes = sizeof(ptc_cuda_ctx) + works + arguments * each + ctx->block_count * each_block + launches * 4;
  ptc_cuda_ctx *own = ptc_rt_allocate(ctx->model, bytes, PTC_RT_LINE);
  if (!own) {
    SAY(ctx->error, "no memory: %zu bytes", bytes);
    return PTC_OUT_OF_MEMORY;
  }
  memset(own, 0, bytes);
  own->bytes = bytes;
  own->launch_count = launches;
  own->argument_count = arguments;
  own->works = (ptc_cuda_work *)(own + 1);
  own->staged = (ptc_cuda_address *)(own->works + descriptor->kernel_count);
  own->argument_bytes = (size_t *)(own->staged + arguments);
  own->found = (ptc_cuda_block *)(own->argument_bytes + arguments);
  own->placed = (void **)(own->found + arguments);
  own->on_host = own->placed + arguments;
  own->host_blocks = (char **)(own->on_host + arguments);
  own->host_block_bytes = (size_t *)(own->host_blocks + ctx->block_count);
  own->host_faults = (uint32_t *)(own->host_block_bytes + ctx->block_count);
  ctx->device_ctx = own;
  return PTC_OK;
}

static ptc_status fill_ctx(ptc_ctx *ctx) {
  ptc_cuda_ctx *own = ctx->device_ctx;
  const ptc_cuda_driver *driver = &model_of(ctx->model)->driver;
  size_t faults = 4 * (size_t)own->launch_count + 4;
  int code = driver->stream_create(&own->stream, STREAM_NON_BLOCKING);
  if (code != 0)
    return ptc_cuda_fail(driver, code, "make a stream", ctx->error);
  ptc_cuda_describe_works(ctx->model, own);
  if (!has_counters(ctx->model))
    return grow(driver, &own->faults, faults, ctx->error);
  ptc_status status = grow(driver, &own->counters, 4 * PTC_RT_CUDA_COUNTERS, ctx->error);
  if (status != PTC_OK)
    return status;
  if ((code = driver->fill(own->counters.base, 0, own->counters.bytes, own->stream)) ||
      (code = driver->stream_wait(own->stream))) /* runs may be on other streams */
    return ptc_cuda_fail(driver, code, "clear memory", ctx->error);
  return grow(driver, &own->faults, faults, ctx->error);
}

/* What a context keeps, made at its first use: a context that never runs needs no device. Whole, or not at all. */
static ptc_status open_ctx(ptc_ctx *ctx) {
  if (ctx->device_ctx)
    return PTC_OK;
  ptc_status status = allocate_ctx(ctx);
  if (status == PTC_OK && (status = fill_ctx(ctx)) != PTC_OK)
    ptc_cuda_ctx_close(ctx);
  return status;
}

void ptc_cuda_ctx_close(ptc_ctx *ctx) {
  ptc_cuda_ctx *own = ctx->device_ctx;
  if (!own)
    return;
  const ptc_cuda_model *device = model_of(ctx->model);
  const ptc_cuda_driver *driver = &device->driver;
  if (driver->context_push(device->context) == 0) {
    if (own->under_way)
      driver->context_wait();
    ptc_cuda_block *blocks[] = {&own->memory, &own->staging, &own->faults, &own->scratch, &own->counters};
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
      if (blocks[i]->base)
        driver->release(blocks[i]->base);
    for (uint32_t i = 0; i < own->argument_count; i++)
      if (own->found[i].base)
        driver->release(own->found[i].base);
    for (uint32_t i = 0; i < ctx->block_count; i++)
      if (ctx->blocks[i])
        driver->release((uintptr_t)ctx->blocks[i]);
    memset(ctx->blocks, 0, ctx->block_count * sizeof(*ctx->blocks)); /* nothing of the host's */
    ptc_cuda_drop_spans(driver, own);
    ptc_cuda_graph_close(driver, own);
    ptc_cuda_drop_works(ctx->model, own);
    if (own->stream)
      driver->stream_destroy(own->stream);
    driver->context_pop(&(void *){0});
  }
  for (uint32_t i = 0; i < ctx->block_count; i++)
    ptc_rt_release(ctx->model, own->host_blocks[i], own->host_block_bytes[i]);
  ptc_rt_release(ctx->model, own, own->bytes);
  ctx->device_ctx = 0;
}

/* ---- arguments ---- */

static size_t bytes_of(const ptc_value *value, const int64_t *extents) {
  size_t count = 1;
  for (int32_t d = 0; d < value->rank; d++)
    count *= extents[d] > 0 ? (size_t)extents[d] : 0;
  return (count * value->dtype.bits + 7) / 8;
}

/* Where the program of the call uses an argument. */
static uint32_t place_of(const ptc_rt_call_state *call, uint32_t argument) {
  return call->variant->places ? call->variant->places[argument] : PTC_RT_ON_DEVICE;
}

/* Sizes of all arguments; returns what a copy of each of them would take, of those that the call's program uses on the
 * device. */
static size_t measure(ptc_ctx *ctx, const ptc_rt_function *function, const ptc_rt_call_state *call) {
  const ptc_function *interface = function->interface;
  ptc_cuda_ctx *own = ctx->device_ctx;
  size_t total = 0;
  ptc_rt_find_input_shapes(ctx, function);
  for (uint32_t i = 0; i < interface->input_count; i++)
    own->argument_bytes[i] = bytes_of(&interface->inputs[i], ctx->shapes[i]);
  ptc_rt_find_output_shapes(ctx, function);
  for (uint32_t i = 0; i < interface->output_count; i++) {
    const ptc_value *value = &interface->outputs[i];
    size_t bytes = ptc_rt_is_found(value) ? 0 : bytes_of(value, ctx->shapes[i]); /* see ptc_rt_cuda_output */
    own->argument_bytes[interface->input_count + i] = bytes;
  }
  for (uint32_t i = 0; i < interface->input_count + interface->output_count; i++)
    total += call && place_of(call, i) == PTC_RT_ON_HOST ? 0 : round_up(own->argument_bytes[i]);
  return total;
}

static bool is_on_device(const ptc_cuda_driver *driver, int64_t place, const void *pointer) {
  unsigned type = 0;
  if (place != 0)
    return ptc_rt_is_of_cuda(place);
  return driver->pointer_attribute(&type, POINTER_MEMORY_TYPE, (ptc_cuda_address)(uintptr_t)pointer) == 0 &&
         type == MEMORY_DEVICE;
}

typedef struct transfer {
  ptc_rt_call_state *call;
  const ptc_cuda_driver *driver;
  ptc_cuda_ctx *own;
  const ptc_function *interface;
  void **arguments; /* the context's: replaced by addresses on the device */
  void *stream;
  bool from_host; /* some argument is in host memory */
  bool finds;     /* the run finds the size of some output, which may be in host memory */
} transfer;

/* Gives an argument that the program uses on the host an address there. `has_copy`: beside what the caller has. */
static int32_t place_on_host(ptc_rt_call_state *call, uint32_t argument, void *given, bool *has_copy) {
  ptc_ctx *ctx = call->ctx;
  ptc_cuda_ctx *own = ctx->device_ctx;
  const ptc_cuda_driver *driver = &model_of(call->model)->driver;
  size_t bytes = own->argument_bytes[argument];
  bool is_apart = place_of(call, argument) == PTC_RT_ON_HOST;
  own->on_host[argument] = given;
  if (bytes == 0 || (is_apart && !is_on_device(driver, ctx->places[argument], given)))
    return 0;
  own->on_host[argument] = ptc_rt_take(&call->visible, bytes, 1);
  *has_copy |= is_apart;
  if (!own->on_host[argument])
    return PTC_RT_FAULT_MEMORY;
  if (is_apart && argument < call->function->interface->input_count)
    return ptc_rt_cuda_read(&call->visible, own->on_host[argument], given, (int64_t)bytes);
  return 0;
}

static int copy_in(transfer *t, uint32_t argument, void *source, bool on_device) {
  size_t bytes = t->own->argument_bytes[argument];
  if (on_device)
    return t->driver->copy_within(t->own->staged[argument], (uintptr_t)source, bytes, t->stream);
  return t->driver->copy_in(t->own->staged[argument], source, bytes, t->stream);
}

/* Gives every argument an address on the device. An alias pair has one. */
static ptc_status stage(transfer *t, void *const *given) {
  ptc_ctx *ctx = t->call->ctx;
  size_t offset = 0;
  uint32_t inputs = t->interface->input_count, count = inputs + t->interface->output_count;
  for (uint32_t i = 0; i < count; i++) {
    int32_t alias = i < inputs ? -1 : t->interface->outputs[i - inputs].alias;
    t->own->staged[i] = 0;
    t->finds |= i >= inputs && ptc_rt_is_found(&t->interface->outputs[i - inputs]);
    if (alias >= 0) {
      t->arguments[i] = t->arguments[alias];
      t->own->on_host[i] = t->own->on_host[alias];
      continue;
    }
    uint32_t place = place_of(t->call, i);
    int32_t fault = place & PTC_RT_ON_HOST ? place_on_host(t->call, i, given[i], &t->from_host) : 0;
    if (fault != 0)
      return ptc_rt_translate_fault(t->call, fault);
    if (t->own->argument_bytes[i] == 0 || place == PTC_RT_ON_HOST)
      continue;
    bool on_device = is_on_device(t->driver, ctx->places[i], given[i]);
    t->from_host |= !on_device;
    if (on_device && (uintptr_t)given[i] % 16 == 0)
      continue;
    t->own->staged[i] = t->own->staging.base + offset;
    offset += round_up(t->own->argument_bytes[i]);
    int code = i < inputs ? copy_in(t, i, given[i], on_device) : 0;
    if (code != 0)
      return ptc_cuda_fail(t->driver, code, "copy an input to the device", ctx->error);
    t->arguments[i] = (void *)(uintptr_t)t->own->staged[i];
  }
  return PTC_OK;
}

/* Brings back results, and inputs that were updated in place. */
static ptc_status unstage(transfer *t, void *const *given) {
  ptc_ctx *ctx = t->call->ctx;
  for (uint32_t i = 0; i < t->interface->output_count; i++) {
    int32_t alias = t->interface->outputs[i].alias;
    uint32_t argument = alias >= 0 ? (uint32_t)alias : t->interface->input_count + i;
    size_t bytes = t->own->argument_bytes[argument];
    if (place_of(t->call, argument) == PTC_RT_ON_HOST) {
      void *here = t->own->on_host[argument];
      if (here == given[argument] || bytes == 0)
        continue;
      int code = t->driver->copy_in((uintptr_t)given[argument], here, bytes, t->stream);
      if (code != 0)
        return ptc_cuda_fail(t->driver, code, "copy an output to the device", ctx->error);
      continue;
    }
    if (!t->own->staged[argument] || bytes == 0)
      continue;
    int code = is_on_device(t->driver, ctx->places[argument], given[argument])
                   ? t->driver->copy_within((uintptr_t)given[argument], t->own->staged[argument], bytes, t->stream)
                   : t->driver->copy_out(given[argument], t->own->staged[argument], bytes, t->stream);
    if (code != 0)
      return ptc_cuda_fail(t->driver, code, "copy an output from the device", ctx->error);
  }
  return PTC_OK;
}

/* ---- the run ---- */

static bool checks_indices(const ptc_rt_call_state *call) {
  for (uint32_t i = 0; i < call->variant->launch_count; i++) {
    uint32_t kernel = call->variant->launches[i].kernel;
    if (kernel != UINT32_MAX && ptc_cuda_kernel_of(call->model, kernel)->checks_indices)
      return true;
  }
  return false;
}

static int32_t find_fault(ptc_rt_call_state *call, const ptc_cuda_ctx *own) {
  for (uint32_t i = 0; i < call->variant->launch_count; i++)
    if (own->host_faults[i]) {
      call->site = i;
      return PTC_RT_FAULT_INDEX;
    }
  return 0;
}

/* Of a run that failed on the host: an index that a launch before found out of range is where it began. Nothing of the
 * call is under way when it returns. */
static ptc_status explain(transfer *t, bool checked, ptc_status status) {
  ptc_rt_call_state *call = t->call;
  size_t bytes = checked ? 4 * (size_t)call->variant->launch_count : 0;
  int code = bytes ? t->driver->copy_out(t->own->host_faults, t->own->faults.base, bytes, t->stream) : 0;
  code = t->driver->stream_wait(t->stream) || code;
  int32_t fault = bytes && code == 0 ? find_fault(call, t->own) : 0;
  return fault ? ptc_rt_translate_fault(call, fault) : status;
}

static ptc_status finish(transfer *t, void *const *given, bool checked, bool waits) {
  ptc_rt_call_state *call = t->call;
  ptc_status status = unstage(t, given);
  int code = 0;
  if (status == PTC_OK && checked)
    code = t->driver->copy_out(t->own->host_faults, t->own->faults.base, 4 * (size_t)call->variant->launch_count,
                               t->stream);
  if (status == PTC_OK && code == 0 && waits)
    code = t->driver->stream_wait(t->stream);
  if (status == PTC_OK && code != 0)
    status = ptc_cuda_fail(t->driver, code, "run the model", call->ctx->error);
  int32_t fault = status == PTC_OK && checked ? find_fault(call, t->own) : 0;
  return fault ? ptc_rt_translate_fault(call, fault) : status;
}

/* The context's memory on the host. */
static ptc_status grow_host(ptc_ctx *ctx, size_t bytes) {
  if (ptc_rt_grow_block(ctx->model, &ctx->memory.base, &ctx->memory.bytes, (int64_t)bytes))
    return PTC_OK;
  SAY(ctx->error, "no memory: %zu bytes", bytes);
  return PTC_OUT_OF_MEMORY;
}

/* What the program needs to work on the host, too. Its launches there find scratch as they need it. */
static ptc_status open_host(ptc_rt_call_state *call) {
  ptc_ctx *ctx = call->ctx;
  ptc_cuda_ctx *own = ctx->device_ctx;
  if (!call->variant->places)
    return PTC_OK;
  ptc_status status = grow_host(ctx, call->arena_bytes);
  if (status != PTC_OK)
    return status;
  call->visible.host_arena = ctx->memory.base;
  call->visible.host_arguments = own->on_host;
  call->visible.host_weights = call->model->weights;
  call->visible.host_blocks = own->host_blocks;
  return PTC_OK;
}

static ptc_status run_program(transfer *t, ptc_cuda_address base) {
  ptc_rt_call_state *call = t->call;
  const ptc_cuda_model *device = model_of(call->model);
  base = (base + PTC_RT_PAGE - 1) & ~(ptc_cuda_address)(PTC_RT_PAGE - 1);
  /* Offsets count from the first of all targets' weights, of which the device has a part. */
  call->visible.weights = (const char *)(uintptr_t)(device->weights - call->model->descriptor->weights.begin);
  call->visible.constants = (const char *)(uintptr_t)device->constants;
  t->own->program_scratch = base + call->arena_bytes;
  t->own->program_scratch_bytes = call->scratch_stride;
  call->scratch_stride = 0; /* of the host: none yet */
  ptc_status status = open_host(call);
  if (status != PTC_OK)
    return status;
  ptc_cuda_graph_begin(call);
  int32_t fault = call->variant->program(&call->visible, call->ctx->symbols, t->arguments, (char *)(uintptr_t)base);
  int code = ptc_cuda_graph_end(call, fault != 0);
  if (fault == 0 && code != 0)
    return ptc_cuda_fail(t->driver, code, "launch a graph", call->ctx->error);
  return fault == 0 ? PTC_OK : ptc_rt_translate_fault(call, fault);
}

/* Memory of the context may be in use by a run that was left under way on another stream, which may be gone by now. Of
 * launches that the caller captures into a graph of its own, only it knows when they run. */
static int wait_for_others(const transfer *t) {
  int captures = 0;
  if (!t->own->under_way || t->own->under_way == t->stream)
    return 0;
  int code = t->driver->stream_captures(t->stream, &captures);
  return code != 0 || captures ? code : t->driver->context_wait();
}

/* The device's context is current. */
static ptc_status run_here(ptc_rt_call_state *call, char *workspace, size_t bytes, void *stream) {
  ptc_ctx *ctx = call->ctx;
  ptc_status status = open_ctx(ctx);
  if (status != PTC_OK)
    return status;
  ptc_cuda_ctx *own = ctx->device_ctx;
  const ptc_cuda_driver *driver = &model_of(call->model)->driver;
  const ptc_function *interface = call->function->interface;
  transfer t = {.call = call,
                .driver = driver,
                .own = own,
                .interface = interface,
                .arguments = own->placed,
                .stream = stream ? stream : own->stream};
  call->stream = t.stream;
  size_t count = interface->input_count + interface->output_count;
  if (count)
    memcpy(own->placed, ctx->arguments, count * sizeof(void *));
  size_t staging = measure(ctx, call->function, call);
  int code = wait_for_others(&t);
  if (code != 0)
    return ptc_cuda_fail(driver, code, "finish a run before this one", ctx->error);
  own->under_way = 0;
  if (!workspace)
    status = grow(driver, &own->memory, bytes, ctx->error);
  if (status == PTC_OK)
    status = grow(driver, &own->staging, staging, ctx->error);
  bool checked = checks_indices(call), profiled = call->model->profile != 0;
  if (status == PTC_OK && checked)
    code = driver->fill(own->faults.base, 0, 4 * (size_t)call->variant->launch_count, t.stream);
  if (code != 0)
    status = ptc_cuda_fail(driver, code, "clear memory", ctx->error);
  if (status == PTC_OK)
    status = stage(&t, ctx->arguments);
  uint64_t begin = profiled ? ptc_rt_now() : 0;
  if (profiled)
    ptc_cuda_begin_spans(call);
  if (status == PTC_OK)
    status = run_program(&t, workspace ? (uintptr_t)workspace : own->memory.base);
  bool waits = !stream || checked || t.from_host || t.finds || profiled;
  if (status == PTC_OK)
    status = finish(&t, ctx->arguments, checked, waits);
  else
    status = explain(&t, checked, status);
  own->under_way = waits ? 0 : t.stream;
  if (profiled)
    ptc_cuda_record_spans(call, begin);
  return status;
}

ptc_status ptc_cuda_run(ptc_rt_call_state *call, char *workspace, size_t bytes, void *stream) {
  const ptc_cuda_model *device = model_of(call->model);
  int code = device->driver.context_push(device->context);
  if (code != 0)
    return ptc_cuda_fail(&device->driver, code, "use its context", call->ctx->error);
  if (device->has_profiler)
    ptc_cuda_push_range(call->function->interface->name);
  ptc_status status = run_here(call, workspace, bytes, stream);
  if (device->has_profiler)
    ptc_cuda_pop_range();
  device->driver.context_pop(&(void *){0});
  return status;
}

/* Sizes are those of ctx->symbols. */
ptc_status ptc_cuda_reserve(ptc_ctx *ctx, const ptc_rt_function *function, const int64_t *symbols, size_t bytes) {
  const ptc_cuda_model *device = model_of(ctx->model);
  int code = device->driver.context_push(device->context);
  if (code != 0)
    return ptc_cuda_fail(&device->driver, code, "use its context", ctx->error);
  ptc_status status = open_ctx(ctx);
  if (symbols != ctx->symbols && function->interface->symbol_count)
    memcpy(ctx->symbols, symbols, function->interface->symbol_count * sizeof(*symbols));
  if (status == PTC_OK) {
    ptc_cuda_ctx *own = ctx->device_ctx;
    status = grow(&device->driver, &own->memory, bytes, ctx->error);
    if (status == PTC_OK)
      status = grow(&device->driver, &own->staging, measure(ctx, function, 0), ctx->error);
    bool works_here = false;
    for (uint32_t i = 0; i < function->variant_count; i++)
      works_here |= function->variants[i].places != 0;
    if (status == PTC_OK && works_here)
      status = grow_host(ctx, bytes);
  }
  device->driver.context_pop(&(void *){0});
  return status;
}

/* ---- called by programs ---- */

static int32_t fail(ptc_rt_call_state *call, int code, const char *what) {
  ptc_status status = ptc_cuda_fail(&model_of(call->model)->driver, code, what, call->ctx->error);
  return status == PTC_OUT_OF_MEMORY ? PTC_RT_FAULT_MEMORY : PTC_RT_FAULT_DEVICE;
}

/* Describes a tensor to the driver: boxes of rows of 128 bytes, swizzled, zeros outside. */
static int encode_map(const ptc_cuda_driver *driver, const ptc_rt_tensor_map *map, void *buffer, ptc_cuda_map *result) {
  enum { SWIZZLE_128 = 3, PROMOTE_128 = 2 };
  int type = map->element_bytes == 1 ? 0 : map->element_bytes == 2 ? 1 : 2; /* unsigned integers */
  void *address = (char *)buffer + map->offset;
  uint32_t box[PTC_RT_CUDA_MAP_RANK], steps[PTC_RT_CUDA_MAP_RANK];
  int lower[PTC_RT_CUDA_MAP_AXES], upper[PTC_RT_CUDA_MAP_AXES];
  for (uint32_t d = 0; d < PTC_RT_CUDA_MAP_RANK; d++) {
    box[d] = (uint32_t)map->box[d];
    steps[d] = d > 0 && d <= map->axes ? (uint32_t)map->steps[d - 1] : 1;
  }
  for (uint32_t d = 0; d < PTC_RT_CUDA_MAP_AXES; d++) {
    lower[d] = (int)map->lower[d];
    upper[d] = (int)map->upper[d];
  }
  if (map->axes > 0)
    return driver->map_encode_image(result, type, map->rank, address, map->extents, map->strides + 1, lower, upper,
                                    box[0], box[1], steps, 0, SWIZZLE_128, PROMOTE_128, 0);
  return driver->map_encode(result, type, map->rank, address, map->extents, map->strides + 1, box, steps, 0,
                            SWIZZLE_128, PROMOTE_128, 0);
}

static int encode_maps(const ptc_cuda_driver *driver, const ptc_rt_device_kernel *kernel, void *const *buffers,
                       ptc_cuda_map *maps) {
  int code = 0;
  for (uint32_t i = 0; i < kernel->map_count && code == 0; i++)
    code = encode_map(driver, &kernel->maps[i], buffers[kernel->maps[i].buffer], &maps[i]);
  return code;
}

static unsigned grid_of(const ptc_cuda_model *device, const ptc_rt_device_kernel *kernel, int64_t iterations) {
  if (kernel->blocks == 0)
    return (unsigned)iterations;
  unsigned most = (unsigned)device->multiprocessors * kernel->together;
  return kernel->blocks < most ? kernel->blocks : most;
}

/* A library in the place of a kernel, in a profile. What its call takes on the host, often more than the work takes on
 * the device, must not lie between the events: so it is made beforehand, into a graph. */
static int put_observed_work(ptc_rt_call_state *call, uint32_t site, const ptc_cuda_launch *launch,
                             ptc_cuda_work *work) {
  const ptc_cuda_model *device = model_of(call->model);
  void *graph = 0, *exec = ptc_cuda_graph_of_work(call, work, &graph);
  ptc_cuda_span *span = ptc_cuda_begin_span(call, site, launch->grid[0]);
  int code = exec ? device->driver.graph_launch(exec, call->stream) : ptc_cuda_do_work(device, work, call->stream);
  if (span)
    ptc_cuda_end_span(call, span);
  if (exec)
    device->driver.graph_exec_destroy(exec);
  if (graph)
    device->driver.graph_destroy(graph);
  return code;
}

static int put_observed_kernel(ptc_rt_call_state *call, uint32_t site, const ptc_cuda_launch *launch) {
  ptc_cuda_span *span = call->model->profile ? ptc_cuda_begin_span(call, site, launch->grid[0]) : 0;
  int code = model_of(call->model)
                 ->driver.launch(launch->function, launch->grid[0], 1, 1, launch->block[0], launch->block[1], 1,
                                 launch->shared_bytes, call->stream, launch->parameters, 0);
  if (span)
    ptc_cuda_end_span(call, span);
  return code;
}

/* The kernel, or a library in its place, with what observers want around it. */
static int put_on_stream(ptc_rt_call_state *call, uint32_t site, const ptc_cuda_launch *launch, ptc_cuda_work *work) {
  const ptc_cuda_model *device = model_of(call->model);
  const ptc_rt_launch_site *of = &call->variant->launches[site];
  if (device->has_profiler)
    ptc_cuda_push_range(of->nodes ? of->nodes : call->model->descriptor->kernel_names[of->kernel]);
  int code = !work                  ? put_observed_kernel(call, site, launch)
             : call->model->profile ? put_observed_work(call, site, launch, work)
                                    : ptc_cuda_do_work(device, work, call->stream);
  if (device->has_profiler)
    ptc_cuda_pop_range();
  return code;
}

/* Leaves the launch to a library, if that does it. */
static bool put_work(ptc_rt_call_state *call, uint32_t site, const ptc_cuda_launch *launch, void *const *buffers,
                     ptc_cuda_address scratch, int32_t *fault) {
  ptc_cuda_ctx *own = call->ctx->device_ctx;
  uint32_t number = call->variant->launches[site].kernel;
  ptc_cuda_work *work = &own->works[number];
  if (!work->library)
    return false;
  ptc_cuda_place_work(work, ptc_cuda_kernel_of(call->model, number), buffers, scratch);
  bool replays = own->graph && own->graph->state == PTC_CUDA_GRAPH_REPLAYS;
  if (!replays && put_on_stream(call, site, launch, work) != 0) {
    ptc_cuda_graph_close(&model_of(call->model)->driver, own); /* they have nodes of it */
    own->graph = 0;
    ptc_cuda_refuse_work(call->model, work);
    return false;
  }
  work->has_run = true;
  int code = own->graph ? ptc_cuda_graph_add_work(call, number, work) : 0;
  *fault = code == 0 ? 0 : fail(call, code, "record a launch");
  return true;
}

int32_t ptc_rt_cuda_launch(ptc_rt_call *visible, uint32_t site, void *const *buffers, const int64_t *symbols,
                           int64_t iterations, int64_t grain, int64_t scratch_bytes) {
  ptc_rt_call_state *call = (ptc_rt_call_state *)visible;
  const ptc_cuda_model *device = model_of(call->model);
  uint32_t number = call->variant->launches[site].kernel;
  const ptc_rt_device_kernel *kernel = ptc_cuda_kernel_of(call->model, number);
  ptc_cuda_ctx *own = call->ctx->device_ctx;
  void *parameters[MOST_PARAMETERS];
  ptc_cuda_map maps[PTC_RT_CUDA_MAPS];
  uint32_t count = 0, total = kernel->buffer_count + kernel->symbol_count + 3 + kernel->map_count;
  if (iterations <= 0)
    return 0;
  call->site = site;
  if (total > MOST_PARAMETERS)
    return PTC_RT_FAULT_INTERNAL;
  ptc_cuda_address scratch = own->program_scratch;
  if (scratch_bytes > (int64_t)own->program_scratch_bytes) { /* of a size that nothing bounds */
    if (grow(&device->driver, &own->scratch, (size_t)scratch_bytes, call->ctx->error) != PTC_OK)
      return PTC_RT_FAULT_DEVICE;
    scratch = own->scratch.base;
  }
  if (iterations > INT32_MAX) {
    SAY(call->ctx->error, "a launch of %lld blocks is larger than the device takes", (long long)iterations);
    return PTC_RT_FAULT_DEVICE;
  }
  for (uint32_t i = 0; i < kernel->buffer_count; i++)
    parameters[count++] = (void *)&buffers[i];
  for (uint32_t i = 0; i < kernel->symbol_count; i++)
    parameters[count++] = (void *)&symbols[i];
  ptc_cuda_address fault = own->faults.base + 4 * (ptc_cuda_address)site;
  if (kernel->checks_indices)
    parameters[count++] = &fault;
  if (kernel->has_scratch)
    parameters[count++] = &scratch;
  if (kernel->has_counters)
    parameters[count++] = &own->counters.base;
  for (uint32_t i = 0; i < kernel->map_count; i++)
    parameters[count + i] = &maps[i];
  const ptc_cuda_launch launch = {.function = device->functions[number],
                                  .grid = {grid_of(device, kernel, iterations), 1, 1},
                                  .block = {kernel->threads, kernel->rows, 1},
                                  .shared_bytes = kernel->shared_bytes,
                                  .parameters = parameters};
  int32_t fault_of_work = 0;
  if (put_work(call, site, &launch, buffers, scratch, &fault_of_work))
    return fault_of_work;
  bool done = false;
  int code = 0;
  if (kernel->map_count > 0 && !ptc_cuda_graph_has(own, &launch, count) &&
      (code = encode_maps(&device->driver, kernel, buffers, maps)))
    return fail(call, code, "describe a tensor");
  code = own->graph ? ptc_cuda_graph_add(call, number, &launch, count, &done) : 0;
  if (code != 0)
    return fail(call, code, "record a launch");
  if (done)
    return 0;
  code = put_on_stream(call, site, &launch, 0);
  return code == 0 ? 0 : fail(call, code, "launch a kernel");
}

int32_t ptc_rt_cuda_read(ptc_rt_call *visible, void *target, const void *source, int64_t bytes) {
  ptc_rt_call_state *call = (ptc_rt_call_state *)visible;
  ptc_cuda_graph_give_up(call);
  const ptc_cuda_driver *driver = &model_of(call->model)->driver;
  int code = bytes > 0 ? driver->copy_out(target, (uintptr_t)source, (size_t)bytes, call->stream) : 0;
  if (code == 0)
    code = driver->stream_wait(call->stream);
  return code == 0 ? 0 : fail(call, code, "read a value");
}

int32_t ptc_rt_cuda_write(ptc_rt_call *visible, void *target, const void *source, int64_t bytes) {
  ptc_rt_call_state *call = (ptc_rt_call_state *)visible;
  ptc_cuda_graph_give_up(call);
  const ptc_cuda_driver *driver = &model_of(call->model)->driver;
  int code = bytes > 0 ? driver->copy_in((uintptr_t)target, source, (size_t)bytes, call->stream) : 0;
  if (code == 0)
    code = driver->stream_wait(call->stream); /* the source is given back */
  return code == 0 ? 0 : fail(call, code, "write a value");
}

/* A block that must grow grows by half at least, as on the host. */
static int32_t grow_slot(ptc_rt_call *visible, uint32_t slot, int64_t bytes, bool keeps) {
  ptc_rt_call_state *call = (ptc_rt_call_state *)visible;
  ptc_cuda_graph_give_up(call);
  ptc_ctx *ctx = call->ctx;
  const ptc_cuda_driver *driver = &model_of(call->model)->driver;
  ptc_cuda_block old = {(uintptr_t)ctx->blocks[slot], ctx->block_bytes[slot]},
                 block = keeps ? (ptc_cuda_block){0} : old;
  if (bytes < 0)
    return PTC_RT_FAULT_MEMORY;
  if ((size_t)bytes <= old.bytes)
    return 0;
  size_t more = old.bytes + old.bytes / 2, wanted = (size_t)bytes > more ? (size_t)bytes : more;
  ptc_status status = grow(driver, &block, wanted, ctx->error);
  bool moves = keeps && old.base;
  int code = moves && status == PTC_OK ? driver->copy_within(block.base, old.base, old.bytes, call->stream) : 0;
  if (code)
    status = ptc_cuda_fail(driver, code, "move a value that grows", ctx->error);
  if (moves)
    driver->release(old.base);
  ctx->blocks[slot] = (char *)(uintptr_t)block.base;
  ctx->block_bytes[slot] = block.bytes;
  return status == PTC_OK ? 0 : status == PTC_OUT_OF_MEMORY ? PTC_RT_FAULT_MEMORY : PTC_RT_FAULT_DEVICE;
}

int32_t ptc_rt_cuda_grow(ptc_rt_call *call, uint32_t slot, int64_t bytes) {
  return grow_slot(call, slot, bytes, false);
}

int32_t ptc_rt_cuda_regrow(ptc_rt_call *call, uint32_t slot, int64_t bytes) {
  return grow_slot(call, slot, bytes, true);
}

int32_t ptc_rt_cuda_grow_host(ptc_rt_call *visible, uint32_t slot, int64_t bytes) {
  ptc_ctx *ctx = ((ptc_rt_call_state *)visible)->ctx;
  ptc_cuda_ctx *own = ctx->device_ctx;
  bool done = ptc_rt_grow_block(ctx->model, &own->host_blocks[slot], &own->host_block_bytes[slot], bytes);
  return done ? 0 : PTC_RT_FAULT_MEMORY;
}

int32_t ptc_rt_cuda_regrow_host(ptc_rt_call *visible, uint32_t slot, int64_t bytes) {
  ptc_ctx *ctx = ((ptc_rt_call_state *)visible)->ctx;
  ptc_cuda_ctx *own = ctx->device_ctx;
  bool done = ptc_rt_regrow_block(ctx->model, &own->host_blocks[slot], &own->host_block_bytes[slot], bytes);
  return done ? 0 : PTC_RT_FAULT_MEMORY;
}

/* The caller's memory, or what is allocated for it, is the host's as on the host; launches write a copy. */
int32_t ptc_rt_cuda_output(ptc_rt_call *visible, uint32_t index, const int64_t *extents) {
  ptc_rt_call_state *call = (ptc_rt_call_state *)visible;
  ptc_cuda_graph_give_up(call);
  ptc_ctx *ctx = call->ctx;
  ptc_cuda_ctx *own = ctx->device_ctx;
  const ptc_cuda_driver *driver = &model_of(call->model)->driver;
  uint32_t argument = call->function->interface->input_count + index;
  int32_t fault = ptc_rt_output(visible, index, extents);
  if (fault != 0)
    return fault;
  own->argument_bytes[argument] = bytes_of(&call->function->interface->outputs[index], extents);
  if (ctx->results[index].allocated)
    ctx->places[argument] = PTC_CPU;
  void *given = own->placed[argument] = ctx->arguments[argument];
  uint32_t place = place_of(call, argument);
  bool has_copy = false; /* the run waits in any case */
  if (place & PTC_RT_ON_HOST && (fault = place_on_host(call, argument, given, &has_copy)))
    return fault;
  if (place == PTC_RT_ON_HOST)
    return 0;
  if (is_on_device(driver, ctx->places[argument], given) && (uintptr_t)given % 16 == 0)
    return 0;
  if (grow(driver, &own->found[argument], own->argument_bytes[argument], ctx->error) != PTC_OK)
    return PTC_RT_FAULT_DEVICE;
  own->staged[argument] = own->found[argument].base;
  own->placed[argument] = (void *)(uintptr_t)own->staged[argument];
  return 0;
}

/* Elements below one byte are rare, and few: the host converts them. */
int32_t ptc_rt_cuda_unpack(ptc_rt_call *visible, void *target, const void *packed, int64_t count, int32_t bits) {
  int64_t bytes = (count * bits + 7) / 8;
  uint8_t *host = malloc((size_t)(count + bytes) + 1);
  if (!host)
    return PTC_RT_FAULT_MEMORY;
  int32_t fault = ptc_rt_cuda_read(visible, host + count, packed, bytes);
  if (fault == 0) {
    ptc_rt_unpack(host, host + count, count, bits);
    fault = ptc_rt_cuda_write(visible, target, host, count);
  }
  free(host);
  return fault;
}

int32_t ptc_rt_cuda_pack(ptc_rt_call *visible, void *packed, const void *source, int64_t count, int32_t bits) {
  int64_t bytes = (count * bits + 7) / 8;
  uint8_t *host = malloc((size_t)(count + bytes) + 1);
  if (!host)
    return PTC_RT_FAULT_MEMORY;
  int32_t fault = ptc_rt_cuda_read(visible, host, source, count);
  if (fault == 0) {
    ptc_rt_pack(host + count, host, count, bits);
    fault = ptc_rt_cuda_write(visible, packed, host + count, bytes);
  }
  free(host);
  return fault;
}

/* The observer sees a copy: the elements between the first and the last that the view reaches. */
int32_t ptc_rt_cuda_tap(ptc_rt_call *visible, uint32_t tap, void *value, int64_t *shape) {
  ptc_rt_call_state *call = (ptc_rt_call_state *)visible;
  const ptc_rt_tap_site *site = &call->variant->taps[tap];
  int64_t low = 0, high = 0, width = (site->dtype.bits + 7) / 8;
  if (!call->model->tap)
    return 0;
  for (uint32_t d = 0; d < site->rank; d++) {
    int64_t reach = shape[d] > 0 ? (shape[d] - 1) * shape[site->rank + d] : 0;
    *(reach < 0 ? &low : &high) += reach;
    if (shape[d] == 0)
      width = 0;
  }
  char *host = malloc((size_t)((high - low + 1) * width) + 1);
  if (!host)
    return PTC_RT_FAULT_MEMORY;
  int32_t fault = ptc_rt_cuda_read(visible, host, (char *)value + low * width, (high - low + 1) * width);
  if (fault == 0)
    ptc_rt_tap(visible, tap, host - low * width, shape);
  free(host);
  return fault;
}
