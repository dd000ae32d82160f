/* A model on a CUDA device: the driver, the device, code and weights.
 *
 * The driver's library is opened by name when a model is created, so that a library for a device loads everywhere and
 * says in a sentence what is missing. Which level runs is decided by the device's compute capability: machine code of
 * the same major capability and no later minor one, or text (PTX) of no later capability, which the driver compiles;
 * levels are in order of preference, the best last, and one that the driver refuses makes way for the next.
 *
 * A model uses the device's primary context, as other libraries of the process do, so that their memory and streams
 * can be passed in. It is made current for the time of a call and no longer.
 */
#include "cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAY(error, ...) snprintf(error, PTC_RT_ERROR_SIZE, __VA_ARGS__)

enum {
  ATTRIBUTE_MULTIPROCESSORS = 16,
  ATTRIBUTE_MAJOR = 75,
  ATTRIBUTE_MINOR = 76,
  ERROR_NO_DEVICE = 100,
  ERROR_OUT_OF_MEMORY = 2,
  FUNCTION_MOST_SHARED = 8
};

ptc_status ptc_cuda_fail(const ptc_cuda_driver *driver, int code, const char *what, char *error) {
  const char *name = 0, *text = 0;
  driver->error_name(code, &name);
  driver->error_text(code, &text);
  SAY(error, "the CUDA driver failed to %s: %s (%s, error %d)", what, text ? text : "no description",
      name ? name : "unknown", code);
  return code == ERROR_OUT_OF_MEMORY ? PTC_OUT_OF_MEMORY : PTC_DEVICE_ERROR;
}

/* ---- the driver ---- */

static ptc_status open_driver(ptc_cuda_driver *driver, char *error) {
  driver->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver->library) {
    SAY(error, "the model needs a CUDA device, and there is no driver here (libcuda.so.1)");
    return PTC_NO_DEVICE;
  }
  const char *missing = 0;
#define PTC_CUDA_FIND(member, name, parameters)                                                                        \
  *(void **)&driver->member = dlsym(driver->library, #name);                                                           \
  if (!driver->member)                                                                                                 \
    missing = #name;
  PTC_CUDA_FUNCTIONS(PTC_CUDA_FIND)
#undef PTC_CUDA_FIND
  *(void **)&driver->map_encode = dlsym(driver->library, "cuTensorMapEncodeTiled");
  *(void **)&driver->map_encode_image = dlsym(driver->library, "cuTensorMapEncodeIm2col");
  *(void **)&driver->graph_add_edges = dlsym(driver->library, "cuGraphAddDependencies_v2");
  if (!missing)
    return PTC_OK;
  SAY(error, "the CUDA driver is too old: libcuda.so.1 has no %s", missing);
  return PTC_DEVICE_ERROR;
}

static ptc_status open_device(ptc_cuda_model *own, int32_t ordinal, int *capability, char *error) {
  const ptc_cuda_driver *driver = &own->driver;
  int code = driver->init(0), count = 0, major = 0, minor = 0;
  if (code == 0)
    code = driver->device_count(&count);
  if (code == ERROR_NO_DEVICE || (code == 0 && count == 0)) {
    SAY(error, "the model needs a CUDA device, and the driver shows none");
    return PTC_NO_DEVICE;
  }
  if (code != 0) {
    ptc_cuda_fail(driver, code, "start", error);
    return PTC_DEVICE_ERROR;
  }
  if (ordinal < 0 || ordinal >= count) {
    SAY(error, "there is no CUDA device %d: the driver shows %d", (int)ordinal, count);
    return PTC_NO_DEVICE;
  }
  if ((code = driver->device_get(&own->device, ordinal)) ||
      (code = driver->device_attribute(&major, ATTRIBUTE_MAJOR, own->device)) ||
      (code = driver->device_attribute(&minor, ATTRIBUTE_MINOR, own->device)) ||
      (code = driver->device_attribute(&own->multiprocessors, ATTRIBUTE_MULTIPROCESSORS, own->device)))
    return ptc_cuda_fail(driver, code, "describe the device", error);
  *capability = 10 * major + minor;
  code = driver->context_retain(&own->context, own->device);
  return code == 0 ? PTC_OK : ptc_cuda_fail(driver, code, "make a context", error);
}

/* ---- code ---- */

/* Code of a kernel of the level; NULL if it has none, as all that the model does is on the host. */
static const char *find_code(const ptc_rt_descriptor *descriptor, const ptc_rt_level *level) {
  for (uint32_t i = 0; i < descriptor->kernel_count; i++)
    if (level->images[i].bytes)
      return level->images[i].bytes;
  return 0;
}

static bool runs_on(const ptc_rt_descriptor *descriptor, const ptc_rt_level *level, int capability) {
  int needed = (int)(level->features & PTC_RT_CUDA_CAPABILITY);
  const char *code = find_code(descriptor, level);
  if (!code)
    return true;
  if (level->features & PTC_RT_CUDA_EXACT)
    return capability == needed;
  if (code[0] != '\x7f') /* ELF's first byte: else it is text */
    return capability >= needed;
  return capability / 10 == needed / 10 && capability >= needed;
}

/* Which takes seconds, unless the driver's cache has it. */
static void say_if_text(const ptc_model *model, const ptc_rt_level *level) {
  const char *code = find_code(model->descriptor, level);
  char text[192];
  if (!model->log || !code || code[0] == '\x7f')
    return;
  snprintf(text, sizeof(text),
           "level %s is PTX, which the driver compiles now: machine code for the device (--gpu) needs no time",
           level->name);
  model->log(model->log_state, PTC_LOG_INFO, text);
}

static void unload(const ptc_model *model, ptc_cuda_model *own) {
  for (uint32_t i = 0; i < model->descriptor->kernel_count; i++)
    if (own->modules[i])
      own->driver.module_unload(own->modules[i]);
  memset(own->modules, 0, 2 * sizeof(void *) * model->descriptor->kernel_count);
}

static ptc_status load(const ptc_model *model, ptc_cuda_model *own, const ptc_rt_level *level, char *error) {
  const ptc_rt_descriptor *descriptor = model->descriptor;
  for (uint32_t i = 0; i < descriptor->kernel_count; i++) {
    const ptc_rt_device_kernel *kernel = ptc_cuda_kernel_of(model, i);
    if (!level->images[i].bytes) /* runs on the host */
      continue;
    if (kernel->map_count > 0 && (!own->driver.map_encode || !own->driver.map_encode_image)) {
      SAY(error, "the CUDA driver is too old for level %s: libcuda.so.1 has no cuTensorMapEncodeTiled", level->name);
      unload(model, own);
      return PTC_DEVICE_ERROR;
    }
    int code = own->driver.module_load(&own->modules[i], level->images[i].bytes);
    if (code == 0)
      code = own->driver.module_function(&own->functions[i], own->modules[i], kernel->entry);
    if (code == 0 && kernel->shared_bytes > 0)
      code = own->driver.function_set(own->functions[i], FUNCTION_MOST_SHARED, (int)kernel->shared_bytes);
    if (code == 0)
      continue;
    char what[PTC_RT_ERROR_SIZE / 2];
    snprintf(what, sizeof(what), "load kernel %s for %s", descriptor->kernel_names[i], level->name);
    ptc_status status = ptc_cuda_fail(&own->driver, code, what, error);
    unload(model, own);
    return status;
  }
  return PTC_OK;
}

/* `asked`: the only level that may run; NULL: any. */
static ptc_status load_best(ptc_model *model, ptc_cuda_model *own, const char *asked, int capability, char *error) {
  const ptc_rt_descriptor *descriptor = model->descriptor;
  ptc_status status = PTC_DEVICE_ERROR;
  bool known = false, fits = false;
  for (uint32_t i = descriptor->level_count; i-- > 0;) {
    const ptc_rt_level *level = &descriptor->levels[i];
    if (asked && strcmp(asked, level->name) != 0)
      continue;
    known = true;
    if (!runs_on(descriptor, level, capability))
      continue;
    fits = true;
    model->level = i;
    say_if_text(model, level);
    if ((status = load(model, own, level, error)) != PTC_DEVICE_ERROR)
      return status;
  }
  if (fits)
    return status;
  char name[128] = "", levels[256] = "";
  for (uint32_t i = 0, used = 0; i < descriptor->level_count && used < sizeof(levels); i++)
    used += (uint32_t)snprintf(levels + used, sizeof(levels) - used, "%s%s", i ? ", " : "", descriptor->levels[i].name);
  own->driver.device_name(name, sizeof(name) - 1, own->device);
  if (!known)
    SAY(error, "the model was not compiled for level '%s'", asked);
  else if (asked)
    SAY(error, "code of level '%s' does not run on device %s, whose compute capability is %d.%d", asked, name,
        capability / 10, capability % 10);
  else
    SAY(error, "the model was not compiled for device %s, whose compute capability is %d.%d: it has code for %s", name,
        capability / 10, capability % 10, levels);
  return known ? PTC_DEVICE_ERROR : PTC_INVALID_ARGUMENT;
}

/* ---- weights and constants ---- */

static ptc_status copy_to(const ptc_cuda_driver *driver, ptc_cuda_address target, const char *source, uint64_t bytes,
                          char *error) {
  int code = driver->copy_in(target, source, bytes, 0);
  if (code == 0)
    code = driver->stream_wait(0);
  return code == 0 ? PTC_OK : ptc_cuda_fail(driver, code, "copy weights to the device", error);
}

static ptc_status place(ptc_cuda_model *own, ptc_cuda_address *target, const char *source, uint64_t bytes,
                        char *error) {
  if (bytes == 0)
    return PTC_OK;
  int code = own->driver.allocate(target, bytes);
  if (code == 0)
    return copy_to(&own->driver, *target, source, bytes, error);
  char what[96];
  snprintf(what, sizeof(what), "allocate %llu bytes for weights", (unsigned long long)bytes);
  return ptc_cuda_fail(&own->driver, code, what, error);
}

static ptc_status upload(const ptc_model *model, uint64_t offset, uint64_t bytes) {
  ptc_cuda_model *own = model->device_model;
  char error[PTC_RT_ERROR_SIZE];
  int code = own->driver.context_push(own->context);
  if (code != 0)
    return ptc_cuda_fail(&own->driver, code, "use its context", error);
  ptc_status status = copy_to(&own->driver, own->weights + (offset - model->descriptor->weights.begin),
                              model->weights + offset, bytes, error);
  own->driver.context_pop(&(void *){0});
  return status;
}

/* ---- life ---- */

static void close_model(ptc_model *model) {
  ptc_cuda_model *own = model->device_model;
  const ptc_cuda_driver *driver = &own->driver;
  if (own->context && driver->context_push(own->context) == 0) {
    ptc_cuda_close_libraries(own);
    unload(model, own);
    if (own->weights)
      driver->release(own->weights);
    if (own->constants)
      driver->release(own->constants);
    driver->context_pop(&(void *){0});
  }
  if (own->context)
    driver->context_release(own->device);
  if (driver->library)
    dlclose(driver->library);
  free(own);
  model->device_model = 0;
}

static ptc_status open_parts(ptc_model *model, const ptc_options *options, char *error) {
  ptc_cuda_model *own = model->device_model;
  const ptc_rt_device_code *code = model->descriptor->device_code;
  const ptc_rt_weights *weights = &model->descriptor->weights;
  int capability = 0;
  ptc_status status = open_driver(&own->driver, error);
  if (status == PTC_OK)
    status = open_device(own, options->device, &capability, error);
  if (status != PTC_OK)
    return status;
  int failed = own->driver.context_push(own->context);
  if (failed != 0)
    return ptc_cuda_fail(&own->driver, failed, "use its context", error);
  status = load_best(model, own, options->cpu_level, capability, error);
  if (status == PTC_OK)
    status = place(own, &own->weights, model->weights + weights->begin, weights->end - weights->begin, error);
  if (status == PTC_OK)
    status = place(own, &own->constants, code->constants, code->constant_bytes, error);
  if (status == PTC_OK)
    ptc_cuda_open_libraries(model, own);
  own->driver.context_pop(&(void *){0});
  return status;
}

static ptc_status open_model(ptc_model *model, const ptc_options *options) {
  char error[PTC_RT_ERROR_SIZE] = "no memory for the model";
  size_t kernels = model->descriptor->kernel_count;
  ptc_cuda_model *own = calloc(1, sizeof(*own) + 2 * kernels * sizeof(void *));
  ptc_status status = own ? PTC_OK : PTC_OUT_OF_MEMORY;
  if (own) {
    own->modules = (void **)(own + 1);
    own->functions = own->modules + kernels;
    own->has_profiler = ptc_cuda_attach_profiler();
    model->device_model = own;
    status = open_parts(model, options, error);
  }
  if (status != PTC_OK && options->error && options->error_size > 0)
    snprintf(options->error, options->error_size, "%s", error);
  if (status != PTC_OK && own)
    close_model(model);
  return status;
}

const ptc_rt_device ptc_rt_device_cuda = {.type = PTC_CUDA,
                                          .open = open_model,
                                          .close = close_model,
                                          .upload = upload,
                                          .reserve = ptc_cuda_reserve,
                                          .run = ptc_cuda_run,
                                          .ctx_close = ptc_cuda_ctx_close};
