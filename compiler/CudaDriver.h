// Functions of NVIDIA's driver that ptc itself calls: to say what a machine has and what its devices can do at most,
// and to time models on tensors in a device's memory. Libraries that ptc makes have a table of their own
// (runtime/src/cuda.h).
#ifndef PTC_COMPILER_CUDADRIVER_H
#define PTC_COMPILER_CUDADRIVER_H

#include <cstddef>
#include <cstdint>
#include <dlfcn.h>

namespace ptc {

/// FUNCTION(member, name in libcuda.so.1, parameters); all return 0 or an error.
#define PTC_DRIVER_FUNCTIONS(FUNCTION)                                                                                 \
  FUNCTION(init, cuInit, (unsigned))                                                                                   \
  FUNCTION(version, cuDriverGetVersion, (int *))                                                                       \
  FUNCTION(count, cuDeviceGetCount, (int *))                                                                           \
  FUNCTION(get, cuDeviceGet, (int *, int))                                                                             \
  FUNCTION(name, cuDeviceGetName, (char *, int, int))                                                                  \
  FUNCTION(attribute, cuDeviceGetAttribute, (int *, int, int))                                                         \
  FUNCTION(memory, cuDeviceTotalMem_v2, (size_t *, int))                                                               \
  FUNCTION(retain, cuDevicePrimaryCtxRetain, (void **, int))                                                           \
  FUNCTION(release, cuDevicePrimaryCtxRelease_v2, (int))                                                               \
  FUNCTION(push, cuCtxPushCurrent_v2, (void *))                                                                        \
  FUNCTION(pop, cuCtxPopCurrent_v2, (void **))                                                                         \
  FUNCTION(load, cuModuleLoadData, (void **, const void *))                                                            \
  FUNCTION(unload, cuModuleUnload, (void *))                                                                           \
  FUNCTION(function, cuModuleGetFunction, (void **, void *, const char *))                                             \
  FUNCTION(allocate, cuMemAlloc_v2, (uint64_t *, size_t))                                                              \
  FUNCTION(free, cuMemFree_v2, (uint64_t))                                                                             \
  FUNCTION(copyIn, cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, void *))                                     \
  FUNCTION(fill, cuMemsetD8Async, (uint64_t, unsigned char, size_t, void *))                                           \
  FUNCTION(streamCreate, cuStreamCreate, (void **, unsigned))                                                          \
  FUNCTION(streamDestroy, cuStreamDestroy_v2, (void *))                                                                \
  FUNCTION(wait, cuStreamSynchronize, (void *))                                                                        \
  FUNCTION(eventCreate, cuEventCreate, (void **, unsigned))                                                            \
  FUNCTION(eventRecord, cuEventRecord, (void *, void *))                                                               \
  FUNCTION(eventElapsed, cuEventElapsedTime, (float *, void *, void *))                                                \
  FUNCTION(eventDestroy, cuEventDestroy_v2, (void *))                                                                  \
  FUNCTION(launch, cuLaunchKernel,                                                                                     \
           (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))

struct CudaDriver {
#define PTC_DRIVER_MEMBER(MEMBER, NAME, PARAMETERS) int(*MEMBER) PARAMETERS = nullptr;
  PTC_DRIVER_FUNCTIONS(PTC_DRIVER_MEMBER)
#undef PTC_DRIVER_MEMBER

  /// The functions of an open libcuda.so.1. A driver runs code of its own when it is opened, and one that does not fit
  /// its kernel module may crash in it: who only wants to know opens it in a child process.
  explicit CudaDriver(void *library) {
#define PTC_DRIVER_FIND(MEMBER, NAME, PARAMETERS) MEMBER = reinterpret_cast<int(*) PARAMETERS>(dlsym(library, #NAME));
    PTC_DRIVER_FUNCTIONS(PTC_DRIVER_FIND)
#undef PTC_DRIVER_FIND
  }

  bool isWhole() const {
#define PTC_DRIVER_IS_HERE(MEMBER, NAME, PARAMETERS) MEMBER &&
    return PTC_DRIVER_FUNCTIONS(PTC_DRIVER_IS_HERE) true;
#undef PTC_DRIVER_IS_HERE
  }
};

/// CUdevice_attribute
enum class CudaAttribute { Multiprocessors = 16, L2Bytes = 38, Major = 75, Minor = 76 };

} // namespace ptc

#endif // PTC_COMPILER_CUDADRIVER_H
