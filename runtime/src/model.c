/* Life of a model: options, target, CPU level, weights; and of the library's threads, which end with the last model.
 *
 * A library for several targets has a descriptor for each. Create picks one; a model knows its own alone, and all that
 * follows is as if there were no other.
 */
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Models of this library that are alive, and the threads they use. Shared by nothing outside the library. */
static struct {
  atomic_uint models;
  _Atomic(const ptc_rt_threading *) threading;
} library;

static ptc_status fail(const ptc_options *options, ptc_status status, const char *sentence) {
  if (options->error && options->error_size > 0)
    snprintf(options->error, options->error_size, "%s", sentence);
  return status;
}

/* Callers compiled against another version of the options: what they do not know is zero. */
static ptc_options complete(const ptc_options *given) {
  ptc_options options = {0};
  if (given)
    memcpy(&options, given, given->struct_size < sizeof(options) ? given->struct_size : sizeof(options));
  options.struct_size = sizeof(options);
  return options;
}

/* The best of `count` levels of this processor; `asked`: the only one that may be it, NULL: any. */
static ptc_status choose_level(const ptc_rt_level *levels, uint32_t count, const char *asked, uint32_t *chosen,
                               const ptc_options *options) {
  bool known = false;
  for (*chosen = count; (*chosen)-- > 0;) {
    const ptc_rt_level *level = &levels[*chosen];
    if (asked && strcmp(asked, level->name) != 0)
      continue;
    known = true;
    if (ptc_rt_cpu_has(level->features))
      return PTC_OK;
  }
  char sentence[PTC_RT_ERROR_SIZE];
  if (!asked)
    snprintf(sentence, sizeof(sentence), "this processor is older than the lowest level of the model, %s",
             levels[0].name);
  else
    snprintf(sentence, sizeof(sentence),
             known ? "this processor lacks what CPU level '%s' needs" : "the model was not compiled for CPU level '%s'",
             asked);
  return fail(options, known ? PTC_CPU_UNSUPPORTED : PTC_INVALID_ARGUMENT, sentence);
}

/* Functions of kernels that run on this processor: all, or what a device leaves to it. */
static ptc_status choose_kernels(ptc_model *model, const ptc_options *options) {
  const ptc_rt_descriptor *descriptor = model->descriptor;
  bool is_beside = ptc_rt_device_of(model) != 0;
  uint32_t chosen = 0;
  if (is_beside && descriptor->host_level_count == 0)
    return PTC_OK;
  const ptc_rt_level *levels = is_beside ? descriptor->host_levels : descriptor->levels;
  ptc_status status = choose_level(levels, is_beside ? descriptor->host_level_count : descriptor->level_count,
                                   is_beside ? 0 : options->cpu_level, &chosen, options);
  if (status != PTC_OK)
    return status;
  model->kernels = levels[chosen].kernels;
  if (!is_beside) /* a device chooses its own */
    model->level = chosen;
  return PTC_OK;
}

static ptc_status check(const ptc_rt_descriptor *descriptor, const ptc_options *options) {
  if (descriptor->version != PTC_RT_VERSION)
    return fail(options, PTC_INTERNAL_ERROR, "the runtime inside the library does not match its model");
  if (options->allocator.allocate && !options->allocator.release)
    return fail(options, PTC_INVALID_ARGUMENT, "the allocator has no release function");
  if (options->profile &&
      (options->profile->span_size == 0 || (options->profile->capacity && !options->profile->spans)))
    return fail(options, PTC_INVALID_ARGUMENT, "the profile has no span_size, or no spans");
  return PTC_OK;
}

static ptc_model *describe_model(const ptc_rt_descriptor *descriptor, const ptc_options *options) {
  ptc_model *model = calloc(1, sizeof(*model));
  if (!model)
    return 0;
  model->descriptor = descriptor;
  model->allocator = options->allocator;
  model->pool = options->pool;
  model->log = options->log;
  model->log_state = options->log_state;
  model->profile = options->profile;
  model->tap = options->tap;
  model->tap_state = options->tap_state;
  model->ordinal = options->device;
  model->threads = options->threads ? options->threads : ptc_rt_cpu_count();
  if (model->threads > PTC_RT_MAX_THREADS)
    model->threads = PTC_RT_MAX_THREADS;
  if ((ptc_rt_device_of(model) && descriptor->host_level_count == 0) ||
      (descriptor->threading == &ptc_rt_threading_none && !model->pool.parallel_for))
    model->threads = 1;
  return model;
}

/* Weights, the device, custom code: all of them or none. */
static ptc_status open_parts(ptc_model *model, const ptc_options *options) {
  const ptc_rt_device *device = ptc_rt_device_of(model);
  const ptc_rt_custom_code *custom = model->descriptor->custom_code;
  ptc_status status = ptc_rt_weights_open(model, options);
  if (status != PTC_OK)
    return status;
  status = device ? device->open(model, options) : PTC_OK;
  if (status == PTC_OK) {
    status = custom ? custom->runtime->open(model, options) : PTC_OK;
    if (status != PTC_OK && device)
      device->close(model);
  }
  if (status != PTC_OK)
    ptc_rt_weights_close(model);
  return status;
}

static void close_parts(ptc_model *model) {
  if (ptc_rt_device_of(model))
    ptc_rt_device_of(model)->close(model);
  if (model->descriptor->custom_code)
    model->descriptor->custom_code->runtime->close(model);
  ptc_rt_weights_close(model);
}

static ptc_status create_for(const ptc_rt_descriptor *descriptor, const ptc_options *options, ptc_model **result) {
  ptc_model *model = describe_model(descriptor, options);
  if (!model)
    return fail(options, PTC_OUT_OF_MEMORY, "no memory for the model");
  ptc_status status = choose_kernels(model, options);
  if (status == PTC_OK)
    status = open_parts(model, options);
  if (status != PTC_OK) {
    free(model);
    return status;
  }
  atomic_store(&library.threading, descriptor->threading);
  atomic_fetch_add(&library.models, 1);
  *result = model;
  return PTC_OK;
}

/* ---- the target ---- */

static bool has_level(const ptc_rt_descriptor *descriptor, const char *name) {
  for (uint32_t i = 0; i < descriptor->level_count; i++)
    if (strcmp(descriptor->levels[i].name, name) == 0)
      return true;
  return false;
}

static int32_t type_of(const ptc_rt_descriptor *descriptor) {
  return descriptor->device_code ? descriptor->device_code->device->type : PTC_CPU;
}

/* What the options ask for; 0: nothing in particular. */
static int32_t find_wanted_type(const ptc_rt_descriptor *all, const ptc_options *options) {
  if (options->device_type != 0)
    return options->device_type;
  for (const ptc_rt_descriptor *d = all; d && options->device != 0; d = d->next)
    if (d->device_code)
      return type_of(d);
  for (const ptc_rt_descriptor *d = all; d && options->cpu_level; d = d->next)
    if (has_level(d, options->cpu_level))
      return type_of(d);
  return 0;
}

/* Devices come first, this processor is what remains. The sentence of a failure is that of the last attempt. */
static ptc_status create_for_best(const ptc_rt_descriptor *all, const ptc_options *options, ptc_model **result) {
  int32_t wanted = find_wanted_type(all, options);
  ptc_status status = PTC_UNSUPPORTED;
  for (int on_device = 1; on_device >= 0; on_device--)
    for (const ptc_rt_descriptor *d = all; d; d = d->next) {
      if ((d->device_code != 0) != on_device || (wanted != 0 && wanted != type_of(d)))
        continue;
      status = create_for(d, options, result);
      if (status != PTC_NO_DEVICE && status != PTC_DEVICE_ERROR) /* nothing that another target could do better */
        return status;
    }
  if (status != PTC_UNSUPPORTED)
    return status;
  return fail(options, status,
              wanted == PTC_CPU    ? "the model was compiled for a device, not for this processor"
              : wanted == PTC_CUDA ? "the model was not compiled for CUDA devices"
                                   : "the model was not compiled for devices of the type asked for");
}

ptc_status ptc_rt_create(const ptc_rt_descriptor *descriptor, const ptc_options *given, ptc_model **result) {
  if (given && given->struct_size < sizeof(given->struct_size)) { /* never set: nothing in it can be relied on */
    if (result)
      *result = 0;
    return PTC_INVALID_ARGUMENT;
  }
  ptc_options options = complete(given);
  if (!result)
    return fail(&options, PTC_INVALID_ARGUMENT, "the pointer that receives the model is NULL");
  *result = 0;
  ptc_status status = check(descriptor, &options);
  if (status == PTC_OK)
    status = create_for_best(descriptor, &options, result);
  if (status == PTC_OK && descriptor->next) /* a target that was tried before may have left its sentence */
    fail(&options, PTC_OK, "");
  return status;
}

static void stop_threads(void) {
  const ptc_rt_threading *threading = atomic_load(&library.threading);
  if (threading)
    threading->shutdown();
}

void ptc_rt_destroy(ptc_model *model) {
  if (!model)
    return;
  close_parts(model);
  free(model);
  if (atomic_fetch_sub(&library.models, 1) == 1)
    stop_threads();
}

__attribute__((destructor)) static void close_library(void) { stop_threads(); }

/* Reads every page of the weights, so that no run waits for the disk. */
static void touch_weights(const ptc_model *model) {
  volatile char sum = 0;
  const ptc_rt_weights *weights = &model->descriptor->weights;
  for (uint64_t i = weights->begin / PTC_RT_PAGE * PTC_RT_PAGE; i < weights->end; i += PTC_RT_PAGE)
    sum ^= model->weights[i];
  (void)sum;
}

void ptc_rt_prepare(const ptc_model *model) {
  if (!ptc_rt_device_of(model)) /* else create has copied the weights */
    touch_weights(model);
  if (model->threads > 1 && !model->pool.parallel_for)
    model->descriptor->threading->prepare(model->threads);
}

const char *ptc_rt_cpu_level(const ptc_model *model) { return model->descriptor->levels[model->level].name; }

uint32_t ptc_rt_threads(const ptc_model *model) { return model->threads; }
