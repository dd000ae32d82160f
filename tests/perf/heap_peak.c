/* Counts the bytes of the heap: preloaded into a process whose peak between two moments is wanted.
 *
 * heap_peak_reset() starts a measurement; heap_peak() is the most that was alive at one time since then, less what
 * was alive at its start. Sizes are those that malloc really gives. Thread-safe; freeing what was allocated before
 * the start counts negative. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static atomic_long live, peak;

static void *count(void *block) {
  if (!block)
    return NULL;
  long now = atomic_fetch_add(&live, (long)malloc_usable_size(block)) + (long)malloc_usable_size(block);
  long seen = atomic_load(&peak);
  while (now > seen && !atomic_compare_exchange_weak(&peak, &seen, now))
    ;
  return block;
}

void heap_peak_reset(void) {
  atomic_store(&live, 0);
  atomic_store(&peak, 0);
}

long heap_peak(void) { return atomic_load(&peak); }

void *malloc(size_t size) { return count(__libc_malloc(size)); }

void *calloc(size_t number, size_t size) { return count(__libc_calloc(number, size)); }

void *memalign(size_t alignment, size_t size) { return count(__libc_memalign(alignment, size)); }

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **block, size_t alignment, size_t size) {
  *block = memalign(alignment, size);
  return *block || !size ? 0 : ENOMEM;
}

void free(void *block) {
  if (block)
    atomic_fetch_sub(&live, (long)malloc_usable_size(block));
  __libc_free(block);
}

void *realloc(void *block, size_t size) {
  if (block)
    atomic_fetch_sub(&live, (long)malloc_usable_size(block));
  return count(__libc_realloc(block, size));
}
