/* Functions that the static run-time libraries would take from newer C libraries or from the dynamic loader, so
   that ptc itself starts on glibc 2.34 and names libc and libm alone: arc4random (2.36), for std::random_device;
   _dl_find_object (2.35), by which the unwinder finds an object's frame table (the older way, dl_iterate_phdr,
   gives the same answer); and __tls_get_addr, which objects compiled for shared libraries refer to but which no
   program calls, since the linker turns every such access into an offset. All are hidden: a library that ptc
   loads must find the real ones. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN uint32_t arc4random(void);
uint32_t arc4random(void) {
  uint32_t bits = 0;
  (void)!getrandom(&bits, sizeof bits, 0);
  return bits;
}

/* struct dl_find_object, as on x86-64 and AArch64. */
struct FoundObject {
  unsigned long long flags;
  void *start, *end;
  struct link_map *map;
  void *frameTable;
  unsigned long long reserved[7];
};

struct Query {
  uintptr_t address;
  struct FoundObject *result;
  int found;
};

static int visitObject(struct dl_phdr_info *object, size_t size, void *opaque) {
  struct Query *query = opaque;
  uintptr_t low = UINTPTR_MAX, high = 0, frames = 0;
  int inside = 0;
  (void)size;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) *header = object->dlpi_phdr + i;
    uintptr_t start = object->dlpi_addr + header->p_vaddr, end = start + header->p_memsz;
    if (header->p_type == PT_GNU_EH_FRAME)
      frames = start;
    if (header->p_type != PT_LOAD)
      continue;
    low = start < low ? start : low;
    high = end > high ? end : high;
    inside |= query->address >= start && query->address < end;
  }
  if (!inside || !frames)
    return 0;
  memset(query->result, 0, sizeof *query->result);
  query->result->start = (void *)low;
  query->result->end = (void *)high;
  query->result->frameTable = (void *)frames;
  query->found = 1;
  return 1;
}

HIDDEN int findObject(void *address, void *result) __asm__("_dl_find_object");
int findObject(void *address, void *result) {
  struct Query query = {(uintptr_t)address, result, 0};
  dl_iterate_phdr(visitObject, &query);
  return query.found ? 0 : -1;
}

HIDDEN void *tlsAddress(void *index) __asm__("__tls_get_addr");
void *tlsAddress(void *index) {
  (void)index;
  __builtin_trap();
}
