/* libcuda.so.1 for libraries of --target=cuda on a machine without a device: what touches memory or runs code is done
 * by the process that has loaded it (emulated.py), through the functions that it hands over. Addresses of the device
 * are small numbers that nothing of the host's has, so that code which mixes them up faults.
 */
#include <stddef.h>
#include <stdint.h>

typedef uint64_t address;

static struct {
  address (*load)(const char *text);
  address (*find)(address module, const char *name);
  address (*allocate)(size_t bytes);
  void (*copy_in)(address target, const void *source, size_t bytes);
  void (*copy_out)(void *target, address source, size_t bytes);
  void (*fill)(address target, unsigned value, size_t bytes);
  int (*launch)(address function, unsigned blocks, unsigned x, unsigned y, unsigned shared, void **parameters);
} emulator;

void emulated_cuda_install(void *const *functions) {
  void **members = (void **)&emulator;
  for (size_t i = 0; i < sizeof(emulator) / sizeof(void *); i++)
    members[i] = functions[i];
}

int cuInit(unsigned flags) { return (void)flags, 0; }
int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char *name, int length, int device) { return name[0] = 0, (void)length, (void)device, 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = attribute == 75 ? 8 : attribute == 76 ? 0 : 4; /* compute capability 8.0, 4 multiprocessors */
  return (void)device, 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = &emulator, (void)device, 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { return (void)device, 0; }
int cuDevicePrimaryCtxReset_v2(int device) { return (void)device, 0; }
int cuCtxPushCurrent_v2(void *context) { return (void)context, 0; }
int cuCtxPopCurrent_v2(void **context) { return *context = &emulator, 0; }
int cuCtxSynchronize(void) { return 0; }

int cuModuleLoadData(void **module, const void *image) {
  address loaded = emulator.load(image);
  return *module = (void *)(uintptr_t)loaded, loaded ? 0 : 218;
}
int cuModuleUnload(void *module) { return (void)module, 0; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
  address found = emulator.find((uintptr_t)module, name);
  return *function = (void *)(uintptr_t)found, found ? 0 : 500;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
  return (void)function, (void)attribute, (void)value, 0;
}

int cuMemAlloc_v2(address *pointer, size_t bytes) { return *pointer = emulator.allocate(bytes), 0; }
int cuMemFree_v2(address pointer) { return (void)pointer, 0; }
int cuMemcpyHtoDAsync_v2(address target, const void *source, size_t bytes, void *stream) {
  return emulator.copy_in(target, source, bytes), (void)stream, 0;
}
int cuMemcpyDtoHAsync_v2(void *target, address source, size_t bytes, void *stream) {
  return emulator.copy_out(target, source, bytes), (void)stream, 0;
}
int cuMemcpyDtoDAsync_v2(address target, address source, size_t bytes, void *stream) {
  char piece[256];
  for (size_t at = 0, part; at < bytes; at += part) {
    part = bytes - at < sizeof(piece) ? bytes - at : sizeof(piece);
    emulator.copy_out(piece, source + at, part);
    emulator.copy_in(target + at, piece, part);
  }
  return (void)stream, 0;
}
int cuMemsetD8Async(address target, unsigned char value, size_t bytes, void *stream) {
  return emulator.fill(target, value, bytes), (void)stream, 0;
}
int cuPointerGetAttribute(void *value, int attribute, address pointer) {
  return *(unsigned *)value = 2, attribute == 2 && pointer < (address)1 << 32 ? 0 : 1;
}

int cuStreamCreate(void **stream, unsigned flags) { return *stream = &emulator, (void)flags, 0; }
int cuStreamSynchronize(void *stream) { return (void)stream, 0; }
int cuStreamIsCapturing(void *stream, int *captures) { return (void)stream, *captures = 0, 0; }
int cuStreamDestroy_v2(void *stream) { return (void)stream, 0; }
int cuEventCreate(void **event, unsigned flags) { return *event = &emulator, (void)flags, 0; }
int cuEventRecord(void *event, void *stream) { return (void)event, (void)stream, 0; }
int cuEventElapsedTime(float *milliseconds, void *begin, void *end) {
  return *milliseconds = 0, (void)begin, (void)end, 0;
}
int cuEventDestroy_v2(void *event) { return (void)event, 0; }

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
  (void)stream, (void)extra;
  return gy * gz * bz == 1 ? emulator.launch((uintptr_t)function, gx, bx, by, shared, parameters) : 1;
}

/* Graphs are not emulated: runs go launch by launch. */
int cuGraphCreate(void **graph, unsigned flags) { return (void)graph, (void)flags, 801; }
int cuGraphAddKernelNode(void) { return 801; }
int cuGraphInstantiateWithFlags(void) { return 801; }
int cuGraphExecKernelNodeSetParams(void) { return 801; }
int cuGraphAddChildGraphNode(void) { return 801; }
int cuGraphExecChildGraphNodeSetParams(void) { return 801; }
int cuStreamBeginCapture_v2(void) { return 801; }
int cuStreamEndCapture(void) { return 801; }
int cuGraphLaunch(void) { return 801; }
int cuGraphExecDestroy(void) { return 801; }
int cuGraphDestroy(void) { return 801; }

int cuGetErrorName(int error, const char **name) { return *name = "emulated", (void)error, 0; }
int cuGetErrorString(int error, const char **text) { return *text = "see the output above", (void)error, 0; }
