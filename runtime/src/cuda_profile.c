/* Times of launches on a CUDA device, taken by events on the stream: what the device spent, not the host. A span
 * begins where its event says, counted from the event at the beginning of the run. */
#include "cuda.h"

#include <stdlib.h>
#include <string.h>

void ptc_cuda_begin_spans(ptc_rt_call_state *call) {
  ptc_cuda_ctx *own = call->ctx->device_ctx;
  const ptc_cuda_model *device = call->model->device_model;
  own->span_count = 0;
  if (!own->origin)
    device->driver.event_create(&own->origin, 0);
  if (own->origin)
    device->driver.event_record(own->origin, call->stream);
}

ptc_cuda_span *ptc_cuda_begin_span(ptc_rt_call_state *call, uint32_t site, int64_t blocks) {
  ptc_cuda_ctx *own = call->ctx->device_ctx;
  const ptc_cuda_model *device = call->model->device_model;
  if (own->span_count == own->span_capacity) {
    uint32_t capacity = 2 * own->span_capacity + 64;
    ptc_cuda_span *spans = realloc(own->spans, capacity * sizeof(*spans));
    if (!spans)
      return 0;
    memset(spans + own->span_capacity, 0, (capacity - own->span_capacity) * sizeof(*spans));
    own->spans = spans;
    own->span_capacity = capacity;
  }
  ptc_cuda_span *span = &own->spans[own->span_count];
  if (!span->begin && device->driver.event_create(&span->begin, 0) != 0)
    return 0;
  if (!span->end && device->driver.event_create(&span->end, 0) != 0)
    return 0;
  own->span_count++;
  span->site = site;
  span->blocks = blocks;
  device->driver.event_record(span->begin, call->stream);
  return span;
}

void ptc_cuda_end_span(ptc_rt_call_state *call, ptc_cuda_span *span) {
  const ptc_cuda_model *device = call->model->device_model;
  device->driver.event_record(span->end, call->stream);
}

/* The stream has come to its end. */
void ptc_cuda_record_spans(ptc_rt_call_state *call, uint64_t begin_ns) {
  ptc_cuda_ctx *own = call->ctx->device_ctx;
  const ptc_cuda_model *device = call->model->device_model;
  for (uint32_t i = 0; i < own->span_count; i++) {
    const ptc_cuda_span *span = &own->spans[i];
    float begin = 0, length = 0; /* milliseconds */
    if (device->driver.event_elapsed(&begin, own->origin, span->begin) != 0 ||
        device->driver.event_elapsed(&length, span->begin, span->end) != 0)
      continue;
    uint64_t from = begin_ns + (uint64_t)((double)begin * 1e6);
    ptc_rt_record_span(call, span->site, from, from + (uint64_t)((double)length * 1e6) + 1, span->blocks);
  }
}

void ptc_cuda_drop_spans(const ptc_cuda_driver *driver, ptc_cuda_ctx *own) {
  for (uint32_t i = 0; i < own->span_capacity; i++) {
    if (own->spans[i].begin)
      driver->event_destroy(own->spans[i].begin);
    if (own->spans[i].end)
      driver->event_destroy(own->spans[i].end);
  }
  if (own->origin)
    driver->event_destroy(own->origin);
  free(own->spans);
}
