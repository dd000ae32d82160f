/* Functions over sequences (ir/prim/PrimCalls.def). Tensors that enter a sequence are copied, since the arena's memory
 * is another value's soon; those that are in one never change and are shared.
 *
 * A tensor is described by numbers: its type (code * 256 + bits), its rank, its dims.
 */
#include "sequences.h"

#include <string.h>

static ptc_rt_sequence *make(ptc_rt_call *call, int64_t count, int64_t capacity) {
  ptc_rt_sequence *made = ptc_rt_take(call, 1, sizeof(ptc_rt_sequence) + sizeof(ptc_rt_store));
  ptc_rt_item *items = made ? ptc_rt_take(call, (size_t)capacity, sizeof(ptc_rt_item)) : 0;
  if (!items)
    return 0;
  ptc_rt_store *store = (ptc_rt_store *)(made + 1);
  *store = (ptc_rt_store){count, capacity};
  *made = (ptc_rt_sequence){count, items, store};
  return made;
}

ptc_rt_sequence *ptc_rt_new_sequence(ptc_rt_call *call, int64_t count) { return make(call, count, count); }

static int64_t count_of(const ptc_rt_sequence *sequence) { return sequence ? sequence->count : 0; }

static int32_t copy_item(ptc_rt_call *call, const void *elements, const int64_t *numbers, ptc_rt_item *item) {
  *item = (ptc_rt_item){
      .dtype = {(uint8_t)(numbers[0] >> 8), (uint8_t)numbers[0], 1}, .rank = (int32_t)numbers[1], .count = 1};
  for (int32_t d = 0; d < item->rank; d++)
    item->count *= numbers[2 + d];
  item->dims = ptc_rt_take(call, (size_t)item->rank, sizeof(int64_t));
  item->elements = ptc_rt_take(call, (size_t)item->count, (size_t)ptc_rt_inner_bytes(item->dtype));
  if (!item->dims || !item->elements)
    return PTC_RT_FAULT_MEMORY;
  memcpy(item->dims, numbers + 2, (size_t)item->rank * sizeof(int64_t));
  memcpy(item->elements, elements, (size_t)(item->count * ptc_rt_inner_bytes(item->dtype)));
  return 0;
}

int32_t ptc_rt_sequence_construct(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  (void)site;
  int64_t count = *numbers++;
  ptc_rt_sequence *made = make(call, count, count);
  if (!made)
    return PTC_RT_FAULT_MEMORY;
  for (int64_t i = 0; i < count; i++) {
    int32_t fault = copy_item(call, buffers[i], numbers, &made->items[i]);
    if (fault != 0)
      return fault;
    numbers += 2 + numbers[1];
  }
  *(ptc_rt_sequence **)buffers[count] = count ? made : 0;
  return 0;
}

int32_t ptc_rt_sequence_length(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  (void)call, (void)site, (void)numbers;
  *(int64_t *)buffers[1] = count_of(*(ptc_rt_sequence **)buffers[0]);
  return 0;
}

/* A place in [0, limit), counted from the end where it is negative. */
static int32_t find_place(ptc_rt_call *call, uint32_t site, const void *position, int64_t count, int64_t limit,
                          int64_t *place) {
  int64_t given = *(const int64_t *)position;
  *place = given < 0 ? given + count : given;
  if (*place >= 0 && *place < limit)
    return 0;
  if (limit == 0)
    return ptc_rt_refuse(call, site, "a sequence or an optional value is empty: it has nothing at position %lld",
                         (long long)given);
  return ptc_rt_refuse(call, site, "position %lld in a sequence of %lld tensors", (long long)given, (long long)count);
}

/* The tensor of the sequence buffers[0] at the position buffers[1]. */
static int32_t find_item(ptc_rt_call *call, uint32_t site, void *const *buffers, const ptc_rt_item **item,
                         int64_t *place) {
  const ptc_rt_sequence *sequence = *(ptc_rt_sequence **)buffers[0];
  int32_t fault = find_place(call, site, buffers[1], count_of(sequence), count_of(sequence), place);
  if (fault == 0)
    *item = &sequence->items[*place];
  return fault;
}

int32_t ptc_rt_sequence_insert(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  const ptc_rt_sequence *before = *(ptc_rt_sequence **)buffers[0];
  int64_t count = count_of(before), place;
  int32_t fault = find_place(call, site, buffers[2], count, count + 1, &place);
  if (fault != 0)
    return fault;
  ptc_rt_item item;
  if ((fault = copy_item(call, buffers[1], numbers, &item)) != 0)
    return fault;
  ptc_rt_sequence *made;
  if (before && place == count && before->store->used == count && count < before->store->capacity) {
    if (!(made = ptc_rt_take(call, 1, sizeof(ptc_rt_sequence))))
      return PTC_RT_FAULT_MEMORY;
    *made = (ptc_rt_sequence){++before->store->used, before->items, before->store};
  } else {
    if (!(made = make(call, count + 1, 2 * count + 4)))
      return PTC_RT_FAULT_MEMORY;
    for (int64_t i = 0; i < count; i++)
      made->items[i + (i >= place)] = before->items[i];
  }
  made->items[place] = item;
  *(ptc_rt_sequence **)buffers[3] = made;
  return 0;
}

int32_t ptc_rt_sequence_erase(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  (void)numbers;
  const ptc_rt_sequence *before = *(ptc_rt_sequence **)buffers[0];
  int64_t count = count_of(before), place;
  int32_t fault = find_place(call, site, buffers[1], count, count, &place);
  if (fault != 0)
    return fault;
  ptc_rt_sequence *made = make(call, count - 1, count);
  if (!made)
    return PTC_RT_FAULT_MEMORY;
  for (int64_t i = 0; i < count - 1; i++)
    made->items[i] = before->items[i + (i >= place)];
  *(ptc_rt_sequence **)buffers[2] = count > 1 ? made : 0;
  return 0;
}

/* Extents of the tensor at a place, whose rank is numbers[0]. */
int32_t ptc_rt_sequence_dims(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  const ptc_rt_item *item;
  int64_t place;
  int32_t fault = find_item(call, site, buffers, &item, &place);
  if (fault != 0)
    return fault;
  if (item->rank != numbers[0])
    return ptc_rt_refuse(call, site, "tensor %lld of a sequence has rank %d, not %lld", (long long)place,
                         (int)item->rank, (long long)numbers[0]);
  memcpy(buffers[2], item->dims, (size_t)item->rank * sizeof(int64_t));
  return 0;
}

/* The elements of the tensor at a place, which must have the dims that the numbers say. */
int32_t ptc_rt_sequence_at(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  const ptc_rt_item *item;
  int64_t place;
  int32_t fault = find_item(call, site, buffers, &item, &place);
  if (fault != 0)
    return fault;
  bool fits = item->dtype.code == (uint8_t)(numbers[0] >> 8) && item->dtype.bits == (uint8_t)numbers[0] &&
              item->rank == numbers[1];
  for (int32_t d = 0; fits && d < item->rank; d++)
    fits = item->dims[d] == numbers[2 + d];
  if (!fits)
    return ptc_rt_refuse(call, site, "tensor %lld of a sequence has not the type or the dims that the model says",
                         (long long)place);
  memcpy(buffers[2], item->elements, (size_t)(item->count * ptc_rt_inner_bytes(item->dtype)));
  return 0;
}

/* Extents of all tensors joined along axis numbers[1] (numbers[2]: stacked along a new one); numbers[0]: their rank. */
int32_t ptc_rt_sequence_concat_dims(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  const ptc_rt_sequence *sequence = *(ptc_rt_sequence **)buffers[0];
  int64_t rank = numbers[0], axis = numbers[1], isNew = numbers[2], *dims = buffers[1];
  if (count_of(sequence) == 0)
    return ptc_rt_refuse(call, site, "a sequence without tensors has none to join");
  const ptc_rt_item *first = &sequence->items[0];
  int64_t sum = 0;
  for (int64_t i = 0; i < sequence->count; i++) {
    const ptc_rt_item *item = &sequence->items[i];
    bool fits = item->rank == rank;
    for (int32_t d = 0; fits && d < item->rank; d++)
      fits = item->dims[d] == first->dims[d] || (!isNew && d == axis);
    if (!fits || __builtin_add_overflow(sum, isNew ? 1 : item->dims[axis], &sum))
      return ptc_rt_refuse(call, site, "tensor %lld of a sequence does not fit the first one", (long long)i);
  }
  for (int64_t d = 0; d < rank + isNew; d++)
    dims[d] = d == axis ? sum : first->dims[d - (isNew && d > axis)];
  return 0;
}

/* All tensors joined; the numbers are those of sequence_concat_dims. */
int32_t ptc_rt_sequence_concat(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  (void)call, (void)site;
  const ptc_rt_sequence *sequence = *(ptc_rt_sequence **)buffers[0];
  int64_t axis = numbers[1], outer = 1, row = 0;
  const ptc_rt_item *first = &sequence->items[0];
  size_t bytes = (size_t)ptc_rt_inner_bytes(first->dtype);
  for (int64_t d = 0; d < axis; d++)
    outer *= first->dims[d];
  if (outer == 0)
    return 0;
  for (int64_t i = 0; i < sequence->count; i++)
    row += sequence->items[i].count / outer;
  int64_t place = 0;
  for (int64_t i = 0; i < sequence->count; i++) {
    int64_t part = sequence->items[i].count / outer;
    for (int64_t o = 0; o < outer && part > 0; o++)
      memcpy((char *)buffers[1] + (size_t)(o * row + place) * bytes,
             (const char *)sequence->items[i].elements + (size_t)(o * part) * bytes, (size_t)part * bytes);
    place += part;
  }
  return 0;
}

/* Pieces of a tensor along an axis: numbers are axis, whether each loses the axis, the pieces' extent (0: input 1 has
 * one each, numbers[3] of them), then the tensor. */
int32_t ptc_rt_sequence_split(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  int64_t axis = numbers[0], isDropped = numbers[1], listed = numbers[3], extent = numbers[2];
  const int64_t *tensor = numbers + 4, *lengths = buffers[1];
  ptc_dtype dtype = {(uint8_t)(tensor[0] >> 8), (uint8_t)tensor[0], 1};
  int64_t rank = tensor[1], whole = tensor[2 + axis], outer = 1, inner = 1, sum = 0;
  size_t bytes = (size_t)ptc_rt_inner_bytes(dtype);
  for (int64_t d = 0; d < axis; d++)
    outer *= tensor[2 + d];
  for (int64_t d = axis + 1; d < rank; d++)
    inner *= tensor[2 + d];
  if (listed < 0) {
    extent = lengths[0]; /* one number, which says how long the pieces are */
    if (extent < 1)
      return ptc_rt_refuse(call, site, "pieces of %lld elements", (long long)extent);
  }
  for (int64_t i = 0; i < listed; i++)
    if (lengths[i] < 0 || __builtin_add_overflow(sum, lengths[i], &sum))
      return ptc_rt_refuse(call, site, "a piece of %lld elements", (long long)lengths[i]);
  bool isList = extent == 0; /* which may be empty */
  if (isList && sum != whole)
    return ptc_rt_refuse(call, site, "pieces of %lld elements in all, where there are %lld", (long long)sum,
                         (long long)whole);
  int64_t count = isList ? listed : (whole + extent - 1) / extent, from = 0;
  ptc_rt_sequence *made = make(call, count, count);
  if (!made)
    return PTC_RT_FAULT_MEMORY;
  for (int64_t i = 0; i < count; i++) {
    ptc_rt_item *item = &made->items[i];
    int64_t length = isList ? lengths[i] : from + extent <= whole ? extent : whole - from;
    *item = (ptc_rt_item){.dtype = dtype, .rank = (int32_t)(rank - isDropped), .count = outer * length * inner};
    item->dims = ptc_rt_take(call, (size_t)rank, sizeof(int64_t));
    item->elements = ptc_rt_take(call, (size_t)item->count, bytes);
    if (!item->dims || !item->elements)
      return PTC_RT_FAULT_MEMORY;
    for (int64_t d = 0, to = 0; d < rank; d++)
      if (d != axis || !isDropped)
        item->dims[to++] = d == axis ? length : tensor[2 + d];
    for (int64_t o = 0; o < outer; o++)
      memcpy((char *)item->elements + (size_t)(o * length * inner) * bytes,
             (const char *)buffers[0] + (size_t)((o * whole + from) * inner) * bytes, (size_t)(length * inner) * bytes);
    from += length;
  }
  *(ptc_rt_sequence **)buffers[2] = count ? made : 0;
  return 0;
}
