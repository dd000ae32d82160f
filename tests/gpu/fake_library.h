/* What libraries in the place of NVIDIA's share: failures on demand, elements of three types, work for a stream of
 * fake_cuda.c. Types are numbered by each library (TYPE_F32, TYPE_F16; another is bf16). */
#include "fake_log.h"
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#define TRY                                                                                                            \
  if (getenv("FAKE_CUDA_LIBRARY_FAILS") && strcmp(getenv("FAKE_CUDA_LIBRARY_FAILS"), __func__) == 0)                   \
  return 14

static int open_objects; /* descriptions and handles that are not destroyed yet */

static int make(void **result, size_t bytes) { return open_objects++, *result = calloc(1, bytes), 0; }
static int end(void *object) { return free(object), say("library has %d objects", --open_objects), 0; }

static float get(const char *place, int type, int64_t index) {
  uint32_t bits = 0;
  float value;
  if (type == TYPE_F16)
    return (float)((const _Float16 *)place)[index];
  if (type == TYPE_F32)
    return ((const float *)place)[index];
  bits = (uint32_t)((const uint16_t *)place)[index] << 16;
  memcpy(&value, &bits, 4);
  return value;
}
static void put(char *place, int type, int64_t index, float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if (type == TYPE_F16)
    ((_Float16 *)place)[index] = (_Float16)value;
  else if (type == TYPE_F32)
    ((float *)place)[index] = value;
  else
    ((uint16_t *)place)[index] = (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/* `work` when the stream comes to it. */
static void enqueue(void *stream, void (*work)(void *), const void *argument, size_t bytes) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void (*put_there)(void *, void (*)(void *), const void *, size_t) = dlsym(driver, "fake_enqueue");
  put_there(stream, work, argument, bytes);
}
