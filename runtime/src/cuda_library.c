/* Libraries of NVIDIA's in the place of kernels' code, for which a tuning found them faster.
 *
 * A library is opened by name when a model is created, as the driver is, and only for a model that has such kernels.
 * A context describes the kernels' work to it when it is first used. Where the library is absent, refuses work or fails
 * at it, the kernel's own code runs, and a caller who asked for a log reads why.
 */
#include "cuda.h"

#include <dlfcn.h>
#include <stdio.h>

static const ptc_cuda_library *const libraries[PTC_CUDA_LIBRARIES] = {&ptc_cuda_cublaslt, &ptc_cuda_cudnn};

static void say(const ptc_model *model, const ptc_cuda_library *library, const char *what) {
  char text[256];
  if (!model->log)
    return;
  snprintf(text, sizeof(text), "%s %s: kernels' own code computes what it was chosen for", library->title, what);
  model->log(model->log_state, PTC_LOG_WARNING, text);
}

/* ---- of a model ---- */

/* It stays in the process: it registers what runs at the process's end. */
static void *open_as(const ptc_cuda_library *library, ptc_cuda_model *device, const char *name, int flags) {
  void *opened = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | flags);
  if (!opened || library->open(device, opened))
    return opened;
  dlclose(opened);
  return 0;
}

static void *open_library(const ptc_cuda_library *library, ptc_cuda_model *device) {
  void *opened = 0;
  for (int round = 0; round < 2 && !opened; round++) /* first one that the process has */
    for (uint32_t i = 0; i < PTC_CUDA_LIBRARY_NAMES && library->names[i] && !opened; i++)
      opened = open_as(library, device, library->names[i], round == 0 ? RTLD_NOLOAD : 0);
  return opened;
}

static bool is_asked_for(const ptc_model *model, const ptc_cuda_library *library) {
  for (uint32_t i = 0; i < model->descriptor->kernel_count; i++)
    if (library->computes(ptc_cuda_kernel_of(model, i)))
      return true;
  return false;
}

void ptc_cuda_open_libraries(const ptc_model *model, ptc_cuda_model *device) {
  for (uint32_t i = 0; i < PTC_CUDA_LIBRARIES; i++) {
    if (!is_asked_for(model, libraries[i]))
      continue;
    device->libraries[i] = open_library(libraries[i], device);
    if (!device->libraries[i])
      say(model, libraries[i], "is not found, or does not start");
  }
}

void ptc_cuda_close_libraries(ptc_cuda_model *device) {
  for (uint32_t i = 0; i < PTC_CUDA_LIBRARIES; i++) {
    if (!device->libraries[i])
      continue;
    libraries[i]->close(device);
    dlclose(device->libraries[i]);
    device->libraries[i] = 0;
  }
}

/* ---- of a context ---- */

static void drop(const ptc_cuda_model *device, ptc_cuda_work *work) {
  if (work->library)
    work->library->drop(device, work);
  *work = (ptc_cuda_work){0};
}

void ptc_cuda_describe_works(const ptc_model *model, ptc_cuda_ctx *own) {
  const ptc_cuda_model *device = model->device_model;
  for (uint32_t l = 0; l < PTC_CUDA_LIBRARIES; l++)
    for (uint32_t i = 0; i < model->descriptor->kernel_count && device->libraries[l]; i++) {
      const ptc_rt_device_kernel *kernel = ptc_cuda_kernel_of(model, i);
      ptc_cuda_work *work = &own->works[i];
      if (!libraries[l]->computes(kernel))
        continue;
      work->library = libraries[l];
      if (work->library->describe(device, own, work, kernel))
        continue;
      drop(device, work);
      say(model, libraries[l], libraries[l]->refuses);
    }
}

void ptc_cuda_drop_works(const ptc_model *model, ptc_cuda_ctx *own) {
  const ptc_cuda_model *device = model->device_model;
  for (uint32_t i = 0; i < model->descriptor->kernel_count; i++)
    drop(device, &own->works[i]);
  for (uint32_t l = 0; l < PTC_CUDA_LIBRARIES; l++)
    if (device->libraries[l])
      libraries[l]->leave(device, own);
}

/* ---- a launch ---- */

void ptc_cuda_place_work(ptc_cuda_work *work, const ptc_rt_device_kernel *kernel, void *const *buffers,
                         ptc_cuda_address scratch) {
  work->library->place(work, kernel, buffers);
  work->places[PTC_CUDA_SCRATCH] = scratch;
}

int ptc_cuda_do_work(const ptc_cuda_model *device, ptc_cuda_work *work, void *stream) {
  return work->library->run(device, work, stream);
}

void ptc_cuda_refuse_work(const ptc_model *model, ptc_cuda_work *work) {
  const ptc_cuda_library *library = work->library;
  drop(model->device_model, work);
  say(model, library, library->fails);
}
