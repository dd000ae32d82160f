/* Spans: what took how long, appended to the caller's memory.
 *
 * A place is taken by one atomic addition and then written by its owner alone, so that threads meet on nothing but the
 * count. Whoever reads after run has returned sees all spans of that run: a piece is recorded before it is reported as
 * completed. What it costs: two readings of the clock and one addition a span, some 60 ns; without a profile, one
 * comparison a launch and one a piece.
 */
#define _GNU_SOURCE
#include "runtime.h"

#include <string.h>
#include <time.h>

uint64_t ptc_rt_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void append(const ptc_rt_call_state *call, ptc_span *span) {
  ptc_profile *profile = call->model->profile;
  if (!span->end_ns)
    span->end_ns = ptc_rt_now();
  span->ctx = call->ctx;
  span->function = (uint32_t)(call->function - call->model->descriptor->functions);
  size_t index = __atomic_fetch_add(&profile->count, 1, __ATOMIC_RELAXED);
  if (index < profile->capacity) /* a caller's span may be of an older, shorter version */
    memcpy((char *)profile->spans + index * profile->span_size, span,
           profile->span_size < sizeof(*span) ? profile->span_size : sizeof(*span));
}

static ptc_span of_launch(const ptc_rt_call_state *call, uint32_t number, uint32_t kind, uint64_t begin_ns,
                          int64_t iterations) {
  const ptc_rt_launch_site *site = &call->variant->launches[number];
  const char *const *names = call->model->descriptor->kernel_names;
  return (ptc_span){.begin_ns = begin_ns,
                    .kernel = names ? names[site->kernel] : "",
                    .nodes = site->nodes ? site->nodes : "",
                    .end = iterations,
                    .kind = kind,
                    .launch = number};
}

void ptc_rt_record_run(const ptc_rt_call_state *call, uint64_t begin_ns) {
  const ptc_rt_variant *variant = call->variant;
  ptc_span span = {.begin_ns = begin_ns, .kernel = variant->pins ? variant->name : NULL, .kind = PTC_SPAN_RUN};
  append(call, &span);
}

void ptc_rt_record_launch(const ptc_rt_task *task, uint64_t begin_ns) {
  ptc_span span = of_launch(task->profiled, task->site, PTC_SPAN_LAUNCH, begin_ns, task->iterations);
  append(task->profiled, &span);
}

/* A launch whose times were taken elsewhere, by a device. */
void ptc_rt_record_span(const ptc_rt_call_state *call, uint32_t site, uint64_t begin_ns, uint64_t end_ns,
                        int64_t iterations) {
  ptc_span span = of_launch(call, site, PTC_SPAN_LAUNCH, begin_ns, iterations);
  span.end_ns = end_ns;
  append(call, &span);
}

void ptc_rt_record_piece(const ptc_rt_task *task, int64_t begin, int64_t end, uint32_t participant, uint64_t begin_ns) {
  ptc_span span = of_launch(task->profiled, task->site, PTC_SPAN_PIECE, begin_ns, task->iterations);
  span.begin = begin;
  span.end = end;
  span.thread = participant;
  append(task->profiled, &span);
}
