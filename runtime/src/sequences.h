/* Sequences inside a program. A handle is the address of one, or NULL for the empty one; none ever changes. */
#ifndef PTC_SEQUENCES_H
#define PTC_SEQUENCES_H

#include "runtime.h"

/* A tensor: elements row-major, as they are inside (handles; elements below 8 bits one a byte). */
typedef struct ptc_rt_item {
  ptc_dtype dtype;
  int32_t rank;
  int64_t count; /* of elements */
  int64_t *dims;
  void *elements;
} ptc_rt_item;

/* The first `count` of the items that `store` says are used. A longer sequence that begins with the same items may
 * share them: appending to the sequence that uses all of a store only adds to it, so that a loop that collects n
 * tensors takes memory for 2n and not for n * n. */
typedef struct ptc_rt_store {
  int64_t used, capacity;
} ptc_rt_store;

typedef struct ptc_rt_sequence {
  int64_t count;
  ptc_rt_item *items;
  ptc_rt_store *store;
} ptc_rt_sequence;

/* `count` items, to be filled in; NULL if there is no memory. */
ptc_rt_sequence *ptc_rt_new_sequence(ptc_rt_call *call, int64_t count);
/* Bytes of an element inside. */
int64_t ptc_rt_inner_bytes(ptc_dtype dtype);
/* shapes.c */
bool ptc_rt_is_dense(const ptc_tensor *tensor);

#endif /* PTC_SEQUENCES_H */
